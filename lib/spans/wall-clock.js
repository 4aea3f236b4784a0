'use strict'

// The wall clock as an origin of longstack's own clock: the wall clock can jump, the other is monotonic. And
// times as OpenTelemetry's JSON has them: nanoseconds since 1970 as a decimal string, which no double holds.

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

/** The texts of 0 to 999, with zeros. */
const threeDigits = Array.from({ length: 1000 }, (_, i) => String(1000 + i).slice(1))

/**
 * Returns a time as nanoseconds since 1970, in decimal. Its digits come from a table: V8 keeps what it makes
 * of a number in a cache, from where each text would get into the old space (bench/run.js, longstack-spans).
 * @param {number} origin ms since 1970
 * @param {number} time ms after it
 * @returns {string}
 */
function unixNano (origin, time) {
  const ns = Math.round(time * 1e6)
  const us = Math.floor(origin * 1000) + Math.floor(ns / 1000) // below 2 ** 53, which ns are not
  const seconds = Math.floor(us / 1e6)
  const rest = (us - seconds * 1e6) | 0
  const ms = (rest / 1000) | 0
  const digits = threeDigits[rest - ms * 1000] + threeDigits[(ns - Math.floor(ns / 1000) * 1000) | 0]
  // Without zeros in front, on a machine that has no clock and has just started.
  return seconds > 0 ? textOfSeconds(seconds) + threeDigits[ms] + digits : String(rest * 1000 + (ns % 1000))
}

let lastSeconds = 0
let lastText = '0'

/** @param {number} seconds mostly those of the last call */
function textOfSeconds (seconds) {
  if (seconds !== lastSeconds) {
    lastSeconds = seconds
    lastText = String(seconds)
  }
  return lastText
}

module.exports = { originAt, unixNano }
