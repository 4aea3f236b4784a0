'use strict'

// Error.stackTraceLimit belongs to the program. It is set for the moment of one capture and restored as it
// was, also where it was deleted, is no number, or is an accessor, which is never called. Where it cannot be
// set (--frozen-intrinsics), the present limit applies, and the program's frames may lie beyond it.

const guard = require('../core/guard')

const { captureStackTrace } = Error
const { getOwnPropertyDescriptor } = Object
const { defineProperty, deleteProperty } = Reflect

/**
 * what is set for a capture, and what was there before
 * @type {{ frames: number, before: PropertyDescriptor | undefined } | undefined}
 */
let lent

guard.add({
  save: () => lent,
  restore (outer) {
    if (lent === undefined || outer !== undefined) return
    const { frames, before } = lent
    lent = undefined
    if (limit() === frames) restore(before) // else the program has set another
  }
})

/** @param {PropertyDescriptor | undefined} before undefined: it was not there */
function restore (before) {
  if (before === undefined) deleteProperty(Error, 'stackTraceLimit')
  else defineProperty(Error, 'stackTraceLimit', before)
}

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
  const before = getOwnPropertyDescriptor(Error, 'stackTraceLimit')
  const isOutermost = lent === undefined // the watchdog's sample may interrupt a capture
  if (isOutermost) lent = { frames, before }
  const isValue = before !== undefined && before.writable !== undefined
  const isSet = defineProperty(Error, 'stackTraceLimit', isValue
    ? { value: frames }
    : { value: frames, writable: true, enumerable: true, configurable: true })
  try {
    captureStackTrace(holder, outermost)
  } finally { // a full stack can surface here
    if (isSet) restore(before)
    if (isOutermost) lent = undefined
  }
}

module.exports = { captureInto, limit }
