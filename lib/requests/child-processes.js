'use strict'

// Child processes: what their hop is called, and the environment variable by which a child that runs
// longstack too begins with the chain of its parent. Node reports a ChildProcess when it is constructed,
// before it knows what to spawn, and passes all that it then knows to `spawn` of the internal handle: there
// an own method is called once, which removes itself. Methods that the program can reach stay as they are,
// and what it passes as options, arguments or environment is copied, never changed.

const path = require('node:path')
const { isObject, own } = require('../objects')
const { wrap } = require('../wrap')
const { inheritedFlags, isSafeName, scriptOf, textsOf } = require('./command-line')

const { apply } = Reflect
const MAX_CHARACTERS = 65_536 // of arguments and environment: the system limits both together, ARG_MAX
const ENV_PAIRS = 3 // index among the arguments of the handle's spawn, from Node 24 on
const PRELOADS = ['longstack/register', 'longstack/lib/register', 'longstack\\lib\\register']
const PRELOAD_FLAGS = ['-r', '--require', '--import']

const registerFile = path.join(__dirname, '..', 'register.js')
const commandFile = path.join(__dirname, '..', 'cli', 'main.js')

/**
 * @typedef {object} Command what is spawned
 * @property {string} file
 * @property {string[]} args the first is the name that the program gets
 * @property {string[]} envPairs
 */

/**
 * @param {object} deps
 * @param {string} deps.variable
 * @param {(work: () => void) => void} deps.guarded runs work as longstack's own; it does not throw
 * @param {(handle: object, name: string | undefined) => void} deps.named the child's program and script
 * @param {(handle: object) => string | undefined} deps.chainFor the child, as text
 */
function createChildProcesses ({ variable, guarded, named, chainFor }) {
  /** of the handle that was made, and did not spawn yet @type {(() => boolean) | undefined} */
  let unwrap

  /** @param {object} handle */
  function watch (handle) {
    unwatch()
    unwrap = wrap(handle, 'spawn', () => ({
      /** @this {any} */
      spawn () {
        unwatch()
        let args = /** @type {ArrayLike<any>} */ (arguments)
        guarded(() => { args = spawning(this, arguments) ?? arguments })
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
   * @returns {ArrayLike<any> | undefined} the arguments with the variable; undefined: the child gets none
   */
  function spawning (handle, args) {
    const command = readCommand(args)
    if (command === undefined) return undefined
    named(handle, nameOf(command))
    if (!runsLongstack(command) || lengthOf(command) > MAX_CHARACTERS) return undefined
    const start = `${variable}=`
    if (command.envPairs.some((pair) => pair.startsWith(start))) return undefined // the program's own
    const text = chainFor(handle)
    return text === undefined ? undefined : withPairs(args, [...command.envPairs, start + text])
  }

  return {
    /** A child process was constructed. @param {unknown} child */
    constructed (child) {
      const handle = isObject(child) ? own(child, '_handle') : undefined
      if (isObject(handle) && own(handle, 'spawn') === undefined) watch(handle)
    },

    unwatch
  }
}

/**
 * Reads what a handle is told to spawn, without running code of the program.
 * @param {ArrayLike<any>} args an object of options up to Node 22, one argument each from 24 on
 * @returns {Command | undefined} undefined where it cannot be read, or the environment is not among it
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

/** Whether an object has data properties alone: a copy of it is as good. @param {unknown} options */
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
function lengthOf ({ args, envPairs }) {
  let length = 0
  for (const text of [...args, ...envPairs]) length += text.length
  return length
}

/** Returns what a label shows: the program, of Node also the script. @param {Command} command */
function nameOf ({ file, args }) {
  const isNode = file === process.execPath || /^node(\.exe)?$/i.test(path.basename(file))
  if (isNode) {
    const script = scriptOf(args)
    return script === undefined ? 'node' : `node ${script}`
  }
  // A command of a shell is an argument.
  const isShell = /^(\/d|-c)$/.test(args[1] ?? '')
  const name = path.basename(file)
  return !isShell && isSafeName(name) ? name : undefined
}

/**
 * Whether a child preloads longstack, for all that its command says.
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
  return PRELOADS.some((name) => text.includes(name)) || text.includes(registerFile)
}

module.exports = { createChildProcesses }
