'use strict'

// The delay of the timers of each chain: it outlives their records.

const { ChainValues } = require('./chain-values')

const MIXED = -1 // the delays of a chain's timers differ

/** ms + 1, or MIXED */
const delays = new ChainValues(Int32Array)

/** @param {number} chain @param {number} delay of one of its timers, in ms */
function noteDelay (chain, delay) {
  const noted = delays.get(chain)
  if (noted === 0) delays.set(chain, delay + 1)
  else if (noted !== delay + 1 && noted !== MIXED) delays.set(chain, MIXED)
}

/** @param {number} chain @returns {number | undefined} delay of all its timers, in ms */
function delayOf (chain) {
  const noted = delays.get(chain)
  return noted > 0 ? noted - 1 : undefined
}

/** Forgets all chains. @param {number} first number of those that come now */
const forget = (first) => delays.forget(first)

module.exports = { noteDelay, delayOf, forget }
