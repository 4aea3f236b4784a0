'use strict'

// The wall clock as an origin of longstack's own clock: the wall clock can jump, the other is monotonic.

const { performance } = require('node:perf_hooks')
const { now } = require('../core/clock')

const readWallClock = Date.now // programs replace it in their tests
const CHECK_MS = 10 // between two reads of the wall clock
const DRIFT = 5 // ms between the two clocks that are not corrected

let origin = performance.timeOrigin + performance.now() - now()
let checkedAt = -Infinity

/** @param {number} time now, in ms of the clock @returns {number} ms since 1970 at which that was 0 */
function originAt (time) {
  if (time - checkedAt < CHECK_MS) return origin
  checkedAt = time
  const before = now()
  const present = readWallClock() - before
  // Unless this thread stood still between the two reads.
  if (Math.abs(present - origin) > DRIFT && now() - before < 1) origin = present
  return origin
}

module.exports = { originAt }
