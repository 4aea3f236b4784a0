'use strict'

// longstack env: prints the environment that preloads longstack into every Node process, as shell commands or
// JSON. The path is absolute: NODE_OPTIONS="-r longstack/register" fails in each Node process that cannot
// resolve longstack from its directory, such as npm and git hooks. Also makes the environment of a program
// started by longstack run: variables for options given as flags.
//
// Node's syntax of NODE_OPTIONS (ParseNodeOptionsEnvVar in src/node.cc): only spaces separate words; double
// quotes, anywhere in a word, keep spaces; a backslash escapes a character, but only within quotes.

const Module = require('node:module')
const { defaultOptions, parseOptions, rules } = require('../options')
const { DEFAULTS, REGISTER: OWN_REGISTER, SHELLS } = require('./commands')
const { quote, suggestion, UsageError } = require('./flags')
const { asJson, printExactly } = require('./terminal')

const REGISTER = /(?:^|[\\/])longstack[\\/](?:register|lib[\\/]register\.js)$/
/** A quoted part, and a word with such parts and its leading spaces. */
const QUOTED = /"((?:\\.|[^"\\])*)"/gs
const WORD = new RegExp(` *(?:[^ "]|${QUOTED.source})+`, 'gs')
const PRELOAD_FLAG = /^(?:-r|--require|--import)(?:=|$)/

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
  await printExactly(json ? asJson(variables) : assign(shell, variables))
}

/**
 * Adds the loader of Yarn Plug'n'Play if it loaded longstack, since the files may be in an archive.
 * @param {string} present current NODE_OPTIONS
 */
function withPlugAndPlay (present) {
  const api = /** @type {any} */ (Module).findPnpApi?.(__filename)
  const loader = api?.resolveRequest('pnpapi', null)
  if (typeof loader !== 'string') return present
  const isPresent = wordsOf(present).some(({ value }) => value.endsWith(loader))
  return isPresent ? present : `${quoteWord(`--require=${loader}`)} ${present}`
}

/**
 * Formats assignments for shells; the value may contain any character.
 * @type {Record<string, (name: string, value: string) => string>}
 */
const assignments = {
  sh: (name, value) => `export ${name}='${value.replaceAll("'", "'\\''")}'`,
  fish: (name, value) => `set -gx ${name} '${value.replace(/['\\]/g, '\\$&')}'`,
  // PowerShell treats typographic quotes like straight ones: about_Quoting_Rules
  powershell: (name, value) => `$env:${name} = '${value.replace(/['\u2018-\u201b]/g, '$&$&')}'`,
  cmd: (name, value) => `@set "${name}=${escapeForCmd(value)}"`
}

/**
 * Escapes a value for a batch file, within double quotes: a quote in the value ends them, and cmd interprets
 * the text up to the next one.
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
 * @returns {string} one line per variable
 */
function assign (shell, variables) {
  const assignment = assignments[shell] ?? assignments[shell === 'pwsh' ? 'powershell' : 'sh']
  return Object.entries(variables).map(([name, value]) => `${assignment(name, value)}\n`).join('')
}

/** @typedef {{ text: string, value: string }} Word value: without leading spaces, quotes and escapes */

/**
 * @param {string} text
 * @param {string} [source] name of its source, for the message
 * @returns {Word[]}
 * @throws {UsageError} for an unterminated quote, which Node rejects, too
 */
function wordsOf (text, source = 'NODE_OPTIONS') {
  if (text.replace(WORD, '').includes('"')) throw new UsageError(`Unterminated quote in ${source}.`)
  return [...text.matchAll(WORD)].map(([word]) => {
    const value = word.replace(/^ +/, '').replace(QUOTED, (_, quoted) => quoted.replace(/\\(.)/gs, '$1'))
    return { text: word, value }
  })
}

/** @param {string} word */
function quoteWord (word) {
  return /[ "]/.test(word) ? `"${word.replace(/["\\]/g, '\\$&')}"` : word
}

/**
 * Appends a preload to NODE_OPTIONS, replacing any preload of longstack in it.
 * @param {string} text current NODE_OPTIONS
 * @param {string} file absolute path of lib/register.js
 * @returns {string}
 */
function withRegister (text, file) {
  const words = wordsOf(text)
  /** @type {string[]} */
  const kept = []
  for (let i = 0; i < words.length; i++) {
    const flag = PRELOAD_FLAG.exec(words[i].value)?.[0]
    const isInline = flag?.endsWith('=')
    const name = isInline ? words[i].value.slice(flag?.length) : words[i + 1]?.value ?? ''
    const isRegister = name === file || name === OWN_REGISTER || REGISTER.test(name)
    if (flag === undefined || !isRegister) kept.push(words[i].text)
    else if (!isInline) i++
  }
  return `${kept.join('')} ${quoteWord(`--require=${file}`)}`.replace(/^ +/, '')
}

/**
 * Returns the environment variables for options given as flags.
 * @param {Record<string, any>} values by flag
 * @returns {Record<string, string>}
 * @throws {UsageError}
 */
function variablesOf (values) {
  const entries = Object.entries(rules).filter(([, { flag }]) => values[flag] !== undefined)
  return Object.fromEntries(entries.map(([name, { flag, fromText, initial, variable }]) => {
    const text = initial === true ? 'off' : String(values[flag])
    try {
      parseOptions({ [name]: fromText(text) }, defaultOptions())
    } catch (error) {
      throw new UsageError(`--${flag}: ${/** @type {Error} */ (error).message}`)
    }
    return [variable, text]
  }))
}

module.exports = { main, quoteWord, variablesOf, withRegister, wordsOf }
