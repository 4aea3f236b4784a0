'use strict'

// Formats figures for text and for the page. Times have three significant digits: enough to compare, and more
// would only look exact.

/**
 * Formats a duration with its unit, in three digits; 90 s reads better than 1.50 min.
 * @param {number} ms
 * @returns {string}
 */
function time (ms) {
  if (ms < 0) return `-${time(-ms)}`
  if (ms < 0.9995) return `${digits(ms * 1000)} µs`
  if (ms < 999.5) return `${digits(ms)} ms`
  if (ms < 119_950) return `${digits(ms / 1000)} s`
  if (ms < 7_200_000) return `${digits(ms / 60_000)} min`
  return `${digits(ms / 3_600_000)} h`
}

/** Formats a number in three significant digits. @param {number} value */
function digits (value) {
  if (value === 0) return '0'
  return value >= 99.95 ? String(Math.round(value)) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2)
}

/** Formats a part of 1: `62 %`, `8.1 %`, `<0.1 %`. @param {number} part */
function percent (part) {
  const value = part * 100
  if (value > 0 && value < 0.05) return '<0.1 %'
  return `${value === 0 || value >= 9.95 ? Math.round(value) : value.toFixed(1)} %`
}

/** Formats a count, with commas between thousands. @param {number} value */
function grouped (value) {
  return Math.round(value).toLocaleString('en-US')
}

/** @param {number} value @param {string} noun */
function counted (value, noun) {
  return `${grouped(value)} ${noun}${Math.round(value) === 1 ? '' : 's'}`
}

module.exports = { counted, digits, grouped, percent, time }
