'use strict'

// A time axis that grows with its data: figures are summed in buckets, which become about ten times wider if
// there are too many. Each width is a multiple of the previous one, and buckets start at multiples of it
// since 1970, so sums stay exact. Series of the whole run use this axis, with requests by their start.

const { Sums } = require('./lists')
const { Numbers, binOf } = require('./numbers')
const { requestRoutes } = require('./route-names')
const { quantile } = require('./summary')

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WIDTHS = [
  1, 10, 100, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 10 * DAY, 100 * DAY, 1000 * DAY
]
const NICE_WIDTHS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR,
  12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 20 * DAY, 50 * DAY, 100 * DAY, 200 * DAY, 500 * DAY, 1000 * DAY
]
const MAX_FINE = 600 // buckets while reading
const MAX_BUCKETS = 120

const MAX_TIMED = 600 // per kind; sums over time take up to 10 kB each
const MAX_ROUTES = 100
const MAX_HISTOGRAMS = 60
/** Indexes of a route's sums over time. */
const [ERRORS, SPLITS, RUN, WAITED, DELAYED] = [0, 1, 2, 3, 4]
const SUMS = 5

/**
 * @typedef {number[]} Sparse bucket, figures, bucket, figures … for each bucket of `series` with a nonzero
 *   figure; ms have three decimals
 *
 * @typedef {object} Axis
 * @property {number} min first bucket of the time axis
 * @property {number} max last one
 * @property {number} fromUnixMs
 * @property {number} stepMs
 * @property {number} buckets at most 120
 * @property {(bucket: number) => number} indexOf index of a bucket of the time axis
 * @property {(unixMs: number) => number} indexAt index of a time
 *
 * @typedef {object} Series arrays hold one figure per bucket, for the requests that began in it; requests are
 *   server spans or, if there are none, spans without an enclosing span
 * @property {number} fromUnixMs start of the first bucket
 * @property {number} stepMs
 * @property {number} buckets at most 120
 * @property {number[]} count weighted
 * @property {number[]} errors weighted
 * @property {Array<number | null>} p50 ms, null if no request began
 * @property {Array<number | null>} p99
 * @property {number[]} delayedMs mean
 * @property {number[]} blockedMs sum of the blocking callbacks that began in it
 * @property {RouteSeries[]} routes largest total time first, at most 100
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
 * @property {number[]} max the longest, ms; 0 if no request began
 * @property {number[] | undefined} histogram bucket, bin, weighted count, bucket, bin …: the bin is
 *   floor(log2(ms) * 16) of a duration of at least 1 µs; only for the first 60 routes
 */

class TimeAxis {
  #width = 0 // index in WIDTHS
  #min = Infinity
  #max = -Infinity
  /** @type {Times[]} */
  #followers = []

  /** @param {Times} follower */
  follow (follower) {
    this.#followers.push(follower)
  }

  /** Returns the bucket of a time, counted since 1970. @param {number} unixMs @returns {number} */
  bucketOf (unixMs) {
    const bucket = Math.floor(unixMs / WIDTHS[this.#width])
    if (bucket >= this.#min && bucket <= this.#max) return bucket
    const [min, max] = [Math.min(this.#min, bucket), Math.max(this.#max, bucket)]
    if (max - min >= MAX_FINE) {
      this.#widen()
      return this.bucketOf(unixMs)
    }
    this.#min = min
    this.#max = max
    return bucket
  }

  #widen () {
    const ratio = WIDTHS[this.#width + 1] / WIDTHS[this.#width]
    this.#width++
    for (const follower of this.#followers) follower.merge(this.#min, this.#max, ratio)
    this.#min = Math.floor(this.#min / ratio)
    this.#max = Math.floor(this.#max / ratio)
  }

  /** @returns {Axis | undefined} axis with nice steps; undefined if it is empty */
  axis () {
    if (this.#min > this.#max) return undefined
    const [min, max, width] = [this.#min, this.#max, WIDTHS[this.#width]]
    const [first, last] = [min * width, max * width]
    const count = (/** @type {number} */ step) => Math.floor(last / step) - Math.floor(first / step) + 1
    const fits = (/** @type {number} */ step) => step % width === 0 && count(step) <= MAX_BUCKETS
    const stepMs = /** @type {number} */ (NICE_WIDTHS.find(fits))
    const begin = Math.floor(first / stepMs)
    return {
      min,
      max,
      fromUnixMs: begin * stepMs,
      stepMs,
      buckets: count(stepMs),
      indexOf: (bucket) => Math.floor(bucket * width / stepMs) - begin,
      indexAt: (unixMs) => Math.floor(unixMs / stepMs) - begin
    }
  }
}

/** Several figures, summed by bucket. Each of the axis's buckets, at most MAX_FINE, has a place here. */
class Times {
  #figures
  #sums

  /** @param {TimeAxis} axis @param {number} figures how many */
  constructor (axis, figures) {
    this.#figures = figures
    this.#sums = new Float64Array(MAX_FINE * figures)
    axis.follow(this)
  }

  /** @param {number} bucket of the axis */
  #placeOf (bucket) {
    return bucket % MAX_FINE * this.#figures
  }

  /** @param {number} bucket @param {number[]} values of the first figures */
  add (bucket, ...values) {
    const place = this.#placeOf(bucket)
    for (let i = 0; i < values.length; i++) this.#sums[place + i] += values[i]
  }

  /**
   * Merges every `ratio` buckets into one.
   * @param {number} min first bucket
   * @param {number} max last bucket
   * @param {number} ratio
   */
  merge (min, max, ratio) {
    const sums = this.#sums
    this.#sums = new Float64Array(sums.length)
    for (let bucket = min; bucket <= max; bucket++) {
      const place = this.#placeOf(bucket)
      this.add(Math.floor(bucket / ratio), ...sums.subarray(place, place + this.#figures))
    }
  }

  /** @param {Axis} axis @param {number} figure index @returns {number[]} one sum per bucket */
  list ({ min, max, buckets, indexOf }, figure) {
    /** @type {number[]} */
    const list = Array(buckets).fill(0)
    for (let bucket = min; bucket <= max; bucket++) {
      list[indexOf(bucket)] += this.#sums[this.#placeOf(bucket) + figure]
    }
    return list
  }
}

/**
 * Returns a function that creates Times for its first MAX_TIMED calls.
 * @param {TimeAxis} axis
 * @param {number} figures of each
 * @returns {() => Times | undefined}
 */
function timesBudget (axis, figures) {
  let remaining = MAX_TIMED
  return () => remaining-- > 0 ? new Times(axis, figures) : undefined
}

/**
 * Sums a figure of several Times, per bucket.
 * @param {Times[]} list
 * @param {Axis} axis
 * @param {number} figure
 * @returns {number[]}
 */
const sumsOf = (list, axis, figure) => list.map((times) => times.list(axis, figure))
  .reduce((sums, others) => sums.map((sum, bucket) => sum + others[bucket]), Array(axis.buckets).fill(0))

/**
 * Sums figures of several Times, in sparse form; undefined if any of them is unknown.
 * @param {Axis | undefined} axis
 * @param {Array<Times | undefined>} list
 * @param {number[]} figures
 * @returns {Sparse | undefined}
 */
function sparse (axis, list, ...figures) {
  if (axis === undefined || list.includes(undefined)) return undefined
  const lists = figures.map((figure) => sumsOf(/** @type {Times[]} */ (list), axis, figure))
  return lists[0].flatMap((_, bucket) => {
    const sums = lists.map((figureSums) => Math.round(figureSums[bucket] * 1000) / 1000)
    return sums.some((sum) => sum !== 0) ? [bucket, ...sums] : []
  })
}

/**
 * @typedef {object} Timed a route
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {number} totalMs
 * @property {Numbers} durations in insertion order
 * @property {number[]} starts of each of them; NaN if it is not a request
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
  const requests = requestRoutes(routes)
  const durations = durationsOf(requests, axis)
  const sum = (/** @type {number} */ figure) => sumsOf(requests.map(({ times }) => times), axis, figure)
  const [delayed, splits] = [sum(DELAYED), sum(SPLITS)]
  const samples = durations.map((numbers) => numbers.size === 0 ? undefined : numbers.sorted())
  const quantiles = (/** @type {number} */ p) => samples.map((sample) => sample ? quantile(sample, p) : null)
  const sorted = routes.filter(({ requests }) => requests > 0)
    .sort((a, b) => b.totalMs - a.totalMs).slice(0, MAX_ROUTES)
  return {
    fromUnixMs: axis.fromUnixMs,
    stepMs: axis.stepMs,
    buckets: axis.buckets,
    count: durations.map((numbers) => numbers.weight),
    errors: sum(ERRORS),
    p50: quantiles(0.5),
    p99: quantiles(0.99),
    delayedMs: delayed.map((ms, i) => splits[i] > 0 ? ms / splits[i] : 0),
    blockedMs: blocked.list(axis, 0),
    routes: sorted.map((route, i) => seriesOf(route, axis, i < MAX_HISTOGRAMS))
  }
}

/**
 * Sorts the durations of routes into buckets.
 * @param {Timed[]} routes
 * @param {Axis} axis
 */
function durationsOf (routes, { buckets, indexAt }) {
  const list = Array.from({ length: buckets }, () => new Numbers())
  for (const { durations, starts } of routes) {
    durations.forEach((ms, weight, i) => {
      if (!Number.isNaN(starts[i])) list[indexAt(starts[i])].add(ms, weight)
    })
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
  /** @type {Sums<number>} */
  const counts = new Sums()
  durations.forEach((ms, weight) => counts.add(binOf(ms), weight))
  return [...counts].sort((a, b) => a[0] - b[0]).flatMap(([bin, count]) => [bucket, bin, count])
}

module.exports = { SUMS, TimeAxis, Times, createSeries, sparse, timesBudget }
