'use strict'

// Collects many numbers, in bounded memory.

const { summarize } = require('./summary')

const MAX_SAMPLE = 10_000 // numbers per sample; its quartiles are then within 1 % of the true ranks
const MIN_SAMPLE = 100 // numbers per sample once all together have MAX_SAMPLES
const MAX_SAMPLES = 2_000_000

const BINS_PER_OCTAVE = 16 // bins of a histogram; its quantiles are within 2.2 %
const MIN_MS = 0.001 // shorter durations share its bin

/** Returns the bin of a duration in a histogram. @param {number} ms */
const binOf = (ms) => Math.floor(Math.log2(Math.max(MIN_MS, ms)) * BINS_PER_OCTAVE)

/** Returns the geometric middle of a bin. @param {number} bin */
const msOf = (bin) => Math.max(MIN_MS, 2 ** ((bin + 0.5) / BINS_PER_OCTAVE))

/** Numbers with weights, in insertion order. Weights take memory only if one is not 1. */
class Numbers {
  /** @type {number[]} */
  #values = []
  /** @type {number[] | undefined} */
  #weights
  weight = 0 // total
  sum = 0 // weighted

  get size () { return this.#values.length }

  /** @param {number} value @param {number} [weight] */
  add (value, weight = 1) {
    this.weight += weight
    this.sum += value * weight
    this.set(this.size, value, weight)
  }

  /**
   * Replaces a number, or sets the next one.
   * @param {number} index
   * @param {number} value
   * @param {number} weight
   */
  set (index, value, weight) {
    if (weight !== 1) this.#weights ??= this.#values.map(() => 1)
    if (this.#weights !== undefined) this.#weights[index] = weight
    this.#values[index] = value
  }

  /**
   * Calls back in insertion order.
   * @param {(value: number, weight: number, i: number) => void} callback
   */
  forEach (callback) {
    this.#values.forEach((value, i) => callback(value, this.#weights?.[i] ?? 1, i))
  }

  /** @returns {import('./summary').Sample} */
  sorted () {
    const [values, weights] = [this.#values, this.#weights]
    if (weights === undefined) return { values: Float64Array.from(values).sort(), total: this.size }
    const order = Uint32Array.from(values, (_, i) => i).sort((a, b) => values[a] - values[b])
    let total = 0
    const cumulative = Float64Array.from(order, (i) => (total += weights[i]))
    return { values: Float64Array.from(order, (i) => values[i]), cumulative, total }
  }
}

/**
 * Bounded samples: all numbers while they are few, then each with equal probability (Vitter's algorithm R).
 */
class Samples {
  isPartial = false // one of them had more numbers than it holds
  #total = 0 // numbers in all samples
  #random = 1

  /**
   * @param {Numbers} sample
   * @param {number} count of all numbers offered to it, including this one
   * @param {number} value
   * @param {number} weight
   */
  add (sample, count, value, weight) {
    if (sample.size < (this.#total < MAX_SAMPLES ? MAX_SAMPLE : MIN_SAMPLE)) {
      this.#total++
      return sample.add(value, weight)
    }
    this.isPartial = true
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0 // same series for the same file
    const index = Math.floor(this.#random / 2 ** 32 * count)
    if (index < sample.size) sample.set(index, value, weight)
  }
}

/**
 * Returns the quartiles of all lists together, or undefined if they are empty.
 * @param {Numbers[]} lists
 */
function quartilesOf (lists) {
  const joined = new Numbers()
  for (const list of lists) list.forEach((value, weight) => joined.add(value, weight))
  if (joined.size === 0) return undefined
  const { min, q1, median, q3, max } = summarize(joined.sorted())
  return { min, q1, median, q3, max }
}

/**
 * Returns whether a duration is among the `max` largest.
 * @param {Array<{ ms: number }>} items in descending order
 * @param {number} max
 * @param {number} ms
 */
function isLarge (items, max, ms) {
  return items.length < max || ms > items[items.length - 1].ms
}

/**
 * Inserts an item, and keeps the `max` largest in descending order; equal ones stay in insertion order.
 * @template {{ ms: number }} T
 * @param {T[]} items
 * @param {number} max
 * @param {T} item
 */
function insert (items, max, item) {
  const index = items.findIndex(({ ms }) => ms < item.ms)
  items.splice(index === -1 ? items.length : index, 0, item)
  if (items.length > max) items.pop()
}

module.exports = { Numbers, Samples, binOf, insert, isLarge, msOf, quartilesOf }
