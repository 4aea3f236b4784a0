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
  const quiet = values['fail-on-leak']
  if (quiet !== undefined) {
    preloads.push('-r', require.resolve('../leak-watch'))
    const ms = quiet === true ? DEFAULT_QUIET_MS : integer('fail-on-leak', quiet, 1)
    Object.assign(env, require('../leak-watch').leakWatchEnvironment(ms))
  }
  const nodeOptions = wordsOf(values['node-options'] ?? '', '--node-options').map(({ value }) => value)
  const separator = operands[0].startsWith('-') ? ['--'] : []
  const { replaceProcess } = require('./replace-process')
  return await replaceProcess([...nodeOptions, ...preloads, ...separator, ...operands], env)
}

module.exports = { help, main }
