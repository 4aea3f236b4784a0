'use strict'

// Bounded samples of numbers with weights: all numbers while they are few, later each with the same chance
// (Vitter's algorithm R). All samples of a report together have a bound, too: when they exceed it, each may
// hold half as many.

const { cumulated } = require('./numbers')
const { quantile } = require('./summary')

const MAX_SIZE = 10_000 // of one; its quartiles are then within a percent of the true ranks
const MIN_SIZE = 100
const MAX_TOTAL = 2_000_000 // of all
const FIRST_LENGTH = 8

/** The samples of a report. */
class Samples {
  #maxSize
  #maxTotal
  #total = 0
  #random = 1
  /** @type {Sample[]} */
  #samples = []
  isPartial = false // one of them had more numbers than it holds

  /** @param {number} [maxSize] of one @param {number} [maxTotal] of all */
  constructor (maxSize = MAX_SIZE, maxTotal = MAX_TOTAL) {
    this.#maxSize = maxSize
    this.#maxTotal = maxTotal
  }

  create () {
    const sample = new Sample(this)
    this.#samples.push(sample)
    return sample
  }

  /** Returns whether a sample of this size may hold one more. @param {number} size */
  hasSpace (size) {
    if (size >= this.#maxSize) {
      this.isPartial = true
      return false
    }
    if (this.#total >= this.#maxTotal && this.#maxSize > MIN_SIZE) this.#halve()
    if (size >= this.#maxSize) return false
    this.#total++
    return true
  }

  /** Returns a random integer below a limit, the same series for the same file. @param {number} limit */
  below (limit) {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0
    return Math.floor(this.#random / 2 ** 32 * limit)
  }

  #halve () {
    this.#maxSize = Math.max(MIN_SIZE, this.#maxSize >> 1)
    this.#total = 0
    for (const sample of this.#samples) {
      if (sample.size > this.#maxSize) this.isPartial = true
      sample.shrink(this.#maxSize)
      this.#total += sample.size
    }
  }
}

class Sample {
  #values = new Float64Array(FIRST_LENGTH)
  /** Exists where one is not 1. @type {Float64Array | undefined} */
  #weights
  #count = 0 // of all numbers
  #samples
  size = 0

  /** @param {Samples} samples */
  constructor (samples) {
    this.#samples = samples
  }

  /** @param {number} value @param {number} weight */
  add (value, weight) {
    this.#count++
    if (this.#samples.hasSpace(this.size)) return this.#set(this.size++, value, weight)
    const index = this.#samples.below(this.#count)
    if (index < this.size) this.#set(index, value, weight)
  }

  /** @param {number} index @param {number} value @param {number} weight */
  #set (index, value, weight) {
    if (index === this.#values.length) {
      this.#values = resized(this.#values, index * 2)
      this.#weights &&= resized(this.#weights, index * 2)
    }
    if (weight !== 1) this.#weights ??= new Float64Array(this.#values.length).fill(1, 0, this.size)
    if (this.#weights !== undefined) this.#weights[index] = weight
    this.#values[index] = value
  }

  /** Keeps a random part. @param {number} size */
  shrink (size) {
    if (this.size <= size) return
    for (let i = 0; i < size; i++) {
      const other = i + this.#samples.below(this.size - i)
      swap(this.#values, i, other)
      if (this.#weights !== undefined) swap(this.#weights, i, other)
    }
    this.size = size
    this.#values = this.#values.slice(0, size)
    this.#weights &&= this.#weights.slice(0, size)
  }

  get values () { return this.#values.subarray(0, this.size) }
  get weights () { return this.#weights?.subarray(0, this.size) ?? new Float64Array(this.size).fill(1) }
  get isWeighted () { return this.#weights !== undefined }
}

/**
 * Returns the quartiles of samples taken together, undefined if there is no number.
 * @param {Sample[]} samples
 */
function quartilesOf (samples) {
  const size = samples.reduce((sum, sample) => sum + sample.size, 0)
  if (size === 0) return undefined
  const values = joined(samples.map((sample) => sample.values), size)
  const isWeighted = samples.some((sample) => sample.isWeighted)
  const sample = isWeighted
    ? cumulated(values, joined(samples.map(({ weights }) => weights), size))
    : { values: values.sort(), total: size }
  const [q1, median, q3] = [0.25, 0.5, 0.75].map((p) => quantile(sample, p))
  return { min: sample.values[0], q1, median, q3, max: sample.values[size - 1] }
}

/** @param {Float64Array[]} lists @param {number} size of all */
function joined (lists, size) {
  const values = new Float64Array(size)
  let length = 0
  for (const list of lists) {
    values.set(list, length)
    length += list.length
  }
  return values
}

/** @param {Float64Array} values @param {number} i @param {number} j */
function swap (values, i, j) {
  const value = values[i]
  values[i] = values[j]
  values[j] = value
}

/** @param {Float64Array} values @param {number} length */
function resized (values, length) {
  const longer = new Float64Array(length)
  longer.set(values)
  return longer
}

module.exports = { Samples, quartilesOf }
