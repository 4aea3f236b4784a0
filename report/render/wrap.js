'use strict'

// Breaks text into lines at words. What must stay together, such as a frame, is joined by glue. Colours count
// no columns.

const { stripVTControlCharacters } = require('node:util')

const GLUE = '\u00a0' // a space at which no line is broken
const FRAMES = /(\S) (\([^()]*:\d+(?::\d+)?\))/g // pool.query (pool.js:34)
const ROUTES = /\b([A-Z]{3,10}) (?=[/*(]|[\w.-]+:\d)/g // GET /users
const UNITS = /(\d) (?=(?:%|[mµn]?s|min|h|[KMG]i?B|spans?|times?|waits?|lines?)(?!\w))/g // 12 ms
const MIN_TEXT_COLUMNS = 12 // of a line after its indent
const WIDE = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/gu
const NO_COLUMN = /\p{Mn}|\p{Me}|\u200b|\u200c/gu

/** Joins the words of a text, so that it stays in one line. @param {string} text */
function glued (text) {
  return text.replaceAll(' ', GLUE)
}

/** Joins what is one thing in a sentence: frames, routes, figures with their units. @param {string} text */
function prose (text) {
  return text.replace(FRAMES, `$1${GLUE}$2`).replace(ROUTES, `$1${GLUE}`).replace(UNITS, `$1${GLUE}`)
}

/**
 * Colours each word of a text, so that it can be wrapped.
 * @param {string} text
 * @param {(text: string) => string} colour
 */
function painted (text, colour) {
  return text.split(' ').map((part) => part === '' ? '' : colour(part)).join(' ')
}

/** Returns the columns that a text takes on a terminal. @param {string} text */
function columnsOf (text) {
  const visible = stripVTControlCharacters(text)
  if (/^[\x20-\x7e]*$/.test(visible)) return visible.length
  return [...visible.replace(NO_COLUMN, '')].length + (visible.match(WIDE)?.length ?? 0)
}

/**
 * Wraps a text at its spaces. A word that is longer than a line gets a line of its own, unbroken.
 * @param {string} text
 * @param {number} width
 * @param {string} [indent] of the first line
 * @param {string} [hanging] indent of the others; default: that of the first, in spaces
 * @returns {string[]}
 */
function wrap (text, width, indent = '', hanging = ' '.repeat(columnsOf(indent))) {
  const max = Math.max(width, columnsOf(hanging) + MIN_TEXT_COLUMNS)
  /** @type {string[]} */
  const lines = []
  let start = indent
  let words = ''
  for (const part of text.split(' ').filter(Boolean)) {
    const longer = words === '' ? part : `${words} ${part}`
    const isFull = words !== '' && columnsOf(start + longer) > max
    if (isFull) {
      lines.push(start + words)
      start = hanging
    }
    words = isFull ? part : longer
  }
  return [...lines, start + words].map((line) => line.replaceAll(GLUE, ' ').trimEnd())
}

module.exports = { columnsOf, glued, painted, prose, wrap }
