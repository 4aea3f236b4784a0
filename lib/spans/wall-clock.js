'use strict'

// Wall-clock origin of longstack's own clock, which is monotonic; the wall clock can jump.

const { performance } = require('node:perf_hooks')
const { now } = require('../core/clock')

const readWallClock = Date.now // kept, since programs replace it in their tests
const CHECK_MS = 10 // between reads of the wall clock
const DRIFT = 5 // difference in ms between the two clocks that is not corrected

let origin = performance.timeOrigin + performance.now() - now()
let checkedAt = -Infinity

/** @param {number} time now, in ms of the clock @returns {number} ms since 1970 at which the clock was 0 */
function originAt (time) {
  if (time - checkedAt < CHECK_MS) return origin
  checkedAt = time
  const before = now()
  const present = readWallClock() - before
  // Ignored if this thread was stalled between the two reads.
  if (Math.abs(present - origin) > DRIFT && now() - before < 1) origin = present
  return origin
}

module.exports = { originAt }
