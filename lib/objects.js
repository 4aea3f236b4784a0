'use strict'

// Reads objects without running the program's code: own data properties only. Getters and proxies are not
// touched; the result is then undefined.

const { types } = require('node:util')

const { getOwnPropertyDescriptor, getPrototypeOf } = Reflect
const { isProxy } = types

/**
 * Reads an own data property without running a getter. Callers exclude proxies.
 * @param {object} object
 * @param {PropertyKey} name
 */
function own (object, name) {
  return Object.getOwnPropertyDescriptor(object, name)?.value
}

/**
 * Reads a property that Node creates on first access (`process.allowedNodeEnvironmentFlags`), and restores
 * the lazy getter. Runs the program's getter if it has installed one.
 * @param {object} object
 * @param {string} name
 */
function readLazy (object, name) {
  const property = Object.getOwnPropertyDescriptor(object, name)
  const value = /** @type {any} */ (object)[name]
  if (property?.get !== undefined && property.configurable) Object.defineProperty(object, name, property)
  return value
}

/**
 * Accepts readable objects: no proxy, no function.
 * @param {unknown} value
 * @returns {value is object}
 */
function isObject (value) {
  return typeof value === 'object' && value !== null && !isProxy(value)
}

/**
 * Accepts proxies as well: for values that are compared or used as keys, but never read.
 * @param {unknown} value
 * @returns {value is object}
 */
function isAnyObject (value) {
  return typeof value === 'object' && value !== null
}

/** Returns a string unless it is empty. @param {unknown} value */
const textOf = (value) => typeof value === 'string' && value !== '' ? value : undefined

const MAX_KNOWN = 8 // symbols of one description: Node has one, and each copy of a package its own

/** symbols found so far, by description @type {Map<string, symbol[]>} */
const known = new Map()
/** @type {symbol[]} */
const none = []

/**
 * Reads an own symbol property by the symbol's description; Node exports few of its symbols.
 * @param {object} object
 * @param {...string} names
 * @returns {any}
 */
function hidden (object, ...names) {
  for (const name of names) {
    for (const symbol of known.get(name) ?? none) {
      const value = own(object, symbol)
      if (value !== undefined) return value
    }
  }
  return findHidden(object, names)
}

/** Does the same for symbols that are not known yet. @param {object} object @param {string[]} names */
function findHidden (object, names) {
  for (const symbol of Object.getOwnPropertySymbols(object)) {
    const name = /** @type {string} */ (symbol.description)
    if (!names.includes(name)) continue
    const value = own(object, symbol)
    if (value === undefined) continue
    const symbols = known.get(name) ?? none
    if (symbols.length < MAX_KNOWN && !symbols.includes(symbol)) known.set(name, [...symbols, symbol])
    return value
  }
  return undefined
}

/**
 * Makes a reader of a symbol property of Node's sockets and timers, for the hot path: looks the symbol up
 * once, and reads the property directly, so a getter of the program would run. bench/run.js, longstack-spans.
 * @param {string} description
 * @returns {(object: any) => any}
 */
function hiddenProperty (description) {
  /** @type {symbol | undefined} */
  let symbol
  return (object) => {
    symbol ??= Object.getOwnPropertySymbols(object).find((candidate) => candidate.description === description)
    return symbol === undefined ? undefined : object[symbol]
  }
}

/**
 * Finds a property on an object or its prototypes, up to the first proxy.
 * @param {object} object
 * @param {string} name
 * @returns {PropertyDescriptor | undefined}
 */
function findProperty (object, name) {
  let owner = /** @type {object | null} */ (object)
  for (; owner !== null && !isProxy(owner); owner = getPrototypeOf(owner)) {
    const property = getOwnPropertyDescriptor(owner, name)
    if (property !== undefined) return property
  }
  return undefined
}

/**
 * Works like instanceof, without Symbol.hasInstance and proxy traps.
 * @param {object} object
 * @param {object | undefined} prototype
 */
function inherits (object, prototype) {
  let ancestor = /** @type {object | null} */ (object)
  for (; ancestor !== null && !isProxy(ancestor); ancestor = getPrototypeOf(ancestor)) {
    if (ancestor === prototype) return true
  }
  return false
}

/** Returns the name of an object's class. @param {object} object @returns {string | undefined} */
function className (object) {
  if (isProxy(object)) return undefined
  const prototype = getPrototypeOf(object)
  if (prototype === null || isProxy(prototype)) return undefined
  const constructor = own(prototype, 'constructor')
  if (typeof constructor !== 'function' || isProxy(constructor)) return undefined
  const name = own(constructor, 'name')
  return typeof name === 'string' && name !== '' ? name : undefined
}

/**
 * Formats host:port, with brackets around IPv6. The text is kept, so it is flattened by reading a character:
 * V8's unjoined parts take three times the memory (String::Flatten in src/objects/string.cc).
 * @param {unknown} host
 * @param {unknown} port
 */
function address (host, port) {
  if (typeof host !== 'string') return undefined
  const name = host.includes(':') ? `[${host}]` : host
  if (port === undefined) return name
  const text = `${name}:${port}`
  text.charCodeAt(0)
  return text
}

module.exports = {
  address,
  className,
  findProperty,
  hidden,
  hiddenProperty,
  inherits,
  isAnyObject,
  isObject,
  own,
  readLazy,
  textOf
}
