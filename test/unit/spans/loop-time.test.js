'use strict'

const test = require('ava')
const { LoopTime } = require('../../../lib/spans/loop-time')

const START = 100 // ms of the clock
const NO_SPAN = 0
/** a span that does not run @type {any} */
const observer = { seq: 5 }
/** It was delayed from the start to a time of the clock. @param {number} end @param {LoopTime} loop */
const late = (end, { zero }) => [{ cameAfter: START - zero, cameBy: START - zero, until: end - zero }]

/** Returns who delayed it. @param {LoopTime} loop @param {number} end */
function delayersUntil (loop, end) {
  const sums = loop.recent.sumOf(observer, late(end, loop), loop.zero)
  const delays = []
  for (let delay = sums.takeLongest(); delay !== undefined; delay = sums.takeLongest()) delays.push(delay)
  sums.clear()
  return delays
}

/** A loop without any span that runs, since START. */
function started () {
  const loop = new LoopTime(() => 'Timeout')
  loop.start(START)
  loop.polled = 0 // as if libuv had counted no wait
  return loop
}

test('time in which the loop did not wait is busy', (t) => {
  const loop = started()
  loop.charge(START + 5)
  loop.charge(START + 7)
  t.deepEqual([loop.busy, loop.idle, loop.since], [7, 0, START + 7])
})

test('a clock that stands still or goes back adds nothing', (t) => {
  const loop = started()
  loop.charge(START)
  loop.charge(START - 5)
  t.deepEqual([loop.busy, loop.since], [0, START])
})

test('what libuv counts is idle, and what was before it is busy', (t) => {
  const loop = started()
  loop.addWait(START + 10, 4)
  t.deepEqual([loop.busy, loop.idle, loop.since], [6, 4, START + 10])
  loop.addWait(START + 20, 11)
  t.deepEqual([loop.busy, loop.idle, loop.since], [9, 11, START + 20])
})

test('who ran while a span was open is known: here code of no span', (t) => {
  const loop = started()
  loop.charge(START + 8)
  loop.addWait(START + 20, 12)
  loop.charge(START + 23)
  const delays = [{ span: undefined, ms: 11, max: 11, start: START, longest: 8 }]
  t.deepEqual(delayersUntil(loop, START + 23), delays)
})

test('short runs are added up, so that many of them count as one long one', (t) => {
  const loop = started()
  for (let i = 1; i <= 100; i++) {
    loop.charge(START + i / 10)
    loop.switchTo(NO_SPAN, START + i / 10)
  }
  const [{ ms }] = delayersUntil(loop, START + 10)
  t.true(Math.abs(ms - 10) < 0.5, String(ms))
})

test('clear: no delays remain', (t) => {
  const loop = started()
  loop.charge(START + 8)
  loop.recent.clear()
  t.deepEqual(delayersUntil(loop, START + 8), [])
})

test('the type of what runs', (t) => {
  const loop = started()
  t.is(loop.type, 'process')
  loop.callbackId = 3
  t.is(loop.type, 'Timeout')
})
