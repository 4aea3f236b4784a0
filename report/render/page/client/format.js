'use strict'

// Formats figures and text from files. Times have three significant digits: enough to compare, and more would
// only look exact.

/** Minimum and length in ms, and name: 90 s reads better than 1.50 min. */
const UNITS = /** @type {Array<[number, number, string]>} */ ([
  [172_800_000, 86_400_000, 'd'],
  [7_200_000, 3_600_000, 'h'],
  [120_000, 60_000, 'min'],
  [1000, 1000, 's'],
  [1, 1, 'ms'],
  [0, 0.001, 'µs']
])
const NONE = '–'
const INVISIBLE =
  /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu

/** @param {unknown} value @returns {value is number} */
function isNumber (value) {
  return typeof value === 'number' && Number.isFinite(value)
}

/** @param {number} value */
function digits (value) {
  const size = Math.abs(value)
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** Formats a time with its unit: 850 µs, 12.3 ms, 1.20 s. @param {unknown} ms */
function time (ms) {
  if (!isNumber(ms)) return NONE
  if (ms === 0) return '0 ms'
  const size = Math.abs(ms)
  const [, length, unit] = UNITS.find(([min]) => size >= min * 0.9995) ?? UNITS[5]
  return `${digits(ms / length)} ${unit}`
}

/** Formats two times, their unit once if it is equal. @param {unknown} before @param {unknown} after */
function fromTo (before, after) {
  const [a, b] = [time(before), time(after)]
  const [number, unit] = a.split(' ')
  return unit !== undefined && b.endsWith(` ${unit}`) ? `${number} → ${b}` : `${a} → ${b}`
}

/** Formats a time for an axis, without trailing zeros. @param {number} ms */
function tick (ms) {
  return time(ms).replace(/(\.\d*?)0+(?= )/, '$1').replace('. ', ' ')
}

/** @param {unknown} value */
function count (value) {
  return isNumber(value) ? Math.round(value).toLocaleString('en-US') : NONE
}

/** @param {unknown} perSecond */
function rate (perSecond) {
  if (!isNumber(perSecond)) return NONE
  return `${perSecond >= 1000 ? count(perSecond) : digits(perSecond)}/s`
}

/** @param {unknown} ratio */
function percent (ratio) {
  if (!isNumber(ratio)) return NONE
  const value = ratio * 100
  if (value !== 0 && Math.abs(value) < 0.1) return '< 0.1 %'
  return `${Math.abs(value) < 10 && value % 1 !== 0 ? value.toFixed(1) : value.toFixed(0)} %`
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

/** Formats a moment in UTC, so that it is the same wherever the page is read. @param {unknown} unixMs */
function day (unixMs) {
  if (!isNumber(unixMs) || Math.abs(unixMs) > 8.64e15) return NONE
  return new Date(unixMs).toISOString().replace('T', ' ').slice(0, 19)
}

/** Formats its time with milliseconds. @param {unknown} unixMs */
function clock (unixMs) {
  const moment = day(unixMs)
  return moment === NONE ? NONE : new Date(Number(unixMs)).toISOString().slice(11, 23)
}

/** @param {number} number @param {string} noun @param {string} [many] */
function plural (number, noun, many = `${noun}s`) {
  return `${count(number)} ${Math.round(number) === 1 ? noun : many}`
}

/**
 * Escapes characters of text from files that reverse its direction, are invisible, or are control characters.
 * Line ends and tabs stay.
 * @param {unknown} text
 */
function escapeInvisible (text) {
  return String(text).replace(/\r\n/g, '\n').replace(INVISIBLE, (char) =>
    char === '\n' || char === '\t' ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

module.exports = {
  NONE, change, clock, count, day, escapeInvisible, fromTo, isNumber, percent, plural, rate, tick, time
}
