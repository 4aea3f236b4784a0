'use strict'

const test = require('ava')
const identities = require('../../../lib/spans/identities')
const { RunLog, Sums } = require('../../../lib/spans/recent-runs')

const NONE = 0 // number of no span
const SPAN = 5

/** A span, as far as it counts here. */
const of = (/** @type {number} */ seq) => ({ seq, hasInner: true })

/** A delay between two times of which the first may be earlier. */
const late = (/** @type {number} */ begin, /** @type {number} */ end, earliest = begin) => {
  return { cameAfter: earliest, cameBy: begin, until: end }
}

/**
 * Sums up who ran while a span was delayed.
 * @param {Array<[start: number, end: number, ms?: number]>} runs of no span
 * @param {{ begin?: number, end?: number, size?: number }} [limits]
 */
function delayOf (runs, { begin = 0, end = 1000, size = 8 } = {}) {
  const log = new RunLog(size, false)
  for (const [from, to, ms = to - from] of runs) log.add(NONE, from, to, ms)
  const sums = new Sums()
  log.sum(of(SPAN), [late(begin, end)], 0, sums)
  return sums.takeLongest()
}

test('runs are added up, and the longest is known', (t) => {
  const delay = delayOf([[10, 15], [20, 28], [30, 31]])
  t.deepEqual(delay, { span: undefined, ms: 14, max: 14, start: 20, longest: 8 })
})

test('of a run only what lies within the span counts', (t) => {
  t.like(delayOf([[10, 20]], { begin: 12, end: 18 }), { ms: 6, start: 12 })
  t.is(delayOf([[10, 20]], { begin: 20, end: 30 }), undefined)
  t.is(delayOf([[10, 20]], { begin: 0, end: 10 }), undefined)
})

test('of runs with others in between a part counts', (t) => {
  t.like(delayOf([[10, 20, 4]], { begin: 15, end: 30 }), { ms: 2, start: 15 })
})

test('parts of one run without a gap are one', (t) => {
  const { ms, longest } = delayOf([[10, 15], [15.0078125, 18]])
  t.deepEqual([ms, longest], [7.9921875, 7.9921875])
  t.like(delayOf([[10, 15], [15.02, 18]]), { start: 10, longest: 5 })
})

test('the oldest are forgotten', (t) => {
  t.like(delayOf([[10, 15], [20, 22], [30, 33]], { size: 2 }), { ms: 5 })
})

test('only the times in which it was delayed count, and what is not certain apart', (t) => {
  const log = new RunLog(8, false)
  for (const start of [0, 100, 200]) log.add(NONE, start, start + 90, 90)
  const sums = new Sums()
  log.sum(of(SPAN), [late(280, 290, 220), late(120, 130), late(30, 40)], 0, sums)
  t.like(sums.takeLongest(), { ms: 30, max: 90, start: 220, longest: 70 })
})

test('clear forgets all', (t) => {
  const log = new RunLog(8, true)
  log.add(NONE, 10, 20, 10)
  log.clear()
  const sums = new Sums()
  log.sum(of(SPAN), [late(0, 100)], 0, sums)
  t.is(sums.takeLongest(), undefined)
})

test('of a span that ran its last name and its id are remembered, not the span', (t) => {
  const span = /** @type {any} */ ({ seq: identities.nextNumber(), name: 'GET', spanId: 'a' })
  identities.add(span, undefined)
  const log = new RunLog(8, true)
  log.add(span.seq, 10, 20, 10)
  span.name = 'GET /users/:id'
  identities.end(span, 0)
  const sums = new Sums()
  log.sum(of(SPAN + span.seq), [late(0, 100)], 0, sums)
  const delay = sums.takeLongest()
  t.not(delay?.span, span)
  t.deepEqual({ ...delay?.span }, { name: 'GET /users/:id', spanId: 'a' })
})

/** @param {Sums} sums */
const takeThree = (sums) => [sums.takeLongest(), sums.takeLongest(), sums.takeLongest()]

test('Sums: the worst comes first', (t) => {
  const sums = new Sums()
  for (const [span, ms, start] of [
    [1, 5, 0],
    [2, 9, 10],
    [1, 6, 20],
    [3, 1, 30]
  ]) {
    sums.add(span, ms, start, undefined)
  }
  t.deepEqual(
    takeThree(sums).map((delay) => [delay?.ms, delay?.start, delay?.longest]),
    [
      [11, 20, 6],
      [9, 10, 9],
      [1, 30, 1]
    ]
  )
  t.is(sums.takeLongest(), undefined)
})

test('Sums: numbers that share their lowest bits are spans of their own', (t) => {
  const sums = new Sums()
  for (const span of [1, 1 + (1 << 11), 1]) sums.add(span, 1, 0, undefined)
  t.is(takeThree(sums).reduce((sum, delay) => sum + (delay?.ms ?? 0), 0), 3)
})

test('Sums: a known name is returned', (t) => {
  const sums = new Sums()
  const identity = { name: 'GET /', spanId: 'a' }
  sums.add(7, 1, 0, undefined)
  sums.add(7, 1, 0, identity)
  t.is(sums.takeLongest().span, identity)
})

test('Sums: clear forgets all', (t) => {
  const sums = new Sums()
  sums.add(1, 5, 0, undefined)
  sums.clear()
  t.is(sums.takeLongest(), undefined)
})
