'use strict'

// The options of longstack as flags of a command, and as the variables that a program gets.

const { NO_LIGHT_MODE, rules, parseOptions, defaultOptions } = require('../options')
const { UsageError } = require('./flags')
const { printError } = require('./terminal')

const MIB = 2 ** 20

/** @returns {import('./flags').Flags} one for each option, and --mode, which is gone */
function optionFlags () {
  const flags = Object.fromEntries(Object.values(rules).map((rule) => {
    const { allowed, flag, placeholder, purpose, flagPurpose = purpose, variable, written = allowed } = rule
    const variableText = `; as ${variable}${describeDefault(rule)}`
    return [flag, placeholder === undefined
      ? { type: 'boolean', description: `${flagPurpose}${variableText}` }
      : { type: 'string', value: placeholder, description: `${flagPurpose}: ${written}${variableText}` }]
  }))
  return { ...flags, mode: { type: 'string' } }
}

/** @param {import('../options').Rule} rule */
function describeDefault ({ initial, unit }) {
  if (initial === undefined || initial === false) return ''
  if (initial === true) return '=off'
  return unit === 'bytes' ? `, default ${initial / MIB} MiB (${initial})` : `, default ${initial}`
}

/**
 * Returns the variables for the options that were given as flags.
 * @param {Record<string, any>} values by flag
 * @returns {Record<string, string>}
 * @throws {UsageError}
 */
function variablesOf (values) {
  if (values.mode !== undefined && values.mode !== 'full') printError(`longstack: --mode: ${NO_LIGHT_MODE}`)
  const given = Object.entries(rules).filter(([, { flag }]) => values[flag] !== undefined)
  return Object.fromEntries(given.map(([name, { flag, fromText, initial, variable }]) => {
    const text = initial === true ? 'off' : String(values[flag])
    try {
      parseOptions({ [name]: fromText(text) }, defaultOptions())
    } catch (error) {
      throw new UsageError(`--${flag}: ${/** @type {Error} */ (error).message}`)
    }
    return [variable, text]
  }))
}

module.exports = { optionFlags, variablesOf }
