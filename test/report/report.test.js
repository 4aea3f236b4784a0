'use strict'

// The content of a report: blockers, the slowest requests, trees, comparison, CSV, layout.

const test = require('ava')
const fs = require('node:fs')
const path = require('node:path')
const { file, folder, longstack, nanos, report, span, split } = require('../helpers/span-files')

const STACK = `    at work (/app/heavy.js:3:5)
    at handler (/app/heavy.js:9:1)
  ── http connection accepted · HTTPINCOMINGMESSAGE · 71 ms earlier ──
    at start (/app/index.js:1:1)`

/** A slow request, its blocking callbacks, and the spans that it delayed. */
function incident () {
  const slow = span({ name: 'GET /slow', ms: 130, attributes: split({ run: 120, waited: 10 }, { unknown: 10 }) })
  const run = (/** @type {number} */ ms, /** @type {string} */ stack) => ({
    ...span({ name: 'blocked', kind: 'INTERNAL', ms, attributes: { 'longstack.blocked_ms': ms, 'code.stacktrace': stack } }),
    traceId: slow.traceId,
    parentSpanId: slow.spanId
  })
  const victim = (/** @type {number} */ ms, /** @type {string} */ at) => span({
    name: 'GET /cheap',
    ms: ms + 3,
    attributes: {
      ...split({ run: 1, waited: 2, delayed: ms }, { TIMER: 1.4, TCP: 0.6 }, [
        { ms: 1.3, at: 'nap (/app/lib/nap.js:3:9)', until: 'TIMER', label: 'setTimeout(1)' },
        { ms: 0.4, count: 2, at: 'load (/app/lib/user.js:7:11) via pg', until: 'TCP 127.0.0.1:5432', label: 'await' },
        { ms: 0.2, until: 'TCP 127.0.0.1:5432' },
        { ms: 0.1, at: 'last (/app/lib/nap.js:9:9)', until: 'TIMER' }
      ]),
      'url.path': '/cheap/1',
      'longstack.delayed_by': [{ spanId: slow.spanId, name: 'GET /slow', ms, at }, { ms: 0.4 }]
    }
  })
  return [run(50, STACK), run(70, STACK.replace(':3:5', ':4:5')), victim(45, 'work (/app/heavy.js:3:5)'), victim(60, 'work (/app/heavy.js:3:5)'), slow]
}

test('blockers: blocking callbacks and the delays they caused, by function', async (t) => {
  const { model } = await report([file(t, incident())])
  const [worst, outside] = model.blockers
  t.like(worst, { name: 'GET /slow', at: 'work (/app/heavy.js:3:5)', count: 2, totalMs: 120, worstMs: 70, delayedSpans: 2, delayedMs: 105, known: 'runs', open: false })
  t.true(worst.stack.startsWith('    at work (/app/heavy.js:4:5)'), 'the stack of the longest callback')
  t.like(outside, { name: '(outside of any request)', delayedSpans: 2, delayedMs: 0.8, known: 'delays' })
  t.is(model.blockers.length, 2)
  t.false(model.routes.some((/** @type {any} */ { name }) => name === 'blocked'), 'a blocking callback is no route')
})

test('without recorded callbacks, blockers are known by the delays alone', async (t) => {
  const { model } = await report([file(t, incident().filter(({ name }) => name !== 'blocked'))])
  t.like(model.blockers[0], { name: 'GET /slow', at: 'work (/app/heavy.js:3:5)', known: 'delays', count: 1, totalMs: 60, worstMs: 60, delayedSpans: 2, delayedMs: 105 })
})

test('a callback that had not ended is reported with what is known', async (t) => {
  const attributes = { 'longstack.blocked_ms': 900, 'longstack.end': 'open', 'code.stacktrace': STACK }
  const spinning = span({ name: 'blocked', kind: 'INTERNAL', ms: 900, attributes })
  const { model } = await report([file(t, [span({ name: 'GET /' }), spinning])])
  t.like(model.blockers[0], { at: 'work (/app/heavy.js:3:5)', name: '(outside of any request)', open: true, totalMs: 900 })
  t.like(model.open[0], { blocked: true, ms: 900 })
  const ended = { ...spinning, endTimeUnixNano: nanos(1000), attributes: { ...spinning.attributes, 'longstack.end': undefined, 'longstack.blocked_ms': 1000 } }
  const after = (await report([file(t, [spinning, ended])])).model
  t.like(after.blockers[0], { open: false, count: 1, totalMs: 1000 })
  t.deepEqual(after.open, [])
})

test('a blocking callback names its request, also one that was written before it, or never', async (t) => {
  const run = (/** @type {number} */ ms, more = {}) => span({
    name: 'blocked',
    kind: 'INTERNAL',
    ms,
    parentSpanId: '00000000000000aa',
    attributes: { 'longstack.blocked_ms': ms, 'code.stacktrace': STACK, 'longstack.blocked_by': 'GET /slow', ...more }
  })
  const before = (await report([file(t, [span({ name: 'GET /slow', spanId: '00000000000000aa' }), run(100)])])).model
  t.like(before.blockers[0], { name: 'GET /slow', open: false })
  const killed = file(t, [span(), run(900, { 'longstack.end': 'open' })])
  const { model } = await report([killed])
  t.like(model.blockers[0], { name: 'GET /slow', open: true })
  t.is(model.open[0].blockedBy, 'GET /slow')
  const { stdout } = await longstack(['report', killed])
  t.true(stdout.includes('  GET /slow at work (/app/heavy.js:3:5)\n    blocked the event loop 1 time: 900 ms in total'))
  t.true(stdout.includes('  a blocking callback of GET /slow, open for 900 ms when written'))
})

test('frames of Node and of modules are not blamed where one of the program is below', async (t) => {
  const inside = ['JSON.parse (node:internal/x:1:1)', 'parse (/app/node_modules/x/i.js:1:1)', 'mine (/app/mine.js:7:1)'].map((frame) => `    at ${frame}`)
  const stack = [...inside, '  ── setTimeout(1) · Timeout · 1 ms earlier ──', '    at other (/app/o.js:1:1)'].join('\n')
  const { model } = await report([file(t, [span({ name: 'blocked', kind: 'INTERNAL', attributes: { 'longstack.blocked_ms': 60, 'code.stacktrace': stack } })])])
  t.is(model.blockers[0].at, 'mine (/app/mine.js:7:1)')
})

test('the slowest come with their time, who delayed them, and the tree of their trace', async (t) => {
  const runs = { 'longstack.runs': [[0, 2, 'Timeout'], [30, 3, 'TCPWRAP']], 'code.stacktrace': STACK }
  const root = span({ name: 'GET /a', ms: 50, attributes: { ...runs, ...split({ run: 5, waited: 40, delayed: 5 }, { TCP: 40 }) } })
  const child = { ...span({ name: 'GET', kind: 'CLIENT', at: 2, ms: 20, attributes: { 'server.address': 'db', 'server.port': 1 } }), traceId: root.traceId, parentSpanId: root.spanId }
  const others = Array.from({ length: 40 }, (_, i) => span({ ms: i / 10 }))
  const { model } = await report([file(t, [child, root, ...others])])
  t.is(model.slowest.length, 20)
  t.like(model.slowest[0], { name: 'GET /a', ms: 50, stack: STACK, runs: runs['longstack.runs'] })
  t.deepEqual(model.slowest[0].split, { run: 5, waited: 40, delayed: 5, wait: { TCP: 40 } })
  t.true(
    model.slowest.every(
      (/** @type {any} */ { ms }, /** @type {number} */ i) => i === 0 || ms <= model.slowest[i - 1].ms
    )
  )
  t.deepEqual(model.traces[root.traceId].map((/** @type {any} */ { name, parentSpanId }) => [name, parentSpanId]), [['GET /a', undefined], ['GET', root.spanId]])
})

test('as text: quartiles under R\'s names, a curve, a box, the breakdown of the time, blockers', async (t) => {
  const cheap = Array.from({ length: 60 }, (_, i) => span({ name: 'GET /cheap', ms: 2 + (i % 10) / 10, at: i, failed: i === 3 }))
  const open = span({ name: 'GET /hang', ms: 77, attributes: { 'longstack.end': 'open', 'url.path': '/hang' } })
  const { stdout, stderr, code } = await longstack(['report', file(t, [...cheap, ...incident(), open])])
  t.is(code, 0)
  t.is(stderr, '')
  t.regex(stdout, /^66 spans in 1 file, 2025-11-21 00:40:00\.000 to 2025-11-21 00:40:00\.130 UTC \(130 ms\)\n/)
  t.regex(stdout, /^GET \/cheap {2}62 spans, 477\/s, 1 error\n +Min\. +1st Qu\. +Median +Mean +3rd Qu\. +Max\. +p99 +p99\.9 {2}ms$/m)
  t.regex(stdout, /^ +2\.000 +2\.200 +2\.500 +4\.161 +2\.700 +63\.00 /m)
  t.regex(stdout, /^ {2}density {2}.*[▁▂▃▄▅▆▇█]/m)
  t.regex(stdout, /^ {2}box {6}.*├?─*▒+┃▒*/m)
  t.regex(stdout, /^ {2}means {4}run 1\.00 ms · wait 2\.00 ms \(TIMER 1\.40 ms, TCP 600 µs\) · delayed 52\.5 ms$/m)
  t.regex(stdout, /^GET \/hang {2}0 spans, 0\/s, 1 open$/m)
  t.regex(stdout, /Blockers\n {2}GET \/slow at work \(\/app\/heavy\.js:3:5\)\n/)
  t.regex(stdout, /^ {4}blocked the event loop 2 times: 120 ms in total, 70\.0 ms at most; delayed 2 spans by 105 ms in total$/m)
  t.regex(stdout, /Slowest\n +130 ms {2}GET \/slow .*trace [0-9a-f]{32}\n +run 120 ms · wait 10\.0 ms \(unknown 10\.0 ms\) · delayed 0 µs\n/)
  t.regex(stdout, /63\.0 ms {2}GET \/cheap \(\/cheap\/1\) .*\n(?:.*\n){4} +delayed by GET \/slow 60\.0 ms at work \(\/app\/heavy\.js:3:5\), code outside any span 400 µs\n/)
  t.true(stdout.includes(`
            waited at nap (nap.js:3) · 1.30 ms · until TIMER
            waited at load (user.js:7) via pg · 400 µs in 2 waits · until TCP 127.0.0.1:5432
            waited · 200 µs · until TCP 127.0.0.1:5432
            delayed by`), 'the worst three waits')
  t.regex(stdout, /Still open\n {2}GET \/hang, open for 77\.0 ms when written, since 00:40:00\.000, trace/)
  t.true(stdout.split('\n').every((line) => line.length <= 160 && line === line.trimEnd()))
})

test('plots fit the terminal\'s width, and --top limits the lists', async (t) => {
  const records = Array.from({ length: 90 }, (_, i) => span({ name: `GET /${i % 15}`, ms: 1 + i, at: i }))
  const to = file(t, records)
  const { stdout } = await longstack(['report', to], { env: { COLUMNS: '60' } })
  t.true(stdout.split('\n').filter((line) => /^ {2}(density|box)/.test(line)).every((line) => line.length <= 60))
  t.is(stdout.match(/^GET \/\d+ {2}/gm)?.length, 10)
  t.regex(stdout, /^… 5 more routes; use --top 15 to print all$/m)
  const all = await longstack(['report', '--top', '15', to])
  t.is(all.stdout.match(/^GET \/\d+ {2}/gm)?.length, 15)
  t.is(all.stdout.match(/^ +\d\S* ms {2}GET/gm)?.length, 15)
})

test('colours only where they are wanted', async (t) => {
  const to = file(t, incident())
  const plain = await longstack(['report', to])
  t.false(plain.stdout.includes('\u001b'))
  const coloured = await longstack(['report', to], { env: { FORCE_COLOR: '1' } })
  t.true(coloured.stdout.includes('\u001b['))
  t.is(require('node:util').stripVTControlCharacters(coloured.stdout), plain.stdout)
})

test('two runs: the change of each figure, both curves on one axis, what only one has', async (t) => {
  const run = (/** @type {number} */ factor, /** @type {unknown[]} */ ...more) => {
    const spans = Array.from({ length: 40 }, (_, i) => span({ name: 'GET /a', ms: (10 + i / 4) * factor, at: i * 100 }))
    return file(t, [...spans, ...more], `run${factor}.jsonl`)
  }
  const [a, b] = [run(1, span({ name: 'GET /old' })), run(2, span({ name: 'GET /new' }))]
  const { stdout, code } = await longstack(['report', a, '--compare', b])
  t.is(code, 0)
  t.regex(stdout, /^A {2}\S+run1\.jsonl: 41 spans.*\nB {2}\S+run2\.jsonl: 41 spans/)
  t.regex(stdout, /\nGET \/a\n {2}A {2}40 spans.*\n {2}B {2}40 spans/)
  t.regex(stdout, /\n {2}A +10\.00 +12\.44 +14\.88 .*\n {2}B +20\.00 +24\.88 +29\.75 .*\n +\+100% +\+100% +\+100% +\+100% +\+100% +\+100% +\+100% +\+100%\n/)
  const [curveA, curveB] = ['A', 'B'].map((letter) => String(new RegExp(`^  ${letter} density  (.*)$`, 'm').exec(stdout)?.[1]))
  t.true(middle(curveA) < middle(curveB), 'the slower run lies to the right')
  t.regex(stdout, /^only in A: GET \/old$/m)
  t.regex(stdout, /^only in B: GET \/new$/m)
  t.regex(stdout, /^A {2}Slowest$/m)

  const { model } = await report([a, '--compare', b])
  t.is(model.compare.routes.find((/** @type {any} */ { name }) => name === 'GET /a').summary.max, 39.5)
  t.is(model.compare.compare, undefined)
})

/** Where a line has its weight. @param {string} line */
function middle (line) {
  const heights = [...line].map((sign) => ' ▁▂▃▄▅▆▇█'.indexOf(sign))
  return (
    heights.reduce((sum, height, i) => sum + height * i, 0) / heights.reduce((sum, height) => sum + height, 0)
  )
}

test('as CSV: a line a route, exact figures, no formula for a spreadsheet', async (t) => {
  const name = '=cmd|"x"!A1'
  const hanging = span({ name: 'GET /hang', attributes: { 'longstack.end': 'open' } })
  const { stdout, code } = await longstack(['report', '--csv', file(t, [span({ name, ms: 1.25 }), span({ name, ms: 2.5 }), hanging])])
  t.is(code, 0)
  const [head, ...rows] = stdout.split('\r\n')
  t.regex(head, /^run,name,kind,count,weighted,rate,errors,open,min_ms,q1_ms,median_ms,mean_ms,/)
  t.true(rows[0].startsWith('A,"\'=cmd|""x""!A1",SERVER,2,2,800,0,0,1.25,1.5625,1.875,1.875,2.1875,2.5,'), rows[0])
  t.true(rows[1].startsWith('A,"GET /hang",SERVER,0,0,0,0,1,,,'))
  t.is(rows[2], '')
})

test('a page is written to a file, and only there', async (t) => {
  const to = path.join(folder(t), 'page.html')
  const { stdout, stderr, code } = await longstack(['report', file(t, incident()), '--html', to])
  t.is(code, 0)
  t.is(stdout, '')
  t.regex(stderr, /^Wrote .*page\.html/)
  const page = fs.readFileSync(to, 'utf8')
  t.regex(page, /^<!doctype html>/i)
  t.true(page.includes('GET /slow'))
  const printed = await longstack(['report', file(t, incident()), '--html', '-'])
  t.regex(printed.stdout, /^<!doctype html>/i)
})
