'use strict'

// Detection of blocking callbacks, on and off; loaded when somebody first wants it. Chooses the watchdog, and
// passes what is detected to listeners, to the spans, or else to stderr.

const { updateWatching } = require('../core/index')
const { on } = require('../core/on')
const { afterChange } = require('../listeners')
const { paint } = require('../format/paint')
const { BlockingTexts } = require('../format/blocking')
const { settings } = require('../settings')
const { loadBinding } = require('../stacks/binding')
const { messageOf, printLine: print, warn } = require('../warnings')
const { Detector } = require('./detector')
const { createInspectorWatchdog } = require('./inspector-watchdog')
const { createNativeWatchdog } = require('./native-watchdog')
const { listeners, observers, recorder } = require('./wanted')

/** @typedef {import('./blocking-callback').BlockedEvent} BlockedEvent */

const texts = new BlockingTexts()
const detector = new Detector(createWatchdog, report)
/** @type {(() => void) | undefined} */
let stopListening

function createWatchdog () {
  const binding = settings.options.capture === 'js' ? undefined : loadBinding().binding?.watch
  return binding === undefined ? createInspectorWatchdog() : createNativeWatchdog(binding)
}

/**
 * @param {BlockedEvent} event
 * @param {import('./blocking-callback').BlockingCallback} callback
 */
function report (event, callback) {
  observers.listeners.emit(event)
  if (settings.options.blocked === undefined) return
  recorder.record?.(event, callback)
  if (listeners.size === 0) print(paint(`longstack: ${texts.format(event, callback.span)}`))
  afterChange(() => listeners.emit(event, warnOf))
}

/** @param {unknown} thrown */
function warnOf (thrown) {
  warn('BLOCKED_LISTENER', `a listener of 'blocked' threw: ${messageOf(thrown)}`)
}

/**
 * Starts, changes or stops detection.
 * @param {number | undefined} threshold ms; undefined: stop
 */
function configure (threshold) {
  process.removeListener('exit', detector.finish)
  stopListening?.()
  detector.configure(threshold)
  const { onCallback } = detector
  stopListening = onCallback === undefined ? undefined : on('callback', onCallback)
  updateWatching()
  // First of all listeners: what is detected then is still to be written by the sinks.
  if (threshold !== undefined) process.prependListener('exit', detector.finish)
}

module.exports = { configure, frameDuring: detector.frameDuring }
