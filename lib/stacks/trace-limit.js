'use strict'

// Error.stackTraceLimit belongs to the program. It is set for the moment of one capture and put back as it was,
// also where it was deleted, is no number, or cannot be written; an accessor is never called.

const { captureStackTrace } = Error
const { getOwnPropertyDescriptor } = Object

/** @returns {number | undefined} what V8 goes by; undefined: no stacks */
function limit () {
  const value = getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.value
  return typeof value === 'number' ? value : undefined
}

/**
 * Captures the present stack into an object of longstack's own, without formatting it.
 * @param {object} holder
 * @param {Function} above frames from this function on are left out
 * @param {number} frames
 */
function captureInto (holder, above, frames) {
  const before = limit()
  if (before === undefined) return captureOddly(holder, above, frames)
  try {
    Error.stackTraceLimit = frames
  } catch {} // --frozen-intrinsics: the live limit has to do
  try {
    captureStackTrace(holder, above)
  } finally { // a full stack can surface here
    try {
      Error.stackTraceLimit = before
    } catch {}
  }
}

/** @param {object} holder @param {Function} above @param {number} frames */
function captureOddly (holder, above, frames) {
  const before = getOwnPropertyDescriptor(Error, 'stackTraceLimit')
  try {
    Object.defineProperty(Error, 'stackTraceLimit', { value: frames, writable: true, enumerable: true, configurable: true })
    captureStackTrace(holder, above)
  } catch {
  } finally {
    if (before === undefined) Reflect.deleteProperty(Error, 'stackTraceLimit')
    else Reflect.defineProperty(Error, 'stackTraceLimit', before)
  }
}

module.exports = { captureInto, limit }
