'use strict'

// The options: default value, environment variable, accepted values. No other file reads the environment for
// them. What is written about each, for people, is in option-table.js, which is loaded for help and documents
// only.

const { types } = require('node:util')
const { printFromMainThread } = require('./warnings')

/** @typedef {import('./option-types').Options} Options */

/**
 * @template Value
 * @typedef {object} Rule
 * @property {string} variable environment variable
 * @property {Value} initial default value
 * @property {string} allowed completes 'Option "NAME" must be'
 * @property {(value: any) => boolean} accepts
 * @property {(text: string) => any} fromText reads the value of a variable or flag; text that cannot be read
 *   comes back as it is, for the message
 * @property {string} [unit] of an integer
 * @property {string[]} [choices] all accepted words
 */

const MAX_SOCKET_PATH = 80 // the system allows 103 to 107; a pid and a directory's name may follow
const MEASURES = ['ms', 'bytes'] // units that a message names; frames and hops are counted
const NO_LIGHT_MODE = 'there is no light mode any more; full costs less, and is in force.'

/** @param {number} min @param {number} max @param {string} unit */
const integer = (min, max, unit) => ({
  unit,
  allowed: `an integer from ${min} to ${max}${MEASURES.includes(unit) ? ` (${unit})` : ''}`,
  accepts: (/** @type {any} */ value) => Number.isInteger(value) && value >= min && value <= max,
  fromText (/** @type {string} */ text) {
    const [, digits, power] = /^\s*(\d+)\s*([KMG]iB)?\s*$/i.exec(text) ?? []
    if (digits === undefined || (power !== undefined && unit !== 'bytes')) return text
    return Number(digits) * 1024 ** (power === undefined ? 0 : ' KMG'.indexOf(power[0].toUpperCase()))
  }
})

/** @param {string[]} choices */
const oneOf = (...choices) => ({
  choices,
  allowed: `${choices.slice(0, -1).map((word) => `"${word}"`).join(', ')} or "${choices.at(-1)}"`,
  accepts: (/** @type {any} */ value) => choices.includes(value),
  fromText: (/** @type {string} */ text) => text
})

const boolean = {
  allowed: 'true or false',
  accepts: (/** @type {any} */ value) => typeof value === 'boolean',
  fromText (/** @type {string} */ text) {
    if (/^(1|true|on|yes)$/i.test(text)) return true
    return /^(0|false|off|no)$/i.test(text) ? false : text
  }
}

/** @type {{ [Name in keyof Options]: Rule<Options[Name]> }} */
const rules = {
  filter: {
    variable: 'LONGSTACK',
    initial: ['*'],
    allowed: "an array of names, for example ['TCP', 'PIPE']",
    accepts: (value) => Array.isArray(value) || (typeof value === 'string' && value.trim() !== ''),
    fromText: (text) => text.split(',').map((name) => name.trim()).filter((name) => name !== '')
  },
  frames: { variable: 'LONGSTACK_FRAMES', initial: 10, ...integer(1, 200, 'frames') },
  depth: { variable: 'LONGSTACK_DEPTH', initial: 16, ...integer(1, 1000, 'hops') },
  capture: { variable: 'LONGSTACK_CAPTURE', initial: 'auto', ...oneOf('auto', 'native', 'js') },
  internals: { variable: 'LONGSTACK_INTERNALS', initial: false, ...boolean },
  hide: {
    variable: 'LONGSTACK_HIDE',
    initial: 'node_modules',
    allowed: '"node_modules", a regular expression for file names, or a function of a frame',
    accepts: (value) => value === 'node_modules' || types.isRegExp(value) || typeof value === 'function',
    fromText: (text) => text === 'node_modules' ? text : regularExpression(text)
  },
  errors: {
    variable: 'LONGSTACK_ERRORS',
    initial: true,
    allowed: 'true, false or "print"',
    accepts: (value) => typeof value === 'boolean' || value === 'print',
    fromText: (text) => text.trim() === 'print' ? 'print' : boolean.fromText(text)
  },
  signal: {
    variable: 'LONGSTACK_SIGNAL',
    initial: undefined,
    allowed: 'the name of a signal that can be caught and that Node does not use, for example "SIGUSR2"',
    accepts: isFreeSignal,
    fromText: (text) => text
  },
  spans: {
    variable: 'LONGSTACK_SPANS',
    initial: undefined,
    allowed: 'a file, "-", the address of an OTLP collector, or several of these',
    accepts: (value) => require('./sinks/outputs').parseOutputs(value).length > 0,
    fromText: (text) => text
  },
  socket: {
    variable: 'LONGSTACK_SOCKET',
    initial: undefined,
    allowed: 'the path of a Unix socket, of at most 80 bytes',
    accepts: (value) => typeof value === 'string' && value !== '' && !value.includes('\0') &&
      Buffer.byteLength(value) <= MAX_SOCKET_PATH,
    fromText: (text) => text
  },
  propagate: { variable: 'LONGSTACK_PROPAGATE', initial: false, ...boolean },
  blocked: { variable: 'LONGSTACK_BLOCKED', initial: undefined, ...integer(1, 3_600_000, 'ms') },
  budget: { variable: 'LONGSTACK_BUDGET', initial: 64 << 20, ...integer(1 << 20, 2 ** 40, 'bytes') }
}

/** Variables that others read: runners/gate.js. */
const otherVariables = ['LONGSTACK_LEAKS']

/** @param {string} text with or without slashes around it */
function regularExpression (text) {
  try {
    return new RegExp(text.replace(/^\/(.*)\/$/, '$1'))
  } catch {
    return text
  }
}

/** @param {string} name of a signal */
function isFreeSignal (name) {
  return Object.hasOwn(require('node:os').constants.signals, name) && !/^SIG(KILL|STOP|USR1|PROF)$/.test(name)
}

/** @returns {Options} */
function defaultOptions () {
  const entries = Object.entries(rules).map(([name, { initial }]) => [name, initial])
  return /** @type {any} */ (Object.fromEntries(entries))
}

/**
 * Checks the argument of trace.enable.
 * @param {unknown} value undefined, a filter, or an object of options
 * @param {Options} base the options that the argument leaves out
 * @param {(code: string, sentence: string) => void} [warn] called for an option that is gone
 * @returns {Options}
 * @throws {import('./errors').LongstackError}
 */
function parseOptions (value, base, warn = () => {}) {
  if (value === undefined) return { ...base }
  const entries = entriesOf(value)
  if (entries === undefined) throw require('./errors').mistake('INVALID_OPTIONS', value)
  /** @type {any} */
  const options = { ...base }
  for (const [name, option] of entries) {
    if (name === 'mode') {
      if (option !== undefined && option !== 'full') warn('LIGHT_MODE', `option "mode": ${NO_LIGHT_MODE}`)
      continue
    }
    if (!Object.hasOwn(rules, name)) throw unknownName('UNKNOWN_OPTION', name, Object.keys(rules))
    if (option !== undefined) options[name] = check(/** @type {keyof Options} */ (name), option)
  }
  return options
}

/**
 * Reads the argument of trace.enable once.
 * @param {unknown} value a filter, or an object of options
 * @returns {Array<[string, unknown]> | undefined} undefined for any other value, and for one that throws
 *   while it is read
 */
function entriesOf (value) {
  try {
    if (Array.isArray(value)) return [['filter', [...value]]]
    const isObject = Object.prototype.toString.call(value) === '[object Object]'
    return isObject ? Object.entries(/** @type {object} */ (value)) : undefined
  } catch {
    return undefined
  }
}

/**
 * @param {keyof Options} name
 * @param {unknown} value
 * @returns {unknown} the value, of a filter a copy
 * @throws {import('./errors').LongstackError}
 */
function check (name, value) {
  try {
    if (rules[name].accepts(value)) return name === 'filter' ? checkedFilter(value) : value
  } catch (error) { // parseOutputs and compile explain; another error is the value's own: a proxy, a getter
    if (/^LONGSTACK_ERR_/.test(/** @type {any} */ (error)?.code)) throw error
  }
  const { mistake } = require('./errors')
  if (name === 'filter') throw mistake('INVALID_FILTER', value)
  throw mistake('INVALID_OPTION', name, value, rules[name].allowed)
}

/** @param {any} value an array, or names with commas between them @returns {string[]} a copy */
function checkedFilter (value) {
  const { providers } = require('./node-objects')
  const filter = typeof value === 'string' ? rules.filter.fromText(value) : [...value]
  require('./context/subsystems').compile(filter, providers())
  return filter
}

/**
 * @param {'UNKNOWN_OPTION' | 'UNKNOWN_VARIABLE'} code
 * @param {string} name
 * @param {Iterable<string>} names
 */
function unknownName (code, name, names) {
  const { mistake, nearest } = require('./errors')
  return mistake(code, name, nearest(name, names))
}

/**
 * Reads options from environment variables. A mistake there is reported in one line, and the default stays.
 * @param {Record<string, string | undefined>} env
 * @param {(sentence: string) => void} report
 * @returns {Options}
 */
function readEnvironment (env, report) {
  /** @type {any} */
  const options = defaultOptions()
  for (const variable of Object.keys(env)) {
    if (variable !== 'LONGSTACK' && !variable.startsWith('LONGSTACK_')) continue
    if (otherVariables.includes(variable)) continue
    const name = nameOf(variable)
    const text = /** @type {string} */ (env[variable])
    try {
      if (variable === 'LONGSTACK_MODE') {
        if (!['', 'full'].includes(text.trim())) report(`${variable}: ${NO_LIGHT_MODE}`)
      } else if (name === undefined) {
        const variables = Object.values(rules).map((rule) => rule.variable).concat(otherVariables)
        report(unknownName('UNKNOWN_VARIABLE', variable, variables).message)
      } else if (text.trim() !== '') { // an empty variable counts as not set
        options[name] = check(name, rules[name].fromText(text))
      }
    } catch (error) {
      report(`${variable}: ${/** @type {Error} */ (error).message}`)
    }
  }
  return options
}

/** @param {string} variable @returns {keyof Options | undefined} */
function nameOf (variable) {
  const names = /** @type {Array<keyof Options>} */ (Object.keys(rules))
  return names.find((name) => rules[name].variable === variable)
}

/** @type {Options | undefined} */
let fromEnvironment

/**
 * Returns the options of the environment, read once, with defaults for the others. The main thread reports
 * mistakes.
 * @returns {Options}
 */
function environmentOptions () {
  fromEnvironment ??= readEnvironment(process.env, printFromMainThread)
  return fromEnvironment
}

module.exports = { NO_LIGHT_MODE, defaultOptions, environmentOptions, parseOptions, rules }
