'use strict'

// Wrapped methods of Node, for events that no channel reports. An upgrade request to a server passes only
// through _addHeaderLines(). With the option `propagate`, traceparent is added in _storeHeader() and in the
// request() of an HTTP/2 session, since the headers are complete there. All methods are restored; a wrapper
// that the program has wrapped in turn stays, and only calls the original.

const process = require('node:process')
const guard = require('../core/guard')
const { isObject, own } = require('../objects')
const { settings } = require('../settings')
const { keepUnopened } = require('../standard-error')
const { wrap } = require('../wrap')
const { traceparentOf } = require('./http1-client')
const { upgradeRequested } = require('./http1-server')
const { requestCalled, requestReturned } = require('./http2')
const { hasTraceparent } = require('./traceparent')

const { apply, getPrototypeOf, ownKeys } = Reflect

let isOn = false
/** functions that restore each method @type {Map<string, () => boolean>} */
const wrapped = new Map()

/** @param {string} name @param {any} owner @param {(method: Function) => Function} make */
function wrapOnce (name, owner, make) {
  const unwrap = wrapped.has(name) ? undefined : wrap(owner, name, make)
  if (unwrap !== undefined) wrapped.set(name, unwrap)
}

/** @param {Function} method */
const addHeaderLines = (method) => {
  /** @this {any} */
  return function _addHeaderLines () {
    if (isOn && this.upgrade === true) guard.runQuietly(() => upgradeRequested(this))
    return apply(method, this, arguments)
  }
}

/** @param {Function} method */
const storeHeader = (method) => {
  /** @this {any} @param {string} line @param {any} headers */
  return function _storeHeader (line, headers) {
    const value = isOn && settings.options.propagate && !hasTraceparent(headers)
      ? guard.runQuietly(() => traceparentOf(this))
      : undefined
    return apply(method, this, [line, value === undefined ? headers : withHeader(headers, value)])
  }
}

/** @param {Function} method */
const request = (method) => ({
  /** @this {any} @param {any} headers @param {any} options */
  request (headers, options) {
    const value = isOn && settings.options.propagate && !hasTraceparent(headers)
      ? guard.runQuietly(() => requestCalled(this, headers))
      : undefined
    if (value === undefined) return apply(method, this, arguments)
    /** @type {object | undefined} */
    let stream
    try {
      const extended = Array.isArray(headers)
        ? [...headers, 'traceparent', value]
        : { ...headers, traceparent: value }
      stream = apply(method, this, [extended, options])
      return stream
    } finally {
      guard.runQuietly(() => requestReturned(stream))
    }
  }
}).request

/** Called whenever the program may have loaded another module of Node. */
function enable () {
  isOn = true
  if (!isLoaded('_http_server') && !settings.options.propagate) return
  const { ClientRequest, IncomingMessage } = require('node:http')
  wrapOnce('_addHeaderLines', IncomingMessage.prototype, addHeaderLines)
  if (!settings.options.propagate) return
  wrapOnce('_storeHeader', ClientRequest.prototype, storeHeader)
  const session = wrapped.has('request') ? undefined : sessionPrototype()
  if (session !== undefined) wrapOnce('request', session, request)
}

function disable () {
  isOn = false
  for (const [name, unwrap] of wrapped) if (unwrap()) wrapped.delete(name)
}

/** Returns whether the program has loaded a module of Node. @param {string} name */
function isLoaded (name) {
  const list = /** @type {any} */ (process).moduleLoadList
  return !Array.isArray(list) || list.includes(`NativeModule ${name}`)
}

/**
 * Returns the prototype of HTTP/2 client sessions, which is reachable only through a session. So this creates
 * one that fails halfway and has no handle: Node stores it on its socket, and then adds listeners there
 * (Http2Session in lib/internal/http2/core.js).
 * @returns {object | undefined}
 */
function sessionPrototype () {
  const socket = { _handle: { isStreamBase: true }, on () { throw new Error('no socket') } }
  const { connect } = keepUnopened(() => require('node:http2'))
  try {
    connect('http://localhost', { createConnection: () => /** @type {any} */ (socket) })
  } catch {}
  for (const value of ownKeys(socket).map((key) => own(socket, key)).filter(isObject)) {
    const prototype = getPrototypeOf(value)
    if (prototype !== null && own(prototype, 'request') !== undefined) return prototype
  }
  return undefined
}

/**
 * Returns a copy of the headers with traceparent added. The headers that the program can read are unchanged.
 * @param {any} headers
 * @param {string} value
 */
function withHeader (headers, value) {
  const pair = ['traceparent', value]
  if (Array.isArray(headers)) return Array.isArray(headers[0]) ? [...headers, pair] : [...headers, ...pair]
  if (headers === null || headers === undefined) return [pair]
  return [...Object.values(headers), pair] // kOutHeaders: pairs of name as written and value
}

module.exports = { disable, enable }
