'use strict'

// Output of the commands: colours on a terminal, no error when a pipe's reader ends, progress that is erased.
//
// All text passes `cleanText` on its way out: names and messages come from other processes and from files,
// and may contain escape sequences that a terminal obeys. Only colours made here pass, known by a random key.

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
/** Further parameters of the sequence of a colour, so that it takes no columns (columnsOf in wrap.js). */
const KEY = Array.from({ length: 4 }, () => `;${randomInt(1000, 10_000)}`).join('')
const OWN_COLOUR = new RegExp(`\\x1b\\[(\\d+)${KEY}m`)

let areErrorsHandled = false

/**
 * Ends the process when stdout cannot be written; without an error if its reader ended, such as `head`. This
 * opens the streams, which makes a pipe or socket non-blocking for all that have it: `longstack run` does so
 * only to print, since a program may take the place of this process.
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
 * Writes text to stdout, without what a terminal could take for a command.
 * @param {string} text
 * @returns {Promise<void>} resolves when it is written, or the reader ended
 */
function print (text) {
  return printExactly(cleanText(text))
}

/**
 * Writes to stdout what has no foreign text in it, or has to stay what it is.
 * @param {string | Buffer} text
 * @returns {Promise<void>} resolves when it is written, or the reader ended
 */
function printExactly (text) {
  handleStreamErrors()
  return new Promise((resolve) => process.stdout.write(text, () => resolve()))
}

/**
 * Renders JSON; characters that a terminal could take for a command are escaped.
 * @param {unknown} value
 * @param {number} [indent] 0: in one line
 */
function asJson (value, indent = 2) {
  const lines = JSON.stringify(value, undefined, indent).split('\n')
  return `${lines.map(escapeJson).join('\n')}\n`
}

/**
 * Writes a file that the user has named, or to stdout.
 * @param {string} file `-`: stdout
 * @param {string | Buffer} content
 */
async function write (file, content) {
  if (file === '-') return await (process.stdout.isTTY ? print(String(content)) : printExactly(content))
  fs.writeFileSync(file, content, { mode: 0o600 }) // one that is there keeps its mode
  printError(`Wrote ${file} (${(content.length / 1e6).toFixed(1)} MB).`)
}

/** Writes a line to stderr, without what a terminal could take for a command. @param {string} line */
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

/** Returns the columns of a line: what COLUMNS says, or those of the terminal, or of a common one. */
function width () {
  const columns = Number(process.env.COLUMNS)
  return Number.isSafeInteger(columns) && columns > 0 ? columns : process.stdout.columns ?? DEFAULT_COLUMNS
}

/**
 * Prints what is done meanwhile, on a terminal, in a line that is erased.
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
 * Prints the progress of reading on a terminal.
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

module.exports = {
  asJson,
  cleanText,
  colours,
  handleStreamErrors,
  print,
  printError,
  printExactly,
  width,
  withProgress,
  withStatus,
  write
}
