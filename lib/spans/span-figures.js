'use strict'

// The figures of a span: run, waits and delays. Data in, data out.

const {
  MIN_SHARE, appended, delaysOf, rangeEnd, sumsOf, us
} = require('../encoding/span-figures')

const MAX_DELAYERS = 5

/**
 * @typedef {import('./span').Span} Span
 *
 * @typedef {object} Surroundings
 * @property {import('./loop-time').LoopTime} loop
 * @property {(span: Span) => string | undefined} stack the long stack of the place that made it
 * @property {(span: Span) => import('./wait-sites').Path} pathOf where its time went
 * @property {(start: number, end: number) => string | undefined} frameAt the innermost frame sampled in a
 *   blocking callback
 * @property {(span: Span) => import('../encoding/span-form').Asked[] | undefined} askedOf what it asked
 * @property {(span: Span) => { count: number, ms: number } | undefined} moreAsked
 *
 * @typedef {import('../encoding/span-form').Delayer} Delayer
 * @typedef {import('../encoding/span-form').Run} Run
 */

/**
 * Returns the figures of a span, in microseconds where nothing else is said.
 * @param {Span} span that has ended
 * @param {Surroundings} surroundings
 * @returns {import('../encoding/span-form').Figures}
 */
function figuresOf (span, surroundings) {
  const duration = span.end - span.start
  const run = Math.min(span.run, duration)
  const path = surroundings.pathOf(span)
  const { waits, late } = path
  const { sums, summed } = sumsOf(waits)
  let [waited, delayed, delayedMax] = [0, 0, 0]
  for (const wait of waits) {
    delayed += wait.delayed
    delayedMax += wait.delayedMax
    waited += wait.ms
  }
  delayed = clamp(delayed, duration - run)
  delayedMax = clamp(delayedMax, duration - run)
  const isLate = late.length > 0
  return {
    trace: surroundings.stack(span), // of the place that made it
    run: us(run),
    duration, // ms
    waits,
    ran: path.ran,
    beside: us(path.beside), // own code beside the path
    sums, // waits by subsystem of what ended them
    summed, // their sum; that of all waits is `waited`
    waited: us(waited),
    delayed: us(delayed),
    delayedMax: us(rangeEnd(delayed, delayedMax)), // where it is not known when what it waited for had come
    delayers: isLate
      ? delayersOf(span, path, surroundings, delayed, delayedMax, duration * MIN_SHARE)
      : undefined,
    delays: isLate ? delaysOf(late, surroundings.loop.zero - span.start, duration) : undefined,
    asked: surroundings.askedOf(span),
    more: surroundings.moreAsked(span),
    runs: span.longestRuns && runsOf(span, span.longestRuns, path, surroundings.loop.zero)
  }
}

/**
 * Returns who delayed a span, longest first.
 * @param {Span} span
 * @param {import('./wait-sites').Path} path
 * @param {Surroundings} surroundings
 * @param {number} delayed ms in all: the share of many short runs in a part of their time is an estimate
 * @param {number} delayedMax
 * @param {number} min ms of one who is told
 */
function delayersOf (span, { late }, { loop, frameAt }, delayed, delayedMax, min) {
  let remaining = delayed
  let remainingMax = delayedMax
  /** @type {Delayer[] | undefined} */
  let delayers
  const sums = loop.recent.sumOf(span, late, loop.zero)
  for (let i = 0; i < MAX_DELAYERS; i++) {
    const delay = sums.takeLongest(min)
    if (delay === undefined) break
    const ms = Math.min(delay.ms, remaining)
    const max = rangeEnd(ms, Math.min(delay.max, remainingMax))
    remaining -= ms
    remainingMax -= Math.min(delay.max, remainingMax)
    if (max < min) continue
    delayers = appended(delayers, {
      spanId: delay.span?.spanId,
      name: delay.span?.name,
      us: us(ms),
      max: us(max),
      at: frameAt(delay.start, delay.start + delay.longest)
    })
  }
  sums.clear()
  return delayers
}

/**
 * Returns the runs of a span, with the wait that each ended.
 * @param {Span} span
 * @param {import('./recent-runs').LongestRuns} runs
 * @param {import('./wait-sites').Path} path
 * @param {number} zero when the counters of LoopTime began
 * @returns {Run[] | undefined}
 */
function runsOf ({ start }, { count, starts, lengths, types }, path, zero) {
  /** @type {Run[] | undefined} */
  let lines
  let next = path.steps.length - 1
  for (let i = 0; i < count; i++) {
    /** @type {Run} */
    const line = [us(starts[i] - start), us(lengths[i]), types[i]]
    let longest = -1 // of those between this run and the one before
    for (; next >= 0 && path.steps[next].until < starts[i] - zero + lengths[i]; next--) {
      if (longest === -1 || path.steps[next].ms > path.steps[longest].ms) longest = next
    }
    if (longest !== -1) line.push(path.merged[longest])
    lines = appended(lines, line)
  }
  return lines
}

/** Limits a sum of small figures, which is not exact. @param {number} ms @param {number} max */
function clamp (ms, max) {
  return Math.max(0, Math.min(ms, max))
}

module.exports = { figuresOf }
