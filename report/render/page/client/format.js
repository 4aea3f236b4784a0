'use strict'

// Formats figures and text from files for the page, where a figure may be absent.

const { counted: plural, digits, grouped, percent: formatPercent, time: formatTime } = require('../../format')

const NONE = '–'
const INVISIBLE =
  /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu

/** @param {unknown} value @returns {value is number} */
function isNumber (value) {
  return typeof value === 'number' && Number.isFinite(value)
}

/**
 * Makes a format of figures that may be absent.
 * @param {(value: number) => string} format
 * @returns {(value: unknown) => string}
 */
const orNone = (format) => (value) => isNumber(value) ? format(value) : NONE

const time = orNone(formatTime)
const percent = orNone(formatPercent)
const count = orNone(grouped)
const rate = orNone((perSecond) => `${perSecond >= 1000 ? grouped(perSecond) : digits(perSecond)}/s`)

/** Formats two times, their unit once if it is equal. @param {unknown} before @param {unknown} after */
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
