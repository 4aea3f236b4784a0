'use strict'

// Who delayed a request, in recordings with known answers.

const test = require('ava')
const { TIMER } = require('../../lib/core/run-log-words')
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

test('each is told by request, as far as it ran after the timer was due', (t) => {
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

test('thousands of short runs are counted each', (t) => {
  const { delays } = delayed((log) => {
    for (let i = 0; i < 1000; i++) log.callback(120 + i / 100, { request: B + (i & 1), chain: 41 })
  }, 130)
  t.is(delays.length, 2)
  for (const { ms } of delays) t.true(Math.abs(ms - 5) < 0.05, String(ms))
})

test('while the loop waits, nobody delays', (t) => {
  const { delays, figures } = delayed((log) => {
    log.callback(130, { request: B, chain: 41 })
    log.poll(150, 10)
  })
  t.like(delays, [{ request: B, ms: 10 }])
  t.is(figures.delayed, 10_000)
})

test('spans inside of a request are told as it, and do not delay it', (t) => {
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
