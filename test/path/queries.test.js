'use strict'

// Queries of requests, in recordings of typical driver writes and answers.

const test = require('ava')
const { ASKED, GREETS, HELD, READS_ON, USED } = require('../../lib/core/run-log-words')
const { Log, told } = require('./recordings')

const A = 7 // requests
const B = 8
const C = 9
const POOLED = 90 // a connection
const QUIET = 0.5 // ms

/** Begins each recording, with a connection that has been used. */
function begin () {
  const log = new Log()
  log.poll(90, 5)
  const opener = log.callback(91, { chain: 2 })
  log.sent(POOLED, opener, { chain: 2 })
  log.poll(92, 0)
  log.came(92, POOLED, { chain: 2 })
  return log
}

/**
 * Data comes that answers promises of these runs, made by their requests.
 * @param {Log} log
 * @param {number} at
 * @param {Array<[run: number, request: number]>} made
 */
function answer (log, at, made) {
  log.poll(at, QUIET)
  const run = log.came(at, POOLED, { chain: 2 })
  for (const [each, request] of made) log.settle(run, each, { request, chain: 20 + request })
  return run
}

/** @param {Log} log @param {number} request @returns {Array<[start: number, end: number]>} */
const times = (log, request) => told(log, request).queries.map(({ start, end }) => [start, end])

test('one run may send two queries', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A })
  const answered = answer(log, 110, [[run, A]])
  log.sent(POOLED, answered) // what the pool had in its queue
  answer(log, 120, [[run, A]])
  log.end(125, A, run)
  t.deepEqual(times(log, A), [[100, 110], [110, 120]])
})

test('a pool hands its connection on in a tick of another request', (t) => {
  const log = begin()
  const first = log.serve(100, A)
  log.sent(POOLED, first, { request: A })
  const second = log.serve(101, B)
  const third = log.serve(102, C)
  const tick = log.step(111, { request: A, registered: answer(log, 110, [[first, A]]) })
  log.sent(POOLED, tick, { request: A, at: 111 })
  const next = log.step(121, { request: A, registered: answer(log, 120, [[second, B]]) })
  log.sent(POOLED, next, { request: A, at: 121 })
  answer(log, 130, [[third, C]])
  for (const request of [A, B, C]) log.end(140, request, 0)
  t.deepEqual(times(log, A), [[100, 110]])
  t.deepEqual(times(log, B), [[111, 120]])
  t.deepEqual(times(log, C), [[121, 130]])
  t.like(told(log, C).queries, [{ unsent: 19, chain: 20 + C, unanswered: false }])
})

test('commands of several requests may share one write', (t) => {
  const log = begin()
  const first = log.serve(100, A)
  const second = log.serve(101, B)
  const tick = log.step(102, { request: A, registered: first })
  log.sent(POOLED, tick, { request: A })
  const third = log.serve(104, C)
  const later = log.step(105, { request: C, registered: third })
  log.sent(POOLED, later, { request: C })
  answer(log, 110, [[first, A], [first, A], [second, B]])
  answer(log, 115, [[third, C]])
  for (const request of [A, B, C]) log.end(120, request, 0)
  t.deepEqual(times(log, A), [[102, 110], [102, 110]])
  t.deepEqual(times(log, B), [[102, 110]])
  t.deepEqual(times(log, C), [[105, 115]])
})

test('a response in parts ends with the last one', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A })
  answer(log, 110, [])
  answer(log, 120, [])
  answer(log, 130, [[run, A]])
  log.end(131, A, 0)
  t.deepEqual(times(log, A), [[100, 130]])
})

test('pipelined: each command has its own write', (t) => {
  const log = begin()
  const first = log.serve(100, A)
  log.sent(POOLED, first, { request: A })
  log.sent(POOLED, first, { request: A, at: 100.5 })
  const second = log.serve(101, B)
  log.sent(POOLED, second, { request: B })
  answer(log, 110, [[first, A], [second, B]])
  answer(log, 115, [[first, A]]) // another protocol answers out of order
  for (const request of [A, B]) log.end(120, request, 0)
  t.deepEqual(times(log, A), [[100, 110], [100.5, 115]])
  t.deepEqual(times(log, B), [[101, 110]])
})

test('a statement that is prepared before it is executed is one query', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  const queued = log.serve(101, B)
  log.sent(POOLED, run, { request: A, at: 101 })
  log.sent(POOLED, answer(log, 110, []))
  log.sent(POOLED, answer(log, 120, [[run, A]]))
  answer(log, 130, [[queued, B]])
  for (const request of [A, B]) log.end(140, request, 0)
  t.deepEqual(times(log, A), [[101, 120]])
  t.deepEqual(times(log, B), [[120, 130]])
})

test('a pooled connection handed over in a response callback is not a query', (t) => {
  const log = begin()
  const first = log.serve(100, A)
  log.sent(POOLED, first, { request: A })
  const waiting = log.serve(101, B)
  const answered = answer(log, 110, [[first, A], [waiting, B]])
  const next = log.awaited(111, { request: B, registered: waiting, settled: answered })
  log.sent(POOLED, next, { request: B })
  answer(log, 120, [[next, B]])
  for (const request of [A, B]) log.end(130, request, 0)
  t.deepEqual(times(log, A), [[100, 110]])
  t.deepEqual(times(log, B), [[111, 120]])
})

test('neither the greeting of a connecting driver nor the wait for it is a query', (t) => {
  for (const hasQuery of [true, false]) {
    const log = new Log()
    log.poll(90, 5)
    const run = log.serve(100, A)
    log.poll(105, 4)
    const connected = log.callback(105, { request: A, registered: run })
    log.sent(POOLED, connected, { request: A })
    let answered = answer(log, 110, hasQuery ? [] : [[run, A]])
    const next = hasQuery ? answered : log.awaited(111, { request: A, registered: run, settled: answered })
    log.sent(POOLED, next, { request: A, at: 112 })
    answered = answer(log, 120, [[hasQuery ? run : next, A]])
    log.end(130, A, 0)
    t.deepEqual(times(log, A), [[112, 120]], String(hasQuery))
    t.is(told(log, A).queries[0].callback, answered)
  }
})

test('a driver\'s own write before any query counts as a query only if nothing follows', (t) => {
  for (const isAwaited of [true, false]) {
    const asking = (/** @type {number[]} */ ...uses) => {
      const log = new Log()
      log.poll(90, 5)
      let run = log.serve(100, A)
      for (const [i, b] of uses.entries()) {
        const at = 110 + i * 20
        run = log.callback(at, { request: A, registered: run })
        log.sent(POOLED, run, { request: A, b })
        run = answer(log, at + 10, isAwaited ? [[run, A]] : [])
      }
      log.end(190, A, 0)
      return times(log, A)
    }
    t.deepEqual(asking(GREETS), [[110, 120]])
    t.deepEqual(asking(GREETS, GREETS), [[130, 140]])
    t.deepEqual(asking(GREETS, ASKED), [[130, 140]])
    t.deepEqual(asking(GREETS, GREETS, ASKED, ASKED), [[150, 160], [170, 180]])
  }
})

test('a driver may greet in two writes before any query', (t) => {
  const log = new Log()
  log.poll(90, 5)
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, b: GREETS })
  log.sent(POOLED, run, { request: A, b: GREETS })
  answer(log, 110, [[run, A]])
  log.end(120, A, 0)
  t.deepEqual(times(log, A), [[100, 110]])
})

test('the first query of a program on a connection counts', (t) => {
  const log = new Log()
  log.poll(90, 5)
  const run = log.serve(100, A)
  log.poll(105, 4)
  const connected = log.callback(105, { request: A, registered: run })
  log.sent(POOLED, connected, { request: A, b: ASKED })
  const next = log.awaited(111, { request: A, registered: run, settled: answer(log, 110, [[run, A]]) })
  log.sent(POOLED, next, { request: A, b: ASKED })
  answer(log, 120, [[next, A]])
  log.end(130, A, 0)
  t.deepEqual(times(log, A), [[105, 110], [111, 120]])
})

test('callbacks: a query ends with the last data before the next one', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, chain: 31 })
  answer(log, 110, [])
  answer(log, 120, [])
  const timer = log.callback(130, { request: A, registered: run })
  log.sent(POOLED, timer, { request: A, chain: 32 })
  answer(log, 140, [])
  log.end(150, A, 0)
  const { queries } = told(log, A)
  t.like(queries, [{ start: 100, end: 120, chain: 31, promise: 0 }, { start: 130, end: 140, chain: 32 }])
})

test('callbacks: a query sent in a response callback is separate', (t) => {
  const log = begin()
  const run = log.serve(100, A) // makes a promise, and asks three times
  log.sent(POOLED, run, { request: A, b: ASKED })
  const write = (/** @type {number} */ at, /** @type {number} */ registered) => {
    log.poll(at, QUIET)
    const callback = log.came(at, POOLED, { request: A, registered })
    log.sent(POOLED, callback, { request: A, b: ASKED })
    return callback
  }
  const last = write(120, write(110, run))
  log.poll(130, QUIET)
  log.settle(log.came(130, POOLED, { registered: last }), run, { request: A })
  log.end(140, A, 0)
  t.deepEqual(times(log, A), [[100, 110], [110, 120], [120, 130]])
})

test('callbacks: a query sent in the response callback of another one belongs to the same request', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  const size = { b: ASKED, chain: 31 }
  log.sent(POOLED, run, { ...size, request: A, a: 50, x: 1000 })
  log.poll(110, QUIET)
  let callback = log.came(110, POOLED, { request: A, registered: run }, { x: 80, a: 1020 })
  const tick = log.step(111, { request: A, registered: callback, chain: 41 })
  log.sent(POOLED, tick, { ...size, request: A, a: 80, x: 1020 })
  log.poll(120, QUIET)
  callback = log.came(120, POOLED, { registered: tick }, { x: 90, a: 1050 })
  log.sent(POOLED, callback, { ...size, a: 90, x: 1050 }) // whose callback it is, the log does not tell
  log.poll(130, QUIET)
  callback = log.came(130, POOLED, { registered: callback }, { x: 91, a: 1060 })
  log.end(131, A, callback)
  t.deepEqual(times(log, A), [[100, 110], [111, 120], [120, 130]])
  const { queries } = told(log, A)
  t.like(queries, [{ out: 20, in: 30, chain: 31 }, { out: 30, in: 10, chain: 41 }, { out: 10, in: 1 }])
})

test('callbacks: a driver\'s write belongs to the request that ends in the response to it', (t) => {
  for (const isOther of [true, false]) {
    const log = begin()
    const run = log.serve(100, A)
    log.sent(POOLED, run, { request: A, b: ASKED })
    log.serve(101, B) // its query is in the driver's queue
    log.poll(110, QUIET)
    const first = log.came(110, POOLED, { request: A, registered: run })
    log.sent(POOLED, first, { request: A, at: 110 })
    log.poll(120, QUIET)
    const second = log.came(120, POOLED, { request: A, registered: run })
    if (isOther) log.end(121, B, second)
    log.end(130, A, log.callback(130, { request: A, registered: first }))
    t.deepEqual(times(log, A), [[100, isOther ? 110 : 120]])
  }
})

test('a query has its bytes unless another one was in flight', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, a: -5, x: 2 ** 32 - 10 })
  log.poll(110, QUIET)
  const first = log.came(110, POOLED, { request: A, registered: run }, { x: 2 ** 32 + 5, a: 10 })
  log.settle(first, run, { request: A })
  const next = log.awaited(111, { request: A, registered: run, settled: first })
  for (let i = 0; i < 2; i++) log.sent(POOLED, next, { request: A })
  answer(log, 120, [[next, A], [next, A]])
  log.end(130, A, next)
  const { queries } = told(log, A)
  t.is(queries.length, 3)
  t.like(queries[0], { out: 20, in: 10 })
  for (const query of queries.slice(1)) t.is(query.out ?? query.in, undefined)
})

test('a stream that continues reading in its connection\'s callbacks is one query', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, chain: 31 })
  log.sent(POOLED, answer(log, 110, []))
  log.sent(POOLED, answer(log, 120, []))
  answer(log, 130, [])
  log.end(150, A, 0)
  t.like(told(log, A).queries, [{ start: 100, end: 130, chain: 31 }])
  t.is(told(log, A).queries.length, 1)
})

test('callbacks: a query sent in the response to a driver\'s write is the request\'s, unless others ran', (t) => {
  for (const isAlone of [true, false]) {
    const log = begin()
    const run = log.serve(100, A)
    log.sent(POOLED, run, { request: A, b: ASKED })
    if (!isAlone) log.serve(105, B)
    log.sent(POOLED, answer(log, 110, [])) // it executes what it has prepared, or what B asks
    log.sent(POOLED, answer(log, 120, []), { b: ASKED })
    const last = answer(log, 130, [])
    log.end(131, A, last)
    t.is(told(log, A).queries.length, isAlone ? 2 : 1)
  }
})

for (const [name, use] of /** @type {const} */ ([['a cursor', ASKED | READS_ON], ['a stream', 0]])) {
  test(`${name} that continues reading later is one query, until its last response`, (t) => {
    const log = begin()
    const run = log.serve(100, A)
    log.sent(POOLED, run, { request: A, b: ASKED, chain: 31 })
    const second = log.callback(111, { request: A, registered: answer(log, 110, []) })
    log.sent(POOLED, second, { request: A, b: use })
    const third = log.callback(121, { request: A, registered: answer(log, 120, []) })
    log.sent(POOLED, third, { request: A, b: use })
    const last = log.callback(131, { request: A, registered: answer(log, 130, []) })
    log.sent(POOLED, last, { request: A, b: ASKED })
    answer(log, 140, [])
    log.end(150, A, 0)
    t.deepEqual(times(log, A), [[100, 130], [131, 140]])
  })
}

test('a query without a response lasts until the end of its request', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, b: ASKED })
  log.poll(130, 20)
  log.end(130, A, 0)
  log.poll(140, 10)
  t.like(told(log, A).queries, [{ start: 100, end: 130, unanswered: true }])
})

test('a write without a response or a known sender is not a query: a log to a pipe', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A })
  log.end(130, A, 0)
  log.poll(140, 10)
  t.deepEqual(told(log, A).queries, [])
})

test('data written before the connection is open goes out with the next entry', (t) => {
  const log = new Log()
  log.poll(90, 5)
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, b: HELD })
  log.poll(108, 7)
  const connected = log.callback(108, { request: A, registered: run })
  log.sent(POOLED, connected, { request: A })
  answer(log, 120, [[run, A]])
  log.end(121, A, 0)
  const { queries } = told(log, A)
  t.is(queries.length, 1)
  t.like(queries[0], { start: 108, end: 120, unsent: 8 })
})

test('HTTP requests are spans, not queries', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, b: USED })
  answer(log, 110, [])
  const next = log.callback(115, { request: A, registered: run })
  log.sent(POOLED, next, { request: A, b: USED })
  answer(log, 120, [[next, A]])
  log.end(121, A, 0)
  t.deepEqual(times(log, A), [])
})

test('queries of a span inside of a request belong to the span', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.client(B, A, run, { a: 3 })
  const inner = log.step(101, { request: B, registered: run, caller: run })
  log.sent(POOLED, inner, { request: B })
  answer(log, 110, [[inner, B]])
  for (const request of [B, A]) log.end(120, request, 0)
  t.deepEqual(times(log, A), [])
  t.deepEqual(times(log, B), [[101, 110]])
})

test('a pool that hands on its connection before it settles the response: the next holder has sent nothing', (t) => {
  const log = begin()
  const first = log.serve(100, A)
  log.sent(POOLED, first, { request: A })
  const second = log.serve(101, B)
  const third = log.serve(102, C)
  log.sent(POOLED, answer(log, 110, [[first, A]])) // of B
  const given = answer(log, 120, [[third, C], [second, B]])
  const next = log.awaited(121, { request: C, registered: third, settled: given })
  log.sent(POOLED, next, { request: C })
  answer(log, 130, [[next, C]])
  for (const request of [A, B, C]) log.end(140, request, 0)
  t.deepEqual(times(log, B), [[110, 120]])
  t.deepEqual(times(log, C), [[121, 130]])
})

test('a stream of another request ends before the queue of a pool writes', (t) => {
  const log = begin()
  const waiting = log.serve(100, A)
  const other = log.serve(101, B)
  log.sent(POOLED, other, { request: B, b: ASKED })
  log.poll(110, QUIET)
  const data = log.came(110, POOLED, { chain: 2 })
  const tick = log.step(111, { request: B, registered: data })
  log.sent(POOLED, tick, { request: B, b: ASKED }) // it gives its connection back, to A
  answer(log, 120, [[waiting, A]])
  for (const request of [A, B]) log.end(140, request, 0)
  t.deepEqual(times(log, A), [[111, 120]])
  t.deepEqual(times(log, B), [[101, 110]])
})

test('a promise settled by the end of the connection is not a query', (t) => {
  const log = begin()
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, a: 10, x: 20 })
  log.poll(110, QUIET)
  log.settle(log.came(110, POOLED, { chain: 2 }, { a: 30, x: 50 }), run, { request: A })
  log.sent(POOLED, 0, { a: 50, x: 30 }) // the driver says goodbye
  log.poll(120, QUIET)
  log.settle(log.came(120, POOLED, { chain: 2 }, { a: 35, x: 50 }), run, { request: A })
  log.end(130, A, run)
  t.deepEqual(times(log, A), [[100, 110]])
})
