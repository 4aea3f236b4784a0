'use strict'

// Error.stackTraceLimit belongs to the program. It is set for the moment of one capture and restored as it
// was, also where it was deleted, is no number, or cannot be written; an accessor is never called.

const { captureStackTrace } = Error
const { getOwnPropertyDescriptor } = Object
const { defineProperty, deleteProperty } = Reflect

/** @returns {number | undefined} the limit that V8 applies; undefined: no stacks */
function limit () {
  const value = getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.value
  return typeof value === 'number' ? value : undefined
}

/**
 * Captures the present stack into an object of longstack's own, without formatting it.
 * @param {object} holder
 * @param {Function} outermost frames from this function on are left out
 * @param {number} frames
 */
function captureInto (holder, outermost, frames) {
  const before = limit()
  if (before === undefined) return captureByDescriptor(holder, outermost, frames)
  try {
    Error.stackTraceLimit = frames
  } catch {
    return captureByDescriptor(holder, outermost, frames)
  }
  try {
    captureStackTrace(holder, outermost)
  } finally { // a full stack can surface here
    Error.stackTraceLimit = before
  }
}

/**
 * Captures where the limit is read-only, deleted or an accessor: mostly it can be redefined for the moment.
 * Where it cannot (--frozen-intrinsics), the present limit applies, and the program's frames may lie beyond
 * it.
 * @param {object} holder
 * @param {Function} outermost
 * @param {number} frames
 */
function captureByDescriptor (holder, outermost, frames) {
  const before = getOwnPropertyDescriptor(Error, 'stackTraceLimit')
  const temporary = { value: frames, writable: true, enumerable: true, configurable: true }
  const isSet = defineProperty(Error, 'stackTraceLimit', temporary)
  try {
    captureStackTrace(holder, outermost)
  } finally {
    if (isSet) restore(before)
  }
}

/** @param {PropertyDescriptor | undefined} descriptor */
function restore (descriptor) {
  if (descriptor === undefined) deleteProperty(Error, 'stackTraceLimit')
  else defineProperty(Error, 'stackTraceLimit', descriptor)
}

module.exports = { captureInto, limit }
