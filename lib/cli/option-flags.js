'use strict'

// The options of longstack as flags of a command, and as the variables that a program gets.

const { NO_LIGHT_MODE, rules, parseOptions, defaultOptions } = require('../options')
const { optionTable } = require('../option-table')
const { UsageError } = require('./flags')
const { printError } = require('./terminal')

const MIB = 2 ** 20

/** @returns {import('./flags').Flags} one for each option, and --mode, which is gone */
function optionFlags () {
  const flags = Object.fromEntries(optionTable().map((row) => {
    const { flag, flagPurpose, initial, placeholder, unit, variable, written } = row
    const variableText = `; as ${variable}${describeDefault(initial, unit)}`
    return [flag, typeof initial === 'boolean'
      ? { type: 'boolean', description: `${flagPurpose}${variableText}` }
      : { type: 'string', value: placeholder, description: `${flagPurpose}: ${written}${variableText}` }]
  }))
  return { ...flags, mode: { type: 'string' } }
}

/** @param {unknown} initial @param {string} [unit] */
function describeDefault (initial, unit) {
  if (initial === undefined || initial === false) return ''
  if (initial === true) return '=off'
  return unit === 'bytes' ? `, default ${Number(initial) / MIB} MiB (${initial})` : `, default ${initial}`
}

/**
 * Returns the variables for the options that were given as flags.
 * @param {Record<string, any>} values by flag
 * @returns {Record<string, string>}
 * @throws {UsageError}
 */
function variablesOf (values) {
  /** @type {Record<string, string>} */
  const env = {}
  if (values.mode !== undefined && values.mode !== 'full') printError(`longstack: --mode: ${NO_LIGHT_MODE}`)
  for (const { flag, initial, name, variable } of optionTable()) {
    const value = values[flag]
    if (value === undefined) continue
    const text = initial === true ? 'off' : String(value)
    check(name, flag, text)
    env[variable] = text
  }
  return env
}

/**
 * @param {import('../option-table').OptionName} name
 * @param {string} flag
 * @param {string} text its value
 * @throws {UsageError}
 */
function check (name, flag, text) {
  try {
    parseOptions({ [name]: rules[name].fromText(text) }, defaultOptions())
  } catch (error) {
    throw new UsageError(`--${flag}: ${/** @type {Error} */ (error).message}`)
  }
}

module.exports = { optionFlags, variablesOf }
