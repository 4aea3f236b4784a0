'use strict'

// Figures of one route, equal to R's: summary() and quantile() of type 7, boxplot.stats(), density() with a
// Gaussian kernel and the bandwidth nrd0. A line that stands for several spans counts that often.

/**
 * @typedef {object} Sample
 * @property {Float64Array} values in ascending order
 * @property {Float64Array} [cumulative] sums of the weights up to each value, unless all weights are 1
 * @property {number} total sum of the weights
 *
 * @typedef {object} Summary in ms
 * @property {number} min
 * @property {number} q1
 * @property {number} median
 * @property {number} mean
 * @property {number} q3
 * @property {number} max
 * @property {number} p99
 * @property {number} p999
 *
 * @typedef {object} Box in ms; q1 and q3 are Tukey's hinges, which are not exactly the quartiles
 * @property {number} low end of the lower whisker: the smallest value within 1.5 box lengths
 * @property {number} q1
 * @property {number} median
 * @property {number} q3
 * @property {number} high end of the upper whisker
 * @property {number[]} outliers in ascending order, at most 200, evenly thinned, first and last kept
 * @property {number} outlierCount lines that are outliers
 *
 * @typedef {object} Density
 * @property {number[]} x in ms
 * @property {number[]} y
 * @property {number} bandwidth nrd0, or the distance between points of x if that is larger
 * @property {number} beyond lines whose duration lies beyond the last x
 */

const MAX_OUTLIERS = 200
const NANOSECOND = 1e-6 // ms
const KERNEL_REACH = 5 // bandwidths; beyond them a kernel adds nothing visible
const MAX_EXACT = 2000 // values; above it, those closer than 1/32 of a bandwidth are merged

/**
 * Returns the first index that passes a test, or the length. All later indexes must pass, too.
 * @param {number} length
 * @param {(index: number) => boolean} test
 */
function firstIndex (length, test) {
  let [low, high] = [0, length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (test(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * Returns the value at a rank; each value counts as often as its weight.
 * @param {Sample} sample
 * @param {number} rank from 0
 */
function valueAt ({ values, cumulative }, rank) {
  const last = values.length - 1
  if (cumulative === undefined) return values[Math.min(rank, last)]
  return values[firstIndex(last, (i) => cumulative[i] > rank + 1e-9 * (rank + 1))]
}

/** Returns a quantile, type 7 of Hyndman and Fan. @param {Sample} sample @param {number} p */
function quantile (sample, p) {
  const rank = (sample.total - 1) * p
  const low = Math.floor(rank)
  const value = valueAt(sample, low)
  return value + (valueAt(sample, low + 1) - value) * (rank - low)
}

/** @param {Sample} sample @param {number} i */
function weightOf ({ cumulative }, i) {
  return cumulative === undefined ? 1 : cumulative[i] - (i === 0 ? 0 : cumulative[i - 1])
}

/** @param {Sample} sample @param {(value: number) => number} figure of each value, summed by weight */
function sum (sample, figure) {
  return sample.values.reduce((total, value, i) => total + figure(value) * weightOf(sample, i), 0)
}

/** @param {Sample} sample */
function mean (sample) {
  return sum(sample, (value) => value) / sample.total
}

/** @param {Sample} sample not empty @returns {Summary} */
function summarize (sample) {
  const { values } = sample
  const [q1, median, q3, p99, p999] = [0.25, 0.5, 0.75, 0.99, 0.999].map((p) => quantile(sample, p))
  return { min: values[0], q1, median, mean: mean(sample), q3, max: values[values.length - 1], p99, p999 }
}

/** Returns Tukey's hinges and the median. @param {Sample} sample */
function hinges (sample) {
  const n = Math.round(sample.total)
  const depth = Math.floor((n + 3) / 2) / 2
  const ranks = [depth, (n + 1) / 2, n + 1 - depth]
  const value = (/** @type {number} */ rank) => valueAt(sample, rank - 1)
  return ranks.map((rank) => (value(Math.floor(rank)) + value(Math.ceil(rank))) / 2)
}

/** @param {Sample} sample not empty @returns {Box} */
function boxOf (sample) {
  const { values } = sample
  const [q1, median, q3] = hinges(sample)
  const fence = 1.5 * (q3 - q1)
  const first = firstIndex(values.length, (i) => values[i] >= q1 - fence)
  const end = firstIndex(values.length, (i) => values[i] > q3 + fence)
  const outside = [...values.subarray(0, first), ...values.subarray(end)]
  const outliers = thinned(outside, MAX_OUTLIERS)
  return { low: values[first], q1, median, q3, high: values[end - 1], outliers, outlierCount: outside.length }
}

/**
 * Returns at most `max` items, evenly spread, with both ends.
 * @template T
 * @param {T[]} list
 * @param {number} max
 */
function thinned (list, max) {
  if (list.length <= max) return list
  return Array.from({ length: max }, (_, i) => list[Math.round(i * (list.length - 1) / (max - 1))])
}

/** R's bw.nrd0. @param {Sample} sample of two values or more */
function nrd0 (sample) {
  const centre = mean(sample)
  const high = Math.sqrt(sum(sample, (value) => (value - centre) ** 2) / (sample.total - 1)) // deviation
  const spread = (quantile(sample, 0.75) - quantile(sample, 0.25)) / 1.34
  const low = Math.min(high, spread) || high || Math.abs(sample.values[0]) || 1
  return 0.9 * low * sample.values.length ** -0.2
}

/**
 * @param {Sample} sample
 * @param {number} points
 * @param {number} [min] of x
 * @returns {Density | undefined} undefined for fewer than two values
 */
function densityOf (sample, points, min = 0) {
  const { values } = sample
  if (values.length < 2) return undefined
  const kernel = nrd0(sample)
  const start = Math.max(min, values[0] - 3 * kernel)
  const end = endOf(sample, start, kernel, points)
  const step = (end - start) / (points - 1)
  const bandwidth = Math.max(kernel, step)
  const x = Array.from({ length: points }, (_, i) => start + i * step)
  const beyond = values.length - firstIndex(values.length, (i) => values[i] > end)
  return { x, y: heights(sample, x, bandwidth), bandwidth, beyond }
}

/**
 * Returns the density of the logarithms, for a logarithmic axis: a kernel in ms is too wide for short
 * durations and too narrow for long ones.
 * @param {Sample} sample
 * @param {number} points
 * @returns {{ x: number[], y: number[] } | undefined} x in ms, y per decade
 */
function logDensityOf (sample, points) {
  const values = sample.values.map((ms) => Math.log10(Math.max(ms, NANOSECOND)))
  const decades = densityOf({ ...sample, values }, points, -Infinity)
  return decades && { x: decades.x.map((decade) => 10 ** decade), y: decades.y }
}

/**
 * Returns the end of a curve. With a long tail it ends past the 99th percentile, since its points would
 * otherwise be too far apart.
 * @param {Sample} sample
 * @param {number} start
 * @param {number} kernel
 * @param {number} points
 */
function endOf (sample, start, kernel, points) {
  const end = sample.values[sample.values.length - 1] + 3 * kernel
  return (end - start) / points > kernel / 2 ? Math.min(end, quantile(sample, 0.99) + 3 * kernel) : end
}

/** @param {Sample} sample @param {number[]} xs ascending @param {number} bandwidth */
function heights (sample, xs, bandwidth) {
  const { values, weights } = merged(sample, sample.values.length > MAX_EXACT ? bandwidth / 32 : 0)
  const scale = 1 / (sample.total * bandwidth * Math.sqrt(2 * Math.PI))
  let first = 0
  return xs.map((x) => {
    while (first < values.length && values[first] < x - KERNEL_REACH * bandwidth) first++
    let height = 0
    for (let i = first; i < values.length && values[i] <= x + KERNEL_REACH * bandwidth; i++) {
      height += weights[i] * Math.exp(-0.5 * ((x - values[i]) / bandwidth) ** 2)
    }
    return height * scale
  })
}

/**
 * Merges neighbours within a width into one value, their mean.
 * @param {Sample} sample
 * @param {number} width
 */
function merged (sample, width) {
  /** @type {number[]} */
  const values = []
  /** @type {number[]} */
  const weights = []
  let start = -Infinity
  sample.values.forEach((value, i) => {
    const weight = weightOf(sample, i)
    const last = values.length - 1
    if (value - start < width) {
      weights[last] += weight
      values[last] += (value - values[last]) * weight / weights[last]
    } else {
      start = value
      values.push(value)
      weights.push(weight)
    }
  })
  return { values, weights }
}

module.exports = { boxOf, densityOf, firstIndex, logDensityOf, nrd0, quantile, summarize, thinned }
