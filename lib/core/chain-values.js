'use strict'

// A small integer per chain. Chain numbers keep growing even after chains are forgotten, so the array begins
// at the first valid one.

const { FIRST_CHAIN } = require('./record-words')

const MIN_LENGTH = 1 << 10

class ChainValues {
  #first = FIRST_CHAIN
  #values = new Int32Array(MIN_LENGTH)

  /** @param {number} chain @returns {number} 0 if none is stored */
  get (chain) {
    const i = chain - this.#first
    return i >= 0 && i < this.#values.length ? this.#values[i] : 0
  }

  /** @param {number} chain forgotten chains have no value @param {number} value */
  set (chain, value) {
    const i = chain - this.#first
    if (i < 0) return
    if (i >= this.#values.length) {
      const larger = new Int32Array(Math.max(i + 1, this.#values.length * 2))
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values[i] = value
  }

  /** Forgets all chains. @param {number} first number of the next chain */
  forget (first) {
    this.#first = first
    this.#values = new Int32Array(MIN_LENGTH)
  }
}

const MIXED = -1 // value if the delays of a chain's timers differ

/** Delay of each chain's timers, which outlives their records: ms + 1, or MIXED. */
const delays = new ChainValues()

/** @param {number} chain @param {number} delay of one of its timers, in ms */
function noteDelay (chain, delay) {
  const noted = delays.get(chain)
  if (noted === 0) delays.set(chain, delay + 1)
  else if (noted !== delay + 1 && noted !== MIXED) delays.set(chain, MIXED)
}

/** @param {number} chain @returns {number | undefined} common delay of all its timers, in ms */
function delayOf (chain) {
  const noted = delays.get(chain)
  return noted > 0 ? noted - 1 : undefined
}

module.exports = { ChainValues, delayOf, delays, noteDelay }
