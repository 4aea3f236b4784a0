'use strict'

// Takes values out of a model, which may come from a hostile file: a value of the wrong type is absent.

const { isRecord } = require('../../read/values')
const { count } = require('./client/format')

const NAME_CHARS = 300
const SENTENCE_CHARS = 500
const MAX_SENTENCES = 50

/** Returns a value as text, cut if it is too long. @param {unknown} value @param {number} [max] characters */
function text (value, max = NAME_CHARS) {
  const whole = typeof value === 'string' ? value : String(value)
  if (whole.length <= max) return whole
  return `${whole.slice(0, max)} … (${count(whole.length - max)} more characters)`
}

/** @param {unknown} value @param {number} max characters */
function optionalText (value, max) {
  return value === undefined || value === null || value === '' ? undefined : text(value, max)
}

/** @param {unknown} value @returns {number | undefined} */
function number (value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** Rounds to five digits: more than a screen can show. @param {number} value */
function round (value) {
  return Number(value.toPrecision(5))
}

/** Rounds to microseconds: doubles of ms since 1970 hold no more. @param {number} ms */
function roundMs (ms) {
  return Math.round(ms * 1000) / 1000
}

/** @param {unknown} value @returns {any[]} */
function array (value) {
  return Array.isArray(value) ? value : []
}

/** @param {unknown} value @returns {any[]} */
function records (value) {
  return array(value).filter(isRecord)
}

/** @param {unknown} list @returns {string[]} */
function sentences (list) {
  return array(list).slice(0, MAX_SENTENCES).map((sentence) => text(sentence, SENTENCE_CHARS))
}

/** @param {any} source @param {string[]} names @returns {Record<string, number>} those that are numbers */
function figures (source, names) {
  const entries = names.map((name) => [name, number(source?.[name])])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

/**
 * Returns at most `max` items, evenly spread, with both ends.
 * @template T
 * @param {T[]} list
 * @param {number} max
 * @returns {T[]}
 */
function evenly (list, max) {
  if (list.length <= max) return list
  return Array.from({ length: max }, (_, i) => list[Math.round(i * (list.length - 1) / (max - 1))])
}

module.exports = {
  NAME_CHARS, array, evenly, figures, isRecord, number, optionalText, records, round, roundMs, sentences, text
}
