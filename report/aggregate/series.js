'use strict'

// The whole run along time: requests by the moment of their start.

const { quantile } = require('./summary')
const { Numbers } = require('./numbers')

/**
 * @typedef {import('./time-axis').Axis} Axis
 * @typedef {import('./time-axis').TimeAxis} TimeAxis
 * @typedef {import('./time-axis').Times} Times
 *
 * @typedef {object} Series arrays hold one figure for each bucket, of the requests that began in it; requests
 *   are spans of servers, or if there are none those without another span around them
 * @property {number} fromUnixMs begin of the first bucket
 * @property {number} stepMs
 * @property {number} buckets at most 120
 * @property {number[]} count weighted
 * @property {number[]} errors weighted
 * @property {Array<number | null>} p50 ms, null where no request began
 * @property {Array<number | null>} p99
 * @property {number[]} delayedMs mean
 * @property {number[]} blockedMs sum of the blocking callbacks that began in it
 * @property {RouteSeries[]} routes those of the greatest total time first, at most 100
 *
 * @typedef {object} RouteSeries sums, weighted
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {number[]} count
 * @property {number[]} errors
 * @property {number[]} totalMs
 * @property {number[]} run
 * @property {number[]} waited
 * @property {number[]} delayed
 * @property {number[]} max the longest, ms; 0 where no request began
 * @property {number[] | undefined} histogram bucket, bin, weighted count, bucket, bin …: the bin of a
 *   duration is floor(log2(ms) * 16), of at least 1 µs; of the first 60 routes
 */

const MAX_ROUTES = 100
const MAX_HISTOGRAMS = 60
const BINS_PER_OCTAVE = 16
const MIN_MS = 0.001
/** Sums along time of the requests of a route: which is which. */
const [ERRORS, SPLITS, RUN, WAITED, DELAYED] = [0, 1, 2, 3, 4]
const SUMS = 5

/**
 * @typedef {object} Timed a route
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {number} totalMs
 * @property {Numbers} durations in the order in which they came
 * @property {Numbers} starts of each of them; NaN: it is no request
 * @property {number} requests
 * @property {Times} times errors, requests with a breakdown, and its run, waited and delayed
 */

/**
 * @param {Timed[]} routes
 * @param {Times} blocked ms
 * @param {TimeAxis} timeAxis
 * @returns {Series | undefined} undefined if there are no requests
 */
function createSeries (routes, blocked, timeAxis) {
  const axis = timeAxis.axis()
  if (axis === undefined) return undefined
  const servers = routes.filter(({ kind }) => kind === 'SERVER')
  const requests = servers.length > 0 ? servers : routes
  const durations = durationsOf(requests, axis)
  const sum = (/** @type {number} */ figure) => requests.map(({ times }) => times.list(axis, figure))
    .reduce((a, b) => a.map((value, i) => value + b[i]), Array(axis.buckets).fill(0))
  const [delayed, splits] = [sum(DELAYED), sum(SPLITS)]
  const sorted = routes.filter(({ requests }) => requests > 0)
    .sort((a, b) => b.totalMs - a.totalMs).slice(0, MAX_ROUTES)
  return {
    fromUnixMs: axis.fromUnixMs,
    stepMs: axis.stepMs,
    buckets: axis.buckets,
    count: durations.map((numbers) => numbers.weight),
    errors: sum(ERRORS),
    ...quantilesOf(durations),
    delayedMs: delayed.map((ms, i) => splits[i] > 0 ? ms / splits[i] : 0),
    blockedMs: blocked.list(axis, 0),
    routes: sorted.map((route, i) => seriesOf(route, axis, i < MAX_HISTOGRAMS))
  }
}

/** @param {Numbers[]} durations of each bucket @returns {Pick<Series, 'p50' | 'p99'>} */
function quantilesOf (durations) {
  const samples = durations.map((numbers) => numbers.size === 0 ? undefined : numbers.sorted())
  const [p50, p99] = [0.5, 0.99].map((p) =>
    samples.map((sample) => sample === undefined ? null : quantile(sample, p)))
  return { p50, p99 }
}

/**
 * Sorts the durations of routes into buckets.
 * @param {Timed[]} routes
 * @param {Axis} axis
 */
function durationsOf (routes, { buckets, indexAt }) {
  const list = Array.from({ length: buckets }, () => new Numbers())
  for (const { durations, starts } of routes) {
    const indexes = new Int16Array(durations.size)
    starts.forEach((startMs, _, i) => { indexes[i] = Number.isNaN(startMs) ? -1 : indexAt(startMs) })
    durations.forEach((ms, weight, i) => { if (indexes[i] !== -1) list[indexes[i]].add(ms, weight) })
  }
  return list
}

/** @param {Timed} route @param {Axis} axis @param {boolean} hasHistogram @returns {RouteSeries} */
function seriesOf (route, axis, hasHistogram) {
  const { name, kind, times } = route
  const durations = durationsOf([route], axis)
  return {
    name,
    kind,
    count: durations.map(({ weight }) => weight),
    errors: times.list(axis, ERRORS),
    totalMs: durations.map(({ sum }) => sum),
    run: times.list(axis, RUN),
    waited: times.list(axis, WAITED),
    delayed: times.list(axis, DELAYED),
    max: durations.map(maxOf),
    histogram: hasHistogram ? durations.flatMap(histogramOf) : undefined
  }
}

/** @param {Numbers} durations */
function maxOf (durations) {
  let max = 0
  durations.forEach((ms) => { max = Math.max(max, ms) })
  return max
}

/** @param {Numbers} durations of a bucket @param {number} bucket */
function histogramOf (durations, bucket) {
  /** @type {Map<number, number>} */
  const counts = new Map()
  durations.forEach((ms, weight) => {
    const bin = Math.floor(Math.log2(Math.max(MIN_MS, ms)) * BINS_PER_OCTAVE)
    counts.set(bin, (counts.get(bin) ?? 0) + weight)
  })
  return [...counts].sort((a, b) => a[0] - b[0]).flatMap(([bin, count]) => [bucket, bin, count])
}

module.exports = { SUMS, createSeries }
