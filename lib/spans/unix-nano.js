'use strict'

// Times as OpenTelemetry's JSON has them: nanoseconds since 1970 as a decimal string, which no double holds.

/**
 * Returns a time as nanoseconds since 1970, in decimal.
 * @param {number} origin ms since 1970
 * @param {number} time ms after it
 * @returns {string}
 */
function unixNano (origin, time) {
  const us = Math.floor(origin * 1000) // below 2 ** 53, which ns are not
  const ns = Math.round(time * 1e6)
  const high = us + Math.floor(ns / 1000)
  const low = ns - Math.floor(ns / 1000) * 1000
  const seconds = Math.floor(high / 1e6)
  // As two small integers, which V8 prints faster than a large one.
  if (seconds >= 1) return textOfSeconds(seconds) + String(1e9 + (high - seconds * 1e6) * 1000 + low).slice(1)
  return `${high}${low < 10 ? '00' : low < 100 ? '0' : ''}${low}`
}

let lastSeconds = 0
let lastText = ''

/** @param {number} seconds mostly those of the last call */
function textOfSeconds (seconds) {
  if (seconds !== lastSeconds) {
    lastSeconds = seconds
    lastText = String(seconds)
  }
  return lastText
}

module.exports = { unixNano }
