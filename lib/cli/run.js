'use strict'

// longstack run: node -r longstack/register, with a flag for every option. The program takes the place of this process
// where Node can do that (22.15 and later, not on Windows), so that signals, standard streams, process id and exit code
// are its own; elsewhere it is a child whose signals and end are passed on.

const { rules, parseOptions, defaultOptions } = require('../options')
const { optionTable } = require('../option-table')
const { describe, parse, whole, Wrong } = require('./flags')
const { print } = require('./terminal')

const MS = 1000 // of quiet, after which what is open is a leak

/** @type {import('./flags').Flags} */
const own = {
  'fail-on-leak': {
    type: 'optional',
    value: 'MS',
    says: `exit with code 3, and say what is open and who opened it, when the program does nothing for MS ms (default ${MS}) and does not end. A repeating timer that goes on is no work`
  },
  'node-options': { type: 'string', value: 'FLAGS', says: 'flags for node itself, for example "--enable-source-maps --max-old-space-size=4096"' }
}

/** @returns {import('./flags').Flags} one for each option */
function optionFlags () {
  return Object.fromEntries(optionTable().map((row) => {
    const { flag, flagPurpose, initial, placeholder, variable, written } = row
    const variableText = `; as ${variable}${describeDefault(initial)}`
    if (typeof initial === 'boolean') return [flag, { type: 'boolean', says: `${flagPurpose}${variableText}` }]
    return [flag, { type: 'string', value: placeholder, says: `${flagPurpose}: ${written}${variableText}` }]
  }))
}

/** @param {unknown} initial */
function describeDefault (initial) {
  if (initial === undefined || initial === false) return ''
  return initial === true ? '=off' : `, default ${initial}`
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
  const { flags: given, rest } = parse(args, flags, true)
  if (given.help) return await print(help)
  if (rest.length === 0) throw new Wrong('No script is named.')
  const env = { ...process.env, ...environment(given) }
  const preloads = ['-r', require.resolve('../register')]
  if (given['fail-on-leak'] !== undefined) {
    preloads.push('-r', require.resolve('../leak-watch'))
    Object.assign(env, require('../leak-watch').ask(given['fail-on-leak'] === true ? MS : whole('fail-on-leak', given['fail-on-leak'], 1)))
  }
  return await require('./replace-process').become([...split(given['node-options'] ?? ''), ...preloads, ...(rest[0].startsWith('-') ? ['--'] : []), ...rest], env)
}

/** Returns the variables for the options that were given as flags. @param {Record<string, any>} given */
function environment (given) {
  /** @type {Record<string, string>} */
  const env = {}
  for (const { flag, initial, name, variable } of optionTable()) {
    const value = given[flag]
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
 * @throws {Wrong}
 */
function check (name, flag, text) {
  try {
    parseOptions({ [name]: rules[name].fromText(text) }, defaultOptions())
  } catch (error) {
    throw new Wrong(`--${flag}: ${/** @type {Error} */ (error).message}`)
  }
}

/** Words with spaces between them; quotes and backslashes as in NODE_OPTIONS. @param {string} text */
function split (text) {
  const found = text.match(/(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+/g) ?? []
  if (found.join('').length !== text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1').length) throw new Wrong('--node-options has a quote without its end.')
  return found.map((word) => word.replace(/\\(.)|"/g, '$1'))
}

module.exports = { help, main, split }
