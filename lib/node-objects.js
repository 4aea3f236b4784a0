'use strict'

// Reads Node's own objects without running the program's code: own data properties, and methods implemented
// in native code. Getters, proxies and methods of the program are not touched; the result is then undefined.

const { asyncWrapProviders } = require('node:async_hooks')
const { types } = require('node:util')
const { address, findProperty, hidden, inherits, isObject, own, textOf } = require('./objects')

const { apply, getPrototypeOf } = Reflect
const { keys } = Object
const sourceOf = Function.prototype.toString
const { isProxy } = types

/** @type {WeakMap<Function, boolean>} */
const nativeFunctions = new WeakMap()

/**
 * Provider names by the value of handle.getProviderType(); created on first use.
 * @type {string[] | undefined}
 */
let providerNames

/**
 * Returns whether a function is C++ code of Node with exactly this name. Excludes built-ins of other names,
 * and bound functions, which have another name.
 * @param {unknown} value
 * @param {string} name of a method; empty for a getter
 */
function isNative (value, name) {
  if (typeof value !== 'function' || isProxy(value)) return false
  let result = nativeFunctions.get(value)
  if (result === undefined) {
    const hasNativeSource = apply(sourceOf, value, []) === `function ${name}() { [native code] }`
    result = hasNativeSource && own(value, 'name') === name
    nativeFunctions.set(value, result)
  }
  return result
}

/**
 * Finds a native method or getter on an object or its prototypes.
 * @param {object} object
 * @param {string} name
 * @returns {((...args: any[]) => any) | undefined}
 */
function nativeOf (object, name) {
  const property = findProperty(object, name)
  const method = property?.get ?? property?.value
  return isNative(method, property?.get === undefined ? name : '') ? method : undefined
}

/**
 * Calls a native method or getter of a libuv handle.
 * @param {any} handle
 * @param {string} name
 * @param {...unknown} args
 * @returns {any} undefined if there is none, or it throws
 */
function callNative (handle, name, ...args) {
  return isObject(handle) ? callMethod(nativeOf(handle, name), handle, args) : undefined
}

/**
 * @param {((...args: any[]) => any) | undefined} method
 * @param {object} handle
 * @param {unknown[]} args
 * @returns {any} undefined if there is none, or it throws
 */
function callMethod (method, handle, args) {
  try {
    return method === undefined ? undefined : apply(method, handle, args)
  } catch {
    return undefined
  }
}

/**
 * Returns the libuv handle, or another C++ object of Node, behind an object.
 * @param {object} object
 * @returns {object | undefined}
 */
function handleOf (object) {
  const handle = own(object, '_handle')
  if (isObject(handle)) return handle
  const inner = hidden(object, 'kHandle', 'kDirHandle')
  if (isObject(inner)) return own(inner, '_handle') === undefined ? inner : own(inner, '_handle')
  const state = hidden(object, 'state symbol', 'kState') // dgram
  const bound = isObject(state) ? own(state, 'handle') : undefined
  return isObject(bound) ? bound : undefined
}

/** @param {object} handle @returns {object | undefined} the socket, server or child that owns the handle */
function ownerOf (handle) {
  const owner = hidden(handle, 'owner_symbol', 'owner')
  return isObject(owner) ? owner : undefined
}

/** native getAsyncId by prototype, null: none @type {WeakMap<object, ReturnType<typeof nativeOf> | null>} */
const idMethods = new WeakMap()

/**
 * Returns the async id that Node stores on its own object, even after the handle is closed.
 * @param {object} object
 * @returns {number | undefined}
 */
function idOf (object) {
  const prototype = isObject(object) ? getPrototypeOf(object) : null
  let method = prototype === null ? null : idMethods.get(prototype)
  if (method === undefined) {
    method = nativeOf(object, 'getAsyncId') ?? null
    idMethods.set(/** @type {object} */ (prototype), method)
  }
  const id = (method && callMethod(method, object, [])) ?? hidden(object, 'async_id_symbol', 'asyncId')
  return typeof id === 'number' && id > 0 ? id : undefined
}

/** @param {object} handle @returns {string | undefined} Node's provider name */
function providerOf (handle) {
  providerNames ??= namesByIndex(asyncWrapProviders)
  const name = providerNames[Number(callNative(handle, 'getProviderType'))]
  return name === 'NONE' ? undefined : name
}

/** @param {any} indexes by name @returns {string[]} made without iterators, which programs may remove */
function namesByIndex (indexes) {
  /** @type {string[]} */
  const names = []
  const list = keys(indexes)
  for (let i = 0; i < list.length; i++) names[indexes[list[i]]] = list[i]
  return names
}

/** Returns the handle with the addresses: under TLS its parent. @param {any} handle @returns {any} */
function underlyingHandle (handle) {
  const parent = isObject(handle) ? own(handle, '_parent') : undefined
  return isObject(parent) ? parent : handle
}

/**
 * Reads an end of a connection, or a server's address, from the system. Avoids a socket's getters
 * (`remoteAddress`) and `address()`: Node caches their result on the socket (`_peername` in lib/net.js) and
 * would return it to the program after the socket has closed, instead of undefined.
 * @param {object} handle
 * @param {'getsockname' | 'getpeername'} method
 * @returns {{ address?: string, port?: number } | undefined} undefined if it has none or is closed
 */
function endOf (handle, method) {
  const end = {}
  return callNative(underlyingHandle(handle), method, end) === 0 ? end : undefined
}

/**
 * @param {object} handle
 * @param {'getsockname' | 'getpeername'} method
 * @returns {string | undefined} address:port
 */
function addressOf (handle, method) {
  return formatAddress(endOf(handle, method))
}

/** Formats host:port, with brackets around IPv6. @param {unknown} end @returns {string | undefined} */
function formatAddress (end) {
  if (!isObject(end)) return undefined
  const port = own(end, 'port')
  return typeof port === 'number' ? address(own(end, 'address'), port) : undefined
}

/**
 * Returns the host of an outgoing http request; its Host header includes the port.
 * @param {object} request
 */
function hostHeaderOf (request) {
  const headers = hidden(request, 'kOutHeaders')
  const header = isObject(headers) ? own(headers, 'host') : undefined
  return (isObject(header) ? textOf(own(header, '1')) : undefined) ?? textOf(own(request, 'host'))
}

/** @param {object} handle @param {string} name @returns {number | undefined} */
function numberOf (handle, name) {
  const value = callNative(handle, name)
  return typeof value === 'number' ? value : undefined
}

/**
 * Makes a reader of a number of one handle type; the native getter is looked up once.
 * @param {string} name
 * @returns {(handle: object) => number} returns NaN if there is none
 */
function numberReader (name) {
  let prototype = /** @type {object | null} */ (null)
  /** @type {ReturnType<typeof nativeOf>} */
  let get
  return (handle) => {
    const present = isProxy(handle) ? null : getPrototypeOf(handle)
    if (present !== prototype) {
      prototype = present
      get = present === null ? undefined : nativeOf(handle, name)
    }
    const value = callMethod(get, handle, [])
    return typeof value === 'number' ? value : NaN
  }
}

/** Returns whether a handle keeps the process alive. @param {object} handle @returns {boolean | undefined} */
function isReferenced (handle) {
  const refed = hidden(handle, 'refed') // timers
  if (typeof refed === 'boolean') return refed
  const ref = callNative(underlyingHandle(handle), 'hasRef')
  return typeof ref === 'boolean' ? ref : undefined
}

/**
 * Returns whether a handle is open. `hasRef` is false for unreferenced and for closed handles, but only an
 * open handle can be referenced (uv_ref). The flag is restored at once.
 * @param {object} handle
 */
function isAlive (handle) {
  if (callNative(handle, 'hasRef') === true) return true
  callNative(handle, 'ref')
  const alive = callNative(handle, 'hasRef') === true
  if (alive) callNative(handle, 'unref')
  return alive
}

/** Reads a file handle's descriptor; all file handles of a thread share one prototype. */
const descriptorOf = numberReader('fd')

/** Returns whether a file is closed. @param {any} handle */
const isClosedFile = (handle) => descriptorOf(handle) < 0

/** Returns whether a timer has run or been cleared. @param {object} timer */
const isClosedTimer = (timer) => own(timer, '_destroyed') === true

/**
 * Returns the state of a message port, as Node's inspection shows it.
 * @param {object} port
 * @returns {{ active?: boolean, refed?: boolean }}
 */
function portState (port) {
  const { MessagePort } = require('node:worker_threads')
  const inspect = own(MessagePort.prototype, Symbol.for('nodejs.util.inspect.custom'))
  const properties = Object.values(Object.getOwnPropertyDescriptors(port))
  const hasGetters = properties.some((property) => property.get !== undefined)
  if (typeof inspect !== 'function' || hasGetters || !inherits(port, MessagePort.prototype)) return {}
  const { active, refed } = apply(inspect, port, [0, {}])
  return { active, refed }
}

/** Returns the provider types of the running Node. @returns {string[]} */
function providers () {
  return Object.keys(asyncWrapProviders)
}

module.exports = {
  addressOf,
  callNative,
  endOf,
  formatAddress,
  handleOf,
  hostHeaderOf,
  idOf,
  isAlive,
  isClosedFile,
  isClosedTimer,
  isReferenced,
  numberOf,
  numberReader,
  ownerOf,
  portState,
  providerOf,
  providers,
  underlyingHandle
}
