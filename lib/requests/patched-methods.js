'use strict'

// Methods of Node's own that are listened to, since nothing else tells: a message that asks a server for another protocol
// is known to _addHeaderLines() alone, and where traceparent is sent, the headers of a request that is made are complete
// in _storeHeader() and in the request() of an HTTP/2 session. The last two only with that option. All are put back;
// one that somebody else has wrapped since only passes on.

const process = require('node:process')
const guard = require('../context/guard')
const { own } = require('../objects')

const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect

/**
 * @param {any} owner
 * @param {string} name
 * @param {(method: Function) => Function} make
 * @returns {{ restore: () => void } | undefined}
 */
function wrapMethod (owner, name, make) {
  const found = getOwnPropertyDescriptor(owner, name)
  const method = found?.value ?? owner[name]
  if (typeof method !== 'function') return undefined
  const ours = make(method)
  const property = found === undefined ? { value: ours, writable: true, enumerable: false, configurable: true } : { ...found, value: ours }
  if (!defineProperty(owner, name, property)) return undefined
  return {
    restore () {
      if (getOwnPropertyDescriptor(owner, name)?.value !== ours) return
      if (found === undefined) delete owner[name]
      else defineProperty(owner, name, found)
    }
  }
}

/** As longstack's own work; never throws. @template T @param {() => T} work @returns {T | undefined} */
function guarded (work) {
  if (guard.inOwnWork) return undefined
  return guard.run(() => {
    try {
      return work()
    } catch {}
  })
}

/**
 * @param {object} deps
 * @param {() => boolean} deps.propagates
 * @param {(message: object) => void} deps.incoming a message comes in
 * @param {(request: object) => string | undefined} deps.header the traceparent of a request that is made
 * @param {{ making(session: object, headers: any): string | undefined, made(stream: object | undefined): void }} deps.http2
 */
function createMethods ({ propagates, incoming, header, http2 }) {
  let on = false
  /** @type {Map<string, { restore: () => void }>} */
  const wrapped = new Map()

  /** @param {string} name @param {any} owner @param {(method: Function) => Function} make */
  function listen (name, owner, make) {
    const entry = wrapped.has(name) ? undefined : wrapMethod(owner, name, make)
    if (entry !== undefined) wrapped.set(name, entry)
  }

  /** @param {Function} method */
  const addHeaderLines = (method) => ({
    /** @this {any} */
    _addHeaderLines () {
      if (on && this.upgrade === true) guarded(() => incoming(this))
      return apply(method, this, arguments)
    }
  })._addHeaderLines

  /** @param {Function} method */
  const storeHeader = (method) => ({
    /** @this {any} @param {string} line @param {any} headers */
    _storeHeader (line, headers) {
      const value = on && propagates() && !has(headers) ? guarded(() => header(this)) : undefined
      return apply(method, this, [line, value === undefined ? headers : withHeader(headers, value)])
    }
  })._storeHeader

  /** @param {Function} method */
  const request = (method) => ({
    /** @this {any} @param {any} headers @param {any} options */
    request (headers, options) {
      const value = on && propagates() && !has(headers) ? guarded(() => http2.making(this, headers)) : undefined
      if (value === undefined) return apply(method, this, arguments)
      /** @type {object | undefined} */
      let stream
      try {
        stream = apply(method, this, [Array.isArray(headers) ? [...headers, 'traceparent', value] : { ...headers, traceparent: value }, options])
        return stream
      } finally {
        guarded(() => http2.made(stream))
      }
    }
  }).request

  return {
    /** Again and again: Node's modules are loaded when the program needs them. */
    enable () {
      on = true
      if (!isLoaded('_http_server') && !propagates()) return
      const { ClientRequest, IncomingMessage } = require('node:http')
      listen('_addHeaderLines', IncomingMessage.prototype, addHeaderLines)
      if (!propagates()) return
      listen('_storeHeader', ClientRequest.prototype, storeHeader)
      const session = wrapped.has('request') ? undefined : sessionPrototype()
      if (session !== undefined) listen('request', session, request)
    },

    disable () {
      on = false
      for (const { restore } of wrapped.values()) restore()
      wrapped.clear()
    }
  }
}

/** Has the program loaded a module of Node's? @param {string} name */
function isLoaded (name) {
  const list = /** @type {any} */ (process).moduleLoadList
  return !Array.isArray(list) || list.includes(`NativeModule ${name}`)
}

/** That of HTTP/2's client sessions is to be had from one alone. @returns {object | undefined} */
function sessionPrototype () {
  const { Duplex } = require('node:stream')
  try {
    const nowhere = new Duplex({ read () {}, write (chunk, encoding, done) { done() } })
    const session = require('node:http2').connect('http://localhost', { createConnection: () => nowhere })
    session.on('error', () => {})
    const prototype = /** @type {object} */ (getPrototypeOf(session))
    session.destroy()
    return own(prototype, 'request') === undefined ? undefined : prototype
  } catch {
    return undefined
  }
}

/** Has the program its own? @param {any} headers in any of the forms that Node takes */
function has (headers) {
  if (typeof headers !== 'object' || headers === null) return false
  if (!Array.isArray(headers)) return Object.keys(headers).some(isIt)
  if (Array.isArray(headers[0])) return headers.some((pair) => isIt(pair?.[0]))
  return headers.some((name, i) => i % 2 === 0 && isIt(name))
}

/** @param {unknown} name of a header */
const isIt = (name) => typeof name === 'string' && name.length === 11 && name.toLowerCase() === 'traceparent'

/** The headers and one more, in a copy: what the program can ask for stays as it is. @param {any} headers @param {string} value */
function withHeader (headers, value) {
  const pair = ['traceparent', value]
  if (Array.isArray(headers)) return Array.isArray(headers[0]) ? [...headers, pair] : [...headers, ...pair]
  if (headers === null || headers === undefined) return [pair]
  return [...Object.values(headers), pair] // kOutHeaders: names as they are written, and values
}

module.exports = { createMethods, has }
