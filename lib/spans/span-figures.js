'use strict'

// The figures of a span: run, waits and delays. Data in, data out.

const MAX_DELAYERS = 5
const UNKNOWN = 'unknown' // the subsystem of a wait where none is known
const MIN_WAIT = 0.001 // ms
const MAX_DELAYS = 16 // of which it is said when they were
const MIN_RANGE = 1 // ms, of a delay that is told as one
const MIN_LATE = 0.2 // ms of a delay of which it is told when it was
const MIN_SHARE = 1 / 50 // of the duration, of these, and of who delayed it
/**
 * @typedef {import('./span').Span} Span
 *
 * @typedef {object} Surroundings
 * @property {import('./loop-time').LoopTime} loop
 * @property {Record<string, unknown>} resource
 * @property {(span: Span) => string | undefined} stack the long stack of the place that made it
 * @property {(span: Span) => import('./wait-sites').Path} pathOf where its time went
 * @property {(start: number, end: number) => string | undefined} frameAt the innermost frame sampled in a
 *   blocking callback
 *
 * @typedef {object} Delayer who delayed a span
 * @property {string | undefined} spanId undefined: code outside of any span
 * @property {string | undefined} name
 * @property {number} us
 * @property {number} max us
 * @property {string | undefined} at
 *
 * @typedef {ReturnType<typeof figuresOf>} Figures
 *
 * @typedef {[start: number, us: number, certain?: number]} Delay when a span was delayed, in microseconds:
 *   after its start, at the earliest, for how long at most, and the end of it that is certain
 */

/**
 * Returns the figures of a span, in microseconds where nothing else is said.
 * @param {Span} span that has ended
 * @param {Surroundings} surroundings
 */
function figuresOf (span, surroundings) {
  const duration = span.end - span.start
  const run = Math.min(span.run, duration)
  const path = surroundings.pathOf(span)
  const { waits, late } = path
  /** @type {Record<string, number> | undefined} */
  let sums
  let [waited, delayed, delayedMax] = [0, 0, 0]
  for (const { ms, delayed: ownDelay, delayedMax: ownMax, until = UNKNOWN } of waits) {
    delayed += ownDelay
    delayedMax += ownMax
    waited += ms
    if (ms < MIN_WAIT) continue // only others ran
    sums ??= {}
    sums[until] = (sums[until] ?? 0) + ms
  }
  delayed = clamp(delayed, duration - run)
  delayedMax = clamp(delayedMax, duration - run)
  const isLate = late.length > 0
  return {
    trace: surroundings.stack(span), // of the place that made it
    run: us(run),
    duration, // ms
    path, // where the time went
    beside: us(path.beside), // own code beside the path
    sums, // waits by subsystem of what ended them
    summed: sums === undefined ? 0 : rounded(sums), // their sum; that of all waits is `waited`
    waited: us(waited),
    delayed: us(delayed),
    delayedMax: us(rangeEnd(delayed, delayedMax)), // where it is not known when what it waited for had come
    delayers: isLate
      ? delayersOf(span, path, surroundings, delayed, delayedMax, duration * MIN_SHARE)
      : undefined,
    delays: isLate ? delaysOf(path, surroundings.loop.zero - span.start, duration) : undefined
  }
}

/**
 * Makes sums in ms microseconds.
 * @param {Record<string, number>} sums
 * @returns {number} their sum
 */
function rounded (sums) {
  let sum = 0
  for (const subsystem of Object.keys(sums)) {
    sums[subsystem] = us(sums[subsystem])
    sum += sums[subsystem]
  }
  return sum
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
 * Returns when a span was delayed, the longest times in their order.
 * @param {import('./wait-sites').Path} path
 * @param {number} zero of its times, in ms after the start of the span
 * @param {number} duration ms
 */
function delaysOf ({ late }, zero, duration) {
  const min = Math.max(MIN_LATE, duration * MIN_SHARE)
  /** @type {Delay[] | undefined} */
  let delays
  for (let i = late.length - 1; i >= 0; i--) {
    const { cameAfter, cameBy, until } = late[i]
    const ms = rangeEnd(until - cameBy, until - cameAfter)
    if (ms < min) continue
    const certain = until - cameBy
    const [start, length] = [us(zero + until - ms), us(ms)]
    delays = appended(delays, certain < ms ? [start, length, us(certain)] : [start, length])
  }
  if (delays === undefined || delays.length <= MAX_DELAYS) return delays
  return delays.sort((a, b) => b[1] - a[1]).slice(0, MAX_DELAYS).sort((a, b) => a[0] - b[0])
}

/**
 * Appends to a list of few: an empty one that grows takes room for 17.
 * @template T
 * @param {T[] | undefined} list
 * @param {T} item
 * @returns {T[]}
 */
function appended (list, item) {
  if (list === undefined) return [item]
  list.push(item)
  return list
}

/** Limits a sum of small figures, which is not exact. @param {number} ms @param {number} max */
function clamp (ms, max) {
  return Math.max(0, Math.min(ms, max))
}

/** Removes the properties that are undefined. @template {object} T @param {T} object @returns {T} */
function defined (object) {
  for (const key of Object.keys(object)) {
    if (/** @type {any} */ (object)[key] === undefined) delete /** @type {any} */ (object)[key]
  }
  return object
}

/** @param {number} ms @returns {number} whole microseconds */
const us = (ms) => Math.round(ms * 1000)
/** Rounds to microseconds. @param {number} ms */
const toMicros = (ms) => us(ms) / 1000

module.exports = { MIN_RANGE, appended, defined, figuresOf, toMicros, us }
