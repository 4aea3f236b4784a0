'use strict'

// longstack run: node -r longstack/register, with a flag for every option. The program replaces this process
// where Node has process.execve (22.15 and later, not on Windows), and so keeps its signals, standard
// streams, process id and exit code; elsewhere it is a child, to which they are passed through.

const { describe, integer, parse, UsageError } = require('./flags')
const { wordsOf } = require('./node-options')
const { optionFlags, variablesOf } = require('./option-flags')
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
  'why-still-running': {
    type: 'optional',
    value: 'MS',
    description: 'print what is open and who opened it, once, when the program is idle for MS ms ' +
      `(default ${DEFAULT_QUIET_MS}) but does not end; it goes on`
  },
  'node-options': {
    type: 'string',
    value: 'FLAGS',
    description: 'flags for node itself, for example "--enable-source-maps --max-old-space-size=4096"'
  }
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
  const env = { ...process.env, ...variablesOf(values) }
  const preloads = ['-r', require.resolve('../register')]
  const watches = { failMs: quietMs(values, 'fail-on-leak'), reportMs: quietMs(values, 'why-still-running') }
  if (watches.failMs !== undefined || watches.reportMs !== undefined) {
    preloads.push('-r', require.resolve('../leak-watch'))
    Object.assign(env, require('../leak-watch').leakWatchEnvironment(watches))
  }
  const nodeOptions = wordsOf(values['node-options'] ?? '', '--node-options').map(({ value }) => value)
  const separator = operands[0].startsWith('-') ? ['--'] : []
  const { replaceProcess } = require('./replace-process')
  return await replaceProcess([...nodeOptions, ...preloads, ...separator, ...operands], env)
}

/**
 * @param {Record<string, any>} values
 * @param {string} flag
 * @returns {number | undefined} undefined: not asked
 */
function quietMs (values, flag) {
  const value = values[flag]
  return value === undefined || value === true ? value && DEFAULT_QUIET_MS : integer(flag, value, 1)
}

module.exports = { help, main }
