'use strict'

// Files that are truncated, empty, foreign, hostile, or given twice: a sentence describes each fault, and no
// figure is wrong.

const test = require('ava')
const { execFileSync, spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const zlib = require('node:zlib')
const { file, folder, lines, longstack, main, nanos, report, span, split } = require('../helpers/span-files')
const { root } = require('../helpers/run')

const three = () => [span({ ms: 1 }), span({ ms: 2, at: 10 }), span({ ms: 3, at: 20 })]

/** @param {any} model */
function medians (model) {
  return model.routes.map((/** @type {any} */ { name, count, summary }) => [name, count, summary?.median])
}

test('a truncated last line is reported and skipped', async (t) => {
  const cut = lines(three()).slice(0, -40)
  const { model, code } = await report([file(t, cut)])
  t.is(code, 0)
  t.deepEqual(medians(model), [['GET /', 2, 1.5]])
  t.is(model.files[0].skipped, 1)
  t.deepEqual(model.files[0].problems, ['line 3 skipped: the last line is truncated'])
})

test('a last line without a line feed is read', async (t) => {
  const { model } = await report([file(t, lines(three()).trimEnd())])
  t.deepEqual(medians(model), [['GET /', 3, 2]])
  t.deepEqual(model.files[0].problems, [])
})

test('a byte order mark, CRLF, empty lines and gzip are read transparently', async (t) => {
  const dos = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(`\r\n${lines(three()).replaceAll('\n', '\r\n\r\n')}`)])
  for (const content of [dos, zlib.gzipSync(dos)]) {
    const { model } = await report([file(t, content)])
    t.deepEqual(medians(model), [['GET /', 3, 2]])
    t.deepEqual(model.files[0].problems, [])
  }
})

test('truncated or damaged compressed data are reported', async (t) => {
  const packed = zlib.gzipSync(lines(Array.from({ length: 5000 }, (_, i) => span({ at: i }))))
  const early = await report([file(t, packed.subarray(0, packed.length - 2000))])
  t.is(early.code, 1)
  t.regex(early.model.files[0].problems.join(), /compressed data is truncated; the spans before that are counted/)
  t.true(early.model.routes[0].count > 1000)
  const damaged = Buffer.from(packed).fill(0, 5000, 5200)
  const { model, code } = await report([file(t, damaged)])
  t.is(code, 1)
  t.regex(model.files[0].problems.join(), /compressed data is damaged/)
})

test('without spans, stderr has a sentence for each file, and the exit code is 1', async (t) => {
  const gone = path.join(folder(t), 'gone.jsonl')
  const files = [file(t, ''), gone, folder(t), file(t, 'hello\nworld\n'), file(t, Buffer.from(lines(three()), 'utf16le'))]
  const { stdout, stderr, code } = await longstack(['report', ...files])
  t.is(code, 1)
  t.is(stdout, '')
  const problems = stderr.trimEnd().split('\n').map((line) => line.replace(/^longstack: \S+: /, ''))
  t.deepEqual(problems.slice(0, 5), [
    'file is empty',
    'no such file',
    'is a directory',
    '2 lines skipped, the first is line 1: not JSON',
    'no spans found'
  ])
  t.regex(stderr, /in an encoding other than UTF-8/)
  t.is(problems.at(-1), 'longstack: no spans found.')
})

test('an unreadable file among others is reported, with exit code 1', async (t) => {
  const { stdout, stderr, code } = await longstack(['report', file(t, three()), '/nowhere.jsonl'])
  t.is(code, 1)
  t.is(stderr, '')
  t.regex(stdout, /^3 spans in 2 files/)
  t.regex(stdout, /^\/nowhere\.jsonl: no such file$/m)
})

const WRONG = {
  'not 32 and 16 hexadecimal digits': [{ ...span(), traceId: 'xyz' }, { ...span(), spanId: 7 }, { ...span(), traceId: null }],
  'no name': [{ ...span(), name: '' }, { ...span(), name: { toString: 1 } }],
  'unknown kind': [{ ...span(), kind: 'constructor' }, { ...span(), kind: 2 }],
  'times are not decimal strings': [
    { ...span(), startTimeUnixNano: 1763685600000000000 },
    ...['NaN', '-5', '1e300'].map((endTimeUnixNano) => ({ ...span(), endTimeUnixNano }))
  ],
  'time before 2000 or after 2200': [{ ...span(), startTimeUnixNano: '5', endTimeUnixNano: '6' }, { ...span(), endTimeUnixNano: '99999999999999999999' }],
  'end before start': [{ ...span(), startTimeUnixNano: nanos(5), endTimeUnixNano: nanos(4) }],
  'sample ratio': [0, -1, 2, '0.1', 1e-300].map((ratio) => span({ attributes: { 'longstack.sample_ratio': ratio } })),
  'not a span': ['[]', 'null', '7', '"text"', '{"hello":1}', '[{"traceId":1}]'],
  'not JSON': ['{', '{"traceId":NaN}', "{'a':1}", '\0\0\0']
}

for (const [reason, wrong] of Object.entries(WRONG)) {
  test(`invalid lines are counted and reported, and left out of all figures: ${reason}`, async (t) => {
    const { model, code, stderr } = await report([file(t, [...three(), ...wrong, span({ ms: 4, at: 30 })])])
    t.is(code, 0, stderr)
    t.deepEqual(medians(model), [['GET /', 4, 2.5]])
    const [{ spans, skipped, problems }] = model.files
    t.deepEqual([spans, skipped], [4, wrong.length])
    t.is(problems.length, 1)
    t.true(problems[0].includes(reason) && problems[0].includes('line 4'), problems[0])
    t.deepEqual(model.span, { fromUnixMs: 1763685600000, toUnixMs: 1763685600034 })
  })
}

test('invalid attributes count as absent', async (t) => {
  const odd = {
    ...{ 'longstack.run_ms': '5', 'longstack.waited_ms': -1, 'longstack.delayed_ms': null },
    'longstack.wait_ms': [1],
    'longstack.delayed_by': { length: 1e9 }
  }
  const half = {
    ...split({ run: 1 }),
    'longstack.wait_ms': { TCP: 'x', FS: -1, 'bad name': 1 },
    'longstack.delayed_by': [null, 7, { ms: 'x' }, { ms: -1 }],
    'longstack.runs': [1, [], ['a', 'b'], [-1, 2]],
    'longstack.waits': [null, 7, [], { ms: 'x' }, { ms: -1, at: 'f (/a.js:1:1)' }]
  }
  const { model, code } = await report([file(t, [
    span({ attributes: odd }),
    { ...span(), attributes: 'none', status: 'bad', events: 'many', resource: 7, parentSpanId: 9 },
    span({ attributes: half })
  ])])
  t.is(code, 0)
  t.is(model.routes[0].count, 3)
  t.deepEqual(model.routes[0].split, { run: 1, waited: 0, delayed: 0, wait: {} })
  t.deepEqual(model.blockers, [])
  t.true(
    model.slowest.every(
      (/** @type {any} */ { delayedBy, runs, waits }) => [...delayedBy, ...runs, ...waits].length === 0
    )
  )
})

const THROWS = { toString: 1 } // where it is made a text or a number

/** Values of the wrong kind, each in a line of its own. @type {Record<string, object>} */
const ODD = {
  'a place': { longstack: 2, source: 'a', site: 1, at: { function: 'f', file: 'x', line: 1, column: THROWS } },
  'the caller of a place': { longstack: 2, source: 'a', site: 1, callers: [THROWS, { function: THROWS, location: 'x' }] },
  'a resource': { longstack: 2, source: 'a', resource: { 'process.pid': THROWS, 'service.name': [THROWS] } },
  'what was asked': { ...span(), source: 'a', asked: [[THROWS, THROWS, 1, 1, 1, THROWS, THROWS, THROWS]], asked_more: 7 },
  'who delayed': { ...span(), source: 'a', delayed_by: [[1, 'x', 1, THROWS]] },
  'open intervals': span({ attributes: { 'longstack.open_intervals': [{ count: 1, requests: { a: [THROWS] } }] } }),
  'a status': { ...span(), status: { code: [THROWS] } },
  'a line of OTLP': {
    resourceSpans: [{
      resource: { attributes: [{ key: 'service.name', value: { intValue: THROWS } }] },
      scopeSpans: [{ spans: [{ ...span(), kind: THROWS, endTimeUnixNano: THROWS, status: THROWS }] }]
    }]
  }
}

for (const [name, line] of Object.entries(ODD)) {
  test(`a value that throws when read does not stop the report: ${name}`, async (t) => {
    const rest = three().map((one) => ({ ...one, source: 'a', shared: 1 }))
    const { model, code, stderr } = await report([file(t, [span(), line, ...rest])])
    t.is(code, 0, stderr)
    const [{ spans, problems }] = model.files
    t.true(spans >= 4, `${spans} spans`)
    t.false(problems.some((/** @type {string} */ problem) => /cannot be read|wrong kind/.test(problem)), problems.join())
  })
}

test('memory is bounded, whatever a file defines', async (t) => {
  const text = 'x'.repeat(1 << 20)
  const stacks = Array.from({ length: 300 }, (_, i) => ({ longstack: 2, source: 'a', stack: i, text }))
  const name = file(t, [...stacks, ...three()])
  const args = ['--max-old-space-size=250', main, 'report', name, '--json']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  t.is(status, 0, stderr)
  t.is(JSON.parse(stdout).files[0].spans, 3)
})

test('recently used definitions are kept, and missing ones are reported', async (t) => {
  const text = 'x'.repeat(1 << 20)
  const define = (/** @type {string} */ source) => ({ longstack: 2, source, stack: 1, text: source + text })
  const use = (/** @type {string} */ source, at = 0) => ({ ...span({ ms: 5, at }), source, stack: 1 })
  const fill = Array.from({ length: 100 }, (_, i) => define(`fill ${i}`))
  const more = fill.map(({ source }) => define(`${source}b`))
  const lines = [define('lost'), define('kept'), ...fill, use('kept'), ...more, use('kept', 10), use('lost', 20)]
  const { model } = await report([file(t, lines)])
  const stacks = model.slowest.map(({ startUnixMs: time, stack }) => [time % 1000, stack?.slice(0, 4)])
  t.deepEqual(Object.fromEntries(stacks), { 0: 'kept', 10: 'kept', 20: undefined })
  t.deepEqual(model.files[0].problems, ['1 span lacks stacks and sites: the file defines more than is kept in memory'])
})

test('names of JavaScript built-ins are ordinary names', async (t) => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
  const hostile = names.map((name) => JSON.stringify(span({ name, attributes: { a: 1 } })).replace('"attributes":{', '"attributes":{"__proto__":{"longstack.run_ms":5},'))
  const { model } = await report([file(t, hostile)])
  t.deepEqual(model.routes.map((/** @type {any} */ { name }) => name).sort(), [...names].sort())
  const { stdout } = await longstack(['report', file(t, hostile)])
  for (const name of names) t.true(stdout.includes(`${name}  1 span`))
})

test('control and bidi characters never reach a terminal', async (t) => {
  const evil = '\u001b[2J\u009b31m\u202eevil\u2066\r\n\u0007'
  const stack = `    at ${evil} (/x.js:1:1)\n${evil}`
  const waits = /** @type {any} */ ([{ ms: 8, at: `${evil} (/a.js:1:1)`, callers: [evil], until: evil, label: evil }])
  const attributes = { 'url.path': evil, 'code.stacktrace': stack, 'longstack.delayed_by': [{ name: evil, at: evil, ms: 3 }], ...split({ waited: 8, run: 1 }, {}, waits), 'longstack.end': evil }
  const events = [{ name: 'exception', attributes: { 'exception.type': evil, 'exception.message': evil, 'exception.stacktrace': stack } }]
  const records = [
    span({ name: `GET ${evil}`, ms: 9, attributes, failed: true, events, resource: { 'service.name': evil } }),
    span({ name: evil, attributes: { 'longstack.end': 'open' } }),
    span({ name: 'blocked', kind: 'INTERNAL', attributes: { 'longstack.blocked_ms': 5, 'code.stacktrace': `    at ${evil}` } })
  ]
  const [a, b] = [file(t, records, `a${'\u202e'}.jsonl`), file(t, records)]
  const forms = [...['--full', '--tree', '--slowest', '--markdown', '--json'].map((form) => [form, a]), ['--trace', '-', a]]
  for (const args of [[a], [a, '--compare', b], [a, '--compare', b, '--markdown'], ...forms]) {
    const { stdout, stderr } = await longstack(['report', ...args])
    t.notRegex(stdout + stderr, /(?![\n\r])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u, args.join(' '))
    t.false(stdout.includes('\r'))
  }
  const { model } = await report([a])
  t.is(model.slowest[0].name, `GET ${evil}`, 'JSON has the original, escaped')
})

test('a line of 100 MB is skipped without being buffered', async (t) => {
  const to = path.join(folder(t), 'long.jsonl')
  fs.writeFileSync(to, lines(three().slice(0, 2)))
  for (let i = 0; i < 100; i++) fs.appendFileSync(to, (i === 0 ? '{"traceId":"' : '') + 'x'.repeat(1 << 20))
  fs.appendFileSync(to, `"}\n${lines([span({ ms: 6, at: 50 })])}`)
  const { stdout, code } = await longstack(['report', '--json', to])
  t.is(code, 0)
  const model = JSON.parse(stdout)
  t.deepEqual(medians(model), [['GET /', 3, 2]])
  t.deepEqual(model.files[0].problems, ['line 3 skipped: longer than 16 MB'])
  const measured = await require('../helpers/run').node(['-e', `
    process.argv.splice(1, 0, '')
    require(${JSON.stringify(path.join(root, 'report', 'aggregate', 'model.js'))}).createModel([${JSON.stringify(to)}])
      .then(() => console.log(process.resourceUsage().maxRSS))`])
  t.true(Number(measured.stdout) > 0 && Number(measured.stdout) < 200_000, measured.stdout + measured.stderr)
})

test('an open span is open until its end is read, in any order', async (t) => {
  const hanging = span({ name: 'GET /hang', ms: 5, attributes: { 'longstack.end': 'open' } })
  const opened = span({ name: 'GET /late', ms: 5, attributes: { 'longstack.end': 'open' } })
  const again = { ...opened, endTimeUnixNano: nanos(6) }
  const ended = { ...opened, endTimeUnixNano: nanos(40), attributes: {} }
  for (const order of [[opened, again, ended, hanging], [hanging, ended, opened, again]]) {
    const { model } = await report([file(t, order)])
    const [{ problems }] = model.files
    t.deepEqual(problems, [])
    const routes = Object.fromEntries(model.routes.map((/** @type {any} */ one) => [one.name, one]))
    t.like(routes['GET /late'], { count: 1, open: 0, summary: { min: 40, max: 40 } })
    t.like(routes['GET /hang'], { count: 0, open: 1, errors: 0 })
    t.is(routes['GET /hang'].summary, undefined)
    t.deepEqual(model.open.map((/** @type {any} */ { name, end, ms }) => [name, end, ms]), [['GET /hang', 'open', 5]])
    t.deepEqual(model.slowest.map((/** @type {any} */ { name }) => name), ['GET /late'])
  }
})

test('a file that is named twice, or copied, counts once, with a note', async (t) => {
  const original = file(t, three())
  const copy = file(t, [...three().slice(0, 1), ...fs.readFileSync(original, 'utf8').trim().split('\n')], 'copy.jsonl')
  const link = path.join(folder(t), 'link.jsonl')
  fs.symlinkSync(original, link)
  const { model, code } = await report([original, link, copy])
  t.is(code, 0)
  t.is(model.routes[0].count, 4)
  t.is(model.files[0].problems.length, 0)
  t.deepEqual(model.files[1].problems, [`same file as ${original}; counted once`])
  t.regex(model.files[2].problems[0], /^3 spans were read before; counted once/)
})

test('several files are one run', async (t) => {
  const { model } = await report([file(t, [span({ at: 0 })]), file(t, [span({ at: 999, ms: 1, name: 'GET /b' })])])
  t.deepEqual(model.routes.map((/** @type {any} */ { name, rate }) => [name, rate]), [['GET /', 1], ['GET /b', 1]])
  t.is(model.files.length, 2)
})

test('standard input and pipes can be read, even for traces', async (t) => {
  const root = span({ ms: 9 })
  const child = { ...span({ name: 'work', kind: 'INTERNAL', ms: 3 }), traceId: root.traceId, parentSpanId: root.spanId }
  const text = lines([child, root])
  const fromStdin = await report(['-'], { input: text })
  const pipe = JSON.parse(execFileSync('bash', ['-c', `'${process.execPath}' '${main}' report --json <(cat '${file(t, text)}')`], { timeout: 30_000 }).toString())
  for (const model of [fromStdin.model, pipe]) {
    t.deepEqual(Object.values(model.traces).flat().map((/** @type {any} */ { name }) => name).sort(), ['GET /', 'work'])
  }
  t.is(fromStdin.model.files[0].name, 'standard input')
})

test("the output of OpenTelemetry's file exporter is read", async (t) => {
  const value = (/** @type {any} */ one) => typeof one === 'string' ? { stringValue: one } : Number.isInteger(one) ? { intValue: String(one) } : { doubleValue: one }
  const attributes = (/** @type {Record<string, any>} */ all) =>
    Object.entries(all).map(([key, one]) => ({ key, value: value(one) }))
  const waits = [{ ms: 9.5, count: 1, at: 'f (/a.js:1:1)', until: 'TCP 127.0.0.1:1', label: 'await' }]
  const parts = {
    'longstack.run_ms': 2.5,
    'longstack.waited_ms': 9.5,
    'longstack.delayed_ms': 0,
    'longstack.wait_ms.TCP': 9,
    'longstack.wait_ms.TIMER': 0.5,
    'longstack.waits': JSON.stringify(waits)
  }
  const batch = {
    resourceSpans: [{
      resource: { attributes: attributes({ 'service.name': 'foreign' }) },
      scopeSpans: [{
        scope: {},
        spans: [
          { ...span({ ms: 12 }), kind: 2, status: {}, attributes: attributes({ 'url.path': '/a', 'http.response.status_code': 200, ...parts }) },
          { ...span({ ms: 2, name: 'GET', kind: 'x' }), kind: 3, status: { code: 2, message: 'no' }, attributes: attributes({ 'server.address': 'db', 'server.port': 5432 }) }
        ]
      }]
    }]
  }
  const { model, code } = await report([file(t, [batch])])
  t.is(code, 0)
  t.deepEqual(model.routes.map((/** @type {any} */ { name, kind, count, errors }) => [name, kind, count, errors]), [['GET /', 'SERVER', 1, 0], ['GET db:5432', 'CLIENT', 1, 1]])
  t.deepEqual(model.routes[0].split, { run: 2.5, waited: 9.5, delayed: 0, wait: { TCP: 9, TIMER: 0.5 } })
  t.deepEqual(model.slowest[0].waits, waits.map((wait) => ({ ...wait, callers: [] })))
  t.is(model.slowest[0].service, 'foreign')
  t.regex(model.files[0].problems[0], /written by OpenTelemetry's file exporter/)
})

test('names beyond 2000 are grouped, with a note', async (t) => {
  const records = Array.from({ length: 2500 }, (_, i) => span({ name: `GET /${i}`, at: i }))
  const { model } = await report([file(t, records)])
  t.is(model.routes.length, 2001)
  t.is(model.routes.reduce((/** @type {number} */ sum, /** @type {any} */ { count }) => sum + count, 0), 2500)
  t.like(model.routes.find((/** @type {any} */ { name }) => name === '(other names)'), { count: 500 })
  t.regex(model.notes.join(), /More than 2000 names: 500 spans/)
})
