'use strict'

// Runs a function before a signal ends the process, where the program has no listener for that signal: one
// that another process sends (native/ending-signals.cc), and one that the program sends itself by
// process.kill.

const process = require('node:process')
const guard = require('../core/guard')
const { endingSignal } = require('../kill')
const { isMainThread } = require('../passing/threads')
const { loadBinding } = require('../stacks/binding')
const { wrap } = require('../wrap')

const { apply } = Reflect

const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR2'])

const signals = () => isMainThread() ? /** @type {any} */ (loadBinding().binding)?.signals : undefined

let unwrap = () => {}

/**
 * Has a function called before a signal ends the process, on top of whatever runs then.
 * @param {() => void} work
 */
function beforeSignals (work) {
  const run = () => guard.callInHook(() => guard.runQuietly(work))
  if (isMainThread()) unwrap = wrap(process, 'kill', (method) => wrapKill(method, run)) ?? unwrap
  const native = signals()
  if (native?.hold === undefined) return
  const { constants } = require('node:os') // only here: the program may be the first that loads it
  const unheard = SIGNALS.filter((name) => process.listenerCount(name) === 0)
  native.hold(() => {
    if (guard.inOwnWork) return false // which is half done
    run()
  }, ...unheard.map((name) => constants.signals[name]))
}

/** @param {Function} method @param {() => void} run */
function wrapKill (method, run) {
  /** @this {unknown} @param {unknown} target @param {unknown} signal */
  return function kill (target, signal) {
    if (!guard.inOwnWork && endingSignal(target, signal) !== undefined) run()
    return apply(method, this, arguments)
  }
}

/** Takes back `beforeSignals`. */
function endBeforeSignals () {
  unwrap()
  signals()?.release?.()
}

module.exports = { beforeSignals, endBeforeSignals }
