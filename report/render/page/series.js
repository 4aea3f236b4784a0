'use strict'

// What the page needs along time: figures of each moment of the run, and sums by bucket of what a brush
// filters.

const { array, isRecord, number, roundMs } = require('./values')

/**
 * @typedef {import('./thinning').Thinning} Thinning
 *
 * @typedef {object} PageSeries arrays hold one figure for each bucket
 * @property {number} fromUnixMs
 * @property {number} stepMs
 * @property {number} buckets
 * @property {number[]} count
 * @property {number[]} errors
 * @property {Array<number | null>} p50
 * @property {Array<number | null>} p99
 * @property {number[]} delayedMs mean per request
 * @property {number[]} blockedMs sum
 *
 * @typedef {object} Times of a route, weighted; arrays hold one figure for each bucket
 * @property {number[]} count
 * @property {number[]} errors
 * @property {number[]} totalMs
 * @property {number[]} run
 * @property {number[]} waited
 * @property {number[]} delayed
 * @property {number[]} [max] ms
 * @property {number[]} [histogram] bucket, bin, count, bucket …: see durations.js of the client
 *
 * @typedef {number[]} Sparse bucket, figures, bucket, figures …
 */

const MAX_BUCKETS = 240
const SUMS = /** @type {const} */ (['count', 'errors', 'totalMs', 'run', 'waited', 'delayed'])

/** @param {any} source @returns {PageSeries | undefined} */
function createSeries (source) {
  if (!isRecord(source)) return undefined
  const [fromUnixMs, stepMs, buckets] = [source.fromUnixMs, source.stepMs, source.buckets].map(number)
  if (fromUnixMs === undefined || !(Number(stepMs) > 0) || !Number.isInteger(buckets)) return undefined
  const length = Math.min(MAX_BUCKETS, Number(buckets))
  if (length < 1) return undefined
  const list = (/** @type {string} */ name) => numbers(source[name], length)
  return {
    fromUnixMs,
    stepMs: Number(stepMs),
    buckets: length,
    count: list('count'),
    errors: list('errors'),
    p50: numbersOrNull(source.p50, length),
    p99: numbersOrNull(source.p99, length),
    delayedMs: list('delayedMs'),
    blockedMs: list('blockedMs')
  }
}

/**
 * Finds the sums of routes along time.
 * @param {any} source series of a model
 * @param {number} buckets
 * @param {Thinning} thinning
 * @returns {(kind: string, name: string) => Times | undefined}
 */
function timesOf (source, buckets, thinning) {
  /** @type {Map<string, any>} */
  const byRoute = new Map()
  for (const route of array(source?.routes).filter(isRecord).slice(0, thinning.limits.timedRoutes)) {
    byRoute.set(`${route.kind} ${route.name}`, route)
  }
  return (kind, name) => {
    const route = byRoute.get(`${kind} ${name}`)
    if (route === undefined) return undefined
    const sums = SUMS.map((sum) => [sum, numbers(route[sum], buckets)])
    const histogram = sparse(route.histogram, 2, buckets, thinning, 'histogramSums')
    const max = Array.isArray(route.max) ? numbers(route.max, buckets) : undefined
    return /** @type {Times} */ ({ ...Object.fromEntries(sums), max, histogram })
  }
}

/** @param {unknown} list @param {number} length */
function numbers (list, length) {
  const values = array(list)
  return Array.from({ length }, (_, i) => roundMs(number(values[i]) ?? 0))
}

/** @param {unknown} list @param {number} length */
function numbersOrNull (list, length) {
  const values = array(list)
  return Array.from({ length }, (_, i) => {
    const value = number(values[i])
    return value === undefined ? null : roundMs(value)
  })
}

/**
 * Reads sums by bucket, as far as the page has room for them.
 * @param {unknown} list
 * @param {number} width figures of a bucket
 * @param {number} buckets
 * @param {Thinning} thinning
 * @param {import('./thinning').SumsKind} [kind]
 * @returns {Sparse | undefined} undefined if there is none, any is not valid, or there is no room
 */
function sparse (list, width, buckets, thinning, kind = 'sums') {
  const values = array(list)
  if (values.length === 0 || values.length % (width + 1) !== 0) return undefined
  const isValid = values.every((value, i) => i % (width + 1) === 0
    ? Number.isInteger(value) && value >= 0 && value < buckets
    : number(value) !== undefined)
  return isValid && thinning.reserve(kind, values.length) ? values.map(roundMs) : undefined
}

module.exports = { createSeries, sparse, timesOf }
