'use strict'

// Sums along time of a site, a failure or a blocker, in sparse form: a page filters by them.

const { BucketSums } = require('./time-axis')

/**
 * @typedef {import('./time-axis').TimeAxis} TimeAxis
 * @typedef {import('./time-axis').Axis} Axis
 *
 * @typedef {number[]} Sparse bucket, figures, bucket, figures …, of the buckets of `series` in which any
 *   figure is not 0; ms have three decimals
 */

const MAX_TIMED = 600 // of each kind: they take up to 10 kB each

/** Several figures along time. */
class Times {
  #sums

  /** @param {TimeAxis} axis @param {number} figures how many */
  constructor (axis, figures) {
    this.#sums = Array.from({ length: figures }, () => new BucketSums())
    for (const sums of this.#sums) axis.follow(sums)
  }

  /**
   * Adds up to four figures, for each span of a report.
   * @param {number} bucket
   * @param {number} first
   * @param {number} [second]
   * @param {number} [third]
   * @param {number} [fourth]
   */
  add (bucket, first, second = 0, third = 0, fourth = 0) {
    if (first !== 0) this.#sums[0].add(bucket, first)
    if (second !== 0) this.#sums[1].add(bucket, second)
    if (third !== 0) this.#sums[2].add(bucket, third)
    if (fourth !== 0) this.#sums[3].add(bucket, fourth)
  }

  /** @param {Axis} axis @param {number} figure which @returns {number[]} a sum for each bucket */
  list (axis, figure) {
    return this.#sums[figure].list(axis)
  }
}

/** Gives times to the first few that ask for them. */
class TimesBudget {
  #axis
  #figures
  #created = 0

  /** @param {TimeAxis} axis @param {number} figures of each */
  constructor (axis, figures) {
    this.#axis = axis
    this.#figures = figures
  }

  /** @returns {Times | undefined} undefined if too many have them */
  create () {
    return this.#created++ < MAX_TIMED ? new Times(this.#axis, this.#figures) : undefined
  }
}

/**
 * @param {number[][]} lists one for each figure
 * @returns {Sparse}
 */
function sparse (...lists) {
  const list = []
  for (let bucket = 0; bucket < lists[0].length; bucket++) {
    const figures = lists.map((sums) => Math.round(sums[bucket] * 1000) / 1000)
    if (figures.some((figure) => figure !== 0)) list.push(bucket, ...figures)
  }
  return list
}

module.exports = { Times, TimesBudget, sparse }
