'use strict'

// Error.prepareStackTrace and Error.stackTraceLimit belong to the program; only this file writes them. Each
// temporary value is restored exactly, even if the property was deleted, is not a number, or is an accessor
// (never called). If a property cannot be set (--frozen-intrinsics), its current value applies: the program's
// frames may then lie beyond the limit.
//
// V8 calls the formatter at the first read of `.stack`, through Node, which prefers the formatter of the
// error's own realm (prepareStackTraceCallback in lib/internal/errors.js).

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
 * @typedef {object} Loan a temporary replacement of the program's value
 * @property {ErrorConstructor} realm
 * @property {string} name of the property
 * @property {unknown} value
 * @property {PropertyDescriptor | undefined} slot the program's property
 * @property {Loan | undefined} outer the previous loan: the watchdog's sample may interrupt one
 */

/** @type {Loan | undefined} */
let loan

guard.add({
  save: () => loan,
  restore (outer) {
    while (loan !== undefined && loan !== outer) giveBack(loan)
  }
})

/** @param {ErrorConstructor} [realm] */
function readSlot (realm = Error) {
  return getOwnPropertyDescriptor(realm, FORMATTER)
}

const initial = readSlot()

/** Node's own formatter, if it was set first. @type {Formatter | undefined} */
const nodeFormatter = initial?.value?.name === 'ErrorPrepareStackTrace' ? initial.value : undefined

/**
 * Whether a formatter can be set. An accessor or a constant is another library's decision.
 * @param {PropertyDescriptor | undefined} slot
 */
function isSettable (slot) {
  return slot === undefined || slot.writable === true
}

/**
 * Sets a property and keeps its attributes.
 * @param {ErrorConstructor} realm
 * @param {string} name
 * @param {PropertyDescriptor | undefined} slot the current one
 * @param {unknown} value
 * @returns {boolean} false if it cannot be set (--frozen-intrinsics)
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
 * @param {PropertyDescriptor | undefined} slot undefined if it did not exist
 */
function restore (realm, name, slot) {
  if (slot === undefined) deleteProperty(realm, name)
  else defineProperty(realm, name, slot)
}

/**
 * Sets a formatter.
 * @param {Formatter} formatter
 * @param {PropertyDescriptor | undefined} slot the current one
 * @param {ErrorConstructor} realm
 */
const setFormatter = (formatter, slot, realm) => setValue(realm, FORMATTER, slot, formatter)

/**
 * Restores the property as it was before a formatter was set.
 * @param {PropertyDescriptor | undefined} slot
 * @param {ErrorConstructor} realm
 */
const restoreFormatter = (slot, realm) => restore(realm, FORMATTER, slot)

/**
 * Replaces one of the program's values temporarily.
 * @param {ErrorConstructor} realm
 * @param {string} name
 * @param {unknown} value
 * @returns {Loan | undefined} undefined if it cannot be set
 */
function lend (realm, name, value) {
  const slot = getOwnPropertyDescriptor(realm, name)
  const lent = { realm, name, value, slot, outer: loan }
  loan = lent // first: giveBack ignores a value that is not set yet
  if (setValue(realm, name, slot, value)) return lent
  loan = lent.outer
  return undefined
}

/** Undoes lend, unless another value was set since. @param {Loan} lent */
function giveBack ({ realm, name, value, slot, outer }) {
  if (getOwnPropertyDescriptor(realm, name)?.value === value) restore(realm, name, slot)
  loan = outer
}

/**
 * Replaces the program's formatter temporarily.
 * @param {ErrorConstructor} realm
 * @param {Formatter} formatter
 */
const lendFormatter = (realm, formatter) => lend(realm, FORMATTER, formatter)

/**
 * Reads a stack's call sites while longstack's own formatter is set, even in place of an accessor. The
 * program's formatter gets longstack's object only if it cannot be replaced; what it throws is dropped.
 * Without any formatter V8 produces text.
 * @param {{ stack: any }} holder one of longstack's objects
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
 * Captures the current stack into one of longstack's objects, without formatting it.
 * @param {object} holder
 * @param {Function} outermost this function's frame and those above it are left out
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
 * Returns the Error constructor whose formatter Node prefers: the one of the error's realm, if it has one.
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
