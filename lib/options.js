'use strict'

// The only table of options. Parsing, messages, command flags (cli/flags.js), docs/options.md and
// option-types.js (npm run docs) are derived from it. No other file reads their environment variables.

const { types } = require('node:util')
const { attempt } = require('./files')
const { printFromMainThread } = require('./warnings')

/** @typedef {import('./option-types').Options} Options */

/**
 * @typedef {object} Kind kind of value
 * @property {string} type in TypeScript
 * @property {string} allowed completes 'Option "NAME" must be'
 * @property {(value: any) => boolean} accepts
 * @property {(text: string) => any} fromText parses a variable or flag; returns invalid text unchanged
 * @property {string} [written] allowed text, if it differs
 * @property {string} [unit] of an integer
 *
 * @typedef {object} Description
 * @property {any} initial default value
 * @property {string} purpose one sentence, without its full stop
 * @property {string} [flagPurpose] purpose of a flag that turns the option off
 * @property {string} [placeholder] of the flag's value in the help; without it, the flag takes no value
 *
 * @typedef {Kind & Description & { variable: string, flag: string }} Rule flag: without dashes
 */

const MAX_SOCKET_PATH = 80 // the system allows 103 to 107; a pid and a directory name may follow
const MEASURES = ['ms', 'bytes'] // units that messages name; frames and hops are counts

/** @param {number} min @param {number} max @param {string} unit @returns {Kind} */
const integer = (min, max, unit) => ({
  unit,
  type: 'number',
  allowed: `an integer from ${min} to ${max}${MEASURES.includes(unit) ? ` (${unit})` : ''}`,
  accepts: (value) => Number.isInteger(value) && value >= min && value <= max,
  fromText (text) {
    const [, digits, power] = /^\s*(\d+)\s*([KMG]iB)?\s*$/i.exec(text) ?? []
    if (digits === undefined || (power !== undefined && unit !== 'bytes')) return text
    return Number(digits) * 1024 ** (power === undefined ? 0 : ' KMG'.indexOf(power[0].toUpperCase()))
  }
})

/** @param {string[]} words @returns {Kind} */
const oneOf = (...words) => ({
  type: words.map((word) => `'${word}'`).join(' | '),
  allowed: `${words.slice(0, -1).map((word) => `"${word}"`).join(', ')} or "${words.at(-1)}"`,
  accepts: (value) => words.includes(value),
  fromText: (text) => text
})

/** @type {Kind} */
const boolean = {
  type: 'boolean',
  allowed: 'true or false',
  accepts: (value) => typeof value === 'boolean',
  fromText (text) {
    if (/^(1|true|on|yes)$/i.test(text)) return true
    return /^(0|false|off|no)$/i.test(text) ? false : text
  }
}

/** @param {string} allowed @param {(value: any) => boolean} accepts @returns {Kind} */
const string = (allowed, accepts) => ({ type: 'string', allowed, accepts, fromText: (text) => text })

/** @type {{ [Name in keyof Options]: Kind & Description }} */
const table = {
  filter: {
    purpose: 'capture stacks only for resources of these subsystems',
    initial: ['*'],
    placeholder: 'NAMES',
    type: 'string[]',
    allowed: "an array of names, for example ['TCP', 'PIPE']",
    written: 'comma-separated names, for example TCP,PIPE',
    accepts: (value) => Array.isArray(value) || (typeof value === 'string' && value.trim() !== ''),
    fromText: (text) => text.split(',').map((name) => name.trim()).filter((name) => name !== '')
  },
  frames: {
    purpose: 'frames captured per hop', initial: 10, placeholder: 'N', ...integer(1, 200, 'frames')
  },
  depth: { purpose: 'hops printed per chain', initial: 16, placeholder: 'N', ...integer(1, 1000, 'hops') },
  capture: {
    purpose: 'the capture engine; auto is native if the addon loads, else js',
    initial: 'auto',
    placeholder: 'ENGINE',
    ...oneOf('auto', 'native', 'js')
  },
  internals: {
    purpose: "show everything: node: frames, raw types, Node's own hops and longstack's frames",
    initial: false,
    ...boolean
  },
  hide: {
    purpose: 'collapse these frames into a count in text output',
    initial: 'node_modules',
    placeholder: 'FILES',
    type: "'node_modules' | RegExp | ((frame: Frame) => boolean)",
    allowed: '"node_modules", a regular expression for file names, or a function of a frame',
    written: '"node_modules" or a regular expression for file names',
    accepts: (value) => value === 'node_modules' || types.isRegExp(value) || typeof value === 'function',
    fromText: (text) => text === 'node_modules' ? text : regularExpression(text)
  },
  errors: {
    purpose: 'append hops to error stacks',
    flagPurpose: 'do not append hops to error stacks; trace.stack(error) still returns them',
    initial: true,
    type: "boolean | 'print'",
    allowed: 'true, false or "print"',
    written: 'on, off or print',
    accepts: (value) => typeof value === 'boolean' || value === 'print',
    fromText: (text) => text.trim() === 'print' ? 'print' : boolean.fromText(text)
  },
  listeners: {
    purpose: 'show where the failing event listener was registered',
    initial: false,
    ...boolean
  },
  signal: {
    purpose: 'print open handles and who opened them on this signal',
    initial: undefined,
    placeholder: 'NAME',
    ...string('the name of a signal that can be caught and that Node does not use, for example ' +
      `"${process.platform === 'win32' ? 'SIGBREAK' : 'SIGUSR2'}"`, isFreeSignal)
  },
  whyExit: {
    purpose: 'print what ended the process: a call, a signal, or pending awaits',
    initial: false,
    ...boolean
  },
  spans: {
    purpose: 'write a span for each request and connection to this destination',
    initial: undefined,
    placeholder: 'OUT',
    ...string('a file, "-", the address of an OTLP collector, or several of these',
      (value) => require('./sinks/outputs').parseOutputs(value).length > 0),
    type: "import('./sinks/outputs').GivenOutputs"
  },
  record: {
    purpose: 'record every callback to this file, for longstack report and longstack spans',
    initial: undefined,
    placeholder: 'FILE',
    ...string('the name of a file, for example "app.rec"', (value) => typeof value === 'string' &&
      require('./sinks/outputs').fileOf(value) !== undefined)
  },
  box: {
    purpose: 'keep the last seconds of the process in this directory, for a report after it was killed',
    initial: undefined,
    placeholder: 'DIR',
    ...string('a directory, for example "boxes", "boxes,keep" or "boxes,size=64MiB"',
      (value) => require('./box-option').isBoxOption(value))
  },
  socket: {
    purpose: 'answer longstack why, top and similar commands on this Unix socket',
    initial: undefined,
    placeholder: 'PATH',
    ...string(`the path of a Unix socket, of at most ${MAX_SOCKET_PATH} bytes`,
      (value) => typeof value === 'string' && value !== '' && !value.includes('\0') &&
        Buffer.byteLength(value) <= MAX_SOCKET_PATH)
  },
  propagate: {
    purpose: 'send a traceparent header with outgoing requests', initial: false, ...boolean
  },
  peek: {
    purpose: 'read the verb and table, or the command, from the first bytes of queries',
    initial: false,
    ...boolean
  },
  blocked: {
    purpose: 'report callbacks that block the event loop for longer than this',
    initial: undefined,
    placeholder: 'MS',
    ...integer(1, 3_600_000, 'ms')
  },
  budget: {
    purpose: 'memory limit for contexts and stacks',
    initial: 64 << 20,
    placeholder: 'BYTES',
    ...integer(1 << 20, 2 ** 40, 'bytes')
  }
}

const rules = /** @type {{ [Name in keyof Options]: Rule }} */ (Object.fromEntries(
  Object.entries(table).map(([name, row]) => [name, {
    ...row,
    variable: name === 'filter' ? 'LONGSTACK' : `LONGSTACK_${inWords(name, '_').toUpperCase()}`,
    flag: row.initial === true ? `no-${name}` : inWords(name, '-')
  }])))

/** Variables read elsewhere: runners/gate.js. */
const otherVariables = ['LONGSTACK_LEAKS']

/** @param {string} name in camel case @param {string} separator */
function inWords (name, separator) {
  return name.replace(/[A-Z]/g, (letter) => separator + letter.toLowerCase())
}

/** @param {string} text with or without enclosing slashes */
const regularExpression = (text) => attempt(() => new RegExp(text.replace(/^\/(.*)\/$/, '$1'))) ?? text

/** @param {string} name name of a signal */
function isFreeSignal (name) {
  return Object.hasOwn(require('node:os').constants.signals, name) && !/^SIG(KILL|STOP|USR1|PROF)$/.test(name)
}

/** @returns {Options} */
function defaultOptions () {
  const entries = Object.entries(table).map(([name, { initial }]) => [name, initial])
  return /** @type {any} */ (Object.fromEntries(entries))
}

/**
 * Checks the argument of trace.enable.
 * @param {unknown} value undefined, a filter, or an object
 * @param {Options} base values for the options that it leaves out
 * @returns {Options}
 * @throws {import('./errors').LongstackError}
 */
function parseOptions (value, base) {
  if (value === undefined) return { ...base }
  const entries = entriesOf(value)
  if (entries === undefined) throw require('./errors').mistake('INVALID_OPTIONS', value)
  /** @type {any} */
  const options = { ...base }
  for (const [name, option] of entries) {
    if (!Object.hasOwn(rules, name)) throw unknownName('UNKNOWN_OPTION', name, Object.keys(rules))
    if (option !== undefined) options[name] = check(/** @type {keyof Options} */ (name), option)
  }
  return options
}

/**
 * Reads the argument of trace.enable exactly once.
 * @param {unknown} value
 * @returns {Array<[string, unknown]> | undefined} undefined if the value is invalid, or reading it throws
 */
function entriesOf (value) {
  return attempt(() => {
    if (Array.isArray(value)) return [['filter', [...value]]]
    const isObject = Object.prototype.toString.call(value) === '[object Object]'
    return isObject ? Object.entries(/** @type {object} */ (value)) : undefined
  })
}

/**
 * @param {keyof Options} name
 * @param {unknown} value
 * @returns {unknown} the value, copied if it is a filter
 * @throws {import('./errors').LongstackError}
 */
function check (name, value) {
  try {
    if (rules[name].accepts(value)) return name === 'filter' ? checkedFilter(value) : value
  } catch (error) { // parseOutputs and compile explain theirs; others come from the value: a proxy, a getter
    if (/^LONGSTACK_ERR_/.test(/** @type {any} */ (error)?.code)) throw error
  }
  const { mistake } = require('./errors')
  if (name === 'filter') throw mistake('INVALID_FILTER', value)
  throw mistake('INVALID_OPTION', name, value, rules[name].allowed)
}

/** @param {any} value an array, or comma-separated names @returns {string[]} a copy */
function checkedFilter (value) {
  const { providers } = require('./node-objects')
  const filter = typeof value === 'string' ? rules.filter.fromText(value) : [...value]
  require('./subsystems').compile(filter, providers())
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
 * Reads environment variables. Reports a mistake in one line, and keeps the default.
 * @param {Record<string, string | undefined>} env
 * @param {(sentence: string) => void} report
 * @returns {Options}
 */
function readEnvironment (env, report) {
  /** @type {any} */
  const options = defaultOptions()
  const names = /** @type {Array<keyof Options>} */ (Object.keys(rules))
  for (const variable of Object.keys(env)) {
    if (!/^LONGSTACK(_|$)/.test(variable) || otherVariables.includes(variable)) continue
    const name = names.find((candidate) => rules[candidate].variable === variable)
    const text = /** @type {string} */ (env[variable])
    try {
      if (name === undefined) {
        const variables = Object.values(rules).map((rule) => rule.variable).concat(otherVariables)
        report(unknownName('UNKNOWN_VARIABLE', variable, variables).message)
      } else if (text.trim() !== '') { // an empty variable counts as unset
        options[name] = check(name, rules[name].fromText(text))
      }
    } catch (error) {
      report(`${variable}: ${/** @type {Error} */ (error).message}`)
    }
  }
  return options
}

/** @type {Options | undefined} */
let fromEnvironment

/** Returns the environment's options, read once. The main thread reports mistakes. @returns {Options} */
function environmentOptions () {
  fromEnvironment ??= readEnvironment(process.env, printFromMainThread)
  return fromEnvironment
}

module.exports = { defaultOptions, environmentOptions, parseOptions, rules }
