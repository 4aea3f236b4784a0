'use strict'

// Error.stackTraceLimit belongs to the program. It is set for the moment of one capture and put back as it was,
// also where it was deleted, is no number, or cannot be written.

const { captureStackTrace } = Error

/**
 * Captures the present stack into an object of longstack's own, without formatting it.
 * @param {object} holder
 * @param {Function} above frames from this function on are left out
 * @param {number} limit
 */
function captureInto (holder, above, limit) {
  const before = Error.stackTraceLimit
  if (typeof before !== 'number') return captureOddly(holder, above, limit)
  try {
    Error.stackTraceLimit = limit
  } catch {} // --frozen-intrinsics: the live limit has to do
  captureStackTrace(holder, above)
  try {
    Error.stackTraceLimit = before
  } catch {}
}

/** @param {object} holder @param {Function} above @param {number} limit */
function captureOddly (holder, above, limit) {
  const before = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')
  try {
    Object.defineProperty(Error, 'stackTraceLimit', { value: limit, writable: true, enumerable: true, configurable: true })
    captureStackTrace(holder, above)
  } catch {
  } finally {
    if (before === undefined) Reflect.deleteProperty(Error, 'stackTraceLimit')
    else Reflect.defineProperty(Error, 'stackTraceLimit', before)
  }
}

module.exports = { captureInto }
