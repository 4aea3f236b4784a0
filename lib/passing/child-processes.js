'use strict'

// Child processes: the label of their hop, and the environment variable that passes the parent's chain to a
// child that also runs longstack. Node reports a ChildProcess when it is constructed, before the command is
// known, and later passes the whole command to `spawn` of the internal handle. An own method of the handle
// receives that call once and then removes itself. Methods that the program can reach stay unchanged; its
// options, arguments and environment are copied, never changed.

const path = require('node:path')
const { types } = require('node:util')
const { contextTag } = require('../core/context')
const guard = require('../core/guard')
const { VARIABLE } = require('./threads')
const { isObject, own } = require('../objects')
const { ownManifest } = require('../platform')
const { wrap } = require('../wrap')

const { apply } = Reflect
const MAX_CHARACTERS = 65_536 // sum of arguments and environment, which the system limits (ARG_MAX)
const ENV_PAIRS = 3 // index among the arguments of the handle's spawn, from Node 24 on
const PRELOADS = [
  `${ownManifest().name}/register`, 'longstack/register', 'longstack/lib/register',
  'longstack\\lib\\register'
]
const PRELOAD_FLAGS = ['-r', '--require', '--import']
const MAX_NAME = 60 // characters
const WITH_VALUE = new Set([
  '-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions', '--env-file',
  '--inspect-port', '--title'
])
const CODE = new Set(['-e', '--eval', '-p', '--print', '-pe', '-', '--run', '--test'])

const registerFile = path.join(__dirname, '..', 'register.js')
const commandFile = path.join(__dirname, '..', 'cli', 'main.js')

/**
 * @typedef {object} Command command of a child
 * @property {string} file
 * @property {string[]} args the first is the name passed to the program
 * @property {string[]} envPairs
 */

/** unwraps the handle that has not spawned yet @type {(() => boolean) | undefined} */
let unwrap

/** @param {object} handle */
function watch (handle) {
  unwatch()
  unwrap = wrap(handle, 'spawn', () => ({
    /** @this {any} */
    spawn () {
      unwatch()
      let args = /** @type {ArrayLike<any>} */ (arguments)
      guard.runQuietly(() => { args = spawning(this, arguments) ?? arguments })
      return apply(this.spawn, this, args)
    }
  }).spawn)
}

function unwatch () {
  unwrap?.()
  unwrap = undefined
}

/**
 * @param {object} handle
 * @param {ArrayLike<any>} args of its method
 * @returns {ArrayLike<any> | undefined} arguments with the variable; undefined if the child gets none
 */
function spawning (handle, args) {
  const command = readCommand(args)
  if (command === undefined) return undefined
  noteName(handle, nameOf(command))
  if (!runsLongstack(command) || lengthOf(command) > MAX_CHARACTERS) return undefined
  const start = `${VARIABLE}=`
  if (command.envPairs.some((pair) => pair.startsWith(start))) return undefined // set by the program
  const text = require('./passed-chains').passToProcess(contextTag.read(handle))
  return text === undefined ? undefined : withPairs(args, [...command.envPairs, start + text])
}

/** Notes a new child process. @param {unknown} child */
function constructed (child) {
  const handle = isObject(child) ? own(child, '_handle') : undefined
  if (isObject(handle) && own(handle, 'spawn') === undefined) watch(handle)
}

/** Puts the name of a process into its label. @param {object} handle @param {string | undefined} name */
function noteName (handle, name) {
  const context = contextTag.read(handle)
  if (context?.type === 'PROCESSWRAP' && context.detail !== name) context.detail = name
}

/**
 * Reads the command that a handle spawns, without running code of the program.
 * @param {ArrayLike<any>} args an options object up to Node 22, separate arguments from 24 on
 * @returns {Command | undefined} undefined if it cannot be read, or lacks the environment
 */
function readCommand (args) {
  if (typeof args[0] === 'string') return commandOf(args[0], args[1], args[ENV_PAIRS])
  if (!isPlain(args[0])) return undefined
  return commandOf(own(args[0], 'file'), own(args[0], 'args'), own(args[0], 'envPairs'))
}

/** @param {unknown} file @param {unknown} args @param {unknown} envPairs @returns {Command | undefined} */
function commandOf (file, args, envPairs) {
  const texts = textsOf(args)
  const pairs = textsOf(envPairs)
  return typeof file === 'string' && texts && pairs ? { file, args: texts, envPairs: pairs } : undefined
}

/** Whether an object has only data properties, so that a copy is equivalent. @param {unknown} options */
function isPlain (options) {
  if (!isObject(options)) return false
  const prototype = Object.getPrototypeOf(options)
  if (prototype !== null && prototype !== Object.prototype) return false
  return Reflect.ownKeys(options).every((key) => {
    return Object.hasOwn(/** @type {object} */ (Object.getOwnPropertyDescriptor(options, key)), 'value')
  })
}

/** @param {ArrayLike<any>} args @param {string[]} envPairs */
function withPairs (args, envPairs) {
  const copy = Array.from(args)
  if (typeof args[0] === 'string') copy[ENV_PAIRS] = envPairs
  else copy[0] = { __proto__: null, ...args[0], envPairs }
  return copy
}

/** @param {Command} command */
const lengthOf = ({ args, envPairs }) => [...args, ...envPairs].join('').length

/** Returns the name for a label: the program, and for Node also the script. @param {Command} command */
function nameOf ({ file, args }) {
  const isNode = file === process.execPath || /^node(\.exe)?$/i.test(path.basename(file))
  if (isNode) {
    const script = scriptOf(args)
    return script === undefined ? 'node' : `node ${script}`
  }
  // The command of a shell is an argument.
  const isShell = /^(\/d|-c)$/.test(args[1] ?? '')
  const name = path.basename(file)
  return !isShell && isSafeName(name) ? name : undefined
}

/**
 * Whether a child preloads longstack, judging by its command.
 * @param {Command} command
 */
function runsLongstack ({ args, envPairs }) {
  const options = envPairs.findLast((pair) => pair.startsWith('NODE_OPTIONS='))
  if (options !== undefined && namesRegister(options)) return true
  for (let i = 1; i < args.length && args[i].startsWith('-'); i++) {
    const [flag, inline] = args[i].split('=', 2)
    if (PRELOAD_FLAGS.includes(flag) && namesRegister(inline ?? args[++i] ?? '')) return true
  }
  if (inheritedFlags(args).some(namesRegister)) return true
  const run = args.indexOf('run', 1)
  const command = run === -1 ? '' : args[run - 1]
  return /^longstack(\.cmd)?$/.test(path.basename(command)) || command === commandFile
}

/** @param {string} text */
function namesRegister (text) {
  const texts = [text, text.replaceAll('\\\\', '\\')] // NODE_OPTIONS doubles backslashes within quotes
  return [...PRELOADS, registerFile].some((name) => texts.some((one) => one.includes(name)))
}

/**
 * Returns the base name of the script in a command line of Node, if it is certain: arguments may be secrets.
 * @param {string[]} args the first is the name of the program
 * @returns {string | undefined} undefined if there is none, or it may be the value of a flag
 */
function scriptOf (args) {
  let i = 1 + inheritedFlags(args).length
  let isCertain = true
  for (; i < args.length && args[i].startsWith('-'); i++) {
    const flag = args[i]
    if (flag === '--') {
      i++
      break
    }
    if (CODE.has(flag)) return undefined
    if (WITH_VALUE.has(flag)) i++
    else if (!flag.includes('=')) isCertain = false
  }
  if (args[i] === undefined) return undefined
  const name = path.basename(args[i])
  return isSafeName(name) && (isCertain || /\.[cm]?[jt]sx?$/.test(name)) ? name : undefined
}

/**
 * Returns the flags of this process, if a command line begins with them, as with fork().
 * @param {string[]} args
 * @returns {string[]}
 */
function inheritedFlags (args) {
  const flags = textsOf(own(process, 'execArgv')) ?? []
  return flags.every((flag, i) => args[i + 1] === flag) ? flags : []
}

/**
 * Copies a list without running code of the program.
 * @param {unknown} list
 * @returns {string[] | undefined} undefined unless it contains only strings
 */
function textsOf (list) {
  if (!Array.isArray(list) || types.isProxy(list)) return undefined
  const texts = []
  for (let i = 0; i < list.length; i++) {
    const text = own(list, String(i))
    if (typeof text !== 'string') return undefined
    texts.push(text)
  }
  return texts
}

/** Whether a text can be a file name and has no whitespace or `=`. @param {string} name */
function isSafeName (name) {
  return name !== '' && name.length <= MAX_NAME && !/[\s=]/.test(name)
}

module.exports = { constructed, unwatch }
