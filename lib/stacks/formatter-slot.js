'use strict'

// Error.prepareStackTrace: the only file that writes it. V8 calls it at the first read of `.stack`, through
// Node, which prefers that of the error's own realm (prepareStackTraceCallback in lib/internal/errors.js).

const { types } = require('node:util')
const guard = require('../core/guard')

/**
 * @typedef {(error: any, sites: NodeJS.CallSite[]) => any} Formatter
 */

const initial = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')

/** Node's own formatter, where it was there first. @type {Formatter | undefined} */
const nodeFormatter = initial?.value?.name === 'ErrorPrepareStackTrace' ? initial.value : undefined

/** @param {ErrorConstructor} [realm] */
function readSlot (realm = Error) {
  return Object.getOwnPropertyDescriptor(realm, 'prepareStackTrace')
}

/**
 * Whether a formatter can be set: an accessor or a constant is another library's decision.
 * @param {PropertyDescriptor | undefined} slot
 */
function isSettable (slot) {
  return slot === undefined || slot.writable === true
}

/**
 * Sets a formatter.
 * @param {Formatter} formatter
 * @param {PropertyDescriptor | undefined} slot the present one, whose attributes it keeps
 * @param {ErrorConstructor} [realm]
 * @returns {boolean} false where that cannot be done (--frozen-intrinsics)
 */
function setSlot (formatter, slot, realm = Error) {
  return Reflect.defineProperty(realm, 'prepareStackTrace', {
    value: formatter,
    writable: true,
    enumerable: slot?.enumerable ?? true,
    configurable: slot?.configurable ?? true
  })
}

/**
 * Restores what was there before setSlot.
 * @param {PropertyDescriptor | undefined} slot
 * @param {ErrorConstructor} [realm]
 */
function restoreSlot (slot, realm = Error) {
  if (slot === undefined) Reflect.deleteProperty(realm, 'prepareStackTrace')
  else Reflect.defineProperty(realm, 'prepareStackTrace', slot)
}

/**
 * A formatter in the place of the program's, for the moment of one read.
 * @typedef {object} Loan
 * @property {ErrorConstructor} realm
 * @property {PropertyDescriptor | undefined} slot of the program's
 * @property {Formatter} formatter
 * @property {Loan | undefined} outer the one before: the watchdog's sample may interrupt one
 */

/** @type {Loan | undefined} */
let loan

guard.add({
  save: () => loan,
  restore (outer) {
    while (loan !== undefined && loan !== outer) returnSlot(loan)
  }
})

/**
 * Reads a stack while a formatter of longstack is set, also in the place of an accessor: no formatter of the
 * program's gets an object of longstack's, but one that cannot be replaced, and what that throws is dropped.
 * @param {{ stack: any }} holder an object of longstack's own
 * @param {Formatter} formatter
 */
function readWith (holder, formatter) {
  const slot = readSlot()
  if (slot === undefined) return holder.stack
  const canLend = slot.writable === true || slot.configurable === true
  const lent = canLend ? lendSlot(Error, slot, formatter) : undefined
  try {
    return holder.stack
  } catch (error) {
    if (lent !== undefined) throw error // a full stack
    return undefined
  } finally {
    if (lent !== undefined) returnSlot(lent)
  }
}

/**
 * Replaces the program's formatter for the moment.
 * @param {ErrorConstructor} realm
 * @param {PropertyDescriptor | undefined} slot of the program's
 * @param {Formatter} formatter
 * @returns {Loan | undefined} undefined where it cannot be set
 */
function lendSlot (realm, slot, formatter) {
  const descriptor = slot === undefined || slot.writable === undefined
    ? { value: formatter, writable: true, enumerable: true, configurable: true }
    : { value: formatter }
  const lent = { realm, slot, formatter, outer: loan }
  loan = lent // first: what is not set yet is not put back either
  if (Reflect.defineProperty(realm, 'prepareStackTrace', descriptor)) return lent
  loan = lent.outer
  return undefined
}

/** Ends what lendSlot began; leaves alone what was set since. @param {Loan} lent */
function returnSlot ({ realm, slot, formatter, outer }) {
  if (readSlot(realm)?.value === formatter) {
    if (slot === undefined) Reflect.deleteProperty(realm, 'prepareStackTrace')
    else Reflect.defineProperty(realm, 'prepareStackTrace', slot)
  }
  loan = outer
}

/**
 * Returns the Error whose formatter Node prefers: that of the error's realm, where it has one.
 * @param {object} error
 * @returns {ErrorConstructor}
 */
function realmOf (error) {
  let prototype = Object.getPrototypeOf(error)
  for (; prototype !== null && !types.isProxy(prototype); prototype = Object.getPrototypeOf(prototype)) {
    const candidate = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value
    if (candidate === Error) break
    if (typeof candidate !== 'function' || types.isProxy(candidate)) continue
    if (Object.hasOwn(candidate, 'captureStackTrace')) {
      return typeof readSlot(candidate)?.value === 'function' ? candidate : Error
    }
  }
  return Error
}

module.exports = {
  isSettable, lendSlot, nodeFormatter, readSlot, readWith, realmOf, restoreSlot, returnSlot, setSlot
}
