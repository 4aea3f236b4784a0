'use strict'

// Error.prepareStackTrace: the only file that writes it. V8 calls it at the first read of `.stack`, through
// Node, which prefers that of the error's own realm (prepareStackTraceCallback in lib/internal/errors.js).

const { types } = require('node:util')

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
 * @returns {boolean} false where that cannot be done (--frozen-intrinsics)
 */
function setSlot (formatter, slot) {
  return Reflect.defineProperty(Error, 'prepareStackTrace', {
    value: formatter,
    writable: true,
    enumerable: slot?.enumerable ?? true,
    configurable: slot?.configurable ?? true
  })
}

/** Restores what was there before setSlot. @param {PropertyDescriptor | undefined} slot */
function restoreSlot (slot) {
  if (slot === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace')
  else Reflect.defineProperty(Error, 'prepareStackTrace', slot)
}

/**
 * Reads a stack while a formatter of longstack is set.
 * @template T
 * @param {() => T} read
 * @param {Formatter} formatter
 * @returns {T}
 */
function readWith (read, formatter) {
  const slot = readSlot()
  if (slot?.writable !== true) return read()
  Error.prepareStackTrace = formatter
  try {
    return read()
  } finally {
    Error.prepareStackTrace = slot.value
  }
}

/**
 * Replaces the program's formatter for the moment.
 * @param {ErrorConstructor} realm
 * @param {PropertyDescriptor | undefined} slot of the program's
 * @param {Formatter} formatter
 * @returns {boolean} false where it cannot be set
 */
function lendSlot (realm, slot, formatter) {
  if (!isSettable(slot)) return false
  const descriptor = slot === undefined
    ? { value: formatter, writable: true, enumerable: true, configurable: true }
    : { value: formatter }
  return Reflect.defineProperty(realm, 'prepareStackTrace', descriptor)
}

/** Ends what lendSlot began. @param {ErrorConstructor} realm @param {PropertyDescriptor | undefined} slot */
function returnSlot (realm, slot) {
  if (slot === undefined) Reflect.deleteProperty(realm, 'prepareStackTrace')
  else Reflect.defineProperty(realm, 'prepareStackTrace', { value: slot.value })
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
