'use strict'

// Error.stackTraceLimit belongs to the program. It is set for the moment of one capture and restored as it
// was, also where it was deleted, is no number, or cannot be written; an accessor is never called.

const guard = require('../core/guard')

const { captureStackTrace } = Error
const { getOwnPropertyDescriptor } = Object
const { defineProperty, deleteProperty } = Reflect

/** the limit is set for a capture, to `lentFrames`, and was `lentLimit` or had `lentDescriptor` */
let isLent = false
let lentFrames = 0
let lentLimit = 0
/** @type {PropertyDescriptor | undefined} */
let lentDescriptor

guard.add({ save: () => isLent, restore: (wasLent) => { if (isLent && wasLent !== true) takeBack() } })

/** Restores a limit that a terminated capture has left. */
function takeBack () {
  isLent = false
  if (limit() !== lentFrames) return // the program has set another
  if (lentDescriptor === undefined) Error.stackTraceLimit = lentLimit
  else restore(lentDescriptor)
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
  const before = limit()
  if (before === undefined) return captureByDescriptor(holder, outermost, frames)
  const isOutermost = lend(frames, before, undefined)
  try {
    Error.stackTraceLimit = frames
  } catch {
    if (isOutermost) isLent = false
    return captureByDescriptor(holder, outermost, frames)
  }
  try {
    captureStackTrace(holder, outermost)
  } finally { // a full stack can surface here
    Error.stackTraceLimit = before
    if (isOutermost) isLent = false
  }
}

/**
 * Notes what the limit is, before it is set.
 * @param {number} frames
 * @param {number} before
 * @param {PropertyDescriptor | undefined} descriptor
 * @returns {boolean} false within another capture: the watchdog's sample may interrupt one
 */
function lend (frames, before, descriptor) {
  if (isLent) return false
  lentFrames = frames
  lentLimit = before
  lentDescriptor = descriptor
  isLent = true
  return true
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
  const isOutermost = lend(frames, 0, before ?? deleted)
  const isSet = defineProperty(Error, 'stackTraceLimit', temporary)
  try {
    captureStackTrace(holder, outermost)
  } finally {
    if (isSet) restore(before ?? deleted)
    if (isOutermost) isLent = false
  }
}

/** In place of the descriptor of a property that is not there. @type {PropertyDescriptor} */
const deleted = {}

/** @param {PropertyDescriptor} descriptor */
function restore (descriptor) {
  if (descriptor === deleted) deleteProperty(Error, 'stackTraceLimit')
  else defineProperty(Error, 'stackTraceLimit', descriptor)
}

module.exports = { captureInto, limit }
