'use strict'

// What the command lines of this folder share.

const { parseArgs } = require('node:util')
const machine = require('./machine')

/** Wrong usage. */
class UsageError extends Error {}

/** To the person who waits: figures alone go to stdout. @param {string} text */
const printStatus = (text) => process.stderr.write(`${text}\n`)

/**
 * @template {NonNullable<import('node:util').ParseArgsConfig['options']>} Options
 * @param {string[]} args
 * @param {Options} options
 * @throws {UsageError} what they are not
 */
function valuesOf (args, options) {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message)
  }
}

/** @param {string | undefined} given @param {number} standard @throws {UsageError} */
function roundsOf (given, standard) {
  const rounds = Number(given ?? standard)
  if (!Number.isInteger(rounds) || rounds < 1) throw new UsageError(`--rounds must be a whole number of at least 1, not ${JSON.stringify(given)}.`)
  return rounds
}

/** @param {string | undefined} given @param {number} standard @returns {number} ms @throws {UsageError} */
function millisecondsOf (given, standard) {
  const seconds = Number(given ?? standard / 1000)
  if (seconds > 0 && seconds <= 600) return seconds * 1000
  throw new UsageError(`--seconds must be a number above 0 and up to 600, not ${JSON.stringify(given)}.`)
}

/** @param {string} file @returns {string} such as 24.1.0 @throws {UsageError} it is no Node */
function versionOf (file) {
  const version = machine.output(file, ['-p', 'process.version'])?.trim()
  if (version === undefined || !/^v\d+\.\d+\.\d+/.test(version)) throw new UsageError(`${file} is no Node that runs here.`)
  return version.slice(1)
}

module.exports = { UsageError, printStatus, valuesOf, roundsOf, millisecondsOf, versionOf }
