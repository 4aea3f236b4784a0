'use strict'

// Hops where people read them (errors: 'print'): `.stack` stays V8's, and util.inspect, by which console and
// the REPL print, appends the hops. It asks each value for a method inspect.custom (formatValue in
// lib/internal/util/inspect.js): errors inherit one, which is there for Node's inspect only. That method has
// inspect print the error once more, while its `stack` is the long one: no code of the program but other
// methods inspect.custom runs meanwhile. Node itself prints errors without that method: format/fatal.js.

const { inspect, types } = require('node:util')
const { isMainThread } = require('node:worker_threads')
const guard = require('../core/guard')
const formatter = require('../stacks/formatter')
const { errorsIn, isReadByInspect } = require('./fatal')

/** of an error that ends a worker: Node copies the own properties of these for the parent thread */
const HOPS = '[longstack hops]'

/** errors that are printed now @type {Set<object>} */
const printing = new Set()
let isOn = false

/** Returns the text of an error with its hops. @param {Error} error @returns {string | undefined} */
function longStackOf (error) {
  if (!isOn) return undefined
  try {
    const { stack } = error
    if (typeof stack !== 'string' || stack.includes('\n  ── ')) return undefined
    const hops = passedHops(error) ?? require('../attribution/error-hops').hopsText(error)
    return typeof hops === 'string' && hops !== '' ? `${stack}\n${hops}` : undefined
  } catch {
    return undefined // a full stack; a formatter of the program's that throws
  }
}

/** @this {object} @returns {Function | undefined} */
function get () {
  try {
    if (printing.has(this)) return undefined
    if (!types.isNativeError(this) && passedHops(this) === undefined) return undefined
    return guard.run(() => isReadByInspect(get, formatter.withPlainFormat, 1)) ? inspectError : undefined
  } catch {
    return undefined // a full stack
  }
}

/** @this {any} @param {number | null} depth @param {import('node:util').InspectOptions} options */
function inspectError (depth, options) {
  if (types.isProxy(this)) return this
  let restore = () => {}
  try {
    printing.add(this)
    restore = lengthen(this, guard.run(() => longStackOf(this)))
    const text = inspect(this, { ...options, depth })
    // Node indents what it makes of an object, not strings.
    return { [inspect.custom]: () => text }
  } finally {
    restore()
    printing.delete(this)
  }
}

function enable () {
  isOn = true
  if (Object.hasOwn(Error.prototype, inspect.custom)) return
  Reflect.defineProperty(Error.prototype, inspect.custom, {
    get,
    set (value) { // as if nothing was there
      Reflect.defineProperty(this, inspect.custom, {
        value, writable: true, enumerable: true, configurable: true
      })
    },
    enumerable: false,
    configurable: true
  })
}

function disable () {
  isOn = false
  const present = Object.getOwnPropertyDescriptor(Error.prototype, inspect.custom)
  if (present?.get === get) Reflect.deleteProperty(Error.prototype, inspect.custom)
}

/** Has the parent thread print the hops of an error that ends this one. @param {unknown} error */
function passToParent (error) {
  if (isMainThread || !isOn || !types.isNativeError(error)) return
  if (process.listenerCount('uncaughtException') > 0) return
  if (process.hasUncaughtExceptionCaptureCallback()) return
  for (const member of errorsIn(error)) {
    const value = longStackOf(member)?.slice(Number(member.stack?.length) + 1)
    if (value !== undefined) Reflect.defineProperty(member, HOPS, { value, configurable: true })
  }
}

/** Returns the hops that came with an error of a worker. @param {object} error */
function passedHops (error) {
  return types.isProxy(error) ? undefined : Object.getOwnPropertyDescriptor(error, HOPS)?.value
}

/**
 * Puts a text in the place of an error's stack, if that can be undone.
 * @param {Error} error
 * @param {string | undefined} text undefined: it stays
 * @returns {() => void} puts the stack back
 */
function lengthen (error, text) {
  const slot = Object.getOwnPropertyDescriptor(error, 'stack')
  const isKept = text === undefined || slot === undefined || slot.configurable === false
  if (isKept) return () => {}
  Reflect.defineProperty(error, 'stack', { value: text, enumerable: slot.enumerable, configurable: true })
  return () => { Reflect.defineProperty(error, 'stack', slot) }
}

module.exports = { disable, enable, longStackOf, passToParent }
