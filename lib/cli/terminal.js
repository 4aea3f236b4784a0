'use strict'

// Output of the commands: colours on a terminal, clean exit when a pipe's reader is gone, transient progress.
//
// All text passes `cleanText` before output: names and messages come from other processes and from files, and
// may contain terminal escape sequences. Only colours made here pass, recognized by a random key.
//
// Also the signals that users send to end a command.

const { randomInt } = require('node:crypto')
const fs = require('node:fs')
const { isatty } = require('node:tty')
const { noColours } = require('../../report/render/text-parts')
const { clean, escapeJson } = require('../text')

/** @typedef {import('../../report/render/text-parts').Colours} Colours */

const PROGRESS_DELAY_MS = 500
const PROGRESS_INTERVAL_MS = 200
const DEFAULT_COLUMNS = 80
const ERASE_LINE = '\r\x1b[2K'
/** Extra parameters of a colour sequence, so that it takes no columns (columnsOf in wrap.js). */
const KEY = Array.from({ length: 4 }, () => `;${randomInt(1000, 10_000)}`).join('')
const OWN_COLOUR = new RegExp(`\\x1b\\[(\\d+)${KEY}m`)

const SIGNALS = /** @type {NodeJS.Signals[]} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])

let areErrorsHandled = false

/**
 * Ends the process when stdout cannot be written, without an error if the reader, such as `head`, is gone.
 * This opens the streams, which makes a pipe or socket non-blocking for all its owners: `longstack run` calls
 * it only to print, since a program may replace this process.
 */
function handleStreamErrors () {
  if (areErrorsHandled) return
  areErrorsHandled = true
  process.stdout.on('error', (error) => {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EPIPE') process.exit()
    const line = `longstack: cannot write to standard output: ${error.message}\n`
    process.stderr.write(line, () => process.exit(1))
  })
  process.stderr.on('error', () => {})
}

/**
 * Replaces control and bidi characters of foreign text in each line.
 * @param {string} text
 */
function cleanText (text) {
  return text.split('\n').map((line) => {
    const parts = line.split(OWN_COLOUR) // own colours at odd indexes
    return parts.map((part, i) => i % 2 === 0 ? clean(part) : `\x1b[${part}m`).join('')
  }).join('\n')
}

/**
 * Writes text to stdout, without terminal escape sequences.
 * @param {string} text
 * @returns {Promise<void>} resolves when it is written, or the reader is gone
 */
function print (text) {
  return printExactly(cleanText(text))
}

/**
 * Writes text to stdout unchanged; for text without foreign parts, and for exact formats.
 * @param {string | Buffer} text
 * @returns {Promise<void>} resolves when it is written, or the reader is gone
 */
function printExactly (text) {
  handleStreamErrors()
  return new Promise((resolve) => process.stdout.write(text, () => resolve()))
}

/**
 * Renders JSON; control characters are escaped for terminals.
 * @param {unknown} value
 * @param {number} [indent] 0 for one line
 */
function asJson (value, indent = 2) {
  const lines = JSON.stringify(value, undefined, indent).split('\n')
  return `${lines.map(escapeJson).join('\n')}\n`
}

/**
 * Writes a file that the user has named, or stdout.
 * @param {string} file `-` for stdout
 * @param {string | Buffer} content
 */
async function write (file, content) {
  if (file === '-') return await (process.stdout.isTTY ? print(String(content)) : printExactly(content))
  fs.writeFileSync(file, content, { mode: 0o600 }) // an existing file keeps its mode
  const { length } = content
  const size = length < 100_000 ? `${(length / 1e3).toFixed(1)} kB` : `${(length / 1e6).toFixed(1)} MB`
  printError(`Wrote ${file} (${size}).`)
}

/** Writes a line to stderr, without terminal escape sequences. @param {string} line */
function printError (line) {
  handleStreamErrors()
  process.stderr.write(`${cleanText(line)}\n`)
}

/**
 * Returns the colours of stdout or stderr. chalk obeys FORCE_COLOR, but not NO_COLOR.
 * @param {1 | 2} [fd]
 * @returns {Colours}
 */
function colours (fd = 1) {
  if (process.env.FORCE_COLOR === undefined && (process.env.NO_COLOR || !isatty(fd))) return noColours
  const chalk = /** @type {any} */ (require('chalk')).default
  if (chalk.level === 0) return noColours
  return /** @type {any} */ (Object.fromEntries(Object.keys(noColours).map((name) => {
    const [open, close] = chalk[name]('|').replaceAll('m', `${KEY}m`).split('|')
    return [name, (/** @type {unknown} */ text) => text === '' ? '' : open + text + close]
  })))
}

/** Returns the line width: COLUMNS, or the terminal's, or a default. */
function width () {
  const columns = Number(process.env.COLUMNS)
  return Number.isSafeInteger(columns) && columns > 0 ? columns : process.stdout.columns ?? DEFAULT_COLUMNS
}

/**
 * Shows a status line on a terminal during the work, and erases it at the end.
 * @template T
 * @param {(show: (status: string) => void) => Promise<T>} work
 */
async function withStatus (work) {
  if (!isatty(2)) return await work(() => {})
  let isPrinted = false
  try {
    return await work((status) => {
      isPrinted = true
      process.stderr.write(`${ERASE_LINE}${clean(status)}`)
    })
  } finally {
    if (isPrinted) process.stderr.write(ERASE_LINE)
  }
}

/**
 * Shows the progress of reading on a terminal.
 * @template T
 * @param {(progress: (bytes: number, total: number | undefined) => void) => Promise<T>} work
 */
async function withProgress (work) {
  let next = Date.now() + PROGRESS_DELAY_MS
  return await withStatus((show) => work((bytes, total) => {
    const now = Date.now()
    if (now < next) return
    next = now + PROGRESS_INTERVAL_MS
    show(total === undefined
      ? `reading ${Math.round(bytes / 1e6)} MB`
      : `reading ${Math.floor(bytes / Math.max(total, bytes) * 100)} % of ${Math.round(total / 1e6)} MB`)
  }))
}

/**
 * Does work that a signal to this process stops.
 * @template T
 * @param {(signal: AbortSignal, stop: () => void) => Promise<T>} work
 */
async function untilSignal (work) {
  const controller = new AbortController()
  const stop = () => controller.abort()
  for (const name of SIGNALS) process.on(name, stop)
  try {
    return await work(controller.signal, stop)
  } finally {
    for (const name of SIGNALS) process.off(name, stop)
  }
}

module.exports = {
  asJson,
  cleanText,
  colours,
  handleStreamErrors,
  print,
  printError,
  printExactly,
  untilSignal,
  width,
  withProgress,
  withStatus,
  write
}
