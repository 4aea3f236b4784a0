'use strict'

// Figures as words of the verdict's sentences.

const { formatDuration, shortFrame } = require('../../../lib/text')

const MAX_NAME_CHARS = 100

/** @param {number} share from 0 to 1 */
function percent (share) {
  return `${Math.round(share * 100)} %`
}

/** Formats a duration, below 10 ms with a decimal. @param {number} ms */
function time (ms) {
  return ms < 9.95 ? `${ms.toFixed(1)} ms` : formatDuration(ms)
}

/** Formats a mean count: an integer where it is close to one. @param {number} mean */
function mean (mean) {
  const rounded = Math.round(mean)
  return Math.abs(mean - rounded) < 0.05 || mean >= 20 ? String(rounded) : mean.toFixed(1)
}

/** @param {number} count @param {string} noun */
function counted (count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** @param {string} name of a route or function, from a file */
function short (name) {
  return name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name
}

/** Formats a frame as function, file and line. @param {string} frame */
function place (frame) {
  return short(shortFrame(frame))
}

/** Rounds a figure to three decimals. @param {number} value */
function rounded (value) {
  return Math.round(value * 1000) / 1000
}

module.exports = { counted, mean, percent, place, rounded, short, time }
