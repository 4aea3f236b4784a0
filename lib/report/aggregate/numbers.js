'use strict'

// Many numbers in little room: a million durations are eight megabytes, the ids of a million spans sixteen.

const { randomBytes } = require('node:crypto')

const FIRST = 64

/** Other ones each time, so that no file can be made whose ids all meet. */
const SEEDS = new Int32Array(new Uint8Array(randomBytes(8)).buffer)

/** Numbers that come one after another, each with a weight; the weights take room only where one is not 1. */
class Numbers {
  /** @type {Float64Array} */
  #values = new Float64Array(FIRST)
  /** @type {Float64Array | undefined} */
  #weights
  size = 0

  /** @param {number} value @param {number} weight */
  add (value, weight) {
    if (this.size === this.#values.length) this.#grow()
    if (weight !== 1) this.#weights ??= new Float64Array(this.#values.length).fill(1, 0, this.size)
    if (this.#weights !== undefined) this.#weights[this.size] = weight
    this.#values[this.size++] = value
  }

  #grow () {
    this.#values = doubled(this.#values)
    this.#weights &&= doubled(this.#weights)
  }

  /** @returns {import('./summary').Sample} */
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
  order.forEach((from, to) => { cumulative[to] = total += weights[from] })
  return { values: Float64Array.from(order, (i) => values[i]), cumulative, total }
}

/** @param {Float64Array} values */
function doubled (values) {
  const more = new Float64Array(values.length * 2)
  more.set(values)
  return more
}

/**
 * A table from ids of 64 bits to numbers: open addressing, half empty. Ids are random by contract; two that meet by
 * chance among a million have a probability of one to thirty-seven million.
 */
class Ids {
  #mask = 1023
  #high = new Uint32Array(1024)
  #low = new Uint32Array(1024)
  #values = new Float32Array(0)
  #valued
  size = 0

  /** @param {boolean} [valued] a number for each id is kept */
  constructor (valued = false) {
    this.#valued = valued
    if (valued) this.#values = new Float32Array(1024)
  }

  /**
   * @param {number} high @param {number} low
   * @returns {boolean} it was not there
   */
  add (high, low) {
    return this.raise(high, low, 0) === -1
  }

  /** @param {number} high @param {number} low */
  has (high, low) {
    const slot = this.#find(high >>> 0, (low >>> 0) || 1)
    return this.#low[slot] !== 0
  }

  /**
   * Keeps the largest value of an id.
   * @param {number} high @param {number} low @param {number} value
   * @returns {number} the one before; -1 where there was none
   */
  raise (high, low, value) {
    high >>>= 0
    low = (low >>> 0) || 1 // an empty slot has 0
    const slot = this.#find(high, low)
    if (this.#low[slot] !== 0) {
      const before = this.#values[slot] ?? 0
      if (value > before) this.#values[slot] = value
      return before
    }
    this.#put(slot, high, low, value)
    if (++this.size * 2 > this.#mask) this.#grow()
    return -1
  }

  /** @param {number} high @param {number} low @returns {number} its slot, or the empty one where it belongs */
  #find (high, low) {
    let hash = Math.imul(high ^ SEEDS[0], 0x9e3779b1) + Math.imul(low ^ SEEDS[1], 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35)
    let slot = (hash ^ (hash >>> 13)) & this.#mask
    while (this.#low[slot] !== 0 && (this.#low[slot] !== low || this.#high[slot] !== high)) slot = (slot + 1) & this.#mask
    return slot
  }

  /** @param {number} slot @param {number} high @param {number} low @param {number} value */
  #put (slot, high, low, value) {
    this.#high[slot] = high
    this.#low[slot] = low
    if (this.#valued) this.#values[slot] = value
  }

  #grow () {
    const [high, low, values] = [this.#high, this.#low, this.#values]
    const length = high.length * 2
    this.#mask = length - 1
    this.#high = new Uint32Array(length)
    this.#low = new Uint32Array(length)
    if (this.#valued) this.#values = new Float32Array(length)
    for (let i = 0; i < high.length; i++) {
      if (low[i] !== 0) this.#put(this.#find(high[i], low[i]), high[i], low[i], values[i])
    }
  }
}

/**
 * The few that are largest, whatever the number of those that come.
 * @template T
 */
class Top {
  /** @type {Array<{ value: number, item: T }>} */
  #kept = []
  #most

  /** @param {number} most */
  constructor (most) {
    this.#most = most
  }

  /** Is it among them? @param {number} value */
  takes (value) {
    return this.#kept.length < this.#most || value > this.#kept[this.#kept.length - 1].value
  }

  /** @param {number} value @param {T} item */
  add (value, item) {
    let at = this.#kept.findIndex((one) => one.value < value)
    if (at === -1) at = this.#kept.length
    this.#kept.splice(at, 0, { value, item })
    if (this.#kept.length > this.#most) this.#kept.pop()
  }

  items () {
    return this.#kept.map(({ item }) => item)
  }
}

module.exports = { Numbers, Ids, Top }
