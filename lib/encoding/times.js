'use strict'

// Times in OpenTelemetry's JSON format: nanoseconds since 1970 as a decimal string, since no double holds
// them.

/**
 * Returns a time as seconds since 1970 and nanoseconds: two integers that V8 need not allocate on its heap,
 * and converts to text without caching it (bench/run.js, longstack-spans).
 * @param {number} origin ms since 1970
 * @param {number} time ms after it
 * @returns {[seconds: number, nanoseconds: number]}
 */
function secondsAt (origin, time) {
  const ns = Math.round(time * 1e6)
  const us = Math.floor(origin * 1000) + Math.floor(ns / 1000) // below 2 ** 53, unlike ns
  const seconds = Math.floor(us / 1e6)
  return [seconds, (us - seconds * 1e6) * 1000 + (ns - Math.floor(ns / 1000) * 1000)]
}

/**
 * Returns the same time as decimal nanoseconds.
 * @param {number} origin
 * @param {number} time
 * @param {number} [us] microseconds after that
 * @returns {string}
 */
function unixNano (origin, time, us = 0) {
  const [second, part] = secondsAt(origin, time)
  const seconds = second + Math.floor((part + us * 1000) / 1e9)
  const ns = (part + us * 1000) % 1e9
  // No leading zeros on a machine without a clock that has just started.
  return seconds > 0 ? `${seconds}${String(ns).padStart(9, '0')}` : String(ns)
}

module.exports = { secondsAt, unixNano }
