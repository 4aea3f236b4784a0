'use strict'

// Runs a function before a signal ends the process, where the program has no listener for that signal.

const process = require('node:process')
const guard = require('../core/guard')
const { isMainThread } = require('../passing/threads')
const { loadBinding } = require('../stacks/binding')

const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR2'])

const signals = () => isMainThread() ? /** @type {any} */ (loadBinding().binding)?.signals : undefined

/**
 * Has a function called before a signal ends the process, on top of whatever runs then.
 * @param {() => void} work
 */
function beforeSignals (work) {
  const native = signals()
  if (native?.hold === undefined) return
  const { constants } = require('node:os') // only here: the program may be the first that loads it
  const unheard = SIGNALS.filter((name) => process.listenerCount(name) === 0)
  native.hold(() => {
    if (guard.inOwnWork) return false // which is half done
    guard.callInHook(() => guard.runQuietly(work))
  }, ...unheard.map((name) => constants.signals[name]))
}

/** Takes back `beforeSignals`. */
function endBeforeSignals () {
  signals()?.release?.()
}

module.exports = { beforeSignals, endBeforeSignals }
