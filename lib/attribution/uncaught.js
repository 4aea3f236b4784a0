'use strict'

// Uncaught errors. They arrive in two ways:
//
// - process.on('uncaughtExceptionMonitor') runs first and changes nothing: it notes the failing context, so
//   that Node prints the right chain.
// - process._fatalException, which Node calls for every uncaught error, on all supported versions. It is
//   wrapped only while a handler of trace.onError exists, errors are printed, or stderr is a terminal. A
//   handled error takes Node's own path for handled errors (async ids are cleaned up, ticks go on), as if a
//   listener of `uncaughtException` had handled it. Any other error goes to Node untouched. If Node returns
//   false, it prints the error and ends the process (TriggerUncaughtException in src/node_errors.cc), and the
//   program runs no more. --abort-on-uncaught-exception acts when the error is thrown, before any JavaScript,
//   so it works as before; process.addUncaughtExceptionCaptureCallback would switch it off.

const { executionAsyncResource } = require('node:async_hooks')
const { contextAt, settlerOf } = require('../core/context')
const guard = require('../core/guard')
const { attempt, stateOfOpen } = require('../files')
const { currentContext, lastExited, markUnknown, missesSettled } = require('../core/current-step')
const { emit } = require('../core/on')
const { settings } = require('../settings')
const { isProgram } = require('../stacks/frames')
const { messageOf, warn } = require('../warnings')
const { wrap } = require('../wrap')
const observedErrors = require('./observed-errors')

/**
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} Handler of trace.onError
 * @property {(type: string) => boolean} matches the filter that it was registered with
 * @property {import('../api').ErrorHandler} handler
 */

/** replaced, never changed @type {Handler[]} */
let handlers = []
/** adds hops to what is printed @type {typeof import('../format/printed-errors') | undefined} */
let errorPrinter
/** Node's _fatalException @type {Function} */
let original
/** restores it @type {(() => boolean) | undefined} */
let unwrap

/** @param {unknown} error @param {string} origin */
function noteUncaught (error, origin) {
  attempt(() => noteEscaped(error, origin === 'unhandledRejection'))
}

const { fatalException } = { // a method: Node's cannot be called with `new` either
  /**
   * @this {unknown}
   * @param {unknown} error
   * @param {boolean} fromPromise
   */
  fatalException (error, fromPromise) {
    const callNode = () => original.call(this, error, fromPromise)
    if (handlers.length > 0) {
      noteUncaught(error, fromPromise ? 'unhandledRejection' : 'uncaughtException')
      // A failure in longstack must not replace the error
      if (attempt(() => askHandlers(error, fromPromise))) return asHandled(callNode)
    }
    const isHandled = callNode()
    if (isHandled === false) {
      attempt(() => guard.run(() => require('../format/printed-errors').decorateFatal(error, fromPromise)))
    }
    return isHandled
  }
}

/** Wraps _fatalException for handlers and for errors that are printed. */
function intercept () {
  unwrap ??= wrap(process, '_fatalException', (method) => {
    original = method
    return fatalException
  })
}

/** Starts to observe uncaught errors: tracing is enabled. */
function monitor () {
  process.prependListener('uncaughtExceptionMonitor', noteUncaught)
  if (handlers.length > 0 || settings.options.errors === 'print' || mayPrintOnTerminal()) intercept()
}

/** Stops it: tracing is disabled. */
function unmonitor () {
  process.removeListener('uncaughtExceptionMonitor', noteUncaught)
  release()
}

/** Unwraps _fatalException unless errors are still printed with it. */
function release () {
  if (settings.enabled && (settings.options.errors === 'print' || mayPrintOnTerminal())) return
  if (unwrap?.()) unwrap = undefined
}

/** Makes Node print errors with hops even if their stacks have none. @param {boolean} isOn */
function applyPrinting (isOn) {
  if (!isOn) return errorPrinter?.disable()
  guard.run(() => {
    errorPrinter ??= require('../format/printed-errors')
    errorPrinter.enable()
  })
  intercept()
}

/**
 * Registers a handler of trace.onError.
 * @param {Handler['matches']} matches the filter
 * @param {Handler['handler']} handler
 * @returns {() => void} removes it
 */
function addHandler (matches, handler) {
  const entry = { matches, handler }
  handlers = [...handlers, entry]
  if (settings.enabled) intercept()
  return () => {
    handlers = handlers.filter((other) => other !== entry)
    if (handlers.length === 0) release()
  }
}

/** Notes the context of an uncaught error. @param {unknown} error @param {boolean} isRejection */
function noteEscaped (error, isRejection) {
  const present = presentContext()
  const isUnsure = isRejection && missesSettled()
  const observed = observedErrors.get(error)
  // Node reports a rejection in the context of its promise.
  const rejecter = (isUnsure ? undefined : observedErrors.rejecterOfValue(error)) ??
    (isRejection ? settlerOf(executionAsyncResource()) ?? observed?.rejections?.last.context : undefined)
  const context = rejecter ?? (isUnsure ? undefined : present)
  if (context !== undefined) {
    observedErrors.noteEscape(error, { context, isRejection: rejecter !== undefined })
  }
  markUnknown()
  if (context !== undefined) guard.run(() => emit('escaped', error, context))
  guard.run(() => errorPrinter?.passToParent(error))
}

/**
 * Calls the handlers of trace.onError.
 * @param {unknown} error
 * @param {boolean} fromPromise
 * @returns {boolean} whether one of them handled it
 */
function askHandlers (error, fromPromise) {
  const promise = fromPromise ? observedErrors.get(error)?.lastPromise : undefined
  const context = contextAt(promise ?? 0) ?? presentContext()
  for (const entry of handlers) {
    const { matches, handler } = entry
    if (!handlers.includes(entry)) continue // an earlier handler has removed it
    const match = selectedContext(context, matches)
    if (match === null) continue
    try {
      if (handler(error, require('../format/context-view').view(match)) === true) return true
    } catch (thrown) {
      warn('HANDLER', `a handler of trace.onError threw: ${messageOf(thrown)}`)
    }
  }
  return false
}

/** Node reports a microtask's error after its `after` hook. @returns {Context | undefined} */
const presentContext = () => currentContext() ?? lastExited()

/**
 * Returns the context that a filter selects: the failing one, or the one behind Node's own ticks ("error"
 * events).
 * @param {Context | undefined} context
 * @param {(type: string) => boolean} isSelected
 * @returns {Context | undefined | null} null if it selects none
 */
function selectedContext (context, isSelected) {
  if (context === undefined) return isSelected('unknown') ? undefined : null
  let ancestor = /** @type {Context | undefined} */ (context)
  for (; ancestor !== undefined; ancestor = ancestor.parent) {
    if (isSelected(ancestor.type)) return ancestor
    const frames = ancestor.stack?.frames ?? []
    if (ancestor.type !== 'TickObject' || frames.some(isProgram)) return null
  }
  return null
}

/** Whether stderr may be a terminal. node:tty would know for sure, but loads net. */
const mayPrintOnTerminal = () => attempt(() => stateOfOpen(2).isCharacterDevice()) === true

/**
 * Runs Node's steps after a handled error without calling the program: meanwhile the listeners of the process
 * are silent, and an active domain takes the error.
 * @param {() => boolean} go
 */
function asHandled (go) {
  const leave = enterSilentDomain()
  const unwrapEmit = wrap(process, 'emit', () => (/** @type {string} */ name) => name === 'uncaughtException')
  try {
    return go()
  } finally {
    unwrapEmit?.()
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

module.exports = { addHandler, applyPrinting, monitor, unmonitor }
