'use strict'

const test = require('ava')
const {
  CALLBACK, CAME_AFTER, CAME_BY, IDLE, OTHERS, OWN, PathLog, putLog, takeLog
} = require('../../../lib/spans/critical-path')

const CHAIN = 31

/** What LoopTime has counted by then. @param {number} idle @param {number} busy */
const moment = (idle, busy) => ({
  idle,
  busy,
  callbackId: 21,
  callbackChain: CHAIN,
  cameBy: busy + 1,
  cameAfter: busy
})

/**
 * What the log knows of the moment at which a run began.
 * @param {PathLog} log
 * @param {number} run
 */
const countersAt = (log, run) => [IDLE, OTHERS, OWN].map((time) => log.timeAt(run, time))

/** Records runs without causes. @param {number} count */
function logOf (count) {
  const log = new PathLog()
  for (let i = 0; i < count; i++) log.add(moment(i, 3 * i), i, 0, 0, 0, 0)
  return log
}

test('a run is recorded with what the loop had waited, had run for others and for the request', (t) => {
  const log = new PathLog()
  t.is(log.add(moment(10, 30), 12, 0, 0, 0, 7), 1)
  t.is(log.add(moment(11, 35), 13, 1, 0, 0, 8), 2)
  t.deepEqual(countersAt(log, 1), [10, 18, 12])
  t.deepEqual(countersAt(log, 2), [11, 22, 13])
  t.deepEqual([0, 1, 2, 3, 4].map((word) => log.wordAt(2, word)), [1, 0, 0, 8, CHAIN])
  t.is(log.timeAt(2, CALLBACK), 21)
  t.deepEqual([log.beginOf(2), log.timeAt(2, CAME_AFTER), log.timeAt(2, CAME_BY)], [46, 35, 36])
})

test('what a run causes is part of it until the loop waits, runs others, or it has taken long', (t) => {
  const log = new PathLog()
  log.add(moment(10, 30), 12, 0, 0, 0, 7)
  t.true(log.continues(1, moment(10, 30), 12))
  t.true(log.continues(1, moment(10, 30.05), 12.05))
  t.false(log.continues(1, moment(10, 30.2), 12.2), 'it has taken 0.2 ms')
  t.false(log.continues(1, moment(11, 30), 12), 'the loop has waited')
  t.false(log.continues(1, moment(10, 30.5), 12), 'others have run')
  t.false(log.continues(0, moment(10, 30), 12))
  t.false(log.continues(2, moment(10, 30), 12))
})

test('sums that differ by less than a clock can tell are equal', (t) => {
  const log = new PathLog()
  log.add(moment(0, 0.1 + 0.2), 0.2, 0, 0, 0, 0)
  t.true(log.continues(1, moment(0, 0.1 + 0.2 + 0.07), 0.2 + 0.07))
})

test('a log knows its newest runs, 1024 of them', (t) => {
  const log = logOf(1112)
  t.deepEqual([0, 1, 88, 89, 1112, 1113].map((run) => log.has(run)), [false, false, false, true, true, false])
  t.deepEqual(countersAt(log, 89), [88, 176, 88])
  t.deepEqual(countersAt(log, 1112), [1111, 2222, 1111])
})

test('logs are used again, empty', (t) => {
  const log = takeLog()
  log.add(moment(1, 2), 1, 0, 0, 0, 0)
  putLog(log)
  t.is(takeLog(), log)
  t.is(log.count, 0)
})
