'use strict'

// Breaks text into lines at words. Glue joins what must stay together, such as a frame. Colours take no
// columns.

const { stripVTControlCharacters } = require('node:util')

const GLUE = '\u00a0' // a space that never breaks a line
const FRAMES = /(\S) (\([^()]*:\d+(?::\d+)?\))/g // pool.query (pool.js:34)
const ROUTES = /\b([A-Z]{3,10}) (?=[/*(]|[\w.-]+:\d)/g // GET /users
const UNITS = /(\d) (?=(?:%|[mµn]?s|min|h|[KMG]i?B|spans?|times?|waits?|lines?)(?!\w))/g // 12 ms
const MIN_TEXT_COLUMNS = 12 // minimum width after the indent
const WIDE = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/gu
const NO_COLUMN = /\p{Mn}|\p{Me}|\u200b|\u200c/gu

/** Joins the words of a text so that it stays on one line. @param {string} text */
function glued (text) {
  return text.replaceAll(' ', GLUE)
}

/** Undoes it. @param {string} text */
function unglued (text) {
  return text.replaceAll(GLUE, ' ')
}

/** Joins the parts of frames, routes, and figures with their units. @param {string} text */
function prose (text) {
  return text.replace(FRAMES, `$1${GLUE}$2`).replace(ROUTES, `$1${GLUE}`).replace(UNITS, `$1${GLUE}`)
}

/**
 * Colours each word of a text separately, so that it can be wrapped.
 * @param {string} text
 * @param {(text: string) => string} colour
 */
function painted (text, colour) {
  return text.split(' ').map((part) => part === '' ? '' : colour(part)).join(' ')
}

/** Returns the number of terminal columns a text takes. @param {string} text */
function columnsOf (text) {
  const visible = stripVTControlCharacters(text)
  if (/^[\x20-\x7e]*$/.test(visible)) return visible.length
  return [...visible.replace(NO_COLUMN, '')].length + (visible.match(WIDE)?.length ?? 0)
}

/**
 * Wraps a text at its spaces. A word longer than a line gets its own line, unbroken.
 * @param {string} text
 * @param {number} width
 * @param {string} [indent] indent of the first line
 * @param {string} [hanging] indent of the other lines; default: as wide as the first, in spaces
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
  return [...lines, start + words].map((line) => unglued(line).trimEnd())
}

module.exports = { columnsOf, glued, painted, prose, unglued, wrap }
