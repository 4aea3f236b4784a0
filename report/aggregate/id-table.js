'use strict'

// A hash table from 64-bit ids to numbers: open addressing, at most half full.
//
// A Set or Map of strings would take most of a report's memory. bench/report.js, Node 24, max
// RSS of `longstack report` as text: 1 million spans 202 MB, with Set and Map 433 MB; 4 million spans 290 MB
// and 52 s, with Set and Map 1033 MB and 87 s; at 16.7 million entries both throw "maximum size exceeded".
// Memory has priority here, since files can have any size.

const { randomBytes } = require('node:crypto')

const FIRST_LENGTH = 1024 // slots; always a power of two

/** Random per process, so that nobody can craft a file whose ids all collide. */
const SEEDS = new Int32Array(new Uint8Array(randomBytes(8)).buffer)

/**
 * Ids are random by contract: the probability that any two of a million collide is one in thirty-seven
 * million.
 */
class IdTable {
  #mask = FIRST_LENGTH - 1
  #high = new Uint32Array(FIRST_LENGTH)
  #low = new Uint32Array(FIRST_LENGTH) // 0 if the slot is empty
  #values
  size = 0

  /** @param {boolean} [hasValues] false for a set */
  constructor (hasValues = false) {
    this.#values = hasValues ? new Float32Array(FIRST_LENGTH) : undefined
  }

  /**
   * @param {number} high
   * @param {number} low
   * @returns {boolean} false if it was present
   */
  add (high, low) {
    return this.raise(high, low, 0) === -1
  }

  /**
   * @param {number} high
   * @param {number} low
   */
  has (high, low) {
    return this.#low[this.#slotOf(high >>> 0, nonZero(low))] !== 0
  }

  /**
   * Keeps the largest value of an id.
   * @param {number} high
   * @param {number} low
   * @param {number} value
   * @returns {number} the previous one, -1 for a new id
   */
  raise (high, low, value) {
    high >>>= 0
    low = nonZero(low)
    const slot = this.#slotOf(high, low)
    if (this.#low[slot] === 0) {
      this.#fill(slot, high, low, value)
      if (++this.size * 2 > this.#mask) this.#grow()
      return -1
    }
    const previous = this.#values?.[slot] ?? 0
    if (this.#values !== undefined && value > previous) this.#values[slot] = value
    return previous
  }

  /**
   * @param {number} high
   * @param {number} low
   * @returns {number} slot of an id, or the empty slot for it
   */
  #slotOf (high, low) {
    let hash = Math.imul(high ^ SEEDS[0], 0x9e3779b1) + Math.imul(low ^ SEEDS[1], 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35)
    let slot = (hash ^ (hash >>> 13)) & this.#mask
    while (this.#low[slot] !== 0 && (this.#low[slot] !== low || this.#high[slot] !== high)) {
      slot = (slot + 1) & this.#mask
    }
    return slot
  }

  /**
   * @param {number} slot
   * @param {number} high
   * @param {number} low
   * @param {number} value
   */
  #fill (slot, high, low, value) {
    this.#high[slot] = high
    this.#low[slot] = low
    if (this.#values !== undefined) this.#values[slot] = value
  }

  #grow () {
    const [high, low, values] = [this.#high, this.#low, this.#values]
    const length = high.length * 2
    this.#mask = length - 1
    this.#high = new Uint32Array(length)
    this.#low = new Uint32Array(length)
    this.#values = values && new Float32Array(length)
    for (let i = 0; i < high.length; i++) {
      if (low[i] !== 0) this.#fill(this.#slotOf(high[i], low[i]), high[i], low[i], values?.[i] ?? 0)
    }
  }
}

/** @param {number} low */
function nonZero (low) {
  return (low >>> 0) || 1
}

module.exports = { IdTable }
