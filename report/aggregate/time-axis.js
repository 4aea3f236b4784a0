'use strict'

// A time axis that grows with what is read: figures are added up by buckets whose width becomes ten times or
// so as much when there are too many. Each width is a multiple of the one before, and buckets begin at
// multiples of it since 1970, so that sums stay exact.

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

const MAX_TIMED = 600 // of each kind: their sums along time take up to 10 kB each

/**
 * @typedef {number[]} Sparse bucket, figures, bucket, figures …, of the buckets of `series` in which any
 *   figure is not 0; ms have three decimals
 *
 * @typedef {object} Axis
 * @property {number} fromUnixMs
 * @property {number} stepMs
 * @property {number} buckets at most 120
 * @property {(bucket: number) => number} indexOf of a bucket of the time axis
 * @property {(unixMs: number) => number} indexAt of a moment
 */

class TimeAxis {
  #width = 0 // index in WIDTHS
  #reference = NaN // number of the bucket that is called 0: those since 1970 are too large to pack
  #min = Infinity
  #max = -Infinity
  /** @type {Times[]} */
  #followers = []

  /** @param {Times} follower */
  follow (follower) {
    this.#followers.push(follower)
  }

  /** Returns the bucket of a moment, of -600 to 600. @param {number} unixMs @returns {number} */
  bucketOf (unixMs) {
    let bucket = Math.floor(unixMs / WIDTHS[this.#width])
    if (Number.isNaN(this.#reference)) this.#reference = bucket
    bucket -= this.#reference
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
    const before = this.#reference
    this.#width++
    this.#reference = Math.floor(before / ratio)
    const convert = (/** @type {number} */ bucket) => Math.floor((bucket + before) / ratio) - this.#reference
    this.#min = convert(this.#min)
    this.#max = convert(this.#max)
    for (const follower of this.#followers) follower.convert(convert)
  }

  /** @returns {Axis | undefined} of nice steps; undefined if there was no moment */
  axis () {
    if (this.#min > this.#max) return undefined
    const width = WIDTHS[this.#width]
    const [first, last] = [this.#min, this.#max].map((bucket) => (bucket + this.#reference) * width)
    const count = (/** @type {number} */ step) => Math.floor(last / step) - Math.floor(first / step) + 1
    const fits = (/** @type {number} */ step) => step % width === 0 && count(step) <= MAX_BUCKETS
    const stepMs = /** @type {number} */ (NICE_WIDTHS.find(fits))
    const begin = Math.floor(first / stepMs)
    return {
      fromUnixMs: begin * stepMs,
      stepMs,
      buckets: count(stepMs),
      indexOf: (bucket) => Math.floor((bucket + this.#reference) * width / stepMs) - begin,
      indexAt: (unixMs) => Math.floor(unixMs / stepMs) - begin
    }
  }
}

/** Several figures, added up by bucket. */
class Times {
  #figures
  #first = 0 // bucket of the first sums
  #sums = new Float64Array(0)

  /** @param {TimeAxis} axis @param {number} figures how many */
  constructor (axis, figures) {
    this.#figures = figures
    axis.follow(this)
  }

  /** @param {number} bucket @param {number[]} values of the first figures */
  add (bucket, ...values) {
    const index = bucket - this.#first
    if (index < 0 || index * this.#figures >= this.#sums.length) this.#grow(bucket)
    const start = (bucket - this.#first) * this.#figures
    for (let i = 0; i < values.length; i++) this.#sums[start + i] += values[i]
  }

  /** @param {number} bucket */
  #grow (bucket) {
    const length = this.#sums.length / this.#figures
    if (length === 0) this.#first = bucket
    const isBefore = bucket < this.#first
    const first = isBefore ? Math.min(bucket, this.#first - length) : this.#first
    const end = Math.max(this.#first + length, bucket + 1 + (isBefore ? 0 : length))
    const sums = new Float64Array((end - first) * this.#figures)
    sums.set(this.#sums, (this.#first - first) * this.#figures)
    this.#first = first
    this.#sums = sums
  }

  /** Changes the numbers of the buckets. @param {(bucket: number) => number} convert */
  convert (convert) {
    const [first, sums, figures] = [this.#first, this.#sums, this.#figures]
    if (sums.length === 0) return
    this.#first = convert(first)
    const end = convert(first + sums.length / figures - 1) + 1
    this.#sums = new Float64Array((end - this.#first) * figures)
    sums.forEach((sum, i) => {
      const bucket = convert(first + Math.floor(i / figures))
      this.#sums[(bucket - this.#first) * figures + i % figures] += sum
    })
  }

  /** @param {Axis} axis @param {number} figure which @returns {number[]} a sum for each bucket */
  list ({ buckets, indexOf }, figure) {
    /** @type {number[]} */
    const list = Array(buckets).fill(0)
    for (let i = figure; i < this.#sums.length; i += this.#figures) {
      if (this.#sums[i] !== 0) list[indexOf(this.#first + Math.floor(i / this.#figures))] += this.#sums[i]
    }
    return list
  }
}

/**
 * Returns a function that gives times to the first few that ask for them.
 * @param {TimeAxis} axis
 * @param {number} figures of each
 * @returns {() => Times | undefined}
 */
function timesBudget (axis, figures) {
  let remaining = MAX_TIMED
  return () => remaining-- > 0 ? new Times(axis, figures) : undefined
}

/**
 * Adds up some figures of several times, in sparse form; undefined if any of them are not known.
 * @param {Axis | undefined} axis
 * @param {Array<Times | undefined>} list
 * @param {number[]} figures
 * @returns {Sparse | undefined}
 */
function sparse (axis, list, ...figures) {
  if (axis === undefined || list.includes(undefined)) return undefined
  const lists = figures.map((figure) => list.map((times) => /** @type {Times} */ (times).list(axis, figure))
    .reduce((a, b) => a.map((sum, bucket) => sum + b[bucket])))
  return lists[0].flatMap((_, bucket) => {
    const sums = lists.map((figureSums) => Math.round(figureSums[bucket] * 1000) / 1000)
    return sums.some((sum) => sum !== 0) ? [bucket, ...sums] : []
  })
}

module.exports = { TimeAxis, Times, sparse, timesBudget }
