'use strict'

// Reads objects without running anything of the program: own data properties only. A getter, a proxy or what
// else the program put in the way is not touched; then nothing is known.

const { types } = require('node:util')

const { getPrototypeOf } = Reflect
const { isProxy } = types

/**
 * Reads an own data property: never a getter, never a proxy's trap of the program's.
 * @param {object} object
 * @param {PropertyKey} name
 */
function own (object, name) {
  return Object.getOwnPropertyDescriptor(object, name)?.value
}

/** Accepts objects that can be read: no proxy, no function. @param {unknown} value @returns {value is object} */
function isObject (value) {
  return typeof value === 'object' && value !== null && !isProxy(value)
}

/**
 * Accepts proxies as well: for values that are compared, or are keys, and never read.
 * @param {unknown} value
 * @returns {value is object}
 */
function isAnyObject (value) {
  return typeof value === 'object' && value !== null
}

/**
 * The value of an own symbol property, by what the symbol is called; Node's symbols cannot be had otherwise.
 * @param {object} object
 * @param {...string} names
 * @returns {any}
 */
function hidden (object, ...names) {
  for (const symbol of Object.getOwnPropertySymbols(object)) {
    if (!names.includes(/** @type {string} */ (symbol.description))) continue
    const value = own(object, symbol)
    if (value !== undefined) return value
  }
  return undefined
}

/**
 * Reads a property of Node's sockets and timers by what its symbol is called: found once, and read plainly,
 * since hot rooms ask. A program that has put a getter there has gone out of its way. bench/run.js,
 * longstack-spans.
 * @param {string} description
 * @returns {(object: any) => any}
 */
function hiddenProperty (description) {
  /** @type {symbol | undefined} */
  let symbol
  return (object) => {
    symbol ??= Object.getOwnPropertySymbols(object).find((one) => one.description === description)
    return symbol === undefined ? undefined : object[symbol]
  }
}

/**
 * Like instanceof, without Symbol.hasInstance and without a proxy's trap.
 * @param {object} object
 * @param {object | undefined} prototype
 */
function inherits (object, prototype) {
  for (let at = /** @type {object | null} */ (object); at !== null && !isProxy(at); at = getPrototypeOf(at)) if (at === prototype) return true
  return false
}

/** The name of an object's class. @param {object} object @returns {string | undefined} */
function className (object) {
  if (isProxy(object)) return undefined
  const prototype = getPrototypeOf(object)
  const constructor = prototype === null || isProxy(prototype) ? undefined : own(prototype, 'constructor')
  const name = typeof constructor === 'function' && !isProxy(constructor) ? own(constructor, 'name') : undefined
  return typeof name === 'string' && name !== '' ? name : undefined
}

/**
 * host:port, with brackets around IPv6.
 * @param {unknown} host
 * @param {unknown} port
 */
function address (host, port) {
  if (typeof host !== 'string') return undefined
  const name = host.includes(':') ? `[${host}]` : host
  return port === undefined ? name : `${name}:${port}`
}

module.exports = { address, className, hidden, hiddenProperty, inherits, isAnyObject, isObject, own }
