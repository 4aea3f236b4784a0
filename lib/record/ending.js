'use strict'

// Runs functions before a signal ends the process, where the program has no listener for that signal: one
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

/** @type {Set<() => void>} */
const works = new Set()
/** @type {(() => unknown) | undefined} */
let unwrap

const signals = () => /** @type {any} */ (loadBinding().binding)?.signals

function workNow () {
  for (const work of works) guard.callInHook(() => guard.runQuietly(work))
}

/** @param {Function} method */
function wrapKill (method) {
  /** @this {unknown} @param {unknown} target @param {unknown} signal */
  return function kill (target, signal) {
    if (!guard.inOwnWork && endingSignal(target, signal) !== undefined) workNow()
    return apply(method, this, arguments)
  }
}

/**
 * Has a function called before a signal ends the process, on top of whatever runs then.
 * @param {() => void} work
 */
function beforeSignals (work) {
  if (!isMainThread()) return
  works.add(work)
  if (works.size > 1) return
  unwrap = wrap(process, 'kill', wrapKill)
  const { constants } = require('node:os') // only here: the program may be the first that loads it
  const unheard = SIGNALS.filter((name) => process.listenerCount(name) === 0)
  signals()?.hold?.(() => {
    if (guard.inOwnWork) return false // which is half done
    workNow()
  }, ...unheard.map((name) => constants.signals[name]))
}

/** Takes back `beforeSignals`. @param {() => void} work */
function endBeforeSignals (work) {
  if (!works.delete(work) || works.size > 0) return
  unwrap?.()
  signals()?.release?.()
}

module.exports = { beforeSignals, endBeforeSignals }
