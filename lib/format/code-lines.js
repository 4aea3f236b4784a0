'use strict'

// The line of source at a frame, with a caret below. It is printed only where it is the one that runs: what a
// source map holds, or a file that has not changed since the process started. Files are read when something
// is printed, up to a size, and nothing here throws.

const fs = require('node:fs')
const path = require('node:path')
const { fileURLToPath } = require('node:url')
const { stateOf } = require('../files')
const { contentOf, isRewritten } = require('../stacks/source-contents')
const { clean } = require('../text')

/** @typedef {import('../stacks/frames').Frame} Frame */

const MAX_BYTES = 4 << 20 // of a file
const MAX_FILES = 50 // read for one text
const INDENT = '      '
const MIN_BEFORE = 8 // columns of source before the caret, where the line is cut

/**
 * @param {import('./terminal').Style} style
 * @returns {(frame: Frame) => string[]} two lines, or none
 */
function createCodeLines ({ colours, columns }) {
  /** @type {Map<string, string | undefined>} */
  const texts = new Map()

  /** @param {string} fileName */
  function textOf (fileName) {
    if (texts.has(fileName)) return texts.get(fileName)
    if (texts.size === MAX_FILES) return undefined
    const text = readSource(fileName)
    texts.set(fileName, text)
    return text
  }

  return ({ fileName, lineNumber, columnNumber }) => {
    if (columns === undefined || fileName === undefined || !lineNumber || !columnNumber) return []
    const line = lineOf(textOf(fileName), lineNumber)
    // What is no beginning of an expression is a position in another text than this.
    if (line === undefined || !/\S/.test(line[columnNumber - 1] ?? '')) return []
    const lines = format(line, lineNumber, columnNumber, columns)
    return colours === undefined ? lines : lines.map((text) => colours.dim(text))
  }
}

/** @param {string} fileName a path, or a URL of a source map's @returns {string | undefined} */
function readSource (fileName) {
  try {
    const mapped = contentOf(fileName)
    if (mapped !== undefined) return mapped
    const file = fileName.startsWith('file:') ? fileURLToPath(fileName) : fileName
    if (!path.isAbsolute(file) || isRewritten(file)) return undefined
    const { size, mtimeMs, ctimeMs } = stateOf(file)
    const changedAt = Math.max(Number(mtimeMs), Number(ctimeMs))
    if (size > MAX_BYTES || changedAt > performance.timeOrigin) return undefined
    return fs.readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** @param {string | undefined} text @param {number} number from 1 */
function lineOf (text, number) {
  if (text === undefined) return undefined
  let start = 0
  for (let i = 1; i < number; i++) {
    start = text.indexOf('\n', start) + 1
    if (start === 0) return undefined
  }
  const end = text.indexOf('\n', start)
  return text.slice(start, end === -1 ? undefined : end).replace(/\r$/, '')
}

/**
 * @param {string} line
 * @param {number} lineNumber
 * @param {number} columnNumber
 * @param {number} columns of the terminal
 * @returns {string[]}
 */
function format (line, lineNumber, columnNumber, columns) {
  const head = `${INDENT}${lineNumber} \u2502 `
  const room = columns - head.length
  const indent = line.length - line.trimStart().length
  let start = Math.min(indent, columnNumber - 1)
  if (columnNumber - start > room - MIN_BEFORE) start = columnNumber - 1 - Math.min(room >> 1, MIN_BEFORE * 4)
  const isCut = start > indent
  const text = clean(line.slice(start, start + room - (isCut ? 1 : 0)).replaceAll('\t', ' ')).trimEnd()
  const before = text.slice(0, columnNumber - 1 - start)
  const code = head + (isCut ? '\u2026' : '') + text
  if (/[^\x20-\u02ff]/.test(before)) return [code] // letters that may be two columns wide
  return [code, `${' '.repeat(head.length - 2)}\u2502 ${' '.repeat(before.length + (isCut ? 1 : 0))}^`]
}

module.exports = { createCodeLines }
