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

/**
 * @typedef {object} Follower what holds numbers of buckets
 * @property {(convert: (bucket: number) => number) => void} convert changes all of them; the order stays
 *
 * @typedef {object} Axis
 * @property {number} fromUnixMs
 * @property {number} stepMs
 * @property {number} buckets at most 120
 * @property {(bucket: number) => number} indexOf of a bucket of the time axis
 */

class TimeAxis {
  #width = 0 // index in WIDTHS
  #reference = NaN // number of the bucket that is called 0: those since 1970 are too large to pack
  #min = Infinity
  #max = -Infinity
  /** @type {Follower[]} */
  #followers = []

  /** @param {Follower} follower */
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
      indexOf: (bucket) => Math.floor((bucket + this.#reference) * width / stepMs) - begin
    }
  }
}

/** Sums by bucket. @implements {Follower} */
class BucketSums {
  #first = 0 // bucket of the first value
  #values = new Float64Array(0)

  /** @param {number} bucket @param {number} value */
  add (bucket, value) {
    const index = bucket - this.#first
    if (index < 0 || index >= this.#values.length) this.#grow(bucket)
    this.#values[bucket - this.#first] += value
  }

  /** @param {number} bucket */
  #grow (bucket) {
    const { length } = this.#values
    if (length === 0) this.#first = bucket
    const first = bucket < this.#first ? Math.min(bucket, this.#first - length) : this.#first
    const end = Math.max(this.#first + length, bucket + 1 + (bucket < this.#first ? 0 : length))
    const values = new Float64Array(end - first)
    values.set(this.#values, this.#first - first)
    this.#first = first
    this.#values = values
  }

  /** @param {(bucket: number) => number} convert */
  convert (convert) {
    const [first, values] = [this.#first, this.#values]
    if (values.length === 0) return
    this.#first = convert(first)
    this.#values = new Float64Array(convert(first + values.length - 1) - this.#first + 1)
    values.forEach((value, i) => { this.#values[convert(first + i) - this.#first] += value })
  }

  /** @param {Axis} axis @returns {number[]} a sum for each bucket of the axis */
  list ({ buckets, indexOf }) {
    /** @type {number[]} */
    const list = Array(buckets).fill(0)
    this.#values.forEach((value, i) => {
      if (value !== 0) list[indexOf(this.#first + i)] += value
    })
    return list
  }
}

const FIRST_LENGTH = 64

/** Buckets in the order in which they come, packed. @implements {Follower} */
class Buckets {
  #buckets = new Int16Array(FIRST_LENGTH)
  #size = 0

  /** @param {number} bucket */
  add (bucket) {
    if (this.#size === this.#buckets.length) {
      const longer = new Int16Array(this.#size * 2)
      longer.set(this.#buckets)
      this.#buckets = longer
    }
    this.#buckets[this.#size++] = bucket
  }

  /** @param {(bucket: number) => number} convert */
  convert (convert) {
    for (let i = 0; i < this.#size; i++) {
      if (this.#buckets[i] !== NO_BUCKET) this.#buckets[i] = convert(this.#buckets[i])
    }
  }

  list () {
    return this.#buckets.subarray(0, this.#size)
  }
}

const NO_BUCKET = -32768

module.exports = { Buckets, BucketSums, NO_BUCKET, TimeAxis }
