'use strict'

// longstack env: prints the environment that preloads longstack into every Node process, as commands of a
// shell or as JSON. The path is absolute: NODE_OPTIONS="-r longstack/register" ends each Node process that is
// started where longstack cannot be resolved, npm and git hooks among them.

const Module = require('node:module')
const { DEFAULTS, SHELLS } = require('./commands')
const { quote, suggestion, UsageError } = require('./flags')
const { quoteWord, variablesOf, withRegister, wordsOf } = require('./node-options')
const { asJson, print } = require('./terminal')

/** @type {import('./commands').Main} */
async function main (values) {
  const { json, shell = DEFAULTS.shell } = values
  if (json && values.shell !== undefined) throw new UsageError('--json and --shell exclude each other.')
  if (!SHELLS.includes(shell)) {
    const hint = suggestion(shell, SHELLS) || ` Expected ${SHELLS.join(', ')}.`
    throw new UsageError(`--shell: unknown shell ${quote(shell)}.${hint}`)
  }
  const present = withPlugAndPlay(process.env.NODE_OPTIONS ?? '')
  const nodeOptions = withRegister(present, require.resolve('../register'))
  const variables = { NODE_OPTIONS: nodeOptions, ...variablesOf(values) }
  await print(json ? asJson(variables) : assign(shell, variables))
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

/**
 * Assignments as shells read them, whatever is in the value.
 * @type {Record<string, (name: string, value: string) => string>}
 */
const assignments = {
  sh: (name, value) => `export ${name}='${value.replaceAll("'", "'\\''")}'`,
  fish: (name, value) => `set -gx ${name} '${value.replace(/['\\]/g, '\\$&')}'`,
  // It takes typographic quotes for straight ones: about_Quoting_Rules
  powershell: (name, value) => `$env:${name} = '${value.replace(/['\u2018-\u201b]/g, '$&$&')}'`,
  cmd: (name, value) => `@set "${name}=${escapeForCmd(value)}"`
}

/**
 * Escapes a value for a batch file, within double quotes: a quote in the value ends them, and what is between
 * that and the next one is code of the shell's.
 * @param {string} value
 */
function escapeForCmd (value) {
  let isQuoted = true
  return value.replace(/["%&|<>^()]/g, (char) => {
    if (char === '"') isQuoted = !isQuoted
    if (char === '%') return '%%'
    return isQuoted || char === '"' ? char : `^${char}`
  })
}

/**
 * @param {string} shell one of SHELLS
 * @param {Record<string, string>} variables
 * @returns {string} one line for each
 */
function assign (shell, variables) {
  const assignment = assignments[shell] ?? assignments[shell === 'pwsh' ? 'powershell' : 'sh']
  return Object.entries(variables).map(([name, value]) => `${assignment(name, value)}\n`).join('')
}

module.exports = { main }
