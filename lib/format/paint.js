'use strict'

// Paints stacks, hops and reports for a terminal: colours, a source line below the innermost frame of the
// program, and clickable locations. Text in, text out, unchanged without a terminal.
//
// The source line has a caret below it. It is printed only if it is the code that runs: from a source map, or
// from a file that has not changed since the process started. Files are read on printing, up to a size limit,
// and nothing throws.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const { fileURLToPath } = require('node:url')
const { attempt, stateOf } = require('../files')
const { frameIn } = require('../stacks/frames')
const { isSource, mapsTo } = require('../stacks/source-maps')
const { AT, HOP } = require('../stacks/text-scan')
const { clean } = require('../text')
const { styleOf } = require('./terminal')

/**
 * @typedef {import('./terminal').Style} Style
 * @typedef {import('../stacks/frames').Frame} Frame
 *
 * @typedef {object} Painter
 * @property {(line: string, colours: any) => string} paintText paints a line that is not a frame
 * @property {(line: string, frame: Frame, style: Style) => string} paintFrame
 * @property {(code: string[], index: number) => boolean} hasCode whether code is printed below that line
 */

const MAX_BYTES = 4 << 20 // of a file, or of a source in a map
const MAX_FILES = 50 // read for one text
const INDENT = '      '
const MIN_BEFORE = 8 // source columns before the caret in a cut line

/** @type {Painter} */
const reportPainter = { paintText, paintFrame, hasCode: () => true }

/**
 * @param {string} text a stack, hops, or reports separated by empty lines
 * @param {Style} [style]
 * @returns {string}
 */
function paint (text, style = styleOf('stderr')) {
  if (style.colours === undefined && style.columns === undefined) return text
  const codeLines = createCodeLines(style)
  const sections = text.split('\n\n').map((section) => section.split('\n'))
  return sections.map((lines) => paintLines(lines, style, codeLines, reportPainter)).join('\n\n')
}

/**
 * @param {string[]} lines
 * @param {Style} style
 * @param {ReturnType<typeof createCodeLines>} codeLines
 * @param {Painter} painter
 * @returns {string}
 */
function paintLines (lines, style, codeLines, { paintText, paintFrame, hasCode }) {
  /** @type {string[]} */
  const painted = []
  let needsCode = true
  for (const [i, line] of lines.entries()) {
    const frame = frameIn(line)
    if (frame === undefined) painted.push(style.colours === undefined ? line : paintText(line, style.colours))
    else painted.push(paintFrame(line, frame, style))
    if (!needsCode || frame?.kind !== 'user') continue
    needsCode = false
    const code = codeLines(frame)
    if (hasCode(code, i)) painted.push(...code)
  }
  return painted.join('\n')
}

/** @param {string} line not a frame @param {any} colours */
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
 * @param {Frame} frame
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
 * @param {Frame} frame
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

/**
 * @param {Style} style
 * @returns {(frame: Frame) => string[]} source line and caret, or nothing
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
    // A position in blank space belongs to another text.
    if (line === undefined || !/\S/.test(line[columnNumber - 1] ?? '')) return []
    const lines = codeLinesOf(line, lineNumber, columnNumber, columns)
    return colours === undefined ? lines : lines.map((text) => colours.dim(text))
  }
}

/** @param {string} fileName a path, or a URL from a source map @returns {string | undefined} */
function readSource (fileName) {
  return attempt(() => {
    const mapped = contentOf(fileName)
    if (mapped !== undefined) return mapped
    const file = fileName.startsWith('file:') ? fileURLToPath(fileName) : fileName
    if (!path.isAbsolute(file) || isRewritten(file)) return undefined
    const { size, mtimeMs, ctimeMs } = stateOf(file)
    const changedAt = Math.max(Number(mtimeMs), Number(ctimeMs))
    if (size > MAX_BYTES || changedAt > performance.timeOrigin) return undefined
    return fs.readFileSync(file, 'utf8')
  })
}

/**
 * Returns the text of a source that a frame was mapped to.
 * @param {string} source a path or a URL, as in frames
 * @returns {string | undefined} undefined if no map contains it
 */
function contentOf (source) {
  for (const { sources = [], sourcesContent = [] } of mapsTo(source)) {
    const content = sourcesContent?.[indexOf(sources, source)]
    if (typeof content === 'string' && content.length <= MAX_BYTES) return content
  }
  return undefined
}

/**
 * Returns the index of a source: the only one, or the longest unambiguous suffix of the name in frames.
 * @param {string[]} sources
 * @param {string} source
 */
function indexOf (sources, source) {
  if (sources.length === 1) return 0
  const name = source.replaceAll('\\', '/')
  const matches = sources.map((candidate, i) => ({ i, suffix: suffixOf(candidate) }))
    .filter(({ suffix }) => name.endsWith(suffix) || decoded(name).endsWith(suffix))
    .sort((a, b) => b.suffix.length - a.suffix.length)
  const [first, second] = matches
  return first === undefined || first.suffix.length === second?.suffix.length ? -1 : first.i
}

/** @param {string} source name in a map */
function suffixOf (source) {
  return `/${decoded(String(source)).replace(/^[a-z][\w+.-]*:\/*/i, '').replace(/^(\.{0,2}\/)+/, '')}`
}

/** @param {string} text */
const decoded = (text) => attempt(() => decodeURIComponent(text)) ?? text

/**
 * Whether this process compiles files of this kind to other code. Unmapped frame positions then refer to text
 * that is not on disk.
 * @param {string} file
 */
function isRewritten (file) {
  if (isSource(file)) return false
  const { _extensions: loaders } = /** @type {any} */ (Module)
  // Node's own loaders (lib/internal/modules/cjs/loader.js); some kinds of files have none.
  const own = /\b(StringPrototypeEndsWith|loadSource)\(/
  const isOfNode = (/** @type {Function} */ loader) => own.test(Function.prototype.toString.call(loader))
  return ['.js', path.extname(file)].some((name) => loaders[name] !== undefined && !isOfNode(loaders[name]))
}

/** @param {string | undefined} text @param {number} number from 1 @returns {string | undefined} */
const lineOf = (text, number) => text?.split('\n', number)[number - 1]?.replace(/\r$/, '')

/**
 * @param {string} line
 * @param {number} lineNumber
 * @param {number} columnNumber
 * @param {number} columns of the terminal
 * @returns {string[]}
 */
function codeLinesOf (line, lineNumber, columnNumber, columns) {
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

module.exports = { createCodeLines, linkFrame, paint, paintHop, paintLines, readSource }
