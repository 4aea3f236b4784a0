'use strict'

// The whole run along time: requests by the moment of their start.

const { quantile } = require('./summary')
const { Numbers } = require('./numbers')
const { Buckets, BucketSums, NO_BUCKET } = require('./time-axis')

/**
 * @typedef {import('./time-axis').Axis} Axis
 * @typedef {import('./time-axis').TimeAxis} TimeAxis
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
const PARTS = /** @type {const} */ (['run', 'waited', 'delayed'])

/** The requests of a route along time. */
class RouteTimes {
  /** of each duration of the route */
  buckets = new Buckets()
  errors = new BucketSums()
  splits = new BucketSums()
  parts = { run: new BucketSums(), waited: new BucketSums(), delayed: new BucketSums() }
  #axis

  /** @param {TimeAxis} axis */
  constructor (axis) {
    this.#axis = axis
    const followers = [this.buckets, this.errors, this.splits, ...Object.values(this.parts)]
    for (const sums of followers) axis.follow(sums)
  }

  /** Adds a span that is no request. @returns {undefined} */
  skip () {
    this.buckets.add(NO_BUCKET)
    return undefined
  }

  /**
   * @param {import('../read/span-line').Span} span a request
   * @param {import('./digest').Split | undefined} split
   * @returns {number} the bucket of its start
   */
  add ({ startMs, failed, weight }, split) {
    const bucket = this.#axis.bucketOf(startMs)
    this.buckets.add(bucket)
    if (failed) this.errors.add(bucket, weight)
    if (split === undefined) return bucket
    this.splits.add(bucket, weight)
    for (const part of PARTS) this.parts[part].add(bucket, split[part] * weight)
    return bucket
  }
}

/**
 * @typedef {object} Timed a route
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {number} totalMs
 * @property {Numbers} durations in the order in which they came
 * @property {RouteTimes} times
 */

/**
 * @param {Timed[]} routes
 * @param {BucketSums} blocked
 * @param {TimeAxis} timeAxis
 * @returns {Series | undefined} undefined if there are no requests
 */
function createSeries (routes, blocked, timeAxis) {
  const axis = timeAxis.axis()
  if (axis === undefined) return undefined
  const servers = routes.filter(({ kind }) => kind === 'SERVER')
  const requests = servers.length > 0 ? servers : routes
  const durations = durationsOf(requests, axis)
  const sum = (/** @type {(times: RouteTimes) => BucketSums} */ select) =>
    added(requests.map(({ times }) => select(times).list(axis)), axis.buckets)
  const [delayed, splits] = [sum(({ parts }) => parts.delayed), sum((times) => times.splits)]
  const sorted = routes.filter((route) => route.times.buckets.list().some((bucket) => bucket !== NO_BUCKET))
    .sort((a, b) => b.totalMs - a.totalMs).slice(0, MAX_ROUTES)
  return {
    fromUnixMs: axis.fromUnixMs,
    stepMs: axis.stepMs,
    buckets: axis.buckets,
    count: durations.map((numbers) => numbers.weight),
    errors: sum(({ errors }) => errors),
    ...quantilesOf(durations),
    delayedMs: delayed.map((ms, i) => splits[i] > 0 ? ms / splits[i] : 0),
    blockedMs: blocked.list(axis),
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
function durationsOf (routes, { buckets, indexOf }) {
  const sizes = new Uint32Array(buckets)
  for (const { times } of routes) {
    for (const bucket of times.buckets.list()) if (bucket !== NO_BUCKET) sizes[indexOf(bucket)]++
  }
  const list = Array.from(sizes, (size) => new Numbers(size))
  for (const { durations, times } of routes) {
    const bucketOfEach = times.buckets.list()
    durations.forEach((ms, weight, i) => {
      if (bucketOfEach[i] !== NO_BUCKET) list[indexOf(bucketOfEach[i])].add(ms, weight)
    })
  }
  return list
}

/** @param {number[][]} lists @param {number} length of each @returns {number[]} */
function added (lists, length) {
  return Array.from({ length }, (_, i) => lists.reduce((sum, list) => sum + list[i], 0))
}

/** @param {Timed} route @param {Axis} axis @param {boolean} hasHistogram @returns {RouteSeries} */
function seriesOf (route, axis, hasHistogram) {
  const { name, kind, times } = route
  const durations = durationsOf([route], axis)
  return {
    name,
    kind,
    count: durations.map(({ weight }) => weight),
    errors: times.errors.list(axis),
    totalMs: durations.map(({ sum }) => sum),
    run: times.parts.run.list(axis),
    waited: times.parts.waited.list(axis),
    delayed: times.parts.delayed.list(axis),
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

module.exports = { RouteTimes, createSeries }
