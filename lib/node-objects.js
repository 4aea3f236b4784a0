'use strict'

// Reads Node's own objects without running anything of the program: own data properties, and methods that are
// native code. A getter, a proxy or a method that the program put in the way is not touched; then nothing is
// known.

const { asyncWrapProviders } = require('node:async_hooks')
const { types } = require('node:util')
const { readIdsBy } = require('./context/tag')
const { address, hidden, inherits, isObject, own } = require('./objects')

const { apply, getOwnPropertyDescriptor, getPrototypeOf } = Reflect
const sourceOf = Function.prototype.toString
const { isProxy } = types

/** @type {WeakMap<Function, boolean>} */
const natives = new WeakMap()

/**
 * What handle.getProviderType() says; made with the first question
 * @type {Map<number, string> | undefined}
 */
let providerNames

/**
 * Is it C++ of Node's under this very name? Built-ins of other names are not, nor are bound functions: they
 * have a name.
 * @param {unknown} value
 * @param {string} name of a method; empty for a getter
 */
function isNative (value, name) {
  if (typeof value !== 'function' || isProxy(value)) return false
  let known = natives.get(value)
  if (known === undefined) {
    known = apply(sourceOf, value, []) === `function ${name}() { [native code] }` && own(value, 'name') === name
    natives.set(value, known)
  }
  return known
}

/**
 * A native method or getter, wherever it is inherited from.
 * @param {object} object
 * @param {string} name
 * @returns {((...args: any[]) => any) | undefined}
 */
function nativeOf (object, name) {
  for (let at = /** @type {object | null} */ (object); at !== null && !isProxy(at); at = getPrototypeOf(at)) {
    const found = getOwnPropertyDescriptor(at, name)
    if (found === undefined) continue
    const method = found.get ?? found.value
    return isNative(method, found.get === undefined ? name : '') ? method : undefined
  }
  return undefined
}

/**
 * Asks a libuv handle by a native method or getter.
 * @param {any} handle
 * @param {string} name
 * @param {...unknown} args
 * @returns {any} undefined where it cannot be asked
 */
function callNative (handle, name, ...args) {
  return isObject(handle) ? called(nativeOf(handle, name), handle, args) : undefined
}

/**
 * @param {((...args: any[]) => any) | undefined} method
 * @param {object} handle
 * @param {unknown[]} args
 * @returns {any} undefined where there is none, or it throws
 */
function called (method, handle, args) {
  try {
    return method === undefined ? undefined : apply(method, handle, args)
  } catch {
    return undefined
  }
}

/**
 * The libuv handle, or what else of Node's C++ stands behind an object.
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

/** @param {object} handle @returns {object | undefined} the socket, server or child on a handle */
function ownerOf (handle) {
  const owner = hidden(handle, 'owner_symbol', 'owner')
  return isObject(owner) ? owner : undefined
}

/**
 * The async id that an object of Node's keeps itself, also after its handle is closed.
 * @param {object} object
 * @returns {number | undefined}
 */
function idOf (object) {
  const id = callNative(object, 'getAsyncId') ?? hidden(object, 'async_id_symbol', 'asyncId')
  return typeof id === 'number' && id > 0 ? id : undefined
}

/** @param {object} handle @returns {string | undefined} Node's provider name */
function providerOf (handle) {
  providerNames ??= new Map(Object.entries(asyncWrapProviders).map(([name, index]) => [Number(index), name]))
  const name = providerNames.get(callNative(handle, 'getProviderType'))
  return name === 'NONE' ? undefined : name
}

/** TLS is a layer on a handle that has the addresses. @param {any} handle @returns {any} */
function underlyingHandle (handle) {
  const parent = isObject(handle) ? own(handle, '_parent') : undefined
  return isObject(parent) ? parent : handle
}

/**
 * @param {object} handle
 * @param {'getsockname' | 'getpeername'} method
 * @returns {string | undefined} address:port
 */
function addressOf (handle, method) {
  /** @type {{ address?: string, port?: number }} */
  const out = {}
  return callNative(underlyingHandle(handle), method, out) === 0 ? formatAddress(out) : undefined
}

/** host:port, with brackets around IPv6. @param {unknown} end @returns {string | undefined} */
function formatAddress (end) {
  if (!isObject(end)) return undefined
  const port = own(end, 'port')
  return typeof port === 'number' ? address(own(end, 'address'), port) : undefined
}

/** @param {object} handle @param {'bytesRead' | 'bytesWritten'} name @returns {number | undefined} */
function numberOf (handle, name) {
  const value = callNative(handle, name)
  return typeof value === 'number' ? value : undefined
}

/** Keeps the process alive. @param {object} handle @returns {boolean | undefined} */
function isReferenced (handle) {
  const refed = hidden(handle, 'refed') // timers
  if (typeof refed === 'boolean') return refed
  const ref = callNative(underlyingHandle(handle), 'hasRef')
  return typeof ref === 'boolean' ? ref : undefined
}

/**
 * A handle that has no reference and one that is closed answer alike; only the open one takes a reference.
 * Both are flags of libuv's, put back before anything can look at them.
 * @param {object} handle
 */
function isAlive (handle) {
  if (callNative(handle, 'hasRef') === true) return true
  callNative(handle, 'ref')
  const alive = callNative(handle, 'hasRef') === true
  if (alive) callNative(handle, 'unref')
  return alive
}

/**
 * what the handles of files descend from, and how such a one is asked for its descriptor
 * @type {{ prototype: unknown, get: ReturnType<typeof nativeOf> }}
 */
let files = { prototype: undefined, get: undefined }

/** Has a timer run or been cleared, is a file closed? @param {string} type @param {any} resource */
function isClosed (type, resource) {
  if (type === 'Timeout') return resource._destroyed === true
  if (isProxy(resource)) return false
  const prototype = getPrototypeOf(resource)
  if (prototype !== files.prototype) files = { prototype, get: nativeOf(resource, 'fd') } // one for a thread: it is looked for once
  return Number(called(files.get, resource, [])) < 0
}

/**
 * What Node says of a message port when it is inspected.
 * @param {object} port
 * @returns {{ active?: boolean, refed?: boolean }}
 */
function portState (port) {
  const { MessagePort } = require('node:worker_threads')
  const inspect = own(MessagePort.prototype, Symbol.for('nodejs.util.inspect.custom'))
  const getters = Object.values(Object.getOwnPropertyDescriptors(port)).some((property) => property.get !== undefined)
  if (typeof inspect !== 'function' || getters || !inherits(port, MessagePort.prototype)) return {}
  const { active, refed } = apply(inspect, port, [0, {}])
  return { active, refed }
}

/** Returns the provider types of the running Node. @returns {string[]} */
function providers () {
  return Object.keys(asyncWrapProviders)
}

readIdsBy((object) => isProxy(object) ? undefined : idOf(object))

module.exports = {
  callNative, underlyingHandle, numberOf, formatAddress, addressOf, handleOf, idOf, isAlive, isClosed, isReferenced, ownerOf, portState, providerOf, providers
}
