'use strict'

// Collects many numbers in little memory: a million durations take eight megabytes.

const FIRST_LENGTH = 64

/** Numbers with weights, in the order in which they come. Weights take memory only where one is not 1. */
class Numbers {
  /** @type {Float64Array} */
  #values
  /** @type {Float64Array | undefined} */
  #weights
  size = 0
  weight = 0 // of all
  sum = 0 // weighted

  /** @param {number} [length] for how many there is memory at first */
  constructor (length = FIRST_LENGTH) {
    this.#values = new Float64Array(length)
  }

  /** @param {number} value @param {number} weight */
  add (value, weight) {
    this.weight += weight
    this.sum += value * weight
    if (this.size === this.#values.length) this.#grow()
    if (weight !== 1) this.#weights ??= new Float64Array(this.#values.length).fill(1, 0, this.size)
    if (this.#weights !== undefined) this.#weights[this.size] = weight
    this.#values[this.size++] = value
  }

  #grow () {
    this.#values = doubled(this.#values)
    this.#weights &&= doubled(this.#weights)
  }

  /**
   * Calls back in the order in which they came.
   * @param {(value: number, weight: number, i: number) => void} callback
   */
  forEach (callback) {
    for (let i = 0; i < this.size; i++) callback(this.#values[i], this.#weights?.[i] ?? 1, i)
  }

  /** Sorts them: their order is lost. @returns {import('./summary').Sample} */
  sorted () {
    const values = this.#values.subarray(0, this.size)
    if (this.#weights === undefined) return { values: values.sort(), total: this.size }
    return cumulated(values, this.#weights)
  }
}

/** @param {Float64Array} values @param {Float64Array} weights @returns {import('./summary').Sample} */
function cumulated (values, weights) {
  const order = Uint32Array.from(values, (_, i) => i).sort((a, b) => values[a] - values[b])
  const cumulative = new Float64Array(values.length)
  let total = 0
  order.forEach((index, rank) => { cumulative[rank] = total += weights[index] })
  return { values: Float64Array.from(order, (i) => values[i]), cumulative, total }
}

/** @param {Float64Array} values */
function doubled (values) {
  const longer = new Float64Array(Math.max(FIRST_LENGTH, values.length * 2))
  longer.set(values)
  return longer
}

/**
 * Keeps the items with the largest values, in descending order.
 * @template T
 */
class Top {
  /** @type {Array<{ value: number, item: T }>} */
  #entries = []
  #max

  /** @param {number} max number of items */
  constructor (max) {
    this.#max = max
  }

  /** Returns whether an item of this value would be kept. @param {number} value */
  accepts (value) {
    return this.#entries.length < this.#max || value > this.#entries[this.#entries.length - 1].value
  }

  /** @param {number} value @param {T} item */
  add (value, item) {
    const index = this.#entries.findIndex((entry) => entry.value < value)
    this.#entries.splice(index === -1 ? this.#entries.length : index, 0, { value, item })
    if (this.#entries.length > this.#max) this.#entries.pop()
  }

  items () {
    return this.#entries.map(({ item }) => item)
  }
}

module.exports = { Numbers, Top, cumulated }
