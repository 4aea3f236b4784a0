'use strict'

// Hand-made recordings in the output of `longstack spans` and `longstack report`.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const zlib = require('node:zlib')
const test = require('ava')
const { LAST, REPEATS, encode, maxBytesOf } = require('../../lib/record/block')
const { SERVER, TIMER } = require('../../lib/core/run-log-words')
const { RecordedLines } = require('../../report/read/recorded-lines')
const { folder, lines, longstack, report } = require('../helpers/span-files')
const { recordsOf } = require('../helpers/records')
const { root } = require('../helpers/run')
const { Log } = require('../path/recordings')

const command = path.join(root, 'lib', 'cli', 'main.js')

const ORIGIN = 1763685600000 // ms since 1970 at clock 0
const A = 7 // requests
const B = 8
const CONNECTION = 25 // asyncId
const TRACES = { [A]: 'a'.repeat(32), [B]: 'b'.repeat(32) }
const SPANS = { [A]: 'a'.repeat(16), [B]: 'b'.repeat(16) }

const place = (/** @type {number} */ line) => ({ function: 'load', file: '/app/x.js', line, column: 5 })
/** what the numbers of chains stand for */
const chains = [
  { chain: 40, type: 'HTTPINCOMINGMESSAGE', subsystem: 'HTTP', stack: '    at serve (/app/x.js:1:1)' },
  { chain: 41, type: 'Timeout', subsystem: 'TIMER', own: true, at: place(3), label: 'setTimeout' },
  { chain: 42, type: 'TCPWRAP', subsystem: 'TCP', own: true, at: place(7), callers: [place(9)], label: 'await' },
  { chain: 43, type: 'TCPWRAP', subsystem: 'TCP' }
]

/** @param {number} form @param {string} name */
function formText (form, name) {
  return { form, name, kind: 'SERVER', origin: ORIGIN, attributes: { 'http.request.method': 'GET' } }
}

/** @param {number} number @param {number} start @param {number} end @param {object} [more] */
function spanText (number, start, end, more = {}) {
  return {
    span: number,
    form: number,
    ids: TRACES[number] + SPANS[number],
    us: [start * 1000, (end - start) * 1000],
    attributes: { 'url.path': number === A ? '/a' : '/b' },
    ...more
  }
}

/**
 * A waits for a query (100 to 130) and for a timer that is due at 150; B runs from 140 to 170.
 * @returns {{ log: Log, sent: number }}
 */
function logOfTwo () {
  const log = new Log()
  log.poll(100, 5)
  const run = log.serve(100, A, { chain: 40 })
  const sent = log.sent(CONNECTION, run, { at: 101, request: A, chain: 42, b: 4 })
  log.poll(130, 28)
  const answer = log.came(130, CONNECTION, { chain: 43, request: A, registered: run })
  log.arrived(answer, 130)
  log.settle(answer, run, { chain: 42, request: A, x: 101 })
  const goesOn = log.awaited(131, { chain: 42, request: A, registered: run, settled: answer })
  log.poll(140, 8)
  const other = log.serve(140, B, { chain: 40 })
  log.end(170, B, other)
  const timer = log.callback(170, { flags: TIMER, chain: 41, request: A, registered: goesOn })
  log.due(timer, 150)
  log.end(172, A, timer, { a: SERVER })
  log.poll(173, 0)
  return { log, sent }
}

const texts = (/** @type {number} */ sent) => [
  { source: { pid: 4711, thread: 0 }, resource: { 'service.name': 'shop', 'process.pid': 4711 } },
  ...chains,
  { connection: CONNECTION << 1, peer: '127.0.0.1:5432' },
  { sent, operation: 'SELECT users', system: 'postgresql' },
  formText(B, 'GET /b'),
  formText(A, 'GET /a'),
  spanText(B, 140, 170),
  spanText(A, 100, 172)
]

/**
 * @typedef {object} Part
 * @property {object[]} [texts]
 * @property {Uint8Array} entries
 * @property {number} [first]
 * @property {number} [number]
 * @property {number} [flags]
 * @property {number} [lost]
 */

/** @param {Part} part */
function block ({ texts = [], entries, first = 1, number = 1, flags = 0, lost = 0 }) {
  const told = texts.map((text) => `${JSON.stringify(text)}\n`).join('')
  const target = Buffer.alloc(maxBytesOf(told, entries.length / 48))
  const head = { source: 99, number, first, flags, now: 200 * number, origin: ORIGIN, lost }
  return Buffer.from(target.subarray(0, encode(target, head, told, [entries])))
}

/** @param {any} t @param {Buffer[]} blocks @param {string} [name] */
function recording (t, blocks, name = 'app.rec') {
  const file = path.join(folder(t), name)
  fs.writeFileSync(file, Buffer.concat(blocks))
  return file
}

/** @param {any[]} records */
const byName = (records) => records.sort((a, b) => a.name.localeCompare(b.name))

/** A recording in one block. @param {any} t */
function whole (t) {
  const { log, sent } = logOfTwo()
  return recording(t, [block({ texts: texts(sent), entries: log.bytes(), flags: LAST })])
}

test('a span has its figures, waits, queries, callbacks and delays', async (t) => {
  const { stdout, stderr, code } = await longstack(['spans', whole(t)])
  t.is(stderr, '')
  t.is(code, 0)
  const records = recordsOf(stdout)
  t.is(records.length, 2)
  const record = records.find(({ spanId }) => spanId === SPANS[A])
  const { attributes, ...others } = record
  t.deepEqual(others, {
    traceId: TRACES[A],
    spanId: SPANS[A],
    name: 'GET /a',
    kind: 'SERVER',
    startTimeUnixNano: String(BigInt(ORIGIN + 100) * 1_000_000n),
    endTimeUnixNano: String(BigInt(ORIGIN + 172) * 1_000_000n),
    status: { code: 'UNSET' },
    resource: { 'service.name': 'shop', 'process.pid': 4711 }
  })
  const site = { at: 'load (/app/x.js:7:5)', callers: ['load (/app/x.js:9:5)'], label: 'await' }
  const timer = { at: 'load (/app/x.js:3:5)', label: 'setTimeout' }
  t.deepEqual(attributes, {
    'http.request.method': 'GET',
    'url.path': '/a',
    'code.stacktrace': '    at serve (/app/x.js:1:1)',
    'longstack.run_ms': 6,
    'longstack.waited_ms': 46,
    'longstack.wait_ms': { TCP: 28, TIMER: 18 },
    'longstack.delayed_ms': 20,
    'longstack.delayed_by': [{ spanId: SPANS[B], name: 'GET /b', ms: 20 }],
    'longstack.delays': [[50, 20]],
    'longstack.waits': [
      { ...timer, ms: 18, count: 1, delayed: 20, until: 'TIMER' },
      { ...site, ms: 28, count: 1, on: [CONNECTION], sent: 1, until: 'TCP 127.0.0.1:5432' }
    ],
    'longstack.asked': [{
      ...site,
      start: 1,
      ms: 29,
      peer: '127.0.0.1:5432',
      connection: CONNECTION,
      operation: 'SELECT users',
      system: 'postgresql'
    }],
    'longstack.ran': [{ ms: 3, count: 2 }, { ...timer, ms: 2, count: 1 }, { ...site, ms: 1, count: 1 }],
    'longstack.runs': [[0, 2, 'HTTPINCOMINGMESSAGE'], [30, 2, 'TCPWRAP', 2], [70, 2, 'Timeout', 1]]
  })
})

test('blocks may end anywhere, and a text may come after its use', async (t) => {
  const expected = recordsOf((await longstack(['spans', whole(t)])).stdout)
  const { log, sent } = logOfTwo()
  const bytes = log.bytes()
  const all = texts(sent)
  for (const size of [1, 5, 11]) {
    const blocks = []
    for (let entry = 0, number = 1; entry * 48 < bytes.length; entry += size, number++) {
      const entries = bytes.slice(entry * 48, (entry + size) * 48)
      const told = number === 1 ? all.slice(0, -2) : []
      blocks.push(block({ entries, first: entry + 1, number, texts: told }))
    }
    const last = { first: log.entries.length + 1, number: blocks.length + 1, flags: LAST }
    blocks.push(block({ entries: new Uint8Array(0), texts: all.slice(-2), ...last }))
    const { stdout, stderr } = await longstack(['spans', recording(t, blocks)])
    t.is(stderr, '')
    t.deepEqual(byName(recordsOf(stdout)), byName(expected))
  }
})

test('texts about open requests with values of wrong types are read as far as they can be', async (t) => {
  const log = new Log()
  log.poll(100, 5)
  log.serve(100, A, { chain: 40 })
  const open = { ...spanText(A, 100, 100), open: true }
  const told = [texts(0)[0], ...chains, formText(A, 'GET /a'), open]
  const wrong = [null, 5, 'text', {}, [], [null], [5], { at: { toString: 5 } }]
  const lists = [...wrong, [{ members: wrong }], [{ members: [{ at: { toString: 5 } }] }]]
  const damaged = [
    ...[...wrong, [{ toString: 5 }]].map((wait) => ({ waits: [{ span: A, waits: [wait, ['x via y', 1]] }] })),
    ...wrong.map((waits) => ({ waits: [{ span: A, waits }, waits] })),
    ...lists.map((idle) => ({ waits: [{ span: A, waits: [['x via y', 1]] }], since: 100, idle })),
    ...lists.map((graph) => ({ waits: [{ span: A, waits: [['x at y', 1]] }], graph })),
    ...lists.map((list) => ({ waits: [{ span: A, waits: [] }], graph: { cycles: list, convoys: list } }))
  ]
  for (const text of damaged) {
    const lines = new RecordedLines()
    lines.push(block({ texts: [...told, text], entries: log.bytes() }))
    t.notThrows(() => t.is(recordsOf(lines.end().lines).filter(({ name }) => name === 'GET /a').length, 1),
      JSON.stringify(text))
  }
})

test('an open request has the peers whose connections were all idle, up to ten', (t) => {
  const log = new Log()
  log.poll(100, 5)
  log.serve(100, A, { chain: 40 })
  const told = [texts(0)[0], ...chains, formText(A, 'GET /a'), { ...spanText(A, 100, 100), open: true }]
  const idle = Array.from({ length: 40 }, (_, i) => ({ peer: `10.0.0.${i}:1`, open: 2, idle: 1 + i % 2 }))
  const waits = { waits: [{ span: A, waits: [['x at y via pg', 1]] }], since: 100, idle }
  const lines = new RecordedLines()
  lines.push(block({ texts: [...told, waits], entries: log.bytes() }))
  const [{ attributes }] = recordsOf(lines.end().lines).filter(({ name }) => name === 'GET /a')
  const odd = Array.from({ length: 10 }, (_, i) => `10.0.0.${2 * i + 1}:1`)
  t.deepEqual(attributes['longstack.idle'].map((/** @type {any} */ { peer }) => peer), odd)
})

test('missing parts are reported: a cut file, lost entries, a process without an end', async (t) => {
  const { log, sent } = logOfTwo()
  const only = block({ texts: texts(sent), entries: log.bytes() })
  const cut = await longstack(['spans', recording(t, [only, only.subarray(0, 700)])])
  t.is(recordsOf(cut.stdout).length, 2)
  t.regex(cut.stderr, /app\.rec: the end is cut off\.\n/)
  t.regex(cut.stderr, /process 4711: has no end/)
  const first = log.entries.length + 31
  const last = block({ entries: new Uint8Array(0), first, number: 3, lost: 20, flags: LAST })
  const { model } = await report([recording(t, [only, Buffer.from('x'), last])])
  t.is(model.routes.length, 2)
  t.deepEqual(model.files[0].problems, [
    '1 byte cannot be read and are skipped', 'process 4711: 30 entries are missing, 1 block of the file'
  ])
})

test('a span whose entries are lost has no figures, one that is open is marked', async (t) => {
  const { log, sent } = logOfTwo()
  const others = ['c', 'd'].flatMap((digit, i) => [
    formText(100 + i, `GET /${digit}`),
    spanText(100 + i, 10, 20, { form: 100 + i, ids: digit.repeat(48), open: digit === 'd' || undefined })
  ])
  const told = [...texts(sent), ...others]
  const file = recording(t, [block({ texts: told, entries: log.bytes(), flags: LAST })])
  const [lost, open] = recordsOf((await longstack(['spans', file])).stdout).slice(-2)
  t.is(lost.name, 'GET /c')
  t.is(lost.attributes['longstack.run_ms'], undefined)
  t.is(Number(BigInt(lost.endTimeUnixNano) - BigInt(lost.startTimeUnixNano)), 10e6)
  t.is(open.attributes['longstack.end'], 'open')
  const { model } = await report([file])
  t.deepEqual(model.open.map(({ name }) => name), ['GET /d'])
  t.is(model.routes.find(({ name }) => name === 'GET /c')?.count, 1)
})

test('report reads recordings like span files: compressed, from standard input, side by side', async (t) => {
  const file = whole(t)
  const { stdout } = await longstack(['spans', file])
  const directory = folder(t)
  const [spans, zipped, html, trace] = ['spans.jsonl', 'app.rec.gz', 'page.html', 'trace.json']
    .map((name) => path.join(directory, name))
  fs.writeFileSync(spans, stdout)
  fs.writeFileSync(zipped, zlib.gzipSync(fs.readFileSync(file)))
  const modelOf = async (/** @type {string[]} */ files, input = Buffer.alloc(0)) => {
    const { model } = await report(files, { input })
    return { ...model, files: undefined }
  }
  const expected = await modelOf([spans])
  t.is(expected.routes.length, 2)
  t.deepEqual(await modelOf([file]), expected)
  t.deepEqual(await modelOf([zipped]), expected)
  t.deepEqual(await modelOf(['-'], fs.readFileSync(file)), expected)
  const both = await report([file, spans])
  t.deepEqual(both.model.files.map((each) => each.spans), [2, 2])
  t.is((await longstack(['report', file, '--html', html])).code, 0)
  t.true(fs.readFileSync(html, 'utf8').includes('GET /a'))
  t.is((await longstack(['report', file, '--trace', trace])).code, 0)
  t.true(fs.readFileSync(trace, 'utf8').includes('GET /a'))
  const compared = await longstack(['report', file, '--compare', spans, '--json'])
  t.is(compared.code, 0)
  t.truthy(JSON.parse(compared.stdout).changes)
})

test('parts of a rotated recording are one: a span may begin in one and end in the next', async (t) => {
  const { log, sent } = logOfTwo()
  const bytes = log.bytes()
  const all = texts(sent)
  const first = recording(t, [block({ texts: all.slice(0, -2), entries: bytes.slice(0, 10 * 48) })], 'app.rec.1')
  const rest = { entries: bytes.slice(10 * 48), first: 11, number: 2, flags: LAST | REPEATS }
  const second = recording(t, [block({ texts: all, ...rest })])
  const expected = await report([whole(t)])
  const { model } = await report([second, first])
  t.deepEqual(model.files.map(({ spans, problems }) => [spans, problems]), [[2, []], [0, []]])
  t.deepEqual(model.routes, expected.model.routes)
})

test('a report keeps the longest of very many callbacks and delays', async (t) => {
  const log = new Log()
  const run = log.serve(10, A, { chain: 40 })
  for (let i = 0; i < 100; i++) {
    log.poll(20 + i * 10, 1)
    log.callback(20 + i * 10, { flags: TIMER, chain: 41, request: A, registered: run })
    log.poll(20 + i * 10 + (i < 60 ? 1 : 5), 0)
  }
  log.end(1030, A, run)
  log.poll(1031, 0)
  const texts = [...chains, formText(A, 'GET /a'), spanText(A, 10, 1030)]
  const file = recording(t, [block({ texts, entries: log.bytes(), flags: LAST })])
  const [{ attributes }] = recordsOf((await longstack(['spans', file])).stdout)
  t.true(attributes['longstack.runs'].length >= 100)
  const { model } = await report([file])
  const { runs } = model.slowest[0]
  t.is(runs.length, 64)
  t.is(runs.filter((/** @type {number[]} */ [, ms]) => Math.abs(ms - 5) < 0.01).length, 40)
})

if (process.platform !== 'win32') {
  test('--follow prints the spans of a small file while it grows', async (t) => {
    const { log, sent } = logOfTwo()
    const file = recording(t, [block({ texts: texts(sent), entries: log.bytes() })])
    const child = spawn(process.execPath, [command, 'spans', file, '--follow'], { stdio: ['ignore', 'pipe', 'ignore'] })
    t.teardown(() => child.kill('SIGKILL'))
    let text = ''
    for await (const part of child.stdout.setEncoding('utf8')) {
      text += part
      if (text.includes('GET /a')) child.kill('SIGINT')
    }
    t.deepEqual(recordsOf(text).map(({ name }) => name), ['GET /b', 'GET /a'])
  })
}

test('files of spans and other files are not recordings', async (t) => {
  const spans = path.join(folder(t), 'spans.jsonl')
  fs.writeFileSync(spans, lines([]))
  for (const args of [[spans], ['no-such-file.rec']]) {
    const { code, stdout, stderr } = await longstack(['spans', ...args])
    t.is(code, 1)
    t.is(stdout, '')
    t.regex(stderr, /^longstack: .*(spans\.jsonl|no-such-file\.rec)/)
  }
  const { code, stderr } = await longstack(['spans', 'a', 'b', '--follow'])
  t.is(code, 2)
  t.regex(stderr, /--follow reads one file/)
})
