'use strict'

// The figures of a span: run, waits and delays. Data in, data out.

const MAX_DELAYERS = 5
const UNKNOWN = 'unknown' // the subsystem of a wait where none is known
const MIN_WAIT = 0.001 // ms
const MIN_DELAYED = 0.2 // ms from which on it is said who delayed a span
/** @type {import('./wait-sites').Path} */
const NO_PATH = { waits: [], ran: undefined, beside: 0 }

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
 * @property {Delay[]} delays
 *
 * @typedef {{ by: { spanId: string, name: string } | undefined, ms: number, at: string | undefined }} Delay
 */

/** @param {Span} span @param {Surroundings} surroundings @returns {Figures} */
function figuresOf (span, { loop, stack, frameAt }) {
  const total = span.end - span.start
  const run = Math.min(span.run, total)
  const delayed = clamp(span.delayed, total - run)
  const { waits, ran, beside } = span.path ?? NO_PATH
  /** @type {Record<string, number>} */
  const sums = {}
  let waited = 0
  for (const { ms, subsystem = UNKNOWN } of waits) {
    waited += ms
    if (ms < MIN_WAIT) continue // only others ran meanwhile
    sums[subsystem] = (sums[subsystem] ?? 0) + ms
  }
  const delays = delayed < MIN_DELAYED ? [] : delaysOf(span, loop, frameAt, delayed)
  return { trace: stack(span), run, duration: total, waits, ran, beside, sums, waited, delayed, delays }
}

/**
 * Returns who delayed a span.
 * @param {Span} span
 * @param {Surroundings['loop']} loop
 * @param {Surroundings['frameAt']} frameAt
 * @param {number} delayed ms in all: the share of many short runs in a part of their time is an estimate
 * @returns {Delay[]}
 */
function delaysOf (span, loop, frameAt, delayed) {
  let remaining = delayed
  const delayers = loop.delayers(span, span.end, MAX_DELAYERS)
  return delayers.map(({ span: delayer, ms: estimate, start, longest }) => {
    const ms = Math.min(estimate, remaining)
    remaining -= ms
    return { by: delayer, ms, at: frameAt(start, start + longest) }
  })
}

/** Limits a sum of small figures, which is not exact. @param {number} ms @param {number} max */
function clamp (ms, max) {
  return Math.max(0, Math.min(ms, max))
}

module.exports = { figuresOf }
