'use strict'

// The delayers of a request, in recordings with known results.

const test = require('ava')
const { ONE_SHOT, TIMER } = require('../../lib/core/run-log-words')
const { SpanReader } = require('../../report/path/window')
const { Log, told } = require('./recordings')

const A = 7 // requests
const B = 8
const C = 9

/** Request A waits for a timer that is due at 120, and runs at `until`. @param {(log: Log) => void} others */
function delayed (others, until = 160) {
  const log = new Log()
  log.poll(100, 5)
  const run = log.serve(100, A)
  others(log)
  const timer = log.callback(until, { flags: TIMER, request: A, registered: run })
  log.due(timer, 120)
  log.end(until + 1, A, timer)
  log.poll(until + 2, 0)
  return told(log, A)
}

test('delays are listed by request, from the time that the timer was due', (t) => {
  const { delays, figures } = delayed((log) => {
    log.callback(110, { request: B, chain: 41 })
    log.callback(130, { request: C, chain: 41 })
    log.callback(135, { request: B, chain: 42 })
    log.callback(141, { chain: 43 })
    log.callback(142, { request: B, chain: 41 })
    log.callback(145, { request: C, chain: 41 })
  })
  t.deepEqual(delays, [
    { request: C, ms: 20, max: 20, start: 145, longest: 15 },
    { request: B, ms: 19, max: 19, start: 120, longest: 10 },
    { request: 0, ms: 1, max: 1, start: 141, longest: 1 }
  ])
  t.is(figures.delayed, 40_000)
})

test('each of thousands of short runs is counted', (t) => {
  const { delays } = delayed((log) => {
    for (let i = 0; i < 1000; i++) log.callback(120 + i / 100, { request: B + (i & 1), chain: 41 })
  }, 130)
  t.is(delays.length, 2)
  for (const { ms } of delays) t.true(Math.abs(ms - 5) < 0.05, String(ms))
})

test('no request delays while the loop waits', (t) => {
  const { delays, figures } = delayed((log) => {
    log.callback(130, { request: B, chain: 41 })
    log.poll(150, 10)
  })
  t.like(delays, [{ request: B, ms: 10 }])
  t.is(figures.delayed, 10_000)
})

for (const [name, register] of /** @type {const} */ ([
  ['a timer', (log, run) => ({ flags: TIMER, registered: run })],
  ['an immediate', (log, run) => ({ flags: TIMER | ONE_SHOT, registered: run })]
])) {
  test(`longstack's own work delays ${name}, and no request is named`, (t) => {
    const log = new Log()
    const run = log.serve(100, A, { chain: 40 })
    log.resume(101, 0, 0)
    const timer = log.callback(140, { ...register(log, run), request: A, chain: 41 })
    if (name === 'a timer') log.due(timer, 120)
    log.end(141, A, timer)
    const { delays, figures, waits } = told(log, A)
    const ms = name === 'a timer' ? 20 : 39
    t.like(delays, [{ request: 0, ms, max: ms }])
    t.like(figures, { run: 2_000, delayed: ms * 1000, waited: (39 - ms) * 1000 })
    t.is(waits.length, 1)
  })
}

test("longstack's own work delays a response", (t) => {
  const log = new Log()
  const run = log.serve(100, A, { chain: 40 })
  log.sent(80, run, { request: A })
  log.poll(120, 19)
  log.resume(120, 0, 0)
  log.poll(150, 0)
  const answer = log.came(150, 80, { registered: run, request: A, chain: 41 })
  log.arrived(answer, 130)
  log.end(151, A, answer)
  const { delays, figures } = told(log, A)
  t.like(delays, [{ request: 0, ms: 20, max: 20 }])
  t.like(figures, { run: 2_000, delayed: 20_000, waited: 29_000 })
})

test('unfinished own work is a delay up to its end', (t) => {
  const log = new Log()
  const reader = new SpanReader(undefined, 0)
  const push = (until) => {
    reader.push({ first: log.first, entries: log.bytes(), until })
    log.first += log.entries.length
    log.entries = []
  }
  const other = log.serve(90, B)
  log.end(91, B, other)
  const run = log.serve(100, A, { chain: 40 })
  log.resume(101, 0, 0)
  push(101)
  const timer = log.callback(140, { flags: TIMER, registered: run, request: A, chain: 41 })
  log.due(timer, 120)
  log.end(141, A, timer)
  log.resume(142, 0, 0)
  push(142)
  const { figures } = reader.ended().find(({ request }) => request.number === A)
  t.like(figures, { run: 2_000, delayed: 20_000, waited: 19_000 })
})

test('spans inside of a request count as the request, and do not delay it', (t) => {
  const { delays } = delayed((log) => {
    log.callback(105, {})
    const run = log.serve(119, B)
    log.client(C, B, run, { a: 3 })
    log.callback(130, { request: C, chain: 41 })
    log.client(20, A, run, { a: 3 })
    log.callback(140, { request: 20, chain: 42 })
    log.callback(150, { request: 20, chain: 42 })
  })
  t.deepEqual(delays.map(({ request }) => request), [B])
})
