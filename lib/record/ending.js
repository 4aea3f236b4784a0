'use strict'

// Runs functions before the process ends without an `exit` event: by a signal without a listener, sent by
// another process (native/ending-signals.cc) or by the program with process.kill; by process.abort and
// process.reallyExit; or by process.execve, which replaces the program.

const process = require('node:process')
const guard = require('../core/guard')
const { endingSignal } = require('../kill')
const { isMainThread } = require('../passing/threads')
const { loadBinding } = require('../stacks/binding')
const { wrap, wrapAll } = require('../wrap')

const { apply } = Reflect
/** @typedef {(cause: unknown) => void} Work cause: method or signal that ends the process, if known */

const ENDS = ['abort', 'execve', 'reallyExit']
const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR2'])

/** @type {Set<Work>} */
const works = new Set()
/** @type {Array<(() => unknown) | undefined>} */
let unwraps = []

const signals = () => /** @type {any} */ (loadBinding().binding)?.signals

/** @param {unknown} [cause] */
function workNow (cause) {
  for (const work of works) guard.callInHook(() => guard.runQuietly(() => work(cause)))
}

/** @param {Function} method */
function wrapKill (method) {
  /** @this {unknown} @param {unknown} target @param {unknown} signal */
  return function kill (target, signal) {
    if (!guard.inOwnWork && endingSignal(target, signal) !== undefined) workNow(signal)
    return apply(method, this, arguments)
  }
}

/** @param {unknown} self @param {unknown} first @param {Function} method */
function beforeEnd (self, first, method) {
  const isDone = /** @type {any} */ (process)._exiting // process.exit calls process.reallyExit
  if (!isDone && !guard.inOwnWork) workNow(method.name)
}

/**
 * Calls a function before such an end, on top of running code.
 * @param {Work} work
 */
function atSuddenEnd (work) {
  if (!isMainThread()) return
  works.add(work)
  if (works.size > 1) return
  unwraps = [wrap(process, 'kill', wrapKill), wrapAll([process], ENDS, beforeEnd)]
  const { constants } = require('node:os') // loaded late: the program may be the first to load it
  const unheard = SIGNALS.filter((name) => process.listenerCount(name) === 0)
  signals()?.hold?.(() => {
    if (guard.inOwnWork) return false // longstack's own work is half done
    workNow()
  }, ...unheard.map((name) => constants.signals[name]))
}

/** Undoes `atSuddenEnd`. @param {Work} work */
function notAtSuddenEnd (work) {
  if (!works.delete(work) || works.size > 0) return
  for (const unwrap of unwraps) unwrap?.()
  signals()?.release?.()
}

module.exports = { atSuddenEnd, notAtSuddenEnd }
