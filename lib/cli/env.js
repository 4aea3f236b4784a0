'use strict'

// longstack env: prints the environment that preloads longstack into every Node process, as commands of a
// shell or as JSON. The path is absolute: NODE_OPTIONS="-r longstack/register" ends each Node process that is
// started where longstack cannot be resolved, npm and git hooks among them.

const Module = require('node:module')
const { nearest } = require('../errors')
const { describe, parse, quote, UsageError } = require('./flags')
const { quoteWord, withRegister, wordsOf } = require('./node-options')
const { optionFlags, variablesOf } = require('./option-flags')
const { assign, shells } = require('./shells')
const { asJson, print, printHelp } = require('./terminal')

const DEFAULT_SHELL = process.platform === 'win32' ? 'powershell' : 'sh'

/** @type {import('./flags').Flags} */
const own = {
  shell: {
    type: 'string',
    value: 'SHELL',
    description: `${shells.slice(0, -1).join(', ')} or ${shells.at(-1)}; default ${DEFAULT_SHELL}`
  },
  json: { type: 'boolean', description: 'the variables as a JSON object' }
}

const flags = { ...optionFlags(), ...own }

const help = `Prints the variables that preload longstack into every Node process, wherever it is started.

  eval "$(longstack env)"                                       sh, bash, zsh
  longstack env --shell fish | source                           fish
  longstack env --shell powershell | Out-String | iex           PowerShell
  longstack env --shell cmd > env.cmd && env.cmd                cmd

NODE_OPTIONS keeps what it has. Files in options are relative to the directory of each process.

${describe(flags)}
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands } = parse(args, flags)
  if (values.help) return await printHelp(help)
  if (operands.length > 0) {
    throw new UsageError(`longstack env takes no arguments. Received ${quote(operands[0])}.`)
  }
  const { json, shell = DEFAULT_SHELL } = values
  if (json && values.shell !== undefined) throw new UsageError('--json and --shell exclude each other.')
  if (!shells.includes(shell)) {
    throw new UsageError(`--shell: unknown shell ${quote(shell)}.${hintFor(shell)}`)
  }
  const variables = { NODE_OPTIONS: nodeOptions(process.env.NODE_OPTIONS ?? ''), ...variablesOf(values) }
  await print(json ? asJson(variables) : assign(shell, variables))
}

/** @param {string} shell */
function hintFor (shell) {
  const hint = nearest(shell, shells)
  return hint === undefined ? ` Expected ${shells.join(', ')}.` : ` Did you mean ${quote(hint)}?`
}

/** @param {string} present what NODE_OPTIONS has */
function nodeOptions (present) {
  return withRegister(withPlugAndPlay(present), require.resolve('../register'))
}

/**
 * Adds the loader of Yarn Plug'n'Play where longstack is loaded by it: its files may be in an archive.
 * @param {string} present what NODE_OPTIONS has
 */
function withPlugAndPlay (present) {
  const api = /** @type {any} */ (Module).findPnpApi?.(__filename)
  const loader = api?.resolveRequest('pnpapi', null)
  if (typeof loader !== 'string') return present
  const isPresent = wordsOf(present).some(({ value }) => value.endsWith(loader))
  return isPresent ? present : `${quoteWord(`--require=${loader}`)} ${present}`
}

module.exports = { help, main }
