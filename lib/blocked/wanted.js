'use strict'

// Observers of blocking callbacks: the option, the program's listeners, and longstack itself.

const guard = require('../core/guard')
const { Listeners } = require('../listeners')
const { settings } = require('../settings')

/**
 * @typedef {import('./blocking-callback').BlockedEvent} BlockedEvent
 *
 * @typedef {object} Observers of longstack itself, notified whether the option is on or not
 * @property {number | undefined} ms threshold if the option is off; undefined for none
 * @property {Listeners<BlockedEvent>} listeners
 */

/** listeners of trace.on('blocked') @type {Listeners<BlockedEvent>} */
const listeners = new Listeners()

/** @type {Observers} */
const observers = { ms: undefined, listeners: new Listeners() }

/**
 * Writes blocking callbacks to the spans, while spans are on.
 * @type {{ record: ((event: BlockedEvent, callback: import('./blocking-callback').BlockingCallback) => void)
 *   | undefined }}
 */
const recorder = { record: undefined }

/** @type {typeof import('./detector') | undefined} */
let detector

/** Starts or stops detection, depending on the option and the observers. */
function applyBlocked () {
  const { enabled, options } = settings
  const threshold = enabled ? options.blocked ?? observers.ms : undefined
  if (threshold === undefined && detector === undefined) return
  guard.run(() => {
    detector ??= require('./detector')
    detector.configure(threshold)
  })
}

/** Returns the frames of blocking callbacks that ended after a time. @param {number} time ms of the clock */
const framesAfter = (time) => detector?.framesAfter(time) ?? []

module.exports = { applyBlocked, framesAfter, listeners, observers, recorder }
