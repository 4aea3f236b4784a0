'use strict'

// trace.intercept: transforms between a server's sockets and Node's HTTP/1 parser. This file finds the
// connections of a server; connection.js handles one connection. Servers and sockets are held weakly, so a
// server that is collected takes its transforms along.

const { contextTag } = require('../core/context')
const guard = require('../core/guard')
const { mistake } = require('../errors')
const { currentContext } = require('../core/current-step')
const { failed } = require('../core/faults')
const { callNative, handleOf, idOf } = require('../node-objects')
const { className, hidden, inherits, isObject, own } = require('../objects')
const channels = require('../requests/channels')
const { presentLines } = require('../stacks/hop-frames')
const { clean } = require('../text')
const { messageOf, warn } = require('../warnings')
const { Connection, connections } = require('./connection')
const { hasName, unwrapListeners, wrapListener } = require('./listener-wrappers')

const { apply, getPrototypeOf } = Reflect
const EVENTS = ['connection', 'secureConnection']
const MIN_SOCKETS = 64 // remembered sockets before a cleanup
const MAX_NAMES = 4 // transforms in a label
const MAX_NAME = 60 // characters of a transform's name

/**
 * @typedef {import('./connection').Interceptor} Interceptor
 * @typedef {{ socket: any, connection: Connection }} OpenConnection
 */

/** Transforms of a server, and the connections that use them. */
class InterceptedServer {
  /** in order; replaced, never mutated @type {readonly Interceptor[]} */
  interceptors = []
  /** names for labels @type {string | undefined} */
  names = undefined
  /** @type {Set<WeakRef<object>>} */
  #sockets = new Set()
  #maxSockets = MIN_SOCKETS

  /** @param {object} server */
  constructor (server) {
    this.server = new WeakRef(server)
  }

  /** @param {readonly Interceptor[]} interceptors */
  set (interceptors) {
    this.interceptors = interceptors
    this.names = namesOf(interceptors)
  }

  /** @param {object} socket @param {Connection} connection */
  add (socket, connection) {
    connections.set(socket, connection)
    this.#sockets.add(new WeakRef(socket))
    if (this.#sockets.size <= this.#maxSockets) return
    this.#maxSockets = Math.max(MIN_SOCKETS, 2 * this.open().length)
  }

  /** @returns {OpenConnection[]} */
  open () {
    const open = []
    for (const ref of this.#sockets) {
      const socket = /** @type {any} */ (ref.deref())
      const connection = socket === undefined || socket.destroyed ? undefined : connections.get(socket)
      if (connection === undefined) this.#sockets.delete(ref)
      else open.push({ socket, connection })
    }
    return open
  }
}

/** @type {WeakMap<object, InterceptedServer>} */
const servers = new WeakMap()

channels.subscribe([['http.server.request.start', ({ socket }) => {
  const context = currentContext()
  if (context?.type === 'HTTPINCOMINGMESSAGE') noteNames(context, connections.get(socket)?.names)
}]])

/** @type {import('./connection').ReportFailure} */
function reportFailure ({ name }, failure) {
  const error = mistake('INTERCEPT', name, failure)
  if ('threw' in failure) {
    Object.defineProperty(error, 'cause', { value: failure.threw, writable: true, configurable: true })
  }
  // Formatted here, so that the stack is sure to lead to this connection.
  String(error.stack)
  guard.run(() => warn('INTERCEPT', `${messageOf(error)} Its connection was closed; the server goes on.`))
  return error
}

/**
 * Intercepts a connection if it speaks HTTP/1.
 * @param {InterceptedServer} served
 * @param {object} socket
 */
function adopt (served, socket) {
  const connection = new Connection(socket, served, reportFailure)
  if (!connection.isHttp1) return
  served.add(socket, connection)
  nameConnection(socket, served.names)
}

/**
 * Intercepts the connections that a server accepts from now on.
 * @param {InterceptedServer} served
 * @param {object} server
 */
function listen (served, server) {
  /** @type {import('./listener-wrappers').Replacement} */
  const replacement = (original, self, args) => {
    const result = apply(original, self, args)
    try {
      if (served.interceptors.length > 0 && isObject(args[0])) adopt(served, args[0])
    } catch (error) {
      failed(error)
    }
    return result
  }
  const wrap = (/** @type {(listener: Function) => boolean} */ matches) => {
    let isWrapped = false
    for (const event of EVENTS) {
      while (wrapListener(server, event, matches, replacement) !== undefined) isWrapped = true
    }
    return isWrapped
  }
  // Otherwise a library has replaced Node's listener with one that calls it.
  if (!wrap(hasName('connectionListener'))) wrap(() => true)
}

/** @param {InterceptedServer | undefined} served @param {Interceptor | undefined} interceptor */
function remove (served, interceptor) {
  if (served === undefined || interceptor === undefined) return
  if (!served.interceptors.includes(interceptor)) return
  const later = served.interceptors.slice(served.interceptors.indexOf(interceptor) + 1)
  served.set(served.interceptors.filter((candidate) => candidate !== interceptor))
  const isLast = served.interceptors.length === 0
  const server = served.server.deref()
  if (server !== undefined && isLast) for (const event of EVENTS) unwrapListeners(server, event)
  /**
   * thrown by request handlers that received flushed bytes
   * @type {Array<{ error: unknown }>}
   */
  const thrown = []
  for (const { socket, connection } of served.open()) {
    try {
      connection.flushRemoved(interceptor, later)
    } catch (error) {
      thrown.push({ error })
    }
    if (isLast) connection.restore()
    nameConnection(socket, served.names)
  }
  if (thrown.length > 0) throw thrown[0].error
}

/**
 * Passes the chunks of a server's connections through a transform.
 * @param {unknown} server
 * @param {import('./connection').Transform} transform
 * @param {Function} above the captured stack starts below this function
 * @returns {() => void} removes it
 */
function intercept (server, transform, above) {
  const at = presentLines(above)[0]?.trim()
  if (!speaksHttp1(server)) throw mistake('INVALID_SERVER', server)
  const served = servers.get(server) ?? new InterceptedServer(server)
  servers.set(server, served)
  const interceptor = { transform, name: nameOf(transform), at }
  const isFirst = served.interceptors.length === 0
  served.set([...served.interceptors, interceptor])
  if (isFirst) {
    listen(served, server)
    for (const socket of connectionsOf(server)) adopt(served, socket)
  }
  for (const { socket } of served.open()) nameConnection(socket, served.names)
  // Weak, so that the returned function keeps neither the server nor the transform's references alive.
  const [servedRef, interceptorRef] = [new WeakRef(served), new WeakRef(interceptor)]
  return () => remove(servedRef.deref(), interceptorRef.deref())
}

/**
 * Adds the names of its transforms to a connection's own hop.
 * @param {object} socket
 * @param {string | undefined} names
 */
function nameConnection (socket, names) {
  const handle = handleOf(socket)
  const context = handle === undefined ? undefined : contextTag.read(handle)
  if (handle !== undefined && context?.asyncId === idOf(handle)) noteNames(context, names)
}

/** @param {import('../core/context').Context | undefined} context @param {string | undefined} names */
function noteNames (context, names) {
  if (context !== undefined && context.detail !== names) context.detail = names
}

/** @param {Function} transform */
function nameOf (transform) {
  const name = own(transform, 'name')
  return typeof name === 'string' && name !== '' ? clean(name).slice(0, MAX_NAME) : 'an anonymous transform'
}

/** @param {readonly Interceptor[]} interceptors */
function namesOf (interceptors) {
  if (interceptors.length === 0) return undefined
  const names = interceptors.slice(0, MAX_NAMES).map(({ name }) => name).join(', ')
  return interceptors.length > MAX_NAMES ? `${names} and ${interceptors.length - MAX_NAMES} more` : names
}

// Reads Node's servers without running the program's code: whether they speak HTTP/1, and their connections.

/** @param {unknown} server @returns {server is object} */
function speaksHttp1 (server) {
  if (!isObject(server)) return false
  if (inherits(server, require('node:http').Server.prototype)) return true
  const events = own(server, '_events')
  if (!isObject(events) || own(events, 'secureConnection') === undefined) return false // no TLS
  if (inherits(server, require('node:https').Server.prototype)) return true
  for (let object = /** @type {object | null} */ (server); object !== null; object = getPrototypeOf(object)) {
    if (className(object) !== 'Http2SecureServer') continue
    const options = hidden(server, 'options')
    return isObject(options) && own(options, 'allowHTTP1') === true
  }
  return false
}

/**
 * Lists the HTTP/1 connections of a server.
 * @param {object} server
 * @returns {Set<object>} sockets
 */
function connectionsOf (server) {
  const list = hidden(server, 'http.server.connections')
  const parsers = /** @type {object[]} */ (isObject(list) ? callNative(list, 'all') ?? [] : [])
  const handles = /** @type {object[]} */ (/** @type {any} */ (process)._getActiveHandles())
  const sockets = [
    ...parsers.map((parser) => own(parser, 'socket')),
    ...handles.filter((handle) => isObject(handle) && own(handle, 'server') === server)
  ]
  return new Set(sockets.filter((socket) => isObject(socket) && isObject(own(socket, 'parser'))))
}

module.exports = { intercept }
