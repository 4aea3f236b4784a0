'use strict'

// Two runs: changes of figures, waits and blockers, as text, JSON and Markdown; and limits in CI.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { file, folder, longstack, report, span, split } = require('../helpers/span-files')
const { node, register } = require('../helpers/run')

/** @param {string[]} args @param {Record<string, string>} [env] */
function run (args, env = {}) {
  return longstack(['report', ...args], { env: { COLUMNS: '120', ...env } })
}

/**
 * A run of 40 requests, in a directory, with a query whose line and length differ.
 * @param {import('ava').ExecutionContext} t
 * @param {{ factor?: number, line?: number, directory?: string, failures?: number, blocked?: number,
 *   more?: unknown[] }} [options]
 */
function service (t, { factor = 1, line = 34, directory = '/base', failures = 0, blocked = 0, more = [] } = {}) {
  const requests = Array.from({ length: 40 }, (_, i) => span({
    name: 'GET /a',
    ms: (10 + i / 4) * factor,
    at: i * 100,
    failed: i < failures,
    attributes: split({ run: 1, waited: 9 * factor }, { TCP: 9 * factor }, /** @type {any} */ ([
      { ms: 8 * factor, at: `query (${directory}/lib/pool.js:${line}:9) via pg`, callers: [`load (${directory}/app.js:9:1)`], until: `TCP 127.0.0.1:${5432 + line}` },
      { ms: factor, at: `render (${directory}/lib/view.js:3:9)`, until: 'FS' }
    ]))
  }))
  const blocking = Array.from({ length: blocked }, (_, i) => span({
    name: 'blocked',
    kind: 'INTERNAL',
    at: i,
    ms: 30,
    attributes: { 'longstack.blocked_ms': 30, 'longstack.blocked_by': 'GET /a', 'code.stacktrace': `    at hash (${directory}/lib/hash.js:${line}:1)` }
  }))
  return file(t, [...requests, ...blocking, ...more], `run${factor}.jsonl`)
}

test('the change of each figure, data of only one run, and the requests of both in full', async (t) => {
  const [a, b] = [service(t, { more: [span({ name: 'GET /old' })] }), service(t, { factor: 2, more: [span({ name: 'GET /new' })] })]
  const { stdout, code } = await run([a, '--compare', b])
  t.is(code, 0)
  t.regex(stdout, /^A {2}\S+run1\.jsonl: 41 spans/)
  t.regex(stdout, /^B {2}\S+run2\.jsonl: 41 spans/m)
  t.regex(stdout, /\nGET \/a {2}A 40 spans, 10\.2\/s; B 40 spans, 10\.2\/s\n/)
  t.regex(stdout, /\n {2}A +10\.00 +12\.44 +14\.88 .*\n {2}B +20\.00 +24\.88 +29\.75 .*\n +\+100% +\+100% +\+100% +\+100% +\+100% +\+100% +\+100% +\+100%\n/)
  t.regex(stdout, /^ {2}means {2}run 1\.00 ms → 1\.00 ms · wait 9\.00 ms → 18\.0 ms · delayed 0 µs → 0 µs$/m)
  t.regex(stdout, /^only in A: GET \/old$/m)
  t.regex(stdout, /^only in B: GET \/new$/m)
  t.notRegex(stdout, /density/)

  const full = (await run([a, '--compare', b, '--full'])).stdout
  t.regex(full, /^A {2}Slowest$/m)
})

test('waits and blockers are matched by function, not by line or directory, worst change first', async (t) => {
  const [a, b] = [service(t, { blocked: 4 }), service(t, { factor: 1.5, line: 40, directory: '/build/17/new', blocked: 8 })]
  const { model } = await report([a, '--compare', b])
  const { routes, sites, blockers } = model.changes
  t.like(routes[0], { name: 'GET /a', kind: 'SERVER', before: { p50: 14.875, count: 40 }, after: { p50: 22.3125 } })
  const figuresOf = (/** @type {any} */ { at: frame, beforeMs, afterMs, change, changeMs }) =>
    [frame, beforeMs, afterMs, change, changeMs]
  t.deepEqual(sites.map(figuresOf), [
    ['query (/build/17/new/lib/pool.js:40:9) via pg', 8, 12, 4, 160],
    ['render (/build/17/new/lib/view.js:3:9)', 1, 1.5, 0.5, 20]
  ])
  t.deepEqual(blockers, [{ name: 'GET /a', at: 'hash (/build/17/new/lib/hash.js:40:1)', beforeMs: 3, afterMs: 6, change: 3 }])

  const { stdout } = await run([a, '--compare', b])
  t.true(stdout.includes(`
Waits that changed most  per request
  +4.00 ms GET /a at query (pool.js:40) via pg ← load (app.js:9) until TCP 127.0.0.1:5472 (8.00 ms → 12.0 ms, +50 %)
   +500 µs GET /a at render (view.js:3) until FS (1.00 ms → 1.50 ms, +50 %)

Blockers that changed most  per request
  +3.00 ms GET /a at hash (hash.js:40) (3.00 ms → 6.00 ms, +100 %)
`), stdout)
  const back = await report([b, '--compare', a])
  t.deepEqual(back.model.changes.sites.map((/** @type {any} */ { change }) => change), [-0.5, -4], 'what got faster comes last')
})

test('runs that record blocking callbacks differently: their blockers are not compared', async (t) => {
  const app = path.join(folder(t), 'app.js')
  fs.writeFileSync(app, `
    const http = require('node:http')
    function compute () { const end = performance.now() + 60; while (performance.now() < end); }
    const server = http.createServer((request, response) => { compute(); response.end() }).listen(0, '127.0.0.1', async () => {
      for (let i = 0; i < 6; i++) await (await fetch('http://127.0.0.1:' + server.address().port)).text()
      process.exit()
    })`)
  const runs = await Promise.all(['20', '20', ''].map(async (LONGSTACK_BLOCKED, i) => {
    const LONGSTACK_RECORD = path.join(path.dirname(app), `${i}.rec`)
    await node(['-r', register, app], { env: { LONGSTACK_RECORD, LONGSTACK_BLOCKED } })
    return LONGSTACK_RECORD
  }))
  const [same, other] = await Promise.all(runs.slice(1).map((run) => report([run, '--compare', runs[0]])))
  t.true(same.model.blockers.length > 0)
  t.false(same.model.notes.join().includes('Blockers are not compared'))
  t.deepEqual(other.model.changes.blockers, [])
  t.true(other.model.notes.includes('Blockers are not compared: the first run was recorded without --blocked, the second with --blocked 20.'))
  const spans = path.join(path.dirname(app), 'none.spans')
  fs.writeFileSync(spans, '')
  const none = await report([runs[0], '--compare', spans])
  t.deepEqual(none.model.notes, [], 'a run without spans')
  const line = { kind: 'SERVER', startTimeUnixNano: '1', endTimeUnixNano: '2', traceId: '1'.repeat(32), attributes: {} }
  const lines = Array.from({ length: 50 }, (_, i) =>
    JSON.stringify({ ...line, name: 'GET /', spanId: String(i).padStart(16, '0'), resource: { 'longstack.blocked': i } }))
  fs.writeFileSync(spans, lines.join('\n'))
  const many = await report([spans])
  t.true(many.model.blocked.length < 500, many.model.blocked)
})

test('limits: exit code 3 and a line for each route that exceeds one', async (t) => {
  const [a, b] = [service(t), service(t, { factor: 1.2, failures: 2 })]
  const compared = await run([a, '--compare', b, '--fail-if', 'p50 > +10 %', '--fail-if', 'p50 > +20 %', '--fail-if', 'GET /*: p50 > +2.9 ms', '--fail-if', 'errors > 4 %'])
  t.is(compared.code, 3)
  t.true(compared.stdout.endsWith(`
Limits
  ✗ p50 > +10 %  GET /a: 14.9 ms → 17.9 ms (+20 %)
  ✗ GET /*: p50 > +2.9 ms  GET /a: 14.9 ms → 17.9 ms (+20 %)
  ✗ errors > 4 %  GET /a: 0 % → 5.0 % (new)
  ✓ p50 > +20 %  held by GET /a
`), compared.stdout)
  const held = await run([a, '--compare', b, '--fail-if', 'p50 > +25 %'])
  t.is(held.code, 0)
  t.regex(held.stdout, /^ {2}✓ p50 > \+25 % {2}held by GET \/a$/m)
  const alone = await run([b, '--fail-if', 'median >= 17.8 ms', '--fail-if', 'wait > 1 s'])
  t.is(alone.code, 3, 'absolute limits need no other run')
  const faster = await run([b, '--compare', a, '--fail-if', 'mean < -10 %'])
  t.is(faster.code, 3)
})

test('a figure from too few spans is reported as unchecked', async (t) => {
  const [a, b] = [service(t), service(t, { factor: 3 })]
  const few = await run([a, '--compare', b, '--fail-if', 'p99 > +10 %'])
  t.is(few.code, 0)
  t.regex(few.stdout, /^ {2}– p99 > \+10 % {2}not checked for GET \/a: fewer than 500 spans$/m)
  const rare = file(t, [span({ name: 'GET /rare', ms: 900, failed: true }), span({ name: 'GET /rare', ms: 900 })])
  t.is((await run([rare, '--fail-if', 'max > 1 ms'])).code, 0)
  t.is((await run([rare, '--fail-if', 'errors > 0 %'])).code, 3, 'that a request failed is no noise')
  const missing = await run([a, '--compare', rare, '--fail-if', 'count > +1 %'])
  t.regex(missing.stdout, /not checked for GET \/rare: not known in the first run/)
  const gone = await run([a, '--compare', rare, '--fail-if', 'GET /*: max > 2 s'])
  t.regex(gone.stdout, /not checked for GET \/a: not known in the second run/)
})

test('with other outputs, JSON has the checks and stderr the lines', async (t) => {
  const [a, b] = [service(t), service(t, { factor: 2 })]
  const limit = ['--fail-if', 'p50 > +10 %']
  const json = await report([a, '--compare', b, ...limit])
  t.is(json.code, 3)
  t.regex(json.stderr, /✗ p50 > \+10 %/)
  t.like(json.model.limits, [{ expression: 'p50 > +10 %', state: 'exceeded', route: 'GET /a', unit: 'ms', before: 14.875, after: 29.75 }])
  const page = await run([a, '--compare', b, '--html', path.join(folder(t), 'page.html'), ...limit])
  t.is(page.code, 3)
  t.regex(page.stderr, /^ {2}✗ p50 > \+10 % {2}GET \/a: 14\.9 ms → 29\.8 ms \(\+100 %\)$/m)
  const gone = await run([a, '/nowhere.jsonl', '--fail-if', 'p50 > 1 ms'])
  t.is(gone.code, 1, 'a file that cannot be read comes first')
})

for (const [limit, message, pointer] of /** @type {const} */ ([
  ['p98 > 1 ms', 'unknown metric "p98": did you mean p99?', '^'],
  ['> 1 ms', 'expected a metric: one of p50, p99,', '^'],
  ['p99 = 1 ms', 'expected >, <, >= or <= after p99', '    ^'],
  ['p99 > fast', 'expected a number after >', '      ^'],
  ['p99 > 10 %', 'expected a signed change, +10 % or -10 %', '      ^'],
  ['p99 > 10', 'expected ms, s or % after the number: p99 is a time', '        ^'],
  ['errors > 5', 'expected % after the number: errors are a share', '          ^'],
  ['count > 5 ms', 'expected % or nothing after the number', '          ^'],
  ['p99 > +10 % or more', 'expected nothing more', '            ^'],
  [': p99 > 1 ms', 'expected a route before the colon', '^'],
  ['p99 > +10 %', 'is a change: it needs --compare', undefined],
  ['GET /b: p99 > 1 ms', 'No route matches "GET /b". Did you mean "GET /a"?', undefined]
])) {
  test(`an invalid limit is wrong usage: ${limit}`, async (t) => {
    const { stdout, stderr, code } = await run([file(t, [span({ name: 'GET /a' })]), '--fail-if', limit])
    t.is(code, 2)
    t.is(stdout, '')
    t.true(stderr.includes(message), stderr)
    if (pointer !== undefined) t.true(stderr.includes(`\n  ${limit}\n  ${pointer}\n`), stderr)
  })
}

test('invalid combinations of flags are wrong usage', async (t) => {
  for (const [args, message] of /** @type {const} */ ([
    [['--markdown', '--json'], '--json and --markdown both go to standard output'],
    [['--tree', '--json'], '--tree is for text and cannot be combined with --json.'],
    [['--route', 'GET /', '--html', 'x.html'], '--route is for text and cannot be combined with --html.'],
    [['--trace', 'x.json', '--fail-if', 'p50 > 1 ms'], '--trace cannot be combined with --fail-if.']
  ])) {
    const { stderr, code } = await run(['x.jsonl', ...args])
    t.is(code, 2)
    t.true(stderr.includes(message), stderr)
  }
})

test('Markdown has routes before and after, the largest changes, and limits', async (t) => {
  const [a, b] = [service(t, { blocked: 1 }), service(t, { factor: 1.5, failures: 4, more: [span({ name: 'GET /new', ms: 3 })] })]
  const { stdout, code } = await run([a, '--compare', b, '--markdown', '--fail-if', 'GET /a: p50 > +10 %'])
  t.is(code, 3)
  t.is(unescape(stdout), `\
### longstack report: **1 limit exceeded**

41 spans before, 41 spans after

- ✗ **GET /a: p50 &gt; +10 %** GET /a: 14.9 ms → 22.3 ms (+50 %)

| Route | p50 | p99 | Rate | Errors |
| :-- | --: | --: | --: | --: |
| GET /a | 14.9 ms → 22.3 ms **+50 %** | 19.7 ms → 29.5 ms **+50 %** | 10.2/s → 10.2/s (−0.3 %) | 0 % → 10 % **new** |
| GET /new | – → 3.00 ms | – → 3.00 ms | – → 0.25/s | – → 0 % |

**Waits that changed most**, per request

| Route | Site | Until | Change | Before → after |
| :-- | :-- | :-- | --: | --: |
| GET /a | query (pool.js:34) via pg | TCP 127.0.0.1:5466 | +4.00 ms | 8.00 ms → 12.0 ms (+50 %) |
| GET /a | render (view.js:3) | FS | +500 µs | 1.00 ms → 1.50 ms (+50 %) |

**Blockers that changed most**, per request

| Request | Function | Change | Before → after |
| :-- | :-- | --: | --: |
| GET /a | hash (hash.js:34) | −750 µs | 750 µs → 0 µs (−100 %) |
`)
})

/** @param {string} markdown */
function unescape (markdown) {
  return markdown.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
}

test('Markdown without another run has the figures; hostile names cannot inject markup', async (t) => {
  const evil = '|</td><script>`*_[x](javascript:1)@all #1 https://x.org www.x.org \u001b[2J\u202e\n| a |'
  const { stdout } = await run([file(t, [span({ name: evil, ms: 5 }), span({ name: evil, ms: 5 })]), '--markdown'])
  const row = String(stdout.split('\n').find((line) => line.includes('script')))
  t.is(row.match(/\|/g)?.length, 7, 'the cells of a row are those of its columns')
  t.notRegex(row, /[<>`*_[\]@]|:\/\/|www\.|#(?!\d+;)/)
  t.regex(row, / \| 2 \| 5\.00 ms \| 5\.00 ms \| /)
  t.notRegex(stdout, /(?!\n)\p{C}/u)
  t.true(unescape(row).includes('&lt;script&gt;'))
})

test('Markdown of one run has its worst waits', async (t) => {
  const { stdout } = await run([service(t), '--markdown'])
  t.true(unescape(stdout).endsWith(`
| Route | Spans | p50 | p99 | Rate | Errors |
| :-- | --: | --: | --: | --: | --: |
| GET /a | 40 | 14.9 ms | 19.7 ms | 10.2/s | 0 % |

**Worst waits**, per request

| Route | Site | Until | Share | Time |
| :-- | :-- | :-- | --: | --: |
| GET /a | query (pool.js:34) via pg | TCP 127.0.0.1:5466 | 54 % | 8.00 ms |
| GET /a | render (view.js:3) | FS | 6.7 % | 1.00 ms |
`), stdout)
})
