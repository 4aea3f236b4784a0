'use strict'

const test = require('ava')
const { PathLog, putLog, takeLog } = require('../../../lib/spans/critical-path')

const CALLBACK = 21
const CALLBACK_CHAIN = 31

/**
 * Makes a log of runs, numbered from 1.
 * @param {Array<{ idle: number, registered?: number, settled?: number, settler?: number, site?: number }>}
 *   runs
 */
function logOf (runs) {
  const log = new PathLog()
  for (const { idle, registered = 0, settled = 0, settler = 0, site = 0 } of runs) {
    log.add(idle, registered, settled, settler, site, CALLBACK, CALLBACK_CHAIN)
  }
  return log
}

/**
 * Returns the waits of a span that began with run 1, before any wait.
 * @param {PathLog} log
 * @param {number} last
 * @param {number} idle
 */
function waitsOf (log, last, idle) {
  return log.waits(1, last, log.count, { idle, callback: 0, callbackChain: 0 }, 0)
}

test('a wait lies between the run that registered it and the one that it ended with', (t) => {
  const log = logOf([{ idle: 0 }, { idle: 10, registered: 1, site: 7 }])
  t.deepEqual(waitsOf(log, 2, 10), [
    { ms: 10, site: 7, proven: true, callback: CALLBACK, callbackChain: CALLBACK_CHAIN, settler: 0 }
  ])
})

test('waits one after another, newest first', (t) => {
  const log = logOf([{ idle: 0 }, { idle: 10, registered: 1, site: 7 }, { idle: 15, registered: 2, site: 8 }])
  t.deepEqual(waitsOf(log, 3, 15).map(({ ms, site }) => [ms, site]), [[5, 8], [10, 7]])
})

test('what is not on the path is no wait', (t) => {
  const log = logOf([{ idle: 0 }, { idle: 5, registered: 1, site: 8 }, { idle: 10, registered: 1, site: 9 }])
  t.deepEqual(waitsOf(log, 3, 10).map(({ ms, site }) => [ms, site]), [[10, 9]])
})

test('a continuation leads to the run that settled what it awaited', (t) => {
  const log = logOf([
    { idle: 0 },
    { idle: 4, registered: 1, site: 5 },
    { idle: 6, registered: 1, settled: 2, site: 6 }
  ])
  t.deepEqual(waitsOf(log, 3, 6).map(({ ms, site }) => [ms, site]), [[2, 6], [4, 5]])
})

test('where a run of another request settled it, its span is named', (t) => {
  const log = logOf([{ idle: 0 }, { idle: 10, registered: 1, settler: 99, site: 7 }])
  t.is(waitsOf(log, 2, 10)[0].settler, 99)
})

test('a run that was registered elsewhere ends a wait of which only the order is known', (t) => {
  const log = logOf([{ idle: 0, site: 3 }, { idle: 10, registered: 0, site: 7 }])
  t.deepEqual(waitsOf(log, 2, 10).map(({ ms, proven }) => [ms, proven]), [[10, false]])
})

test('a span that ends in no run of its own waited until then', (t) => {
  const log = logOf([{ idle: 0, site: 3 }])
  t.deepEqual(waitsOf(log, 0, 12).map(({ ms, site, proven }) => [ms, site, proven]), [[12, 3, false]])
})

test('what the loop waited before the first run is a wait without a site', (t) => {
  t.deepEqual(
    waitsOf(logOf([{ idle: 3, site: 7 }]), 1, 3).map(({ ms, site, proven }) => [ms, site, proven]),
    [[3, 0, false]]
  )
})

test('the waits add up to what the loop waited while the span was open, also where old runs are forgotten', (t) => {
  let state = 7
  const random = (max) => (state = (state * 48271) % 0x7fffffff) % max
  for (let round = 0; round < 200; round++) {
    let idle = random(5)
    const runs = Array.from({ length: 1 + random(round < 190 ? 60 : 1500) }, (_, i) => {
      idle += random(4)
      return {
        idle,
        registered: Math.max(0, i - random(20)),
        settled: random(2) * Math.max(0, i - random(10))
      }
    })
    const end = idle + random(9)
    const last = random(3) === 0 ? 0 : runs.length
    const waited = last === 0 ? end : idle
    const sum = waitsOf(logOf(runs), last, waited).reduce((total, { ms }) => total + ms, 0)
    t.is(sum, waited, `round ${round}`)
  }
})

test('a log knows its newest runs, 512 of them', (t) => {
  const log = logOf(Array.from({ length: 600 }, (_, i) => ({ idle: i })))
  t.deepEqual([0, 1, 88, 89, 600, 601].map((run) => log.has(run)), [false, false, false, true, true, false])
  t.is(log.idleAt(89), 88)
  t.is(log.idleAt(600), 599)
})

test('logs are used again, empty', (t) => {
  const log = takeLog()
  log.add(1, 0, 0, 0, 0, 0, 0)
  putLog(log)
  t.is(takeLog(), log)
  t.is(log.count, 0)
})
