'use strict'

// The breakdown of a request's time, in recordings with known results.

const test = require('ava')
const { CONNECTION, ONE_SHOT, OUTSIDE, TIMER } = require('../../lib/core/run-log-words')
const { Log, told } = require('./recordings')

const A = 7 // requests
const B = 8
const C = 9
const POOLED = 90 // a connection

/** @param {number} ms */
const us = (ms) => Math.round(ms * 1000)

/** Begins each recording. @param {Log} log @param {number} at */
function quiet (log, at) {
  log.poll(at, 5)
  return log
}

/** A request asks on a pooled connection. @param {Log} log @param {number} time ms, of the answer */
function askAndAnswer (log, time) {
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, chain: 20 })
  log.poll(time, time - 101)
  const answer = log.came(time, POOLED, { request: A, registered: run, chain: 20 })
  log.settle(answer, run, { request: A, chain: 21 })
  return { run, answer }
}

test('a timer: what the request ran, the wait until it was due, and who delayed it afterwards', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A) // runs for 2 ms
  log.poll(112, 10)
  log.callback(112, { request: B, chain: 44 }) // for 20 ms
  const timer = log.callback(132, { flags: TIMER, request: A, registered: run, chain: 31 })
  log.due(timer, 122)
  const next = log.awaited(132.5, { request: A, registered: run, settled: timer, chain: 32 })
  log.end(133, A, next)
  log.poll(140, 7)
  const { figures, waits, delays } = told(log, A)
  t.like(figures, { duration: us(33), run: us(3), waited: us(20), beside: 0 })
  t.like(figures, { delayed: us(10), delayedMax: us(10) })
  t.is(waits.length, 1)
  t.like(waits[0], {
    begin: 102,
    until: 132,
    ms: 20,
    delayed: 10,
    cameBy: 122,
    cameAfter: 122,
    site: 31,
    isProven: true,
    run: timer,
    callback: timer,
    connection: 0,
    settler: 0,
    sent: 0,
    unsent: 0,
    beside: 0
  })
  t.deepEqual(delays, [{ request: B, ms: 10, max: 10, start: 122, longest: 10 }])
})

test('an immediate is due with its cause: all that runs before it delays it', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.callback(101, { request: B })
  const immediate = log.callback(106, { flags: TIMER | ONE_SHOT, request: A, registered: run, chain: 31 })
  log.end(107, A, immediate)
  log.poll(107, 0)
  const { figures, waits } = told(log, A)
  t.like(figures, { run: us(2), waited: 0, delayed: us(5), delayedMax: us(5) })
  t.like(waits, [{ ms: 0, delayed: 5, site: 31 }])
})

test('a query on a connection: the wait begins at the query, and ends with the response', (t) => {
  const log = quiet(new Log(), 100)
  const { run, answer } = askAndAnswer(log, 120)
  const next = log.awaited(121, { request: A, registered: run, settled: answer, chain: 22 })
  log.end(122, A, next)
  log.poll(123, 1)
  const { figures, queries, waits } = told(log, A)
  t.like(figures, { duration: us(22), run: us(3), waited: us(19), delayed: 0, beside: 0 })
  t.is(waits.length, 1)
  const connection = POOLED << 1
  t.like(waits[0], { ms: 19, site: 22, isProven: true, callback: answer, connection, settler: 0 })
  t.like(waits[0], { sent: 1, unsent: 0 })
  t.like(queries, [{ start: 100, end: 120, chain: 21, connection, unsent: 0, unanswered: false }])
})

test('a response in a callback of the connection\'s opener is not a wait for the opener', (t) => {
  for (const owner of [0, B]) {
    const log = quiet(new Log(), 100)
    if (owner === B) log.serve(99, B)
    const run = log.serve(100, A)
    log.sent(POOLED, run, { request: A, chain: 20 })
    log.poll(120, 19)
    const answer = log.came(120, POOLED, { request: owner, chain: 2 })
    const tick = log.step(120.5, { request: owner, registered: answer, chain: 3 })
    log.settle(tick, run, { request: A, chain: 21 })
    const next = log.awaited(121, { request: A, registered: run, settled: tick, chain: 22 })
    log.end(122, A, next)
    log.poll(123, 1)
    const { waits, figures, queries } = told(log, A)
    const connection = POOLED << 1
    t.like(waits, [{ ms: 19, site: 22, connection, settler: 0, sent: 1, callback: answer }])
    t.like(figures, { run: us(2), waited: us(19), delayed: us(1) })
    t.is(queries.length, 1)
  }
})

test('two callbacks of a connection in a row, the first of which queries, are separate', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A })
  log.poll(110, 9)
  const first = log.came(110, POOLED, { request: A, registered: run })
  log.sent(POOLED, first, { request: A })
  const second = log.came(112, POOLED, { request: A, registered: first })
  log.settle(second, run, { request: A, chain: 21 })
  const next = log.awaited(113, { request: A, registered: run, settled: second, chain: 22 })
  log.end(114, A, next)
  log.poll(115, 0)
  const { waits } = told(log, A)
  t.like(waits, [{ begin: 101, ms: 9, callback: second, site: 22, connection: POOLED << 1 }])
})

/** Others run from 102 to 132; data comes at `came`, and is read at 132. @param {number} came */
function answeredLate (came) {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A })
  log.callback(102, { request: B, chain: 44 })
  log.poll(132, 0)
  const answer = log.came(132, POOLED, { request: A, registered: run })
  log.arrived(answer, came)
  log.settle(answer, run, { request: A })
  const next = log.awaited(133, { request: A, registered: run, settled: answer })
  log.end(134, A, next)
  log.poll(140, 6)
  return log
}

test('an unrequested event of a connection is waited for from its await on', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A) // opens a connection, and sleeps
  log.poll(160, 58)
  const timer = log.callback(160, { flags: TIMER, request: A, registered: run, chain: 31 })
  log.due(timer, 160)
  const slept = log.awaited(160, { request: A, registered: run, settled: timer, chain: 32 })
  log.poll(165, 4)
  const closed = log.callback(165, { flags: CONNECTION, id: POOLED, request: A, registered: run, chain: 3 })
  const next = log.awaited(165, { request: A, registered: slept, settled: closed, chain: 33 })
  log.end(166, A, next)
  log.poll(167, 1)
  const { waits } = told(log, A)
  t.deepEqual(waits.map(({ begin, until, site }) => [begin, until, site]), [[102, 160, 31], [161, 165, 33]])
})

test('code of others before data arrived is a wait, and afterwards a delay', (t) => {
  const { figures } = told(answeredLate(112), A)
  t.like(figures, { run: us(4), waited: us(10), delayed: us(20), delayedMax: us(20) })
  t.like(told(answeredLate(90), A).figures, { waited: 0, delayed: us(30) })
  t.like(told(answeredLate(150), A).figures, { waited: us(30), delayed: 0 })
})

test('if only polls are known, a delay is a range', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.callback(102, { request: B, chain: 44 })
  log.poll(132, 0)
  const file = log.callback(132, { request: A, registered: run, chain: 33 })
  log.polledBy(file, 130, 28)
  log.end(133, A, file)
  const { figures, waits, delays } = told(log, A)
  t.like(figures, { run: us(3), waited: us(28), delayed: us(2), delayedMax: us(30) })
  t.like(waits, [{ cameAfter: 102, cameBy: 130, delayed: 2, delayedMax: 30 }])
  t.like(delays, [{ request: B, ms: 2, max: 30 }])
})

test('a mutex: the wait is for the request that releases it', (t) => {
  const log = quiet(new Log(), 100)
  const holder = log.serve(100, B)
  const run = log.serve(101, A)
  log.poll(120, 18)
  const timer = log.callback(120, { flags: TIMER, request: B, registered: holder })
  log.due(timer, 120)
  const release = log.awaited(121, { request: B, registered: holder, settled: timer })
  const next = log.awaited(122, { request: A, registered: run, settled: release, chain: 22 })
  log.end(124, A, next)
  log.poll(125, 1)
  const { figures, waits } = told(log, A)
  t.is(waits.length, 1)
  t.like(waits[0], { settler: B, site: 22, isProven: true, connection: 0, ms: 20, delayed: 0, delayedMax: 1 })
  t.like(figures, { run: us(3), waited: us(20), delayed: 0, duration: us(23) })
})

test('a lock that calls bound callbacks counts as a lock as well', (t) => {
  const log = quiet(new Log(), 100)
  const holder = log.serve(100, B)
  const run = log.serve(101, A)
  log.poll(120, 18)
  const timer = log.callback(120, { flags: TIMER, request: B, registered: holder })
  log.due(timer, 120)
  const bound = log.step(122, { request: A, registered: run, caller: timer, chain: 25 })
  log.end(124, A, bound)
  log.resume(124, B, timer)
  log.poll(125, 0)
  t.like(told(log, A).waits, [{ settler: B, site: 25, isProven: true, ms: 20, delayed: 0 }])
  // What ran inside of the other one delayed that.
  const { figures } = told(log, B)
  t.like(figures, { run: us(1 + 2 + 1), delayed: us(2), duration: us(25) })
})

test('Promise.all waits for its last branch; the other one is off the path', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A })
  log.poll(110, 9)
  const timer = log.callback(110, { flags: TIMER, request: A, registered: run, chain: 31 })
  log.due(timer, 110)
  log.awaited(111, { request: A, registered: run, settled: timer, chain: 35 })
  log.poll(130, 18)
  const answer = log.came(130, POOLED, { request: A, registered: run, chain: 20 })
  log.settle(answer, run, { request: A, chain: 21 })
  const branch = log.awaited(131, { request: A, registered: run, settled: answer, chain: 22 })
  const all = log.awaited(132, { request: A, registered: run, settled: branch, chain: 23 })
  log.end(133, A, all)
  log.poll(134, 1)
  const { figures, path, waits } = told(log, A)
  t.is(waits.length, 1)
  t.like(waits[0], { site: 22, ms: 27, begin: 101, until: 130, beside: 1, connection: POOLED << 1 })
  t.like(figures, { run: us(1 + 2 + 3), waited: us(27), beside: us(2) })
  t.is(path.beside, 2)
  t.is(us(path.ran.reduce((sum, { ms }) => sum + ms, 0)), us(4))
})

test('a sleep beside an earlier query is not on the path', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, chain: 20 })
  log.poll(120, 19)
  const timer = log.callback(120, { flags: TIMER, request: A, registered: run, chain: 31 })
  log.due(timer, 120)
  // Here the query is awaited.
  const slept = log.awaited(120.1, { request: A, registered: run, settled: timer, chain: 32 })
  log.poll(150, 29.8)
  const answer = log.came(150, POOLED, { request: A, registered: run, chain: 20 })
  log.settle(answer, run, { request: A, chain: 21 })
  const next = log.awaited(150.1, { request: A, registered: slept, settled: answer, chain: 41 })
  log.end(150.2, A, next)
  log.poll(151, 0.8)
  const { waits } = told(log, A)
  t.is(waits.length, 1)
  t.like(waits[0], { site: 21, begin: 101, until: 150, connection: POOLED << 1, sent: 1 })
  t.true(Math.abs(waits[0].ms - 48.8) < 1e-6)
})

test('a promise settled before it is awaited is not a wait', (t) => {
  const log = quiet(new Log(), 100)
  const { run, answer } = askAndAnswer(log, 110)
  log.poll(130, 19)
  const timer = log.callback(130, { flags: TIMER, request: A, registered: run, chain: 31 })
  log.due(timer, 130)
  const slept = log.awaited(130.5, { request: A, registered: run, settled: timer, chain: 32 })
  const next = log.awaited(130.6, { request: A, registered: slept, settled: answer, chain: 41 })
  log.end(131, A, next)
  log.poll(132, 1)
  const { figures, waits } = told(log, A)
  t.is(waits.length, 1)
  t.like(waits[0], { site: 31, begin: 101, until: 130, ms: 28, connection: 0 })
  t.is(figures.beside, us(1))
})

test('a query that waits for a pooled connection is unsent until the other request\'s response', (t) => {
  const log = quiet(new Log(), 100)
  const first = log.serve(100, B)
  log.sent(POOLED, first, { request: B, chain: 20 })
  const run = log.serve(101, A) // makes a promise, and waits in the queue of the pool
  log.poll(120, 18)
  const answer = log.came(120, POOLED, { request: B, registered: first, chain: 20 })
  log.settle(answer, first, { request: B, chain: 21 })
  log.sent(POOLED, answer, { request: B, chain: 20 })
  log.poll(140, 19)
  const second = log.came(140, POOLED, { request: B, chain: 20 })
  log.settle(second, run, { request: A, chain: 24, x: 101 })
  const next = log.awaited(141, { request: A, registered: run, settled: second, chain: 25 })
  log.end(142, A, next)
  log.poll(143, 1)
  const { queries, waits } = told(log, A)
  t.is(waits.length, 1)
  t.like(waits[0], { site: 25, connection: POOLED << 1, settler: 0, sent: 1, begin: 102, unsent: 18 })
  t.is(queries.length, 1)
  t.like(queries[0], { start: 120, end: 140, unsent: 19, chain: 24 })
  t.like(told(log, B).queries, [{ start: 100, end: 120, unsent: 0 }])
})

for (const [writer, request, jobs] of /** @type {Array<[string, number, number]>} */ ([
  ['code of no known request', 0, 1],
  ['a request that is still in flight', B, 0]
])) {
  test(`a response to a write of ${writer}: ${jobs === 1 ? 'a job of a queue' : 'no job'}`, (t) => {
    const log = quiet(new Log(), 100)
    const other = log.serve(100, B)
    const run = log.serve(101, A)
    log.poll(120, 18)
    const write = log.callback(120, { request, registered: request === 0 ? 0 : other, chain: 20 })
    log.sent(POOLED, write, { request, chain: 20 })
    log.poll(140, 19)
    const answer = log.came(140, POOLED, { request, chain: 20 })
    log.settle(answer, write, { request, chain: 24, x: 120 })
    const job = log.awaited(141, { request, registered: write, settled: answer, chain: 26 })
    const next = log.awaited(142, { request: A, registered: run, settled: job, chain: 25 })
    log.end(143, A, next)
    log.poll(144, 1)
    t.like(told(log, A).waits, [{ jobs }])
  })
}

test('an undici pool calls the requester\'s handler in the callback of the connection', (t) => {
  const log = quiet(new Log(), 100)
  log.serve(99, B)
  const run = log.serve(100, A)
  log.poll(120, 19)
  const answer = log.came(120, POOLED, { request: B, chain: 2 })
  const handler = log.step(121, { request: A, registered: run, caller: answer, chain: 26 })
  const next = log.awaited(122, { request: A, registered: run, settled: handler, chain: 27 })
  log.end(123, A, next)
  log.poll(124, 1)
  const { figures, waits } = told(log, A)
  t.like(waits, [{ site: 26, connection: POOLED << 1, settler: 0, ms: 19, delayed: 1 }])
  t.like(figures, { run: us(1 + 2), waited: us(19), delayed: us(1) })
})

test('pipelined responses have their own times', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.sent(POOLED, run, { request: A, chain: 20 })
  const other = log.serve(101, B)
  log.sent(POOLED, other, { request: B, chain: 20 })
  log.callback(110, { chain: 44 }) // blocks until 180
  log.poll(180, 0)
  const answer = log.came(180, POOLED, { chain: 2 })
  log.arrived(answer, 150) // the kernel knows the last data alone
  log.settle(answer, run, { request: A, chain: 21 })
  log.settle(answer, other, { request: B, chain: 21 })
  const next = log.awaited(181, { request: A, registered: run, settled: answer, chain: 22 })
  log.end(182, A, next)
  const last = log.awaited(182, { request: B, registered: other, settled: answer, chain: 22 })
  log.end(183, B, last)
  log.poll(184, 0)
  const { figures, waits } = told(log, A)
  t.is(waits.length, 1)
  t.like(waits[0], { begin: 101, until: 181, cameAfter: 101, cameBy: 150, sent: 1, unsent: 0 })
  t.true(figures.delayed <= us(60) && figures.delayedMax >= us(60))
  t.like(told(log, B).waits[0], { cameAfter: 150, cameBy: 150, delayed: 32 })
  for (const number of [A, B]) {
    t.like(told(log, number).queries, [{ end: 150, unanswered: false }])
    t.is(told(log, number).queries.length, 1)
  }
})

test('the arrival of a response after the poll is a range up to the callback that reads it', (t) => {
  for (const [isKnown, first, second, third] of /** @type {const} */ ([
    [true, [100, 120], [100, 126], [126, 126]],
    [false, [100, 120], [100, 128], [120, 128]]
  ])) {
    const log = quiet(new Log(), 100)
    const runs = [A, B, C].map((request) => {
      const run = log.serve(100, request)
      log.sent(POOLED, run, { request, chain: 20 })
      return run
    })
    log.poll(120, 1)
    log.callback(120, { chain: 44 }) // until 128, in the same iteration
    const answer = log.came(128, POOLED, { chain: 2 })
    if (isKnown) log.arrived(answer, 120, 6) // the last data
    else log.polledBy(answer, 120, 0)
    runs.forEach((run, i) => log.settle(answer, run, { request: A + i, chain: 21 }))
    runs.forEach((run, i) => {
      const words = { request: A + i, registered: run, settled: answer, chain: 22 }
      log.end(129, A + i, log.awaited(129, words))
    })
    log.poll(130, 0)
    const came = [A, B, C].map((request) => {
      const { waits: [{ cameAfter, cameBy }] } = told(log, request)
      return [cameAfter, cameBy]
    })
    t.deepEqual(came, [first, second, third])
  }
})

test('the time that a request lay unread is separate from its duration', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(150, A, { unread: 51 })
  log.end(152, A, run)
  log.poll(153, 0)
  t.like(told(log, A).figures, { duration: us(2), run: us(2), unread: us(51) })
})

test('a nested run is on the path of its effects, and the outer run continues after it', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  const inner = log.step(101, { request: A, registered: run, caller: run, chain: 50 })
  log.resume(103, A, run)
  const other = log.step(104, { request: B, caller: run, chain: 51 }) // code of another request
  log.resume(109, A, run)
  log.poll(120, 10)
  const timer = log.callback(120, { flags: TIMER, request: A, registered: run, chain: 31 })
  log.due(timer, 115)
  log.end(121, A, timer)
  log.poll(122, 0)
  const { delays, figures, waits } = told(log, A)
  t.like(figures, { run: us(1 + 2 + 1 + 1 + 1), delayed: us(5), waited: us(10), beside: 0, duration: us(21) })
  t.is(waits.length, 2)
  t.like(waits[0], { ms: 0, delayed: 5 })
  t.like(waits[1], { ms: 10, delayed: 0, site: 31, begin: 110 })
  t.like(delays, [{ request: B, ms: 5 }])
  t.true(inner < other)
})

test('longstack\'s own work is not part of the callback before it', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.resume(104, 0, 0) // until 110
  log.poll(120, 10)
  const timer = log.callback(120, { flags: TIMER, request: A, registered: run, chain: 31 })
  log.due(timer, 120)
  log.end(121, A, timer)
  log.poll(122, 1)
  t.like(told(log, A).figures, { run: us(4 + 1), waited: us(16), delayed: 0, duration: us(21) })
})

test('a span inside of a request: code that the request runs outside of the span does not count', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.client(9, A, run, { at: 101, chain: 60 })
  log.poll(110, 8) // runs until 102
  const timer = log.callback(110, { flags: TIMER, request: A, registered: run })
  log.due(timer, 110)
  log.poll(130, 18) // runs until 112
  const answer = log.callback(130, { request: A, registered: run, chain: 61 })
  log.end(131, 9, answer)
  const next = log.awaited(132, { request: A, registered: run, settled: answer, chain: 62 })
  log.end(133, A, next)
  log.poll(134, 0)
  const { figures, request } = told(log, 9)
  t.like(request, { outermost: A, parent: A, kind: 2 })
  t.like(figures, { duration: us(30), run: 0, waited: us(30), delayed: 0 })
  const outer = told(log, A).figures
  t.like(outer, { duration: us(33), run: us(2 + 2 + 3), waited: us(26), delayed: 0, beside: us(2) })
})

test('code registered elsewhere ends a wait whose place is not proven', (t) => {
  const log = quiet(new Log(), 100)
  const opener = log.callback(90, { chain: 4 })
  const run = log.serve(100, A, { chain: 11 })
  log.poll(120, 19)
  const message = log.callback(120, { request: A, registered: opener, chain: 12 })
  log.end(121, A, message)
  log.poll(122, 0)
  const { waits } = told(log, A)
  t.like(waits, [{ ms: 19, isProven: false, site: 0, callback: message }])
  t.true(run > opener)
})

test('a timer outside of requests may release a lock, without being named', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.callback(110, { chain: 44 }) // blocks until 130
  const ticker = log.callback(130, { flags: TIMER | OUTSIDE, chain: 70 })
  log.due(ticker, 120)
  const next = log.awaited(131, { request: A, registered: run, settled: ticker, chain: 22 })
  log.end(132, A, next)
  log.poll(133, 0)
  const { waits } = told(log, A)
  t.like(waits, [{ settler: 0, connection: 0, site: 22, cameAfter: 130, cameBy: 131, ms: 21, delayed: 0 }])
})

test('a request ends in a run outside of requests: the rest is a wait after its last run', (t) => {
  const log = quiet(new Log(), 100)
  const run = log.serve(100, A)
  log.poll(120, 18)
  const close = log.callback(120, {})
  log.end(121, A, close)
  log.poll(122, 0)
  const { figures, waits } = told(log, A)
  t.like(figures, { run: us(2), waited: us(18), delayed: us(1) })
  t.like(waits, [{ ms: 18, isProven: false, run: 0 }])
  t.true(run < close)
})
