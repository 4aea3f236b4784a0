'use strict'

// Error.stackTraceLimit belongs to the program. It is set for the moment of one capture and put back as it was,
// also where it was deleted, is no number, or cannot be written; an accessor is never called.

const { captureStackTrace } = Error
const { getOwnPropertyDescriptor } = Object
const { defineProperty, deleteProperty } = Reflect

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
  } catch {
    return captureOddly(holder, above, frames)
  }
  try {
    captureStackTrace(holder, above)
  } finally { // a full stack can surface here
    Error.stackTraceLimit = before
  }
}

/**
 * What is read-only, deleted or an accessor can mostly be redefined for the moment; where it cannot (--frozen-intrinsics),
 * the live limit has to do, and the program's frames may lie behind it.
 * @param {object} holder
 * @param {Function} above
 * @param {number} frames
 */
function captureOddly (holder, above, frames) {
  const before = getOwnPropertyDescriptor(Error, 'stackTraceLimit')
  const lent = defineProperty(Error, 'stackTraceLimit', { value: frames, writable: true, enumerable: true, configurable: true })
  try {
    captureStackTrace(holder, above)
  } finally {
    if (lent) putBack(before)
  }
}

/** @param {PropertyDescriptor | undefined} descriptor */
function putBack (descriptor) {
  if (descriptor === undefined) deleteProperty(Error, 'stackTraceLimit')
  else defineProperty(Error, 'stackTraceLimit', descriptor)
}

module.exports = { captureInto, limit }
