'use strict'

// Rules of the verdict on spans with exact figures: the conditions under which each applies, with its shares,
// and those under which it is silent.

const test = require('ava')
const { ModelBuilder } = require('../../../../report/aggregate/model-builder')
const { parseSpan } = require('../../../../report/read/span-line')
const { nanos, span, split } = require('../../../helpers/span-files')

const DATABASE = 'TCP 127.0.0.1:5432'
const OTHER = 'GET /report of another request'

/** @typedef {Record<string, any>} Wait */

/**
 * Makes requests of a route, one after another, of waits and time that they run.
 * @param {number} count
 * @param {(i: number) => Wait[]} waitsOf
 * @param {{ name?: string, run?: number, delayed?: number, delayedBy?: object[], apart?: number }} [options]
 *   apart: ms between two starts
 */
function requests (count, waitsOf, { name = 'GET /report', run = 1, delayed = 0, delayedBy = [], apart = 10 } = {}) {
  return Array.from({ length: count }, (_, i) => {
    const waits = waitsOf(i)
    const waited = waits.reduce((sum, { ms }) => sum + ms, 0)
    const attributes = { ...split({ run, waited, delayed }, {}, waits), 'longstack.delayed_by': delayedBy }
    return span({ name, at: i * apart, ms: run + waited + delayed, attributes })
  })
}

/** @param {number} ms @param {number} count @param {Wait} [more] */
const query = (ms, count = 1, more = {}) =>
  ({ ms, count, sent: count, at: 'query (/app/db.js:5:9)', callers: ['report (/app/app.js:24:9)'], until: DATABASE, ...more })

/** @param {number} ms @param {Wait} [more] */
const turn = (ms, more = {}) =>
  ({ ms, count: 1, at: 'acquire (/app/pool.js:10:9)', callers: ['report (/app/app.js:23:9)'], until: OTHER, ...more })

/** @param {object[]} records */
function verdict (records) {
  const builder = new ModelBuilder(20)
  const file = { name: 'spans.jsonl', spans: 0, skipped: 0, problems: [] }
  for (const record of records) {
    const parsed = parseSpan(JSON.parse(JSON.stringify(record)), 100)
    if (typeof parsed === 'string') throw new Error(parsed)
    if (parsed.facts) builder.addFacts(parsed)
    else builder.add(parsed, file)
  }
  return builder.build([file]).verdict
}

/** @param {import('ava').ExecutionContext} t @param {object[]} records @param {string} [rule] */
function only (t, records, rule) {
  const findings = verdict(records)
  t.deepEqual(findings.map((finding) => finding.rule), rule === undefined ? [] : [rule])
  return findings[0]
}

/** @param {import('ava').ExecutionContext} t @param {number} actual @param {number} expected */
const near = (t, actual, expected) => t.true(Math.abs(actual - expected) < 1e-9, `${actual}, not ${expected}`)

test('without spans there is no finding', (t) => {
  only(t, [])
  only(t, Array.from({ length: 50 }, () => span({ ms: 1000 })))
})

test('pool: connections, queries per request, and the part of the wait for a free connection', (t) => {
  const ids = [[11], [12], [13]]
  const found = only(t, requests(60, (i) => [turn(60), query(39, 2, { on: ids[i % 3] })]), 'pool')
  near(t, found.share, 0.6)
  near(t, found.lostMs, 60 * 60)
  t.is(found.route, 'GET /report')
  t.is(found.at, 'acquire (/app/pool.js:10:9)')
  t.deepEqual(found.figures, { turnMs: 60, peer: '127.0.0.1:5432', connections: 3, queries: 2, waitShare: 0.606 })
  t.is(found.sentence, 'GET /report waits for a turn at acquire (pool.js:10) 60 % of its time: 3 connections, ' +
    '2 queries per request, 61 % of the wait for 127.0.0.1:5432 is for a free connection.')
})

test('pool: released in a socket\'s callback, or with a query as a single wait', (t) => {
  const acquire = { until: DATABASE, unsent: 60 }
  near(t, only(t, requests(60, () => [turn(60, acquire), query(39)]), 'pool').share, 0.6)
  near(t, only(t, requests(60, () => [query(99, 1, { unsent: 60 })]), 'pool').share, 0.6)
  only(t, requests(60, () => [turn(60, acquire)])) // what a broker pushes: the request asks nothing
})

test('pool: thresholds of requests and share', (t) => {
  only(t, requests(19, () => [turn(60), query(39)]))
  only(t, requests(20, () => [turn(60), query(39)]), 'pool')
  only(t, requests(100, (i) => i % 4 === 0 ? [turn(60), query(39)] : [query(39)]), 'pool')
  only(t, requests(100, (i) => i % 5 === 0 ? [turn(60), query(39)] : [query(39)]))
  only(t, requests(100, () => [turn(14), query(85)]))
  only(t, requests(100, () => [turn(16), query(83)]), 'pool')
})

test('pool: a response shared by requests is not a pool', (t) => {
  only(t, requests(100, (i) => i % 10 === 0 ? [query(50)] : [turn(45)]))
  const cached = (/** @type {number} */ i) => i % 10 === 0 ? [query(50)] : i % 10 < 4 ? [turn(45)] : []
  only(t, requests(100, cached))
  const authenticated = (/** @type {number} */ i) => {
    return [query(40, 1, { at: 'session (/app/app.js:9:9)' }), ...(i % 5 === 0 ? [query(20)] : [turn(18)])]
  }
  only(t, requests(100, authenticated))
})

test('pool: found even if it is unknown who released a connection early in the recording', (t) => {
  const waits = (/** @type {number} */ i) => i === 0 ? [turn(70, { until: undefined })] : [turn(60)]
  const worked = { ms: 39, count: 1, at: 'report (/app/app.js:30:9)' }
  only(t, requests(60, (i) => [...waits(i), worked], { apart: 39 }), 'pool')
  // The holder began before the recording: its release seems to be a timer of nobody.
  const released = (/** @type {number} */ i) => i < 2 ? [turn(70, { until: 'TIMER' })] : i % 3 === 0 ? [] : [turn(60)]
  only(t, requests(90, (i) => [...released(i), worked], { apart: 39 }), 'pool')
})

test('pool: an event from another route is not a pool', (t) => {
  const poll = requests(50, () => [turn(500, { until: 'POST /message of another request' }), query(30)])
  only(t, [...poll, ...requests(50, () => [], { name: 'POST /message' })])
})

test('pool: a queue of the process, with at most two at a time', (t) => {
  const rendered = { ms: 20, count: 1, at: 'render (/app/pdf.js:3:3)', until: 'WORKER' }
  const queued = (/** @type {number} */ i) => i < 2 ? [rendered] : [turn(40, { at: 'limit (/app/pdf.js:9:9)' }), rendered]
  const found = only(t, requests(60, queued, { run: 0, apart: 10 }), 'pool')
  near(t, found.share, 58 * 40 / (58 * 60 + 40))
  t.deepEqual(found.figures.atATime, 2)
})

test('pool: if another request does the work (p-queue), the wait excludes the work', (t) => {
  const work = { ms: 20, count: 1, at: 'work (/app/app.js:3:3)', until: 'TIMER' }
  const found = only(t, requests(62, (i) => i < 2 ? [work] : [turn(60)], { run: 0 }), 'pool')
  near(t, found.lostMs, 60 * 40)
})

test('sequence: a loop, at the place that calls a shared helper', (t) => {
  const found = only(t, [
    ...requests(30, () => [query(90, 3)], { run: 10 }),
    ...requests(30, () => [query(3, 1, { callers: ['user (/app/app.js:40:9)'] })], { name: 'GET /user' })
  ], 'sequence')
  near(t, found.lostMs, 30 * 60)
  near(t, found.share, 0.6)
  t.is(found.route, 'GET /report')
  t.is(found.at, 'report (/app/app.js:24:9)')
  t.deepEqual(found.figures, { steps: 3, requestMs: 90, savedMs: 60, places: 1 })
  t.regex(found.sentence, /3 responses one after another at report \(app\.js:24\), for 90 ms .* if they are independent.* 60 %/)
})

test('sequence: queries are counted exactly if the file has them', (t) => {
  const users = ['users (/app/app.js:24:9)']
  const waits = () => [query(5, 1, { at: 'session (/app/app.js:20:9)', callers: [] }), query(77, 7, { at: 'load (/app/db.js:5:9)', callers: users })]
  const load = (/** @type {number} */ i) => ({ start: 6 + i * 11, ms: 10, at: 'load (/app/db.js:5:9) via pg', callers: users })
  const asked = [{ start: 0, ms: 5, at: 'session (/app/app.js:20:9)' }, ...Array.from({ length: 8 }, (_, i) => load(i))]
  const withQueries = (/** @type {object[]} */ list) => withAsked(requests(30, waits, { run: 18 }), list)
  const found = only(t, withQueries(asked), 'sequence')
  t.like(found.figures, { steps: 8, queries: 9 })
  t.regex(found.sentence, /^GET \/report sends 9 queries per request, 8 of them one after another at load \(db\.js:5\): 8 × load in each request, for 77 ms/)
  t.regex(only(t, withQueries(asked.slice(1)), 'sequence').sentence, /sends 8 queries per request, one after another at load/)
  for (const list of [asked.slice(0, 5), asked.map((question) => ({ ...question, start: 0 }))]) {
    t.regex(only(t, withQueries(list), 'sequence').sentence, /waits for 7 responses one after another at load .*: 7 × load/)
  }
})

test('sequence: thresholds of steps, share and requests', (t) => {
  only(t, requests(30, () => [query(90, 2)]))
  only(t, requests(9, () => [query(90, 3)]))
  only(t, requests(30, () => [query(46, 3)], { run: 54 }), 'sequence')
  only(t, requests(30, () => [query(44, 3)], { run: 56 }))
})

test('sequence: concurrent waits, and waits other than queries, do not count', (t) => {
  only(t, requests(30, () => [query(90, 9, { sent: 1 })]))
  only(t, requests(30, () => [query(90, 3, { beside: 2 })]))
  only(t, requests(30, () => [query(90, 3, { until: 'FS' })]))
  only(t, requests(30, () => [query(90, 3, { until: 'TIMER' })]))
  only(t, requests(30, () => [query(90, 3, { until: OTHER })]))
})

test('sequence: several sites in one function', (t) => {
  const site = (/** @type {number} */ line, ms = 30) =>
    query(ms, 1, { at: `load${line} (/app/db.js:${line}:9)`, callers: [`report (/app/app.js:${line}:9)`] })
  const found = only(t, requests(30, () => [site(24), site(25, 35), site(26)], { run: 5 }), 'sequence')
  t.is(found.at, 'report (/app/app.js:24:9)')
  near(t, found.share, 0.6)
  t.is(found.figures.places, 3)
  only(t, requests(30, () => [site(24), site(25)]))
  only(t, requests(30, () => [site(24, 80), site(25, 10), site(26, 10)]))
  const unnamed = (/** @type {number} */ line) => query(30, 1, { at: `<anonymous> (/app/app.js:${line}:9)`, callers: [] })
  only(t, requests(30, () => [unnamed(3), unnamed(4), unnamed(5)]))
})

/** @param {object[]} records @param {object[]} asked */
const withAsked = (records, asked) =>
  records.map((record) => ({ ...record, attributes: { ...record.attributes, 'longstack.asked': asked } }))

test('sequence: a loop is found by its queries, even if a busy loop had most responses before their await', (t) => {
  const users = ['users (/app/app.js:24:9)']
  const waits = () => [query(8, 2, { at: 'load (/app/db.js:5:9)', callers: users, sent: 1 })]
  const asked = Array.from({ length: 12 }, (_, i) => ({ start: i * 7, ms: 6, at: 'load (/app/db.js:5:9)', callers: users }))
  const found = only(t, withAsked(requests(30, waits, { run: 20, delayed: 72 }), asked), 'sequence')
  t.regex(found.sentence, /sends 12 queries per request, one after another at load .*: 12 × load in each request/)
  // No request waited for a hundredth of its time
  const brief = () => [query(0.2, 2, { at: 'load (/app/db.js:5:9)', callers: users, sent: 1 })]
  const busy = requests(30, brief, { run: 20, delayed: 72 })
  t.regex(only(t, withAsked(busy, asked), 'sequence').sentence, /: 12 × load in each request, for 72 ms per request\.$/)
  only(t, withAsked(busy, asked.map((each) => ({ ...each, ms: 0.1 })))) // they take next to nothing
})

test('fan-out: many concurrent queries, of which few are sent at a time', (t) => {
  const site = { at: 'load (/app/db.js:5:9)', callers: [], peer: '127.0.0.1:5432' }
  const batch = (/** @type {number} */ i) => Math.floor(i / 3) * 5
  const asked = Array.from({ length: 30 }, (_, i) => ({ ...site, start: batch(i), ms: 5, unsent: batch(i) }))
  const waits = () => [query(50, 1, { unsent: 45 })]
  const found = only(t, withAsked(requests(30, waits, { run: 10 }), asked), 'fanOut')
  t.like(found.figures, { queries: 30, unsentMs: 22.5, answerMs: 5, atOnce: 3, peer: '127.0.0.1:5432' })
  t.is(found.sentence, 'GET /report issues 30 queries at once at load (db.js:5), but only 3 at a time are in flight to ' +
    '127.0.0.1:5432: each waits 23 ms to be sent and 5.0 ms for its response, 68 % of its time.')
  // On one connection they come one after another, and are asked at once all the same
  const single = Array.from({ length: 30 }, (_, i) => ({ ...site, start: i * 5, ms: 5, unsent: i * 5 }))
  t.is(only(t, withAsked(requests(30, () => [query(150)], { run: 10 }), single), 'fanOut').figures.atOnce, 1)
  // Of two peers none is said to be asked three at a time
  const mixed = asked.map((question, i) => ({ ...question, peer: `127.0.0.1:${5432 + i % 2}` }))
  const { figures, sentence } = only(t, withAsked(requests(30, waits, { run: 10 }), mixed), 'fanOut')
  t.is(figures.peer, undefined)
  t.regex(sentence, /, but only 3 at a time are in flight: each waits/)
  const unhindered = asked.map((question) => ({ ...question, start: 0, unsent: 0 }))
  only(t, withAsked(requests(30, () => [query(5)], { run: 10 }), unhindered))
  only(t, withAsked(requests(9, waits, { run: 10 }), asked))

  // A pool lets three run at a time: each query begins when its turn has come
  const held = asked.map(({ unsent, ...question }) => question)
  const turns = () => [query(50, 10, { beside: 20 })]
  t.is(only(t, withAsked(requests(30, turns, { run: 10 }), held), 'fanOut').sentence, 'GET /report issues 30 queries at ' +
    'query (db.js:5), but only 3 at a time are in flight to 127.0.0.1:5432: 10 run one after another, 5.0 ms each, 75 % of its time.')
  only(t, withAsked(requests(30, turns, { run: 10 }), held.slice(0, 18))) // six turns
  const elsewhere = held.map((question, i) => i % 2 === 0 ? question : { ...question, at: 'other (/app/db.js:9:9)' })
  only(t, withAsked(requests(30, turns, { run: 10 }), elsewhere)) // several kinds of queries
  only(t, withAsked(requests(30, turns, { run: 200 }), held)) // they take little of its time
})

test('pool: locks, limiters and queues are not reported as connection pools', (t) => {
  const call = (/** @type {object} */ request, /** @type {number} */ at) => span({
    name: 'GET 127.0.0.1/seats',
    kind: 'CLIENT',
    at,
    ms: 39,
    parentSpanId: /** @type {any} */ (request).spanId,
    attributes: { 'http.request.method': 'GET', 'server.address': '127.0.0.1', 'server.port': 5432 }
  })
  const reserved = requests(60, (i) => [turn(60), query(39, 1, { on: [11 + i % 3] })], { run: 0, apart: 13 })
  t.is(only(t, reserved, 'pool').figures.connections, 3)
  const called = reserved.flatMap((request, i) => [call(request, i * 13), request])
  const found = only(t, called, 'pool')
  t.is(found.figures.connections, undefined)
  t.notRegex(found.sentence, /connection/)
  const limited = requests(60, (i) =>
    [turn(60, { at: 'report (/app/app.js:23:9) via p-limit' }), query(39, 1, { on: [11 + i % 3] })], { run: 0, apart: 13 })
  t.deepEqual(Object.keys(only(t, limited, 'pool').figures), ['turnMs', 'atATime'])
  // A queue that starts the next in the callback of the connection of the one before
  const next = { at: 'report (/app/app.js:23:9) via p-queue', until: DATABASE, unsent: 60 }
  const queued = requests(60, () => [turn(60, next), query(39)], { apart: 13 })
  t.is(only(t, queued, 'pool').figures.connections, undefined)
  const alone = requests(60, () => [turn(60), query(39, 1, { on: [11] })], { run: 0, apart: 39 })
  t.regex(only(t, alone, 'pool').sentence, /waits for a lock at acquire .*: 1 at a time\.$/)
})

test('pool: what requests wait for while they hold a connection', (t) => {
  const runs = (/** @type {object[]} */ records, /** @type {unknown[]} */ ...second) => {
    const ran = [[0, 0.5, 'HTTPINCOMINGMESSAGE'], second, [99.75, 0.25, 'TCPWRAP', 2]]
    return records.map((record) =>
      span({ ...record, attributes: { ...Object(record).attributes, 'longstack.runs': ran } }))
  }
  const call = query(39, 1, { on: [11], at: 'pay (/app/app.js:30:9)' })
  const during = only(t, runs(requests(60, () => [turn(60), call], { apart: 39 }), 60.5, 0.25, 'TCPWRAP', 1), 'pool')
  t.like(during.figures, { atATime: 1, heldShare: 0.987, heldAt: 'pay (/app/app.js:30:9)', heldFor: '127.0.0.1:5432' })
  t.regex(during.sentence, /: 1 at a time; 99 % of a turn is the wait for 127\.0\.0\.1:5432 at pay \(app\.js:30\)\.$/)
  t.regex(during.advice, /^move that wait before or after it/)
  const before = only(t, runs(requests(60, () => [call, turn(60)], { apart: 39 }), 39.5, 0.25, 'TCPWRAP', 1), 'pool')
  t.is(before.figures.heldAt, undefined)
  t.notRegex(before.sentence, /of a turn/)
})

test('retries: a call repeated until it succeeds', (t) => {
  /** @param {object} request @param {number} at @param {boolean} failed @param {number} ms */
  const call = (request, at, failed, ms = 20) => span({
    name: 'GET stock.test/item',
    kind: 'CLIENT',
    at,
    ms,
    failed,
    parentSpanId: /** @type {any} */ (request).spanId,
    attributes: { 'http.request.method': 'GET', 'server.address': '127.0.0.1', 'server.port': 5432 }
  })
  /** @param {(i: number, tries: number) => boolean} isFailed */
  const service = (isFailed, apart = 22) => {
    const records = requests(30, () => [query(84, 4)], { run: 16 })
    return records.flatMap((request, i) => {
      const calls = [0, 1, 2, 3].map((tries) => call(request, i * 10 + tries * apart, isFailed(i, tries)))
      return [...calls, request]
    })
  }
  const found = only(t, service((i, tries) => tries < 3), 'retries')
  near(t, found.share, 0.6)
  t.like(found.figures, { call: 'GET stock.test/item', callsPerRequest: 4, most: 4, failedShare: 0.75 })
  t.regex(found.sentence, /^GET \/report repeats GET stock\.test\/item until it succeeds: 4 calls per request, up to 4; 75 % of them fail/)
  const cancelled = service((i, tries) => tries < 3).map((record) => {
    const { status, attributes } = /** @type {any} */ (record)
    if (status.code !== 'ERROR') return record
    return { ...record, status: { code: 'UNSET' }, attributes: { ...attributes, 'longstack.end': 'cancelled' } }
  })
  only(t, cancelled, 'retries') // they took too long
  only(t, service(() => false), 'sequence') // different questions
  only(t, service((i, tries) => tries === 1), 'sequence') // goes on after an error
  only(t, service(() => true), 'sequence') // nothing says that they are the same question
  only(t, service((i, tries) => tries < 3, 1), 'sequence') // at once
})

test('loop: requests lie unread while one route runs', (t) => {
  const unread = (/** @type {object[]} */ records, /** @type {number} */ ms) => records.map((record) =>
    span({ ...record, attributes: { ...Object(record).attributes, 'longstack.queued_ms': ms } }))
  const login = (run = 20, apart = 22) => requests(40, () => [], { name: 'POST /login', run, apart })
  const health = (ms = 60, apart = 22) =>
    unread(requests(40, () => [], { name: 'GET /health', run: 0.4, apart }), ms)
  const found = only(t, [...login(), ...health()], 'loop')
  t.is(found.route, 'POST /login')
  near(t, found.share, 2400 / (2400 + 800 + 16))
  t.is(found.sentence, 'Requests wait for the event loop for 30 ms on average, 75 % of their latency, while ' +
    'it runs POST /login (20 ms per request, 98 % of all run time). GET /health takes 0.4 ms here and 60 ms for clients.')
  only(t, [...login(), ...health(4)])
  t.regex(only(t, [...login(4, 5), ...health(60, 5)], 'loop').advice, /^run longstack profile /)
  only(t, [...login(1.8, 2), ...health(60, 2)])
  only(t, login(4, 5).map((record) => unread([record], 60)[0])) // nothing shows that it is more than load
  only(t, [...login(20, 60), ...health()]) // the loop was idle for most of the time
})

test('loop: requests of a route delay each other', (t) => {
  const delayedBy = [{ name: 'POST /login', spanId: 'ab'.repeat(8), ms: 60 }]
  const login = (/** @type {number} */ delayed) =>
    requests(40, () => [], { name: 'POST /login', run: 20, apart: 22, delayed, delayedBy: [{ ...delayedBy[0], ms: delayed }] })
  near(t, only(t, login(60), 'loop').share, 0.75)
  only(t, login(4)) // a fifth of the time at least
})

/** @param {string} name @param {object} attributes of a record that is no span */
const facts = (name, attributes) =>
  span({ name, kind: 'INTERNAL', at: 20_000, ms: 0, startTimeUnixNano: nanos(20_000), attributes })

const HASH = { at: 'hash (/app/hash.js:4:9)', callers: ['login (/app/app.js:9:3)'], until: 'CRYPTO' }

test('threads: requests wait for a libuv thread', (t) => {
  const served = (run = 1) => requests(40, () => [{ ...HASH, ms: 99, count: 1 }], { run })
  const tasks = (/** @type {object[]} */ ...groups) => facts('thread pool', {
    'longstack.tasks': groups.map((group) => ({ ...HASH, tasks: 40, queuedMs: 3200, ranMs: 800, most: 16, threads: 4, ...group }))
  })
  const found = only(t, [...served(), tasks({})], 'threads')
  near(t, found.share, 99 * 0.8 / 100)
  t.is(found.sentence, "GET /report waits 79 % of its time for a thread of libuv's pool at hash (hash.js:4): up to " +
    '16 tasks at once for 4 threads; each CRYPTO task waits 80 ms and then takes 20 ms.')
  const other = { at: 'read (/app/read.js:7:5)', until: 'FS', queuedMs: 0, ranMs: 9000 }
  t.regex(only(t, [...served(), tasks({}, other)], 'threads').sentence,
    /takes 20 ms\. These threads mostly run FS tasks at read \(read\.js:7\)\.$/)
  only(t, [...served(), tasks({ queuedMs: 190, ranMs: 810 })])
  only(t, [...served(), tasks({ at: 'other (/app/other.js:1:1)' })])
  only(t, [...requests(9, () => [{ ...HASH, ms: 99, count: 1 }]), tasks({})])
})

test('lookups: host names are resolved slowly', (t) => {
  const place = { at: 'look (/app/dns.js:4:9)', callers: [], until: 'DNS' }
  const served = (/** @type {number} */ ms) => requests(40, () => [{ ...place, ms, count: 1 }], { run: 20 })
  t.is(only(t, served(60), 'lookups').sentence,
    'GET /report spends 75 % of its time resolving host names at look (dns.js:4): each lookup takes 60 ms.')
  only(t, served(19))
  const tasks = facts('thread pool', { 'longstack.tasks': [{ ...place, tasks: 40, queuedMs: 1800, ranMs: 600, most: 9, threads: 4 }] })
  t.regex(only(t, [...served(100), tasks], 'lookups').sentence, /takes 100 ms, 45 ms of it in the queue of libuv's thread pool\.$/)
  only(t, [...served(60), tasks], 'threads') // a lookup alone takes 15 ms
})

test('opening: each call opens a connection', (t) => {
  const peer = 'TCP 127.0.0.1:8080'
  const call = (/** @type {object} */ more) => ({ ...query(200), until: peer, ...more })
  const found = only(t, requests(30, () => [call({ opening: 120 })], { run: 50 }), 'opening')
  t.is(found.sentence, 'GET /report spends 48 % of its time opening connections to 127.0.0.1:8080 at query (db.js:5): ' +
    'each takes 120 ms.')
  only(t, requests(30, () => [call({ opening: 19, ms: 60 })], { run: 1 }))
  t.like(only(t, requests(30, () => [call({ opening: 50 })], { run: 5 }), 'dependency').figures, { answerMs: 150 })
})

test('workers: more tasks than the workers can handle', (t) => {
  const wait = { at: 'render (/app/app.js:12:5)', callers: [], until: 'MESSAGE', ms: 80, count: 1 }
  const served = (/** @type {number} */ apart) => requests(40, () => [wait], { apart }).map((record) => ({
    ...record,
    attributes: { ...record.attributes, 'longstack.runs': [[0, 0.5, 'HTTPINCOMINGMESSAGE'], [80.5, 0.5, 'MESSAGEPORT', 1]] }
  }))
  const worker = (busyShare = 0.95) => ({
    ...facts('thread load', { 'longstack.load': [{ busyShare }] }), resource: { 'process.pid': 7, 'longstack.thread': 1 }
  })
  const found = only(t, [...served(20), worker()], 'workers')
  t.is(found.sentence, 'GET /report waits 72 % of its time for a free worker thread at render (app.js:12): up to 4 tasks at once ' +
    'for 1 worker (95 % busy); each task waits 59 ms and then takes 22 ms.')
  only(t, [...served(20), worker(0.69)]) // the worker has time
  only(t, served(20)) // nothing is known about workers
  only(t, [...served(20), worker(), worker(), worker(), worker()])
  only(t, [...served(90), worker()]) // one at a time
})

/** @param {object} load of the main thread */
const loadOf = (load) => facts('thread load', { 'longstack.load': [load] })

test('collects: a thread collects garbage', (t) => {
  const heap = { used: 118e6, limit: 327e6 }
  t.is(only(t, [loadOf({ busyShare: 0.9, cpuShare: 1.2, collectedShare: 0.43, ...heap })], 'collects').sentence,
    'Process 7 spent 43 % of the time in garbage collection; its heap has 118 MB of at most 327 MB. This slowed callbacks and requests.')
  only(t, [loadOf({ busyShare: 0.9, cpuShare: 1.2, collectedShare: 0.19, ...heap })])
})

test('starved: a busy main thread gets no CPU', (t) => {
  const served = requests(40, () => [], { run: 20, apart: 22 })
  t.is(only(t, [...served, loadOf({ busyShare: 0.9, cpuShare: 0.3 })], 'starved').sentence,
    'The event loop of process 7 was busy 90 % of the time, but used only 30 % of a CPU: it waited for a CPU or in ' +
    'synchronous calls. This slowed callbacks and requests.')
  only(t, [...served, loadOf({ busyShare: 0.9, cpuShare: 0.6 })])
  only(t, [...served, loadOf({ busyShare: 0.2, cpuShare: 0.05 })])
  only(t, [...served, loadOf({ busyShare: 0.9 })]) // unknown
  t.is(only(t, [...served, loadOf({ busyShare: 0.2, cpuShare: 0.1, waitedShare: 0.8 })], 'starved').sentence,
    'The main thread of process 7 waited for a CPU 80 % of the time. This slowed callbacks and requests.')
  only(t, [...served, loadOf({ busyShare: 0.2, cpuShare: 0.1, waitedShare: 0.2 })])
  const { figures } = only(t, [...served, loadOf({ busyShare: 0.9, waitedShare: 0.5 })], 'starved')
  t.is(figures.cpuShare, undefined, 'it is unknown')
})

test('filling: a full heap is reported with a wait for a CPU, but not with garbage collection', (t) => {
  const full = { busyShare: 0.9, cpuShare: 0.3, used: 55e6, limit: 60e6, kept: 54e6 }
  const rules = (/** @type {object} */ load) =>
    verdict([...requests(40, () => [], { run: 20, apart: 22 }), loadOf(load)]).map(({ rule }) => rule)
  t.deepEqual(rules(full).sort(), ['filling', 'starved'])
  t.deepEqual(rules({ ...full, cpuShare: 1, collectedShare: 0.4 }), ['collects'])
})

test('loop: callbacks that are long only because the process waits for a CPU', (t) => {
  const login = requests(40, () => [], {
    name: 'POST /login',
    run: 20,
    apart: 22,
    delayed: 60,
    delayedBy: [{ name: 'POST /login', spanId: 'ab'.repeat(8), ms: 60 }]
  })
  t.true(verdict([...login, loadOf({ busyShare: 0.9, cpuShare: 0.3 })]).some(({ rule }) => rule === 'loop'))
  t.false(verdict([...login, loadOf({ busyShare: 0.9, cpuShare: 0.2 })]).some(({ rule }) => rule === 'loop'))
})

test('loop: many short callbacks after one query each are blamed for their number', (t) => {
  const users = ['users (/app/app.js:24:9)']
  const asked = Array.from({ length: 12 }, (_, i) => ({ start: i * 7, ms: 6, at: 'load (/app/db.js:5:9)', callers: users }))
  const waits = () => [query(8, 2, { at: 'load (/app/db.js:5:9)', callers: users, sent: 1 })]
  const delays = { delayed: 60, delayedBy: [{ name: 'GET /report', spanId: 'ab'.repeat(8), ms: 60 }] }
  const rules = (/** @type {number} */ run) => {
    const served = withAsked(requests(40, waits, { run, apart: run + 2, ...delays }), asked)
    return verdict(served).map(({ rule }) => rule).sort()
  }
  t.deepEqual(rules(20), ['sequence'])
  t.deepEqual(rules(40), ['loop', 'sequence'])
})

test('stampede: at times many requests send a query that most do not', (t) => {
  const served = (/** @type {(i: number) => boolean} */ sends) =>
    requests(200, (i) => sends(i) ? [query(60)] : [], { apart: 2 })
  const found = only(t, served((i) => i % 50 < 12), 'stampede')
  t.is(found.sentence, 'GET /report sends a query at query (db.js:5) ← report (app.js:24) in only 48 of 200 requests, but then ' +
    'up to 12 at once do, 4 times: a cache entry expires.')
  only(t, served((i) => i % 4 === 0)) // at random
  only(t, served((i) => i < 12)) // the cache was empty at first
  t.not(verdict(served((i) => i % 50 < 45))[0]?.rule, 'stampede') // no cache
})

test('background: code outside of requests keeps the loop busy', (t) => {
  const served = (delayed = 9) => requests(40, () => [], { delayed })
  const job = (/** @type {object} */ more) => facts('background', {
    'longstack.background': [{ at: 'reindex (/app/job.js:3:5)', ms: 900, count: 450, maxMs: 4, ranMs: 950, recordedMs: 1000, ...more }]
  })
  t.is(only(t, [...served(), job({})], 'background').sentence, 'Requests wait for the event loop for 9.0 ms on average, 90 % of ' +
    'their latency, while it runs code outside of requests: callbacks scheduled at reindex (job.js:3) take 90 % of the time ' +
    '(2.0 ms each, 4.0 ms max).')
  only(t, [...served(0.2), job({})])
  only(t, [...served(), job({ ms: 400 })]) // no single place
  only(t, [...served(), job({ ms: 190, ranMs: 200 })]) // the loop is mostly idle
  only(t, [...served(), { ...job({}), resource: { 'process.pid': 7, 'longstack.thread': 1 } }]) // a worker's own
})

test('unanswered: clients gave up on some requests of a route', (t) => {
  const ended = (/** @type {number} */ count, /** @type {object} */ attributes, ms = 3000) =>
    requests(count, () => [{ at: 'send (/app/app.js:7:3)', ms, count: 1, until: 'TCP 127.0.0.1:60000' }]).map((record) => ({
      ...record,
      attributes: {
        ...record.attributes, 'network.peer.address': '127.0.0.1', 'network.peer.port': 60000, 'url.path': '/a', ...attributes
      }
    }))
  const served = requests(40, () => [])
  const aborted = { 'longstack.end': 'aborted' }
  t.is(only(t, [...served, ...ended(4, aborted)], 'unanswered').sentence, '4 requests of GET /report (all /a) got no response ' +
    'for up to 3.0 s, and their clients gave up or still wait; the others take 1.0 ms. They last ran at send (app.js:7).')
  only(t, [...served, ...ended(2, aborted)])
  only(t, [...served, ...ended(4, aborted, 900)])
  only(t, [...served, ...ended(4, { ...aborted, 'http.response.status_code': 200 })]) // a stream that the client left
  only(t, [...ended(9, {}, 3000), ...ended(4, aborted)]) // the others take as long

  const failed = (/** @type {number} */ count, more = {}) => ended(count, { ...aborted, ...more })
  const thrown = (/** @type {number} */ count, late = 3000, more = {}) =>
    failed(count, more).map((record) => ({
      ...record,
      events: [{
        name: 'exception',
        timeUnixNano: String(BigInt(record.endTimeUnixNano) - BigInt(late * 1e6)),
        attributes: { 'exception.type': 'TypeError', 'exception.stacktrace': 'TypeError: no\n    at render (/app/page.js:9:5)' }
      }]
    }))
  t.is(only(t, thrown(4), 'unanswered').sentence, '4 requests of GET /report (all /a) got no response for up to 3.0 s after ' +
    'TypeError was thrown at render (page.js:9); their clients gave up or still wait.')
  t.regex(only(t, [...served, ...thrown(3), ...ended(2, aborted)], 'unanswered').sentence,
    / for up to 3\.0 s after TypeError was thrown at .* in 3 of them; .*; the others take 1\.0 ms\.$/)
  only(t, [...thrown(2), ...ended(3, aborted)]) // most have no error
  only(t, thrown(4, 9000)) // it went on for long after the error
  const asking = [{ at: 'load (/app/db.js:5:9)', callers: [], start: 0, ms: 3000, unanswered: true }]
  only(t, thrown(4, 3000, { 'longstack.asked': asking })) // a query is not answered
  only(t, thrown(4, 0)) // the clients left, and that is the error
  const calling = (/** @type {number} */ ms) => {
    const left = thrown(4)
    return [...left, ...left.map((record, i) => span({
      name: 'GET stock.test/item',
      kind: 'CLIENT',
      at: 20 * i + 100,
      ms,
      parentSpanId: /** @type {any} */ (record).spanId,
      attributes: { 'http.request.method': 'GET', ...(ms < 5000 && { 'longstack.end': 'cancelled' }) }
    }))]
  }
  only(t, calling(4000)) // an HTTP call is pending
  only(t, calling(200), 'unanswered')
  only(t, [...requests(3, () => []), ...thrown(4)]) // too few to compare, but some do get a response
})

test('dependency: a slow peer', (t) => {
  const found = only(t, requests(30, () => [query(150)], { run: 50 }), 'dependency')
  near(t, found.share, 0.75)
  t.like(found.figures, { peer: '127.0.0.1:5432', answerMs: 150 })
  t.is(found.at, 'query (/app/db.js:5:9)')
  only(t, requests(30, () => [query(99)], { run: 1 }))
  only(t, requests(30, () => [query(150)], { run: 105 }))
  only(t, requests(9, () => [query(150)]))
  only(t, requests(30, () => [query(500, 1, { sent: 0 })]))
})

/** @param {number} at @param {number} ms @param {string} frame */
const blocked = (at, ms, frame) => span({
  name: 'blocked',
  kind: 'INTERNAL',
  at,
  ms,
  attributes: {
    'longstack.blocked_ms': ms,
    'longstack.blocked_by': 'GET /slow',
    'code.stacktrace': `    at ${frame}\n    at answer (/app/app.js:9:3)`
  }
})

test('blocker: its own time and its delays, of all requests', (t) => {
  const delayedBy = [{ name: 'GET /slow', spanId: 'ab'.repeat(8), ms: 30, at: 'work (/app/app.js:3:9)' }]
  const records = [
    ...requests(10, () => [], { name: 'GET /slow', run: 60 }),
    ...requests(10, () => [query(10)], { run: 0, delayed: 30, delayedBy }),
    ...Array.from({ length: 10 }, (_, i) => blocked(i * 10, 50, 'work (/app/app.js:3:9)'))
  ]
  const found = only(t, records, 'blocker')
  near(t, found.lostMs, 500 + 300)
  near(t, found.share, 0.8)
  t.is(found.at, 'work (/app/app.js:3:9)')
  t.is(found.route, 'GET /slow')
  t.like(found.figures, { times: 10, totalMs: 500, worstMs: 50, delayedMs: 300, delayedRequests: 10 })
})

test('blocker: thresholds', (t) => {
  const slow = (/** @type {number} */ count, /** @type {number} */ ms, others = 0) => [
    ...requests(count, () => [], { name: 'GET /slow', run: ms }),
    ...Array.from({ length: count }, (_, i) => blocked(i * 10, ms, 'work (/app/app.js:3:9)')),
    ...requests(others, () => [], { name: 'GET /slow', run: 1 })
  ]
  only(t, slow(4, 50))
  only(t, slow(5, 50), 'blocker')
  only(t, slow(5, 19))
  only(t, slow(5, 50, 11), 'blocker')
  only(t, slow(5, 50, 12)) // less than three in ten
  const load = loadOf({ busyShare: 0.9, cpuShare: 0.3 })
  t.true(verdict([...slow(5, 61), load]).some(({ rule }) => rule === 'blocker'))
  t.false(verdict([...slow(5, 59), load]).some(({ rule }) => rule === 'blocker')) // it waits for a CPU
})

test('delayer: a long-running route that delays others', (t) => {
  const delayedBy = [{ name: 'GET /sum', spanId: 'ab'.repeat(8), ms: 20 }]
  const others = requests(50, () => [query(78)], { run: 2, delayed: 20, delayedBy })
  const found = only(t, [...others, ...requests(10, () => [], { name: 'GET /sum', run: 40 })], 'delayer')
  near(t, found.share, 0.2)
  t.is(found.route, 'GET /sum')
  only(t, [...others, ...requests(10, () => [], { name: 'GET /sum', run: 9 })]) // no more than the others
  only(t, [...others, ...requests(9, () => [], { name: 'GET /sum', run: 40 })])
  const few = requests(50, () => [query(78)], { run: 2, delayed: 8, delayedBy: [{ ...delayedBy[0], ms: 8 }] })
  only(t, [...few, ...requests(10, () => [], { name: 'GET /sum', run: 40 })])
})

/** @param {number} at @param {number} count @param {number} [oldest] ms @param {string} [route] */
const open = (at, count, oldest = 10_000, route = 'GET /report') => span({
  name: 'open intervals',
  kind: 'INTERNAL',
  at,
  ms: 0,
  startTimeUnixNano: nanos(at),
  attributes: {
    'longstack.open_intervals': [{
      at: 'watch (/app/app.js:7:3)', callers: [], label: 'setInterval(1000)', count, oldest_ms: oldest, requests: { [route]: count }
    }]
  }
})

test('interval: one interval of each request remains', (t) => {
  const served = requests(50, () => [])
  const found = only(t, [...served, open(20_000, 20), open(30_000, 50)], 'interval')
  t.is(found.at, 'watch (/app/app.js:7:3)')
  t.is(found.sentence, 'GET /report leaves setInterval(1000) behind with each request, set at watch (app.js:7): 50 ' +
    'are open after 50 requests.')
  only(t, [...served, open(30_000, 50)], 'interval')
  const { sentence } = only(t, [...served, open(20_000, 20), open(30_000, 80)], 'interval')
  t.regex(sentence, /: 80 are open, some from before the 50 recorded requests\.$/)
  only(t, [...served, open(30_000, 40)], 'interval')
  only(t, [...served, open(30_000, 39)])
  only(t, [...served, open(20_000, 50), open(30_000, 50)]) // it does not grow
  only(t, [...served, open(30_000, 50, 4_999)])
  only(t, [...served, open(30_000, 50, 10_000, 'GET /other')])
  only(t, [...requests(9, () => []), open(30_000, 9)])
})

/** @param {Record<string, number>} figures of requests that went on */
const goesOn = (figures) => span({
  name: 'after responses',
  kind: 'INTERNAL',
  at: 20_000,
  ms: 0,
  startTimeUnixNano: nanos(20_000),
  attributes: {
    'longstack.after': [{
      name: 'GET /report', at: 'query (/app/db.js:7:3)', callers: ['save (/app/app.js:12:5)'], calls: 0, failed: 0, ...figures
    }]
  }
})

test('after: requests continue after their response', (t) => {
  const served = requests(50, () => [])
  const found = only(t, [...served, goesOn({ requests: 48, queries: 96, ms: 960, failed: 2 })], 'after')
  t.is(found.sentence, 'GET /report continues after its response in 48 of 50 requests: 2 queries at query (db.js:7) ← ' +
    'save (app.js:12), for 20 ms; 2 of 96 queries fail.')
  only(t, [...served, goesOn({ requests: 15, queries: 0, calls: 15, ms: 150 })], 'after')
  only(t, [...served, goesOn({ requests: 14, queries: 14, ms: 140 })]) // less than three in ten
  only(t, [...served, goesOn({ requests: 10, queries: 10, ms: 10, failed: 10 })], 'after')
  only(t, [...served, goesOn({ requests: 10, queries: 10, ms: 10, failed: 9 })])
  only(t, [...requests(9, () => []), goesOn({ requests: 9, queries: 9, ms: 90 })])
  // Without a CPU, any answer is late
  const load = loadOf({ busyShare: 0.9, cpuShare: 0.3 })
  const starved = [...requests(50, () => [], { run: 20, apart: 22 }), load]
  only(t, [...starved, goesOn({ requests: 48, queries: 48, ms: 720 })], 'starved')
  const late = [...starved, goesOn({ requests: 48, queries: 48, ms: 4800 })]
  t.true(verdict(late).some(({ rule }) => rule === 'after'))
})

test('grows: handles of one opener, unless they are few, have no place, or another rule applies', (t) => {
  const grown = { noun: 'file', at: 'load (/app/app.js:5:9)', counts: [[0, 12], [3000, 25], [6000, 39], [9000, 52]] }
  const of = (/** @type {object} */ change = {}) => [facts('open handles', { 'longstack.handles': [{ ...grown, ...change }] })]
  const found = only(t, of(), 'grows')
  t.is(found.sentence, '52 × file opened at load (app.js:5) are open, 40 more than 9.0 s before: their number grows steadily.')
  t.like(found, { at: grown.at, figures: { noun: 'file', more: 40, open: 52, ms: 9000 } })
  // One for each client is no leak
  const clients = { noun: 'TCP connection', at: 'connection accepted', counts: [[0, 10], [3000, 20], [6000, 30], [9000, 40]] }
  only(t, [facts('open handles', { 'longstack.handles': [grown, clients] })])
  const some = { ...clients, counts: clients.counts.map(([ms, count]) => [ms, count / 2]) }
  only(t, [facts('open handles', { 'longstack.handles': [grown, some] })], 'grows')
  const few = grown.counts.map(([ms, count]) => [ms, count / 3])
  const short = grown.counts.map(([ms, count]) => [ms / 4, count])
  for (const change of [{ counts: few }, { counts: short }, { counts: 5 }, { counts: [[0], ['a', {}]] }, { at: 'fs.open' }, { noun: 5 }]) {
    only(t, of(change))
  }
})

test('failing: all failed requests take one path', (t) => {
  /** @param {string} path @param {number} count @param {number} [status] */
  const of = (path, count, status = 200) => requests(count, () => [], { name: 'GET /invoice/:id' }).map((record) => ({
    ...record,
    status: { code: status >= 400 ? 'ERROR' : 'UNSET' },
    attributes: { ...record.attributes, 'url.path': path, 'http.response.status_code': status }
  }))
  const found = only(t, [...of('/invoice/10', 29, 500), ...of('/invoice/3', 171)], 'failing')
  t.is(found.sentence, 'All 29 requests of GET /invoice/:id that fail are /invoice/10; 171 requests of other paths succeed.')
  only(t, [...of('/invoice/10', 9, 500), ...of('/invoice/3', 171)])
  only(t, [...of('/invoice/10', 29, 500), ...of('/invoice/3', 9)])
  only(t, [...of('/invoice/10', 29, 404), ...of('/invoice/3', 171)])
  only(t, [...of('/invoice/10', 29, 500), ...of('/invoice/3', 171), ...of('/invoice/4', 1, 500)])
  only(t, [...of('/invoice/10', 29, 500), ...of('/invoice/10', 3), ...of('/invoice/3', 171)])
})

test('several findings: most expensive first, free ones omitted', (t) => {
  const findings = verdict([
    ...requests(60, () => [turn(60), query(39)]),
    ...requests(30, () => [query(900, 5)], { name: 'GET /sequence', run: 1 }),
    ...requests(30, () => [query(0.9, 5)], { name: 'GET /short', run: 0.01 })
  ])
  t.deepEqual(findings.map(({ rule, route }) => `${rule} ${route}`), [
    'dependency GET /sequence', 'sequence GET /sequence', 'pool GET /report'
  ])
})

test('values that no recorder writes do no harm', (t) => {
  const odd = [{ ms: 5, count: -1, sent: 'x', unsent: -3, beside: NaN, on: ['a', null, 1e99], at: 7, callers: [8, {}], until: [] }]
  t.deepEqual(verdict(requests(40, () => odd)), [])
  const record = open(1, 1)
  const hostile = { ...record, attributes: { 'longstack.open_intervals': [null, 3, { at: {}, callers: 3, count: 'x', requests: { a: {} } }] } }
  t.deepEqual(verdict([...requests(40, () => []), hostile]), [])
})
