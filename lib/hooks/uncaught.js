'use strict'

// Errors that escape. Two ways in:
//
// - process.on('uncaughtExceptionMonitor') runs first and changes nothing: it notes the failing context, so
//   that Node prints the right chain.
// - process._fatalException, which Node calls for every error that escapes, on all supported versions. It is
//   wrapped only while a handler of trace.onError exists, or stderr is a terminal. A handled error takes
//   Node's own path for handled errors (async ids are cleaned up, ticks go on) with `uncaughtException` shown
//   as handled; any other goes to Node untouched. If Node returns false, it prints the error and ends the
//   process (TriggerUncaughtException in src/node_errors.cc), and the program runs no more.
//   --abort-on-uncaught-exception acts when the error is thrown, before any JavaScript, so it works as
//   before; process.addUncaughtExceptionCaptureCallback would switch it off.

const { stateOfOpen } = require('../files')
const { wrap } = require('../wrap')

/**
 * @typedef {object} Handler
 * @property {(error: unknown) => boolean} handle true = handled
 */

/**
 * @param {object} deps
 * @param {(error: unknown, rejected: boolean) => void} deps.escaped notes an error and its context
 * @param {() => boolean} deps.hasHandlers
 * @param {(error: unknown, fromPromise: boolean) => boolean} deps.handle asks the handlers
 * @param {(error: unknown, fromPromise: boolean) => void} deps.fatal Node is about to print the error
 * @param {() => boolean} deps.addsHops to what Node prints, also where that is no terminal
 */
function createUncaughtLayer ({ escaped, hasHandlers, handle, fatal, addsHops }) {
  /** Node's _fatalException @type {Function} */
  let original
  /** puts it back @type {(() => boolean) | undefined} */
  let unwrap
  let monitoring = false

  /** @param {unknown} error @param {string} origin */
  function monitor (error, origin) {
    try {
      escaped(error, origin === 'unhandledRejection')
    } catch {}
  }

  /**
   * @this {unknown}
   * @param {unknown} error
   * @param {boolean} fromPromise
   */
  function fatalException (error, fromPromise) {
    const callNode = () => original.call(this, error, fromPromise)
    if (hasHandlers()) {
      try {
        escaped(error, fromPromise)
      } catch {}
      if (isHandledByProgram(error, fromPromise)) return asHandled(callNode)
    }
    const isHandled = callNode()
    if (isHandled === false) {
      try {
        fatal(error, fromPromise)
      } catch {}
    }
    return isHandled
  }

  /**
   * Asks the handlers. A failure of longstack's own must not replace the error.
   * @param {unknown} error
   * @param {boolean} fromPromise
   */
  function isHandledByProgram (error, fromPromise) {
    try {
      return handle(error, fromPromise)
    } catch {
      return false
    }
  }

  /** Handlers see errors from now on, and so does what is printed on a terminal. */
  function intercept () {
    unwrap ??= wrap(process, '_fatalException', (method) => {
      original = method
      return fatalException
    })
  }

  return {
    monitor () {
      if (monitoring) return
      monitoring = true
      process.prependListener('uncaughtExceptionMonitor', monitor)
      if (addsHops() || mayPrintOnTerminal()) intercept()
    },

    unmonitor () {
      monitoring = false
      process.removeListener('uncaughtExceptionMonitor', monitor)
    },

    intercept,

    /** There are no handlers any more. */
    release () {
      if (monitoring && (addsHops() || mayPrintOnTerminal())) return
      if (unwrap?.()) unwrap = undefined
    }
  }
}

/** Whether stderr may be a terminal. node:tty, which knows, loads net. */
function mayPrintOnTerminal () {
  try {
    return stateOfOpen(2).isCharacterDevice()
  } catch {
    return false
  }
}

/**
 * Lets Node do what it does after a handled error without calling the program: meanwhile the listeners of
 * the process are silent and an active domain takes the error.
 * @param {() => boolean} go
 */
function asHandled (go) {
  const target = /** @type {any} */ (process)
  const emit = Object.getOwnPropertyDescriptor(target, 'emit')
  const leave = enterSilentDomain()
  Object.defineProperty(target, 'emit', {
    value: (/** @type {string} */ name) => name === 'uncaughtException',
    writable: true,
    enumerable: false,
    configurable: true
  })
  try {
    return go()
  } finally {
    if (emit === undefined) delete target.emit
    else Object.defineProperty(target, 'emit', emit)
    leave()
  }
}

/** @returns {() => void} */
function enterSilentDomain () {
  const target = /** @type {any} */ (process)
  if (!target.domain) return () => {}
  const domain = require('node:domain')
  target.domain = { _errorHandler: () => true }
  return () => {
    // As Node does after an error that a domain handled (lib/domain.js): leave all domains. exit() makes Node
    // know that none is active.
    const domains = /** @type {any} */ (domain)
    domains._stack.length = 0
    domains.active = target.domain = null
    const last = domain.create()
    last.enter()
    last.exit()
  }
}

module.exports = { createUncaughtLayer }
