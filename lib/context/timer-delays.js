'use strict'

// The delay of the timers of each chain: it outlives their records.

const MIXED = -1 // the delays of a chain's timers differ

/** by chain: ms + 1, 0 where none is known, or MIXED */
let delays = new Int32Array(1 << 10)

/** @param {number} chain @param {number} delay of one of its timers, in ms */
function noteDelay (chain, delay) {
  if (chain >= delays.length) {
    const larger = new Int32Array(Math.max(chain + 1, delays.length * 2))
    larger.set(delays)
    delays = larger
  }
  const noted = delays[chain]
  if (noted === 0) delays[chain] = delay + 1
  else if (noted !== delay + 1) delays[chain] = MIXED
}

/** @param {number} chain @returns {number | undefined} delay of all its timers, in ms */
const delayOf = (chain) => chain < delays.length && delays[chain] > 0 ? delays[chain] - 1 : undefined

module.exports = { noteDelay, delayOf, clear: () => delays.fill(0) }
