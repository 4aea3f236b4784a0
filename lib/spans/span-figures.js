'use strict'

// The figures of a span: run, waits and delays. Data in, data out.

const MAX_DELAYERS = 5
const UNKNOWN = 'unknown' // the subsystem of a wait where none is known
const MIN_WAIT = 0.001 // ms
const MAX_DELAYS = 16 // of which it is said when they were
const MIN_RANGE = 1 // ms, of a delay that is told as one
const MIN_LATE = 0.2 // ms of a delay of which it is told when it was
const MIN_SHARE = 1 / 50 // of the duration, of these, and of who delayed it
/** @type {any[]} */
const NONE = []
/** @type {import('./wait-sites').Path} */
const NO_PATH = { waits: [], ran: undefined, beside: 0, late: [] }

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./wait-sites').SiteRun} SiteRun
 * @typedef {import('./wait-sites').SiteWait} SiteWait
 *
 * @typedef {object} Surroundings
 * @property {import('./loop-time').LoopTime} loop
 * @property {Record<string, unknown>} resource
 * @property {(span: Span) => string | undefined} stack the long stack of the place that made it
 * @property {(start: number, end: number) => string | undefined} frameAt the innermost frame sampled in a
 *   blocking callback
 *
 * @typedef {object} Figures in ms, not rounded
 * @property {string | undefined} trace the long stack
 * @property {number} run
 * @property {number} duration
 * @property {SiteWait[]} waits on the critical path, the worst first
 * @property {SiteRun[] | undefined} ran own code on the critical path, likewise
 * @property {number} beside own code that is not
 * @property {Record<string, number>} sums of waits, by subsystem of what ended them
 * @property {number} waited
 * @property {number} delayed
 * @property {number} delayedMax more than that where it is not known when what it waited for had come
 * @property {Delayer[]} delayers
 * @property {Delay[]} delays when they were
 *
 * @typedef {object} Delayer
 * @property {{ spanId: string, name: string } | undefined} by
 * @property {number} ms
 * @property {number} max
 * @property {string | undefined} at
 *
 * @typedef {object} Delay
 * @property {number} start ms after that of the span, at the earliest
 * @property {number} ms at most
 * @property {number} certain ms, its end
 */

/** @param {Span} span @param {Surroundings} surroundings @returns {Figures} */
function figuresOf (span, { loop, stack, frameAt }) {
  const duration = span.end - span.start
  const run = Math.min(span.run, duration)
  const { waits, ran, beside, late } = span.path ?? NO_PATH
  /** @type {Record<string, number>} */
  const sums = {}
  let [waited, delayed, delayedMax] = [0, 0, 0]
  for (const { ms, delayed: ownDelay, delayedMax: ownMax, until: { until: subsystem = UNKNOWN } } of waits) {
    delayed += ownDelay
    delayedMax += ownMax
    waited += ms
    if (ms < MIN_WAIT) continue // only others ran
    sums[subsystem] = (sums[subsystem] ?? 0) + ms
  }
  delayed = clamp(delayed, duration - run)
  delayedMax = clamp(delayedMax, duration - run)
  const zero = loop.zero - span.start
  return {
    trace: stack(span),
    run,
    duration,
    waits,
    ran,
    beside,
    sums,
    waited,
    delayed,
    delayedMax: rangeEnd(delayed, delayedMax),
    delayers: late.length === 0
      ? NONE
      : delayersOf(span, loop, frameAt, delayed, delayedMax, duration * MIN_SHARE),
    delays: late.length === 0 ? NONE : delaysOf(late, zero, duration)
  }
}

/**
 * Returns the end of a range, the same as its beginning where it is narrow.
 * @param {number} ms
 * @param {number} max
 */
function rangeEnd (ms, max) {
  return max - ms < MIN_RANGE ? ms : max
}

/**
 * Returns who delayed a span.
 * @param {Span} span
 * @param {Surroundings['loop']} loop
 * @param {Surroundings['frameAt']} frameAt
 * @param {number} delayed ms in all: the share of many short runs in a part of their time is an estimate
 * @param {number} delayedMax
 * @param {number} min ms of one who is told
 * @returns {Delayer[]}
 */
function delayersOf (span, loop, frameAt, delayed, delayedMax, min) {
  let remaining = delayed
  let remainingMax = delayedMax
  /** @type {Delayer[]} */
  const delayers = []
  for (const delay of loop.recent.delayers(span, span.path?.late ?? NONE, loop.zero, MAX_DELAYERS)) {
    const ms = Math.min(delay.ms, remaining)
    const max = rangeEnd(ms, Math.min(delay.max, remainingMax))
    remaining -= ms
    remainingMax -= Math.min(delay.max, remainingMax)
    if (max < min) continue
    delayers.push({ by: delay.span, ms, max, at: frameAt(delay.start, delay.start + delay.longest) })
  }
  return delayers
}

/**
 * Returns when a span was delayed, the longest times in their order.
 * @param {import('./path-walk').Wait[]} late newest first
 * @param {number} zero of their times, in ms after the start of the span
 * @param {number} duration ms
 * @returns {Delay[]}
 */
function delaysOf (late, zero, duration) {
  const min = Math.max(MIN_LATE, duration * MIN_SHARE)
  /** @type {Delay[]} */
  const delays = []
  for (let i = late.length - 1; i >= 0; i--) {
    const { cameAfter, cameBy, until } = late[i]
    const ms = rangeEnd(until - cameBy, until - cameAfter)
    if (ms >= min) delays.push({ start: zero + until - ms, ms, certain: until - cameBy })
  }
  if (delays.length <= MAX_DELAYS) return delays
  return delays.sort((a, b) => b.ms - a.ms).slice(0, MAX_DELAYS).sort((a, b) => a.start - b.start)
}

/** Limits a sum of small figures, which is not exact. @param {number} ms @param {number} max */
function clamp (ms, max) {
  return Math.max(0, Math.min(ms, max))
}

module.exports = { MIN_RANGE, figuresOf }
