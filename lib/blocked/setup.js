'use strict'

// Sets up detection of blocking callbacks; loaded when the option `blocked` is first set. Chooses the
// watchdog, and passes what is detected to listeners, to the spans, or else to stderr.

const { loadBinding } = require('../stacks/binding')
const { paint } = require('../format/paint')
const { BlockingTexts } = require('../format/blocking')
const { afterChange } = require('../listeners')
const { messageOf, printLine: print } = require('../warnings')
const { Detector } = require('./detector')
const { createInspectorWatchdog } = require('./inspector-watchdog')
const { createNativeWatchdog } = require('./native-watchdog')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {import('./blocking-callback').BlockingCallback} BlockingCallback
 * @typedef {ReturnType<typeof createBlockedCallbacks>} BlockedCallbacks
 *
 * @typedef {object} Observers of longstack itself: they are called whether the option is on or not
 * @property {number | undefined} ms threshold where it is off; undefined: none
 * @property {import('../listeners').Listeners<BlockedEvent>} listeners
 * @property {() => void} apply puts the threshold in force
 */

/**
 * @param {object} deps
 * @param {() => number} deps.now
 * @param {() => Context | undefined} deps.current
 * @param {(holder: any) => string} deps.withPlainFormat reads its `stack` with V8's plain format in
 *   force
 * @param {import('./blocking-callback').Explain} deps.explain
 * @param {() => import('../options').Options} deps.options
 * @param {(code: string, sentence: string) => void} deps.warn
 * @param {import('../listeners').Listeners<BlockedEvent>} deps.listeners of `blocked`
 * @param {(event: BlockedEvent, callback: BlockingCallback) => void} deps.record writes it among the spans
 * @param {Observers} deps.observers
 * @param {<T>(work: () => T) => T | undefined} deps.safely runs longstack's own work, and never throws
 */
function createBlockedCallbacks (deps) {
  const { now, current, withPlainFormat, explain, options, warn, listeners, observers, record, safely } = deps
  const texts = new BlockingTexts()
  const detector = new Detector({ now, current, withPlainFormat, explain, createWatchdog, report, safely })

  function createWatchdog () {
    const binding = options().capture === 'js' ? undefined : loadBinding().binding?.watch
    return binding === undefined
      ? createInspectorWatchdog({ now, warn })
      : createNativeWatchdog({ binding, now, warn })
  }

  /**
   * @param {BlockedEvent} event
   * @param {BlockingCallback} callback
   */
  function report (event, callback) {
    observers.listeners.emit(event)
    if (options().blocked === undefined) return
    record(event, callback)
    if (listeners.size === 0) print(paint(`longstack: ${texts.format(event, callback.span)}`))
    afterChange(() => listeners.emit(event, warnOf))
  }

  /** @param {unknown} thrown */
  function warnOf (thrown) {
    warn('BLOCKED_LISTENER', `a listener of 'blocked' threw: ${messageOf(thrown)}`)
  }

  return {
    /** Returns what is to be called when the loop enters JavaScript; undefined while nothing is watched. */
    callbackListener: () => detector.onCallback,
    frameDuring: detector.frameDuring,

    /**
     * Starts, changes or stops detection.
     * @param {number | undefined} threshold ms; undefined: stop
     */
    configure (threshold) {
      process.removeListener('exit', detector.finish)
      detector.configure(threshold)
      // First of all listeners: what is detected then is still to be written by the sinks.
      if (threshold !== undefined) process.prependListener('exit', detector.finish)
    }
  }
}

module.exports = { createBlockedCallbacks }
