'use strict'

// The figures of a route in a range of time, from its sums by bucket. Quantiles are those of a histogram
// whose bins are 4.4 % wide, and so within 2.2 %.

const { sumIn } = require('./filter')

/**
 * @typedef {import('../rows').PageRoute} PageRoute
 * @typedef {import('../rows').Box} Box
 */

const BINS_PER_OCTAVE = 16
const WHISKER = 1.5 // box lengths
const BIN_DECADES = Math.log10(2) / BINS_PER_OCTAVE
const LOWEST_MS = 0.001 // shorter durations are in its bin

/** @type {Array<[name: string, p: number]>} */
const QUANTILES = [
  ['min', 0], ['q1', 0.25], ['median', 0.5], ['q3', 0.75], ['p99', 0.99], ['p999', 0.999], ['max', 1]
]

/**
 * Returns a route as if only the requests had been that began in a range.
 * @param {PageRoute} route
 * @param {[number, number]} buckets
 * @param {number} seconds of these
 * @returns {PageRoute}
 */
function routeInRange (route, buckets, seconds) {
  const { times, figures, split } = route
  const none = { box: undefined, logDensity: [], split: undefined }
  if (times === undefined) return { ...route, ...none, figures: {} }
  const weighted = sumIn(times.count, buckets)
  const totalMs = sumIn(times.totalMs, buckets)
  const counts = times.histogram && histogramIn(times.histogram, buckets)
  const quantiles = counts && weighted > 0 ? quantilesOf(counts) : {}
  const errors = sumIn(times.errors, buckets)
  const own = { weighted, count: weighted, rate: weighted / seconds, errors, totalMs }
  if (weighted === 0) return { ...route, ...none, figures: own }
  return {
    ...route,
    figures: { ...own, mean: totalMs / weighted, ...quantiles, ...maxIn(times.max, buckets) },
    box: boxOf(quantiles),
    logDensity: counts === undefined ? [] : logDensityOf(counts, weighted),
    split: split && splitIn(route, buckets, figures.weighted, weighted)
  }
}

/**
 * Returns the longest duration, which is known exactly.
 * @param {number[] | undefined} max of each bucket
 * @param {[number, number]} buckets
 */
function maxIn (max, buckets) {
  return max && { max: Math.max(...max.slice(...buckets)) }
}

/**
 * Returns the means of the breakdown, over the spans that have one.
 * @param {PageRoute} route
 * @param {[number, number]} buckets
 * @param {number} all spans of the route
 * @param {number} weighted those in the range
 */
function splitIn ({ times, split }, buckets, all, weighted) {
  if (times === undefined || split === undefined) return undefined
  const whole = /** @type {[number, number]} */ ([0, times.count.length])
  const parts = /** @type {const} */ (['run', 'waited', 'delayed'])
  const sumOfAll = parts.reduce((sum, part) => sum + sumIn(times[part], whole), 0)
  const meanOfAll = parts.reduce((sum, part) => sum + (split[part] ?? 0), 0)
  const recorded = meanOfAll > 0 ? Math.min(1, sumOfAll / meanOfAll / all) : 1 // part of spans with one
  const means = parts.map((part) => [part, sumIn(times[part], buckets) / (weighted * recorded)])
  return { wait: [], ...Object.fromEntries(means) }
}

/**
 * Adds up a histogram by bin.
 * @param {number[]} histogram bucket, bin, count …
 * @param {[number, number]} buckets
 * @returns {Array<[bin: number, count: number]>} by bin
 */
function histogramIn (histogram, [from, to]) {
  /** @type {Map<number, number>} */
  const counts = new Map()
  for (let i = 0; i < histogram.length; i += 3) {
    if (histogram[i] < from || histogram[i] >= to) continue
    counts.set(histogram[i + 1], (counts.get(histogram[i + 1]) ?? 0) + histogram[i + 2])
  }
  return [...counts].sort((a, b) => a[0] - b[0])
}

/** Returns the geometric middle of a bin in ms. @param {number} bin */
function middleOf (bin) {
  return Math.max(LOWEST_MS, 2 ** ((bin + 0.5) / BINS_PER_OCTAVE))
}

/** @param {Array<[number, number]>} counts @returns {Record<string, number>} */
function quantilesOf (counts) {
  const total = counts.reduce((sum, [, count]) => sum + count, 0)
  const quantile = (/** @type {number} */ p) => {
    const rank = p * (total - 1)
    let sum = 0
    for (const [bin, count] of counts) {
      sum += count
      if (sum > rank) return middleOf(bin)
    }
    return middleOf(counts[counts.length - 1][0])
  }
  return Object.fromEntries(QUANTILES.map(([name, p]) => [name, quantile(p)]))
}

/** @param {Record<string, number>} quantiles @returns {Box | undefined} */
function boxOf ({ min, q1, median, q3, max }) {
  if (median === undefined) return undefined
  const reach = (q3 - q1) * WHISKER
  return { low: Math.max(min, q1 - reach), q1, median, q3, high: Math.min(max, q3 + reach), outliers: [] }
}

/**
 * Returns the density per decade, smoothed over three bins.
 * @param {Array<[number, number]>} counts
 * @param {number} all
 * @returns {Array<[number, number]>}
 */
function logDensityOf (counts, all) {
  if (counts.length === 0) return []
  const byBin = new Map(counts)
  const count = (/** @type {number} */ bin) => byBin.get(bin) ?? 0
  const [first, last] = [counts[0][0] - 2, counts[counts.length - 1][0] + 2]
  return Array.from({ length: last - first + 1 }, (_, i) => {
    const bin = first + i
    const smooth = (count(bin - 1) + 2 * count(bin) + count(bin + 1)) / 4
    return [middleOf(bin), smooth / all / BIN_DECADES]
  })
}

module.exports = { routeInRange }
