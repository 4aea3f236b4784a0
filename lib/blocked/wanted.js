'use strict'

// Who wants to know of blocking callbacks: the option, listeners of the program, longstack itself.

const guard = require('../core/guard')
const { Listeners } = require('../listeners')
const { settings } = require('../settings')

/**
 * @typedef {import('./blocking-callback').BlockedEvent} BlockedEvent
 *
 * @typedef {object} Observers of longstack itself: they are called whether the option is on or not
 * @property {number | undefined} ms threshold where it is off; undefined: none
 * @property {Listeners<BlockedEvent>} listeners
 */

/** of trace.on('blocked') @type {Listeners<BlockedEvent>} */
const listeners = new Listeners()

/** @type {Observers} */
const observers = { ms: undefined, listeners: new Listeners() }

/**
 * Writes a blocking callback among the spans, while there are any.
 * @type {{ record: ((event: BlockedEvent, callback: import('./blocking-callback').BlockingCallback) => void)
 *   | undefined }}
 */
const recorder = { record: undefined }

/** @type {typeof import('./detector') | undefined} */
let detector

/** Watches for blocking callbacks where that is asked for. */
function applyBlocked () {
  const { enabled, options } = settings
  const threshold = enabled ? options.blocked ?? observers.ms : undefined
  if (threshold === undefined && detector === undefined) return
  guard.run(() => {
    detector ??= require('./detector')
    detector.configure(threshold)
  })
}

/**
 * Returns the innermost frame that was sampled in the longest blocking callback of an interval.
 * @param {number} start ms of the clock
 * @param {number} end
 */
const frameDuring = (start, end) => detector?.frameDuring(start, end)

/** Returns the same of each that has ended after a time. @param {number} time ms of the clock */
const framesAfter = (time) => detector?.framesAfter(time) ?? []

module.exports = { applyBlocked, frameDuring, framesAfter, listeners, observers, recorder }
