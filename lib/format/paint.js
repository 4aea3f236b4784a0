'use strict'

// Stacks, hops and reports for a terminal: colours, a line of source below the innermost frame of the
// program, and places that can be clicked. Text in, text out, unchanged where there is no terminal.

const { parseFrame } = require('../stacks/frames')
const { createCodeLines } = require('./code-lines')
const { styleOf } = require('./terminal')

/** @typedef {import('./terminal').Style} Style */

const AT = '    at '
const HOP = '  \u2500\u2500 '

/**
 * @param {string} text a stack, hops or reports, which have empty lines between them
 * @param {Style} [style]
 * @returns {string}
 */
function paint (text, style = styleOf('stderr')) {
  const { colours, columns } = style
  if (colours === undefined && columns === undefined) return text
  const codeLines = createCodeLines(style)
  /** @type {string[]} */
  const painted = []
  let needsCode = true
  for (const line of text.split('\n')) {
    if (line === '') needsCode = true
    if (!line.startsWith(AT)) {
      painted.push(colours === undefined ? line : paintText(line, colours))
      continue
    }
    const frame = parseFrame(line.slice(AT.length))
    painted.push(paintFrame(line, frame, style))
    if (!needsCode || frame.kind !== 'user') continue
    needsCode = false
    painted.push(...codeLines(frame))
  }
  return painted.join('\n')
}

/** @param {string} line that is no frame @param {any} colours */
function paintText (line, colours) {
  if (line.startsWith(HOP)) return paintHop(line, colours)
  if (/^\w*Error\b/.test(line)) return colours.red(line)
  return /^\S/.test(line) ? colours.bold(line) : line
}

/** @param {string} line @param {any} colours */
function paintHop (line, colours) {
  return line.includes(' \u00b7 reader') ? colours.yellow(line) : colours.cyan(line)
}

/**
 * @param {string} line
 * @param {import('../stacks/frames').Frame} frame
 * @param {Style} style
 */
function paintFrame (line, frame, { colours, link }) {
  const isOfProgram = frame.kind === 'user'
  const text = linkFrame(line.slice(AT.length), frame, link)
  if (colours === undefined) return AT + text
  return isOfProgram ? AT + colours.bold(text) : colours.dim(AT + text)
}

/**
 * @param {string} text
 * @param {import('../stacks/frames').Frame} frame
 * @param {Style['link']} link
 */
function linkFrame (text, { fileName, lineNumber, columnNumber, kind }, link) {
  if (link === undefined || kind === 'core' || fileName === undefined || lineNumber === undefined) return text
  if (!/^(\/|[a-z]:[\\/]|file:)/i.test(fileName)) return text
  const place = `${fileName}:${lineNumber}:${columnNumber}`
  const start = text.lastIndexOf(place)
  if (start === -1) return text
  return text.slice(0, start) + link(place, fileName, lineNumber) + text.slice(start + place.length)
}

module.exports = { AT, HOP, linkFrame, paint, paintHop }
