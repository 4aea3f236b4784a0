'use strict'

// Formats figures and times for text and for the page. Times have three significant digits: enough to
// compare, while more would suggest false precision. A figure may be absent.

const NONE = '–'
const MAX_UNIX_MS = 8.64e15

/** @param {unknown} value @returns {value is number} */
function isNumber (value) {
  return typeof value === 'number' && Number.isFinite(value)
}

/**
 * Creates a formatter for figures that may be absent.
 * @param {(value: number) => string} format
 * @returns {(value: unknown) => string}
 */
const orNone = (format) => (value) => isNumber(value) ? format(value) : NONE

/**
 * Formats a duration with its unit and three digits. Seconds go up to 120, because 90 s reads better than
 * 1.50 min.
 */
const time = orNone((ms) => {
  if (ms < 0) return `-${time(-ms)}`
  if (ms < 0.9995) return `${digits(ms * 1000)} µs`
  if (ms < 999.5) return `${digits(ms)} ms`
  if (ms < 119_950) return `${digits(ms / 1000)} s`
  if (ms < 7_200_000) return `${digits(ms / 60_000)} min`
  return `${digits(ms / 3_600_000)} h`
})

/** Formats a number with three significant digits. @param {number} value */
function digits (value) {
  if (value === 0) return '0'
  return value >= 99.95 ? String(Math.round(value)) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2)
}

/** Formats a share between 0 and 1: `62 %`, `8.1 %`, `<0.1 %`. */
const percent = orNone((part) => {
  const value = part * 100
  if (value > 0 && value < 0.05) return '<0.1 %'
  return `${value === 0 || value >= 9.95 ? Math.round(value) : value.toFixed(1)} %`
})

/** Formats a count, with commas between thousands. */
const grouped = orNone((value) => Math.round(value).toLocaleString('en-US'))

/** @param {number} value @param {string} noun */
function counted (value, noun) {
  return `${grouped(value)} ${noun}${Math.round(value) === 1 ? '' : 's'}`
}

const [MIN_UNREAD_MS, MIN_UNREAD_SHARE] = [1, 0.1]

/**
 * Returns whether requests waited unread long enough to make their durations misleading.
 * @param {{ unreadMs: number, summary?: { mean: number } }} route
 */
function isUnread ({ unreadMs, summary }) {
  return summary !== undefined && unreadMs >= Math.max(MIN_UNREAD_MS, summary.mean * MIN_UNREAD_SHARE)
}

/** Formats a rate. */
const rate = orNone((perSecond) => `${perSecond >= 1000 ? grouped(perSecond) : digits(perSecond)}/s`)

/** Formats two times, with a shared unit only once. @param {unknown} before @param {unknown} after */
function fromTo (before, after) {
  const [a, b] = [time(before), time(after)]
  const [number, unit] = a.split(' ')
  return unit !== undefined && b.endsWith(` ${unit}`) ? `${number} → ${b}` : `${a} → ${b}`
}

/** Formats a time for an axis, without trailing zeros. @param {number} ms */
function tick (ms) {
  return ms === 0 ? '0' : time(ms).replace(/(\.\d*?)0+(?= )/, '$1').replace('. ', ' ')
}

/** Formats the change of a figure: −12 %, +250 %, × 12. @param {unknown} before @param {unknown} after */
function change (before, after) {
  if (!isNumber(before) || !isNumber(after) || before <= 0) return NONE
  const ratio = after / before
  if (ratio >= 10) return `× ${digits(ratio)}`
  const part = Math.round((ratio - 1) * 1000) / 10
  if (part === 0) return '± 0 %'
  const size = Math.abs(part)
  return `${part > 0 ? '+' : '−'}${size >= 10 ? size.toFixed(0) : size.toFixed(1)} %`
}

/** Formats a time in UTC, so that it reads the same everywhere. @param {unknown} unixMs */
function moment (unixMs) {
  if (!isNumber(unixMs) || Math.abs(unixMs) > MAX_UNIX_MS) return NONE
  return new Date(unixMs).toISOString().replace('T', ' ').slice(0, 23)
}

/** Formats a time of day in UTC. @param {unknown} unixMs */
function clock (unixMs) {
  return moment(unixMs).slice(-12)
}

module.exports = {
  NONE, change, clock, counted, digits, fromTo, grouped, isNumber, isUnread, moment, percent, rate, tick, time
}
