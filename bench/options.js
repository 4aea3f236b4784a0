'use strict'

// Option parsing for the command lines in this directory.

const { parseArgs } = require('node:util')
const machine = require('./machine')

/** Wrong usage, with a sentence as its message. */
class UsageError extends Error {}

/** Prints progress to stderr; only figures go to stdout. @param {string} text */
const printStatus = (text) => process.stderr.write(`${text}\n`)

/**
 * @template {NonNullable<import('node:util').ParseArgsConfig['options']>} Options
 * @param {string[]} args
 * @param {Options} options
 * @throws {UsageError} for an unknown or invalid option
 */
function valuesOf (args, options) {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message)
  }
}

/** @param {string | undefined} value @param {number} defaultValue @throws {UsageError} */
function roundsOf (value, defaultValue) {
  const rounds = Number(value ?? defaultValue)
  if (Number.isInteger(rounds) && rounds >= 1) return rounds
  throw new UsageError(`--rounds must be an integer, 1 or more, not ${JSON.stringify(value)}.`)
}

/**
 * @param {string | undefined} value seconds
 * @param {number} defaultValue ms
 * @returns {number} ms
 * @throws {UsageError}
 */
function millisecondsOf (value, defaultValue) {
  const seconds = Number(value ?? defaultValue / 1000)
  if (seconds > 0 && seconds <= 600) return seconds * 1000
  throw new UsageError(`--seconds must be a number above 0 and up to 600, not ${JSON.stringify(value)}.`)
}

/** @param {string} file @returns {string} such as 24.1.0 @throws {UsageError} if it is not a Node binary */
function versionOf (file) {
  const version = machine.output(file, ['-p', 'process.version'])?.trim()
  if (version !== undefined && /^v\d+\.\d+\.\d+/.test(version)) return version.slice(1)
  throw new UsageError(`${file} is not a Node binary that runs on this machine.`)
}

module.exports = { UsageError, printStatus, valuesOf, roundsOf, millisecondsOf, versionOf }
