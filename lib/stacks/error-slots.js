'use strict'

// Error.prepareStackTrace and Error.stackTraceLimit belong to the program: this file alone writes them. What
// is set for a moment is put back as it was, also where it was deleted, is no number, or is an accessor,
// which is never called. Where it cannot be set (--frozen-intrinsics) the present one applies: the program's
// frames may then lie beyond the limit.
//
// V8 calls the formatter at the first read of `.stack`, through Node, which prefers that of the error's own
// realm (prepareStackTraceCallback in lib/internal/errors.js).

const { types } = require('node:util')
const guard = require('../core/guard')

const { captureStackTrace } = Error
const { getOwnPropertyDescriptor } = Object
const { defineProperty, deleteProperty } = Reflect

const FORMATTER = 'prepareStackTrace'
const LIMIT = 'stackTraceLimit'

/**
 * @typedef {(error: any, sites: NodeJS.CallSite[]) => any} Formatter
 *
 * @typedef {object} Loan a value in the place of the program's, for a moment
 * @property {ErrorConstructor} realm
 * @property {string} name of the property
 * @property {unknown} value
 * @property {PropertyDescriptor | undefined} slot of the program's
 * @property {Loan | undefined} outer the one before: the watchdog's sample may interrupt one
 */

/** @type {Loan | undefined} */
let loan

guard.add({
  save: () => loan,
  restore (outer) {
    while (loan !== undefined && loan !== outer) giveBack(loan)
  }
})

/** @param {ErrorConstructor} [realm] of which the formatter is returned */
function readSlot (realm = Error) {
  return getOwnPropertyDescriptor(realm, FORMATTER)
}

const initial = readSlot()

/** Node's own formatter, where it was there first. @type {Formatter | undefined} */
const nodeFormatter = initial?.value?.name === 'ErrorPrepareStackTrace' ? initial.value : undefined

/**
 * Whether a formatter can be set: an accessor or a constant is another library's decision.
 * @param {PropertyDescriptor | undefined} slot
 */
function isSettable (slot) {
  return slot === undefined || slot.writable === true
}

/**
 * Sets a property, which keeps its attributes.
 * @param {ErrorConstructor} realm
 * @param {string} name
 * @param {PropertyDescriptor | undefined} slot the present one
 * @param {unknown} value
 * @returns {boolean} false where that cannot be done (--frozen-intrinsics)
 */
function setValue (realm, name, slot, value) {
  const isValue = slot !== undefined && slot.writable !== undefined
  const attributes = { value, writable: true, enumerable: true, configurable: true }
  return defineProperty(realm, name, isValue ? { value } : attributes)
}

/**
 * Restores a property.
 * @param {ErrorConstructor} realm
 * @param {string} name
 * @param {PropertyDescriptor | undefined} slot undefined: it was not there
 */
function restore (realm, name, slot) {
  if (slot === undefined) deleteProperty(realm, name)
  else defineProperty(realm, name, slot)
}

/**
 * Sets a formatter.
 * @param {Formatter} formatter
 * @param {PropertyDescriptor | undefined} slot the present one
 * @param {ErrorConstructor} realm
 */
const setFormatter = (formatter, slot, realm) => setValue(realm, FORMATTER, slot, formatter)

/**
 * Restores what was there before a formatter was set.
 * @param {PropertyDescriptor | undefined} slot
 * @param {ErrorConstructor} realm
 */
const restoreFormatter = (slot, realm) => restore(realm, FORMATTER, slot)

/**
 * Replaces a value of the program's for the moment.
 * @param {ErrorConstructor} realm
 * @param {string} name
 * @param {unknown} value
 * @returns {Loan | undefined} undefined where it cannot be set
 */
function lend (realm, name, value) {
  const slot = getOwnPropertyDescriptor(realm, name)
  const lent = { realm, name, value, slot, outer: loan }
  loan = lent // first: what is not set yet is not put back either
  if (setValue(realm, name, slot, value)) return lent
  loan = lent.outer
  return undefined
}

/** Ends what lend began; leaves alone what was set since. @param {Loan} lent */
function giveBack ({ realm, name, value, slot, outer }) {
  if (getOwnPropertyDescriptor(realm, name)?.value === value) restore(realm, name, slot)
  loan = outer
}

/**
 * Replaces the program's formatter for the moment.
 * @param {ErrorConstructor} realm
 * @param {Formatter} formatter
 */
const lendFormatter = (realm, formatter) => lend(realm, FORMATTER, formatter)

/**
 * Reads the call sites of a stack while a formatter of longstack is set, also in the place of an accessor: no
 * formatter of the program's gets an object of longstack's, but one that cannot be replaced, and what that
 * throws is dropped. Without a formatter V8 writes a text.
 * @param {{ stack: any }} holder an object of longstack's own
 */
function readUnwrapped (holder) {
  if (readSlot() === undefined) return holder.stack
  const lent = lendFormatter(Error, (_, sites) => sites)
  try {
    return holder.stack
  } catch (error) {
    if (lent !== undefined) throw error // a full stack
    return undefined
  } finally {
    if (lent !== undefined) giveBack(lent)
  }
}

/** @returns {number | undefined} the limit that V8 applies; undefined: no stacks */
function limit () {
  const value = getOwnPropertyDescriptor(Error, LIMIT)?.value
  return typeof value === 'number' ? value : undefined
}

/**
 * Captures the present stack into an object of longstack's own, without formatting it.
 * @param {object} holder
 * @param {Function} outermost frames from this function on are left out
 * @param {number} frames
 */
function captureInto (holder, outermost, frames) {
  const lent = lend(Error, LIMIT, frames)
  try {
    captureStackTrace(holder, outermost)
  } finally { // a full stack can surface here
    if (lent !== undefined) giveBack(lent)
  }
}

/**
 * Returns the Error whose formatter Node prefers: that of the error's realm, where it has one.
 * @param {object} error
 * @returns {ErrorConstructor}
 */
function realmOf (error) {
  let prototype = Object.getPrototypeOf(error)
  for (; prototype !== null && !types.isProxy(prototype); prototype = Object.getPrototypeOf(prototype)) {
    const candidate = getOwnPropertyDescriptor(prototype, 'constructor')?.value
    if (candidate === Error) break
    if (typeof candidate !== 'function' || types.isProxy(candidate)) continue
    if (Object.hasOwn(candidate, 'captureStackTrace')) {
      return typeof readSlot(candidate)?.value === 'function' ? candidate : Error
    }
  }
  return Error
}

module.exports = {
  captureInto,
  giveBack,
  isSettable,
  lendFormatter,
  limit,
  nodeFormatter,
  readSlot,
  readUnwrapped,
  realmOf,
  restoreFormatter,
  setFormatter
}
