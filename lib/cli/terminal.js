'use strict'

// What goes to the terminal, or into a pipe: colours where they are seen, a reader that goes away without a word,
// progress that leaves no trace.

const { isatty } = require('node:tty')
const { noColours } = require('../report/render/text-parts')

/** @typedef {import('../report/render/text-parts').Colours} Colours */

const PATIENCE = 500 // ms, before which nobody wants to hear of progress
const PACE = 200

/** A reader such as `head` that has seen enough is no error. */
function quietly () {
  process.stdout.on('error', (error) => {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EPIPE') process.exit()
    process.stderr.write(`longstack: standard output cannot be written to: ${error.message}\n`, () => process.exit(1))
  })
  process.stderr.on('error', () => {})
}

/** Text on stdout; done when it is gone, or its reader is. @param {string} text @returns {Promise<void>} */
function print (text) {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()))
}

/** @param {string} line on stderr */
function say (line) {
  process.stderr.write(`${line}\n`)
}

/** Colours of stdout: chalk knows FORCE_COLOR, not NO_COLOR. @returns {Colours} */
function colours () {
  if (process.env.FORCE_COLOR === undefined && (process.env.NO_COLOR || !isatty(1))) return noColours
  const chalk = /** @type {any} */ (require('chalk')).default
  return chalk.level === 0 ? noColours : chalk
}

/** Columns of the terminal, or enough for a file. */
function width () {
  return process.stdout.columns ?? (Number(process.env.COLUMNS) || 100)
}

/** Says on a terminal how far long work is. */
function createProgress () {
  if (!isatty(2)) return { step: undefined, end: () => {} }
  const began = Date.now()
  let next = began + PATIENCE
  let shown = false
  return {
    /** @param {number} bytes @param {number | undefined} of */
    step (bytes, of) {
      const now = Date.now()
      if (now < next) return
      next = now + PACE
      shown = true
      const megabytes = Math.round(bytes / 1e6)
      process.stderr.write(`\r\x1b[2Kreading ${of === undefined ? `${megabytes} MB` : `${Math.floor(bytes / Math.max(of, bytes) * 100)} % of ${Math.round(of / 1e6)} MB`}`)
    },
    end () {
      if (shown) process.stderr.write('\r\x1b[2K')
      shown = false
    }
  }
}

module.exports = { quietly, print, say, colours, width, createProgress }
