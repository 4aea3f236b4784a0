'use strict'

// longstack run: node -r longstack/register, with a flag for every option. The program replaces this process
// where Node has process.execve (22.15 and later, not on Windows), and so keeps its signals, standard
// streams, process id and exit code; elsewhere it is a child, to which they are passed through.

const { rules, parseOptions, defaultOptions } = require('../options')
const { optionTable } = require('../option-table')
const { describe, integer, parse, UsageError } = require('./flags')
const { printHelp } = require('./terminal')

const DEFAULT_QUIET_MS = 1000 // after which open handles count as leaks

/** @type {import('./flags').Flags} */
const own = {
  'fail-on-leak': {
    type: 'optional',
    value: 'MS',
    description: 'exit with code 3, and print what is open and who opened it, when the program is idle for ' +
      `MS ms (default ${DEFAULT_QUIET_MS}) but does not end (repeating timers count as idle)`
  },
  'node-options': {
    type: 'string',
    value: 'FLAGS',
    description: 'flags for node itself, for example "--enable-source-maps --max-old-space-size=4096"'
  }
}

const MIB = 2 ** 20

/** @returns {import('./flags').Flags} one for each option */
function optionFlags () {
  return Object.fromEntries(optionTable().map((row) => {
    const { flag, flagPurpose, initial, placeholder, unit, variable, written } = row
    const variableText = `; as ${variable}${describeDefault(initial, unit)}`
    return [flag, typeof initial === 'boolean'
      ? { type: 'boolean', description: `${flagPurpose}${variableText}` }
      : { type: 'string', value: placeholder, description: `${flagPurpose}: ${written}${variableText}` }]
  }))
}

/** @param {unknown} initial @param {string} [unit] */
function describeDefault (initial, unit) {
  if (initial === undefined || initial === false) return ''
  if (initial === true) return '=off'
  return unit === 'bytes' ? `, default ${Number(initial) / MIB} MiB (${initial})` : `, default ${initial}`
}

const flags = { ...optionFlags(), ...own }

const help = `Runs a program with long stack traces, like node -r longstack/register.

  longstack run [flags] app.js [args of the program]

Flags stand before the script; what follows are arguments of the program. Options not given as flags are read
from LONGSTACK_* variables.

${describe(flags)}

Exit code: the program's; 3 for a leak, 2 for wrong usage of this command.
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands } = parse(args, flags, true)
  if (values.help) return await printHelp(help)
  if (operands.length === 0) throw new UsageError('Missing script argument.')
  const env = { ...process.env, ...environment(values) }
  const preloads = ['-r', require.resolve('../register')]
  const quiet = values['fail-on-leak']
  if (quiet !== undefined) {
    preloads.push('-r', require.resolve('../leak-watch'))
    const ms = quiet === true ? DEFAULT_QUIET_MS : integer('fail-on-leak', quiet, 1)
    Object.assign(env, require('../leak-watch').leakWatchEnvironment(ms))
  }
  const nodeOptions = split(values['node-options'] ?? '')
  const separator = operands[0].startsWith('-') ? ['--'] : []
  const { replaceProcess } = require('./replace-process')
  return await replaceProcess([...nodeOptions, ...preloads, ...separator, ...operands], env)
}

/** Returns the variables for the options that were given as flags. @param {Record<string, any>} values */
function environment (values) {
  /** @type {Record<string, string>} */
  const env = {}
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

/** Splits at spaces; quotes and backslashes as in NODE_OPTIONS. @param {string} text @throws {UsageError} */
function split (text) {
  const words = text.match(/(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+/g) ?? []
  const withoutSpaces = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')
  if (words.join('').length !== withoutSpaces.length) {
    throw new UsageError('Unterminated quote in --node-options.')
  }
  return words.map((word) => word.replace(/\\(.)|"/g, '$1'))
}

module.exports = { help, main, split }
