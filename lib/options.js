'use strict'

// Every option: its default, its environment variable, what is allowed. The only place that reads the
// environment.

const { complain } = require('./warnings')

/**
 * @typedef {import('./stacks/chain').HopFrame} Frame
 * @typedef {object} Options
 * @property {string[]} filter subsystems whose resources get a stack; default all
 * @property {number} frames frames kept per hop, 1 to 200; default 10
 * @property {number} depth hops kept per chain, 1 to 1000; default 16
 * @property {'full' | 'light'} mode `light`: promises make no events where Node can do without
 * @property {'auto' | 'native' | 'js'} capture which capture engine
 * @property {boolean} internals also show node: frames, Node-internal hops, and longstack's own frames
 * @property {undefined | 'node_modules' | RegExp | ((frame: Frame) => boolean)} hide frames to fold into a count
 * @property {boolean} errors hops are appended to the `.stack` of errors; false: that stays Node's, and so does
 *   `Error.prepareStackTrace`. trace.stack(error) and trace.chain(error) work either way; default true
 * @property {string | undefined} signal print open handles and why on this signal
 * @property {undefined | import('./sinks/outputs').GivenOutputs} spans where spans go: a file, `-`, an OTLP URL, or several of those
 * @property {boolean} propagate send a traceparent header with every request that is made
 * @property {number | undefined} blocked report synchronous runs longer than this many ms
 * @property {number} budget bytes that stacks and contexts may take, from 1 MiB; default 64 MiB
 */

/**
 * @typedef {object} Rule
 * @property {string} variable
 * @property {any} initial
 * @property {string} allowed completes "The option ... is"
 * @property {(value: any) => boolean} accepts
 * @property {(text: string) => any} read
 */

/** @param {number} least @param {number} most @param {string} unit */
const whole = (least, most, unit) => ({
  allowed: `a whole number of ${unit} from ${least} to ${most}`,
  accepts: (/** @type {unknown} */ value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  read: (/** @type {string} */ text) => /^\d+$/.test(text.trim()) ? Number(text) : text
})

/** @param {string[]} words */
const oneOf = (...words) => ({
  allowed: `one of ${words.map((word) => `"${word}"`).join(', ')}`,
  accepts: (/** @type {unknown} */ value) => words.includes(/** @type {string} */ (value)),
  read: (/** @type {string} */ text) => text
})

const flag = {
  allowed: 'true or false',
  accepts: (/** @type {unknown} */ value) => typeof value === 'boolean',
  read: (/** @type {string} */ text) => /^(1|true|on|yes)$/i.test(text) ? true : /^(0|false|off|no)$/i.test(text) ? false : text
}

/** @type {Record<keyof Options, Rule>} */
const rules = {
  filter: {
    variable: 'LONGSTACK',
    initial: ['*'],
    allowed: "an array of names, for example ['TCP', 'PIPE']",
    accepts: Array.isArray,
    read: (text) => text.split(',').map((name) => name.trim()).filter((name) => name !== '')
  },
  frames: { variable: 'LONGSTACK_FRAMES', initial: 10, ...whole(1, 200, 'frames') },
  depth: { variable: 'LONGSTACK_DEPTH', initial: 16, ...whole(1, 1000, 'hops') },
  mode: { variable: 'LONGSTACK_MODE', initial: 'full', ...oneOf('full', 'light') },
  capture: { variable: 'LONGSTACK_CAPTURE', initial: 'auto', ...oneOf('auto', 'native', 'js') },
  internals: { variable: 'LONGSTACK_INTERNALS', initial: false, ...flag },
  hide: {
    variable: 'LONGSTACK_HIDE',
    initial: undefined,
    allowed: '"node_modules", a regular expression over file names or a function of a frame',
    accepts: (value) => value === undefined || value === 'node_modules' || value instanceof RegExp || typeof value === 'function',
    read: (text) => {
      if (text === 'node_modules') return text
      try {
        return new RegExp(text.replace(/^\/(.*)\/$/, '$1'))
      } catch {
        return text
      }
    }
  },
  errors: { variable: 'LONGSTACK_ERRORS', initial: true, ...flag },
  signal: {
    variable: 'LONGSTACK_SIGNAL',
    initial: undefined,
    allowed: 'the name of a signal that a process can catch and Node does not use itself, for example "SIGUSR2"',
    accepts: (value) => value === undefined || catchable(value),
    read: (text) => text
  },
  spans: {
    variable: 'LONGSTACK_SPANS',
    initial: undefined,
    allowed: 'a file, "-", the address of an OTLP collector, or several of those',
    accepts: (value) => value === undefined || require('./sinks/outputs').parseOutputs(value).length > 0,
    read: (text) => text
  },
  propagate: { variable: 'LONGSTACK_PROPAGATE', initial: false, ...flag },
  blocked: { variable: 'LONGSTACK_BLOCKED', initial: undefined, ...whole(1, 3_600_000, 'ms') },
  budget: { variable: 'LONGSTACK_BUDGET', initial: 64 << 20, ...whole(1 << 20, 2 ** 40, 'bytes') }
}

/** @param {string} name of a signal */
function catchable (name) {
  return Object.hasOwn(require('node:os').constants.signals, name) && !/^SIG(KILL|STOP|USR1|PROF)$/.test(name)
}

const variables = new Map(Object.entries(rules).map(([name, rule]) => [rule.variable, name]))

/** @returns {Options} */
function defaults () {
  return /** @type {any} */ (Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, rule.initial])))
}

/**
 * Reads what trace.enable was given.
 * @param {unknown} given nothing, a filter, or an object of options
 * @param {Options} base what is not given
 * @returns {Options}
 * @throws {import('./errors').LongstackError}
 */
function parse (given, base) {
  if (given === undefined) return { ...base }
  if (Array.isArray(given)) return { ...base, filter: [...given] }
  if (Object.prototype.toString.call(given) !== '[object Object]') throw require('./errors').mistake('INVALID_OPTIONS', given)
  /** @type {any} */
  const options = { ...base }
  for (const [name, value] of Object.entries(/** @type {object} */ (given))) {
    if (!Object.hasOwn(rules, name)) throw unknown('UNKNOWN_OPTION', name, Object.keys(rules))
    if (value === undefined) continue
    options[name] = accept(/** @type {keyof Options} */ (name), name, value)
  }
  return options
}

/**
 * Reads the environment. What is wrong there is said, and the program still runs.
 * @param {Record<string, string | undefined>} env
 * @param {(sentence: string) => void} complain
 * @returns {Options}
 */
function fromEnvironment (env, complain) {
  /** @type {any} */
  const options = defaults()
  for (const variable of Object.keys(env)) {
    if (variable !== 'LONGSTACK' && !variable.startsWith('LONGSTACK_')) continue
    try {
      const name = variables.get(variable)
      const text = /** @type {string} */ (env[variable])
      if (name === undefined) throw unknown('UNKNOWN_VARIABLE', variable, variables.keys())
      if (text.trim() === '') continue // as if it were not set
      const key = /** @type {keyof Options} */ (name)
      options[key] = accept(key, variable, rules[key].read(text))
    } catch (error) {
      const { message } = /** @type {Error} */ (error)
      complain(variable !== 'LONGSTACK' && message.includes(variable) ? message : `${variable}: ${message}`)
    }
  }
  return options
}

/**
 * @param {keyof Options} key
 * @param {string} called the option's name or its variable
 * @param {unknown} value
 */
function accept (key, called, value) {
  const rule = rules[key]
  if (rule.accepts(value)) {
    if (key === 'filter') require('./context/subsystems').compile(/** @type {string[]} */ (value), require('./node-objects').providers())
    return value
  }
  const { mistake } = require('./errors')
  throw key === 'filter' ? mistake('INVALID_FILTER', value) : mistake('INVALID_OPTION', called, value, rule.allowed)
}

/** @param {'UNKNOWN_OPTION' | 'UNKNOWN_VARIABLE'} code @param {string} name @param {Iterable<string>} known */
function unknown (code, name, known) {
  const { mistake, nearest } = require('./errors')
  return mistake(code, name, nearest(name, known))
}

/** @type {Options | undefined} */
let environment

/**
 * What holds where a program does not say otherwise: the environment's options, read once; complaints are said by
 * the main thread.
 * @returns {Options}
 */
function initial () {
  environment ??= fromEnvironment(process.env, complain)
  return environment
}

module.exports = { defaults, parse, initial, rules }
