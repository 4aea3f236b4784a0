'use strict'

// Reason why the process ends (option `whyExit`): the call that ended it, or the awaits still pending when
// the event loop ran empty. Prints to stderr once the end is certain, since process.exit may throw and
// programs replace it. Node prints uncaught errors; native/ending-signals.cc reports signals from elsewhere.

const { currentStep, contextOfRequest } = require('../core/current-step')
const guard = require('../core/guard')
const { startQuery } = require('../core/clock')
const { OWN_WORK_CHAIN } = require('../core/records')
const { formatHops } = require('../format/hops')
const { paint } = require('../format/paint')
const { formatPending } = require('../format/pending')
const { endingSignal } = require('../kill')
const { loadBinding } = require('../stacks/binding')
const { hops } = require('../stacks/chain')
const { printLine } = require('../warnings')
const { wrap } = require('../wrap')
const { drain } = require('./list')
const { slices } = require('./pending')

const { apply } = Reflect
/** Signals that end a process by default and that other processes send. */
const SENT = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGALRM', 'SIGUSR2', 'SIGXCPU', 'SIGVTALRM']

/** functions that undo the installation @type {Array<() => unknown>} */
let undo = []
/** report of the process.exit call in progress @type {string | undefined} */
let exitCall
/** the event loop ran empty, and nothing has failed since */
let isEmpty = false

/**
 * Returns a report of a call: its stack and the hops that led to it.
 * @param {string} call
 * @param {Function} above frames start below this function
 * @returns {string | undefined} undefined if longstack itself makes the call
 */
function describeCall (call, above) {
  if (guard.inOwnWork || currentStep().chain === OWN_WORK_CHAIN) return undefined
  return guard.runQuietly(() => {
    startQuery()
    const [first, ...rest] = hops(contextOfRequest(above))
    const lines = first === undefined ? [] : first.short ?? first.lines
    return [`${subject()} ended by ${call}`, ...lines, formatHops(rest)].join('\n').trimEnd()
  })
}

/** Names what ends: the process or a worker thread. */
function subject () {
  const { isMainThread, threadId } = require('node:worker_threads')
  return `longstack: ${isMainThread ? 'process' : `thread ${threadId}`}`
}

/** @param {string | undefined} text */
function print (text) {
  if (text !== undefined) guard.runQuietly(() => printLine(paint(text)))
}

/** @param {unknown} code an argument of the program's */
function codeText (code) {
  return typeof code === 'number' || (typeof code === 'string' && /^\d+$/.test(code)) ? code : ''
}

/** @param {Function} method */
function wrapExit (method) {
  /** @this {unknown} @param {unknown} code */
  return function exit (code) {
    const isFirst = exitCall === undefined
    if (isFirst) exitCall = describeCall(`process.exit(${codeText(code)})`, exit)
    try {
      return apply(method, this, arguments)
    } finally { // an invalid code, a throwing listener or a replaced reallyExit: the process goes on
      if (isFirst) exitCall = undefined
    }
  }
}

/** @param {Function} method */
const wrapReallyExit = (method) => {
  const { reallyExit } = {
    /** @this {unknown} @param {unknown} code */
    reallyExit (code) {
      print(exitCall ?? describeCall(`process.reallyExit(${codeText(code)})`, reallyExit))
      return apply(method, this, arguments)
    }
  }
  return reallyExit
}

/** @param {Function} method */
const wrapAbort = (method) => {
  const { abort } = {
    /** @this {unknown} */
    abort () {
      print(describeCall('process.abort()', abort))
      return apply(method, this, arguments)
    }
  }
  return abort
}

/** @param {Function} method */
function wrapKill (method) {
  /** @this {unknown} @param {unknown} target @param {unknown} signal */
  return function kill (target, signal) {
    const name = endingSignal(target, signal)
    if (name !== undefined) print(describeCall(`process.kill(process.pid, '${name}')`, kill))
    return apply(method, this, arguments)
  }
}

function noteEmpty () {
  isEmpty = true
}

function noteFailure () {
  isEmpty = false
}

/** Reports pending awaits at the end of the process, if it ends because the event loop is empty. */
function noteEnd () {
  if (isEmpty && exitCall === undefined) print(guard.runQuietly(describeWaits))
}

/** @returns {string | undefined} undefined if no await is known to be pending */
function describeWaits () {
  startQuery()
  const { groups } = drain(slices())
  if (groups.length === 0) return undefined
  const count = groups.reduce((sum, group) => sum + group.count, 0)
  const waits = count === 1 ? 'one await is' : `${count} awaits are`
  const head = `${subject()} ended because the event loop is empty, but ${waits} pending:`
  return `${head}\n${formatPending(groups)}`
}

/** Turns the report at the end of the process on or off. @param {boolean} isOn */
function applyWhyExit (isOn) {
  if (isOn === (undo.length > 0)) return
  for (const back of undo) back()
  undo = isOn ? install() : []
}

/** @returns {Array<() => unknown>} */
function install () {
  const { isMainThread } = require('node:worker_threads')
  const node = /** @type {any} */ (process)
  const unwraps = [
    wrap(node, 'exit', wrapExit),
    wrap(node, 'reallyExit', wrapReallyExit),
    wrap(node, 'kill', wrapKill),
    isMainThread ? wrap(node, 'abort', wrapAbort) : undefined
  ]
  const native = isMainThread ? /** @type {any} */ (loadBinding().binding)?.signals : undefined
  const { signals } = require('node:os').constants
  const unheard = SENT.filter((name) => process.listenerCount(name) === 0)
  native?.start(...unheard.map((name) => Reflect.get(signals, name)))
  process.on('beforeExit', noteEmpty)
  process.on('uncaughtExceptionMonitor', noteFailure)
  process.on('exit', noteEnd)
  return [
    ...unwraps.filter((unwrap) => unwrap !== undefined),
    () => native?.stop(),
    () => process.off('beforeExit', noteEmpty).off('exit', noteEnd)
      .off('uncaughtExceptionMonitor', noteFailure)
  ]
}

module.exports = { applyWhyExit }
