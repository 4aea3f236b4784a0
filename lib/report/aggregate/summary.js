'use strict'

// Figures of one route, as R would give them: summary() and quantile() of type 7, boxplot.stats(), density() with a
// Gaussian kernel and the bandwidth nrd0. A line that stands for several spans counts as often as it says.

/**
 * @typedef {object} Sample
 * @property {Float64Array} values in ascending order
 * @property {Float64Array} [cumulative] sums of the weights up to each value, where not all weights are 1
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
 * @property {number} low end of the lower whisker: the least value within 1.5 times the box's length
 * @property {number} q1
 * @property {number} median
 * @property {number} q3
 * @property {number} high end of the upper whisker
 * @property {number[]} outliers in ascending order, at most 200, thinned evenly, first and last kept
 * @property {number} outlierCount lines that are outliers
 *
 * @typedef {object} Density
 * @property {number[]} x in ms
 * @property {number[]} y
 * @property {number} bandwidth nrd0, or the distance of two points of x where that is more
 * @property {number} beyond lines whose duration lies beyond the last x
 */

const OUTLIERS = 200
const NANOSECOND = 1e-6 // ms
const REACH = 5 // bandwidths, past which a kernel adds nothing that can be seen
const EXACT = 2000 // values, above which those closer than a thirty-second of a bandwidth are taken together

/** The value at a place, as if each were there as often as it weighs. @param {Sample} sample @param {number} place from 0 */
function at ({ values, cumulative }, place) {
  if (cumulative === undefined) return values[Math.min(place, values.length - 1)]
  let [low, high] = [0, values.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (cumulative[middle] > place + 1e-9 * (place + 1)) high = middle
    else low = middle + 1
  }
  return values[low]
}

/** Type 7 of Hyndman and Fan. @param {Sample} sample @param {number} p */
function quantile (sample, p) {
  const place = (sample.total - 1) * p
  const low = Math.floor(place)
  const value = at(sample, low)
  return value + (at(sample, low + 1) - value) * (place - low)
}

/** @param {Sample} sample @param {number} i */
function weightOf ({ cumulative }, i) {
  return cumulative === undefined ? 1 : cumulative[i] - (i === 0 ? 0 : cumulative[i - 1])
}

/** @param {Sample} sample */
function mean (sample) {
  return sample.values.reduce((sum, value, i) => sum + value * weightOf(sample, i), 0) / sample.total
}

/** @param {Sample} sample @param {number} centre */
function deviation (sample, centre) {
  const squares = sample.values.reduce((sum, value, i) => sum + (value - centre) ** 2 * weightOf(sample, i), 0)
  return Math.sqrt(squares / (sample.total - 1))
}

/** @param {Sample} sample not empty @returns {Summary} */
function summarize (sample) {
  const { values } = sample
  const [q1, median, q3, p99, p999] = [0.25, 0.5, 0.75, 0.99, 0.999].map((p) => quantile(sample, p))
  return { min: values[0], q1, median, mean: mean(sample), q3, max: values[values.length - 1], p99, p999 }
}

/** Tukey's hinges and median. @param {Sample} sample */
function hinges (sample) {
  const n = Math.round(sample.total)
  const depth = Math.floor((n + 3) / 2) / 2
  return [depth, (n + 1) / 2, n + 1 - depth].map((place) => (at(sample, Math.floor(place) - 1) + at(sample, Math.ceil(place) - 1)) / 2)
}

/** @param {Sample} sample not empty @returns {Box} */
function boxOf (sample) {
  const { values } = sample
  const [q1, median, q3] = hinges(sample)
  const fence = 1.5 * (q3 - q1)
  const first = place(values, q1 - fence)
  const end = place(values, q3 + fence, true)
  const outlierCount = first + values.length - end
  const outliers = thinned(outlierCount, OUTLIERS).map((i) => i < first ? values[i] : values[i - first + end])
  return { low: values[first], q1, median, q3, high: values[end - 1], outliers, outlierCount }
}

/** The first place whose value is not below a limit, or is above it. @param {Float64Array} values @param {number} limit @param {boolean} [above] */
function place (values, limit, above = false) {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] > limit || (!above && values[middle] === limit)) high = middle
    else low = middle + 1
  }
  return low
}

/** At most so many places of so many, evenly. @param {number} count @param {number} most */
function thinned (count, most) {
  const kept = Math.min(count, most)
  return Array.from({ length: kept }, (_, i) => kept < 2 ? 0 : Math.round(i * (count - 1) / (kept - 1)))
}

/** R's bw.nrd0. @param {Sample} sample of two values or more */
function nrd0 (sample) {
  const high = deviation(sample, mean(sample))
  const spread = (quantile(sample, 0.75) - quantile(sample, 0.25)) / 1.34
  const low = Math.min(high, spread) || high || Math.abs(sample.values[0]) || 1
  return 0.9 * low * sample.values.length ** -0.2
}

/**
 * @param {Sample} sample
 * @param {number} points
 * @param {number} [least] where the curve begins at the earliest
 * @returns {Density | undefined} for less than two values there is none
 */
function densityOf (sample, points, least = 0) {
  const { values } = sample
  if (values.length < 2) return undefined
  const kernel = nrd0(sample)
  const from = Math.max(least, values[0] - 3 * kernel)
  const to = farthest(sample, from, kernel, points)
  const step = (to - from) / (points - 1)
  const bandwidth = Math.max(kernel, step)
  const x = Array.from({ length: points }, (_, i) => from + i * step)
  return { x, y: heights(sample, x, bandwidth), bandwidth, beyond: values.length - place(values, to, true) }
}

/**
 * The same of the logarithms, for a logarithmic axis: a kernel in ms is too wide for the short ones, too narrow for the long.
 * @param {Sample} sample
 * @param {number} points
 * @returns {{ x: number[], y: number[] } | undefined} x in ms, y per decade
 */
function logDensityOf (sample, points) {
  const decades = densityOf({ ...sample, values: sample.values.map((ms) => Math.log10(Math.max(ms, NANOSECOND))) }, points, -Infinity)
  return decades && { x: decades.x.map((decade) => 10 ** decade), y: decades.y }
}

/** A long tail would leave the curve no room: then it ends past the 99th percentile. @param {Sample} sample @param {number} from @param {number} kernel @param {number} points */
function farthest (sample, from, kernel, points) {
  const all = sample.values[sample.values.length - 1] + 3 * kernel
  return (all - from) / points > kernel / 2 ? Math.min(all, quantile(sample, 0.99) + 3 * kernel) : all
}

/** @param {Sample} sample @param {number[]} xs ascending @param {number} bandwidth */
function heights (sample, xs, bandwidth) {
  const { values, weights } = sample.values.length > EXACT ? together(sample, bandwidth / 32) : apart(sample)
  const scale = 1 / (sample.total * bandwidth * Math.sqrt(2 * Math.PI))
  let first = 0
  return xs.map((x) => {
    while (first < values.length && values[first] < x - REACH * bandwidth) first++
    let sum = 0
    for (let i = first; i < values.length && values[i] <= x + REACH * bandwidth; i++) {
      sum += weights[i] * Math.exp(-0.5 * ((x - values[i]) / bandwidth) ** 2)
    }
    return sum * scale
  })
}

/** @param {Sample} sample */
function apart (sample) {
  return { values: sample.values, weights: sample.values.map((_, i) => weightOf(sample, i)) }
}

/** Neighbours within a width become one at their mean. @param {Sample} sample @param {number} width */
function together (sample, width) {
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

module.exports = { summarize, quantile, boxOf, densityOf, logDensityOf, nrd0 }
