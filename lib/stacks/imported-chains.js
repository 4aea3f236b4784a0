'use strict'

// Chains of other threads that go on in this one. Such a chain is one number among the chains of this thread,
// with its hops as data beside it. A chain that another thread has sent twice has one number, so that what
// follows from it is one chain as well.

const { kindOf } = require('../context/kinds')
const { CHAIN_BITS, ROOT_CHAIN } = require('../context/records')
const { decodeMessageChain } = require('./passed-chain')
const { joinFrames } = require('./text-scan')

const TYPE = 'MESSAGE'

/** @typedef {import('./chain').PrintedHop} PrintedHop */

class ImportedChains {
  #capture
  /** the numbers are of this generation of chains */
  #generation = -1
  /** number by the place of the text @type {Map<number, number>} */
  #numbers = new Map()
  /** by number @type {Map<number, PrintedHop[]>} */
  #hops = new Map()

  /** @param {import('./capture').Capture} capture */
  constructor (capture) {
    this.#capture = capture
  }

  /**
   * Returns the number of a chain of another thread.
   * @param {number} place of its text
   * @param {(place: number) => string} read the text
   * @returns {number} 0: it cannot be read
   */
  numberOf (place, read) {
    if (this.#isStale()) this.#forget()
    const number = this.#numbers.get(place)
    return number ?? this.#add(place, decodeMessageChain(read(place)))
  }

  /** @param {number} place @param {PrintedHop[] | undefined} hops */
  #add (place, hops) {
    if (hops === undefined || hops.length === 0) return 0
    // The first line makes it another stack than those of other chains.
    const lines = [`longstack.message.${place}`, ...hops[0].lines.map((line) => line.slice('    at '.length))]
    const stack = this.#capture.internStack(joinFrames(lines))
    const number = this.#capture.intern(ROOT_CHAIN, stack, kindOf(TYPE, false).number) & CHAIN_BITS
    if (this.#isStale()) this.#forget() // there was no room
    this.#numbers.set(place, number)
    this.#hops.set(number, hops)
    return number
  }

  /** @param {number} chain @returns {PrintedHop[] | undefined} undefined for a chain of this thread */
  hopsAt (chain) {
    if (this.#hops.size === 0 || this.#isStale()) return undefined
    return this.#hops.get(chain)
  }

  #isStale () {
    return this.#generation !== this.#capture.generation
  }

  #forget () {
    this.#numbers.clear()
    this.#hops.clear()
    this.#generation = this.#capture.generation
  }
}

module.exports = { ImportedChains, TYPE }
