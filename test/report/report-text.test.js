'use strict'

// The report as text: order, waits of requests, trees, widths, colours.

const test = require('ava')
const { stripVTControlCharacters } = require('node:util')
const { createModel } = require('../../report/aggregate/model')
const { report } = require('../../report/render/text')
const { incident } = require('../helpers/incident')
const { file, longstack, span, split } = require('../helpers/span-files')

/** @param {string[]} args @param {Record<string, string>} [env] */
async function text (args, env = {}) {
  const { stdout, stderr, code } = await longstack(['report', ...args], { env: { COLUMNS: '80', ...env } })
  return { lines: stdout.split('\n'), stdout, stderr, code }
}

const QUERY = 'pool.query (/app/lib/pool.js:34:9) via pg'
const REPORT = 'report (/app/app.js:24:3)'
const UNTIL = 'TCP 127.0.0.1:5432'

/** A service whose reports wait for a pool, and 40 users that wait for a timer. */
function service () {
  const report = (/** @type {number} */ i) => span({
    name: 'GET /report',
    at: i * 10,
    ms: 100,
    attributes: split({ run: 10, waited: 70 + i, delayed: 20 - i }, { TCP: 70 + i }, /** @type {any} */ ([
      { ms: 60 + i, count: 5, at: QUERY, callers: [REPORT, 'handle (/app/app.js:9:1)', 'main (/app/app.js:2:1)'], until: UNTIL, label: 'await' },
      { ms: 10, at: 'nap (/app/app.js:40:5)', callers: [REPORT], until: 'TIMER', label: 'setTimeout(10)' }
    ]))
  })
  const user = (/** @type {number} */ i) => span({
    name: 'GET /user',
    at: i * 5,
    ms: 5,
    failed: i % 20 === 0,
    attributes: split({ run: 1, waited: 4 }, { TIMER: 4 }, [{ ms: 4, at: 'nap (/app/users/app.js:7:5)', until: 'TIMER' }])
  })
  const tiny = span({ name: 'GET /tiny', ms: 0.1 })
  const reports = Array.from({ length: 11 }, (_, i) => report(i))
  return [...reports, ...Array.from({ length: 40 }, (_, i) => user(i)), tiny]
}

test('routes by total time, each with its sites of waiting, worst first', async (t) => {
  const { stdout, stderr, code } = await text([file(t, service())])
  t.is(code, 0)
  t.is(stderr, '')
  const second = stdout.lastIndexOf('\n', stdout.indexOf('at 00:40:00.010')) + 1
  t.is(stdout.slice(0, second), `\
52 spans in 1 file, 2025-11-21 00:40:00.000 to 00:40:00.200 UTC (200 ms)

Verdict  no definite problem found

GET /report  11 spans, 55.0/s, 85 % of the time
  median 100 ms, p99 100 ms, max 100 ms; run 10 %, waited 75 %, delayed 15 %
    65 %  at pool.query (pool.js:34) via pg ← report (app/app.js:24)
            until TCP 127.0.0.1:5432
          715 ms in 55 waits, 65.0 ms per request (62.5 ms to 67.5 ms)
    10 %  at nap (app/app.js:40) ← report (app/app.js:24) until TIMER
          110 ms in 11 waits, 10.0 ms per request (10.0 ms to 10.0 ms)

GET /user  40 spans, 200/s, 2 errors, 15 % of the time
  median 5.00 ms, p99 5.00 ms, max 5.00 ms; run 20 %, waited 80 %, delayed 0 %
    80 %  at nap (users/app.js:7) until TIMER
          160 ms in 40 waits, 4.00 ms per request (4.00 ms to 4.00 ms)

… 1 more route: GET /tiny (--top N prints more)

What failed
  2 × error
      in GET /user, from 00:40:00.005 to 00:40:00.105

Slowest
    100 ms  GET /report  at 00:40:00.000, trace ${stdout.match(/trace (\w+)/)?.[1]}
            run 10.0 ms · wait 70.0 ms · delayed 20.0 ms
            waited 60.0 ms in 5 waits at pool.query (pool.js:34) via pg
              until TCP 127.0.0.1:5432
`)
  t.true(stdout.endsWith(`
--full prints quartiles, densities, all waits and stacks; --tree where the time
went along chains of calls.
`))
  t.true(stdout.split('\n').length < 60, 'it is readable in two screens')
})

test('sites that share frame and caller show the caller that differs; delay-only sites are shown', async (t) => {
  const sites = ['8:31', '8:52'].map((place, i) => ({
    ms: 40 - i, at: 'acquire (/app/app.js:5:9)', callers: ['query (/app/app.js:7:3)', `/app/app.js:${place}`], until: UNTIL
  }))
  const spans = [
    span({ name: 'GET /a', ms: 90, attributes: split({ run: 11, waited: 79 }, {}, sites) }),
    span({ name: 'GET /b', ms: 90, attributes: split({ run: 10, delayed: 80 }, {}, [{ ms: 0, delayed: 80, at: REPORT }]) })
  ]
  const { stdout } = await text([file(t, spans)], { COLUMNS: '200' })
  t.regex(stdout, /at acquire \(app\.js:5\) ← query \(app\.js:7\) ← app\.js:8:31 until TCP/)
  t.regex(stdout, /at acquire \(app\.js:5\) ← query \(app\.js:7\) ← app\.js:8:52 until TCP/)
  t.regex(stdout, /0 % {2}at report \(app\.js:24\)\n +0 µs in 1 wait, delayed 80\.0 ms/)
})

test('six routes fit two screens, the most important first', async (t) => {
  const routes = Array.from({ length: 6 }, (_, route) => Array.from({ length: 40 }, (_, i) => span({
    name: `GET /route${route}`,
    at: i * 10,
    ms: 10 * (route + 1),
    failed: i % 7 === route,
    attributes: split({ run: 2, waited: 10 * route + 8 }, { TCP: 8 }, /** @type {any} */ ([
      { ms: 5 * (route + 1), at: QUERY, callers: [REPORT], until: UNTIL },
      { ms: 3 * (route + 1), at: 'render (/app/lib/view.js:3:9)', callers: [REPORT], until: 'FS' }
    ]))
  })))
  const { stdout, lines } = await text([file(t, [...routes.flat(), ...incident()])])
  t.true(lines.length <= 80, stdout)
  const order = ['Verdict', ...[5, 4, 3, 2, 1, 0].map((route) => `GET /route${route}  40`), 'What failed', 'Blockers', 'Slowest', '--full']
  const positions = order.map((start) => stdout.indexOf(`\n${start}`))
  t.deepEqual(positions, [...positions].sort((a, b) => a - b))
  t.false(positions.includes(-1))
})

test('the tree can show all requests, one route, or the slowest 1 %', async (t) => {
  const to = file(t, service())
  const all = await text([to, '--tree'])
  t.is(all.stdout.slice(all.stdout.indexOf('Where')), `\
Where the time went
  100 %   1.30 s  all requests × 51
 84.6 %   1.10 s    GET /report × 11
 55.0 %   715 ms      main (app/app.js:2) → handle (app/app.js:9)
                        → report (app/app.js:24)
                        → pool.query (pool.js:34) via pg
                        ░ waited: TCP 127.0.0.1:5432 × 55
 12.7 %   165 ms      ▒ delayed by others
  8.5 %   110 ms      report (app/app.js:24) → nap (app/app.js:40)
                        ░ waited: TIMER × 11
  8.5 %   110 ms      █ ran × 11
 15.4 %   200 ms    GET /user × 40
 12.3 %   160 ms      nap (users/app.js:7) ░ waited: TIMER × 40
  3.1 %  40.0 ms      █ ran × 40
`)
  const only = await text([to, '--tree', '--route', 'GET /rep*'])
  t.regex(only.stdout, /^ {2}100 % +1\.10 s {2}GET \/report × 11$/m)
  t.notRegex(only.stdout, /GET \/user/)
  const slow = await text([to, '--slowest'])
  t.regex(slow.stdout, /^Where the time of the slowest 1 % of each route went\n {2}100 % .* all requests × 2$/m)
  const without = await text([file(t, [span()]), '--tree'])
  t.regex(without.stdout, /^Where the time went {2}not known: no span has waits with their sites$/m)
})

test('--route shows only that route; an unknown one gets a suggestion', async (t) => {
  const to = file(t, service())
  const { stdout, code } = await text([to, '--route', 'GET /user'])
  t.is(code, 0)
  t.notRegex(stdout, /GET \/report/)
  t.regex(stdout, /^GET \/user {2}40 spans/m)
  const wrong = await text([to, '--route', 'GET /usr'])
  t.is(wrong.code, 2)
  t.regex(wrong.stderr, /^longstack: No route matches "GET \/usr"\. Did you mean "GET \/user"\?$/m)
})

test('the full report has R\'s quartiles, a curve, a box, the parts of the time, and all waits', async (t) => {
  const cheap = Array.from({ length: 60 }, (_, i) => span({ name: 'GET /cheap', ms: 2 + (i % 10) / 10, at: i, failed: i === 3 }))
  const open = span({ name: 'GET /hang', ms: 77, attributes: { 'longstack.end': 'open', 'url.path': '/hang' } })
  const { stdout, stderr, code } = await text([file(t, [...cheap, ...incident(), open]), '--full'], { COLUMNS: '120' })
  t.is(code, 0)
  t.is(stderr, '')
  t.regex(stdout, /^66 spans in 1 file, 2025-11-21 00:40:00\.000 to 00:40:00\.130 UTC \(130 ms\)\n/)
  t.regex(stdout, /^GET \/cheap {2}62 spans, 477\/s, 1 error, 66 % of the time\n +Min\. +1st Qu\. +Median +Mean +3rd Qu\. +Max\. +p99 +p99\.9 {2}ms$/m)
  t.regex(stdout, /^ +2\.000 +2\.200 +2\.500 +4\.161 +2\.700 +63\.00 /m)
  t.regex(stdout, /^ {2}density {2}.*[▁▂▃▄▅▆▇█]/m)
  t.regex(stdout, /^ {2}box {6}.*├?─*▒+┃▒*/m)
  t.regex(stdout, /^ {2}means {4}run 1\.00 ms · wait 2\.00 ms \(TIMER 1\.40 ms, TCP 600 µs\) · delayed 52\.5 ms$/m)
  t.regex(stdout, /^ +1\.0 % {2}at nap \(nap\.js:3\) until TIMER$/m)
  t.regex(stdout, /^GET \/hang {2}0 spans, 0\/s, 1 open$/m)
  t.regex(stdout, /Blockers\n {2}GET \/slow at work \(\/app\/heavy\.js:3:5\)\n/)
  t.regex(stdout, /^ {4}blocked the event loop 2 times: 120 ms total, 70\.0 ms max; delayed 2 spans by 105 ms total$/m)
  t.notRegex(stdout, /outside of any request/, 'less than 1 % of what was blocked is left out')
  t.regex(stdout, /Slowest\n +130 ms {2}GET \/slow .*trace [0-9a-f]{32}\n +run 120 ms · wait 10\.0 ms \(unknown 10\.0 ms\) · delayed 0 µs\n/)
  t.true(stdout.includes(`
            waited 1.30 ms at nap (nap.js:3) until TIMER
            waited 400 µs in 2 waits at load (user.js:7) via pg until TCP 127.0.0.1:5432
            waited 200 µs at an unknown site until TCP 127.0.0.1:5432
            delayed by GET /slow 60.0 ms at work (heavy.js:3), code outside any span 400 µs
`), 'the worst three waits, and who delayed it')
  t.regex(stdout, /Still open\n {2}GET \/hang, open for 77\.0 ms when written, since 00:40:00\.000, trace/)
})

test('failures are listed by message and place, with routes, times and one chain', async (t) => {
  const failing = (/** @type {string} */ name, /** @type {number} */ id) => span({
    name,
    at: id,
    failed: true,
    events: [{
      name: 'exception',
      timeUnixNano: `${1763685600000 + id}000000`,
      attributes: {
        'exception.type': 'Error',
        'exception.message': `user ${id} not found`,
        'exception.stacktrace': `Error: user ${id} not found\n    at load (/app/users.js:3:9)\n  ── GET /a · 2 ms earlier ──\n    at route (/app/index.js:8:1)`
      }
    }]
  })
  const other = span({ name: 'GET /b', failed: true, attributes: { 'http.response.status_code': 503 } })
  const { stdout } = await text([file(t, [failing('GET /a', 1), failing('GET /b', 4), failing('GET /a', 2), other])])
  t.true(stdout.includes(`
What failed
  3 × Error: user * not found at load (users.js:3)
      in GET /a (2), GET /b (1), from 00:40:00.001 to 00:40:00.004
    at load (/app/users.js:3:9)
  ── GET /a · 2 ms earlier ──
    at route (/app/index.js:8:1)
  1 × 503
      in GET /b, at 00:40:00.001
`.replace(/^ {4}at /gm, '        at ').replace(/^ {2}──/m, '      ──')), stdout)
})

test('lines fit the width and break between words, in every format', async (t) => {
  const long = 'a'.repeat(150)
  const records = [...service(), ...incident(), span({ name: `GET /${long}` }), span({ name: '東京 '.repeat(30), ms: 3 })]
  const [a, b] = [file(t, records, 'a.jsonl'), file(t, [...records.slice(5), span({ name: 'GET /new' })], 'b.jsonl')]
  const [one, two] = [await createModel([a]), await createModel([a], { compare: [b] })]
  /** @type {Array<(options: import('../../report/render/text-parts').TextOptions) => string>} */
  const forms = [
    (options) => report(one, options),
    (options) => report(one, { ...options, full: true }),
    (options) => report(one, { ...options, tree: 'all' }),
    (options) => report(two, options),
    (options) => report(two, { ...options, full: true })
  ]
  for (const form of forms) {
    const words = new Set(form({ width: 120 }).split(/\s+/))
    for (const width of [40, 60, 80]) {
      for (const line of form({ width }).split('\n')) {
        t.is(line, line.trimEnd())
        // What is drawn is drawn anew; figures are left out of narrow tables.
        const isDrawn = /^ *[AB]? *(density|box)|[▁▂▃▄▅▆▇█▒┃├]/.test(line)
        for (const word of isDrawn ? [] : line.split(/\s+/)) t.true(words.has(word), `${width}: "${word}" is broken: ${line}`)
        // One thing that is longer than the line: a name, a frame, a trace, a path of a file.
        if (line.length > width) t.regex(line, /a{100}|東京|\(.*\.js:\d+|trace \w{32}|\.jsonl|^ +at |──|TCP \S+:\d+$/, `${width}: ${line}`)
      }
    }
  }
})

test('plots fit the width, tables drop columns, and --top limits the lists', async (t) => {
  const records = Array.from({ length: 90 }, (_, i) => span({ name: `GET /${i % 15}`, ms: 1 + i, at: i }))
  const to = file(t, records)
  const narrow = await text([to, '--full'], { COLUMNS: '40' })
  t.true(narrow.lines.filter((line) => /^ {2}(density|box)/.test(line)).every((line) => line.length <= 40))
  t.regex(narrow.stdout, /^ +Median +Mean +Max\. +p99 {2}ms$/m)
  const short = await text([to])
  t.is(short.stdout.match(/^GET \/\d+ {2}/gm)?.length, 8)
  t.regex(short.stdout, /^… 7 more routes: GET \/\d+, /m)
  const all = await text(['--top', '15', to])
  t.is(all.stdout.match(/^GET \/\d+ {2}/gm)?.length, 15)
  t.is(all.stdout.match(/^ +\d\S* ms {2}GET/gm)?.length, 15)
})

test('without COLUMNS and a terminal, a line has 80 columns', async (t) => {
  const { lines } = await text([file(t, service()), '--full'], { COLUMNS: '' })
  t.is(Math.max(...lines.filter((line) => /^ {11}\S+ \S+ +\S+ \S+$/.test(line)).map((line) => line.length)), 80)
})

test('colours appear only if wanted', async (t) => {
  const to = file(t, [...incident(), ...service()])
  for (const args of [[to], [to, '--full'], [to, '--tree'], [to, '--compare', to]]) {
    const plain = await text(args)
    t.false(plain.stdout.includes('\u001b'))
    const coloured = await text(args, { FORCE_COLOR: '1' })
    t.true(coloured.stdout.includes('\u001b['))
    t.is(stripVTControlCharacters(coloured.stdout), plain.stdout)
    for (const line of coloured.lines) t.is(line.split('\u001b[').length % 2, 1, 'a colour ends in its line')
  }
})
