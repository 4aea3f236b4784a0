'use strict'

// trace.intercept: transforms between the sockets of a server and Node's HTTP/1 parser. This file knows the servers and
// finds their connections; what happens on one is in intercept-connection.js. Servers and sockets are held weakly, or by
// what hangs on them: a server that is gone takes its interceptors along.

const guard = require('../context/guard')
const { mistake } = require('../errors')
const { ask } = require('../node-objects')
const { clean } = require('../text')
const { brief } = require('../warnings')
const { Connection } = require('./connection')
const { putBack, standIn } = require('./listener-wrappers')
const { className, hidden, inherits, isObject, own } = require('../objects')

const { apply, getPrototypeOf } = Reflect
const EVENTS = ['connection', 'secureConnection']
const FEW = 64 // connections remembered, from which on those that are gone are looked for
const NAMED = 4 // transforms in a label
const NAME = 60 // characters of a transform's

/**
 * @typedef {import('./connection').Interceptor} Interceptor
 * @typedef {import('./connection').Line} Line
 * @typedef {Line & { server: WeakRef<object>, sockets: Set<WeakRef<object>>, most: number }} Served
 */

/**
 * @param {object} deps
 * @param {(code: string, message: string) => void} deps.warn
 * @param {(error: unknown) => void} deps.failed
 * @param {(socket: object, names: string | undefined) => void} deps.named these transforms are on a connection
 */
function createIntercepts ({ warn, failed, named }) {
  /** @type {WeakMap<object, Served>} */
  const servers = new WeakMap()
  /** @type {WeakMap<object, Connection>} */
  const connections = new WeakMap()

  /** @type {import('./connection').Blame} */
  function blame ({ name }, did) {
    const error = mistake('INTERCEPT', name, did)
    if ('threw' in did) Object.defineProperty(error, 'cause', { value: did.threw, writable: true, configurable: true })
    // Formatted here and now, the stack tells of this connection for sure.
    String(error.stack)
    guard.run(() => warn('INTERCEPT', `${brief(error)} Its connection was closed; the server goes on.`))
    return error
  }

  /** @param {Served} line @param {object} socket a connection of HTTP/1, or not */
  function adopt (line, socket) {
    const connection = new Connection(socket, line, blame)
    if (!connection.found) return
    connections.set(socket, connection)
    remember(line, socket)
    named(socket, line.names)
  }

  /** @param {Served} line @param {object} server */
  function listen (line, server) {
    const run = (/** @type {Function} */ original, /** @type {any} */ self, /** @type {any[]} */ args) => {
      const result = apply(original, self, args)
      try {
        if (line.list.length > 0 && isObject(args[0])) adopt(line, args[0])
      } catch (error) {
        failed(error)
      }
      return result
    }
    const wrap = (/** @type {(listener: Function) => boolean} */ wanted) => {
      let found = false
      for (const event of EVENTS) while (standIn(server, event, wanted, run) !== undefined) found = true
      return found
    }
    // Else somebody has put a listener of his own in front of Node's, and calls that.
    if (!wrap(isNodes)) wrap(() => true)
  }

  /** @param {Served} line @param {readonly Interceptor[]} list */
  function change (line, list) {
    line.list = list
    line.names = namesOf(list)
  }

  /** @param {object} server @returns {Served} */
  function lineOf (server) {
    const known = servers.get(server)
    if (known !== undefined) return known
    const line = { list: [], names: undefined, server: new WeakRef(server), sockets: new Set(), most: FEW }
    servers.set(server, line)
    return line
  }

  /** @param {Served | undefined} line @param {Interceptor | undefined} interceptor */
  function remove (line, interceptor) {
    if (line === undefined || interceptor === undefined || !line.list.includes(interceptor)) return
    const at = line.list.indexOf(interceptor)
    const later = line.list.slice(at + 1)
    change(line, line.list.filter((one) => one !== interceptor))
    const server = line.server.deref()
    if (server !== undefined && line.list.length === 0) for (const event of EVENTS) putBack(server, event)
    /** what a request handler threw that was given what had been held back @type {Array<{ error: unknown }>} */
    const threw = []
    for (const { socket, connection } of living(line)) {
      try {
        connection.leave(interceptor, later)
      } catch (error) {
        threw.push({ error })
      }
      if (line.list.length === 0) connection.rest()
      named(socket, line.names)
    }
    if (threw.length > 0) throw threw[0].error
  }

  /** @param {Served} line */
  function living (line) {
    const found = []
    for (const one of line.sockets) {
      const socket = /** @type {any} */ (one.deref())
      const connection = socket === undefined || socket.destroyed ? undefined : connections.get(socket)
      if (connection === undefined) line.sockets.delete(one)
      else found.push({ socket, connection })
    }
    return found
  }

  /** @param {Served} line @param {object} socket */
  function remember (line, socket) {
    line.sockets.add(new WeakRef(socket))
    if (line.sockets.size > line.most) line.most = Math.max(FEW, 2 * living(line).length)
  }

  return {
    /**
     * @param {unknown} server
     * @param {import('./connection').Transform} transform
     * @param {string | undefined} at where that is done
     * @returns {() => void} takes it away
     */
    add (server, transform, at) {
      if (!speaksHttp1(server)) throw mistake('INVALID_SERVER', server)
      const line = lineOf(server)
      const interceptor = { transform, name: nameOf(transform), at }
      const first = line.list.length === 0
      change(line, [...line.list, interceptor])
      if (first) {
        listen(line, server)
        for (const socket of present(server)) adopt(line, socket)
      }
      for (const { socket } of living(line)) named(socket, line.names)
      // Whoever keeps this keeps neither the server nor what the transform knows.
      const [held, mine] = [new WeakRef(line), new WeakRef(interceptor)]
      return () => remove(held.deref(), mine.deref())
    },

    /** Through which transforms a connection goes, as a label says it. @param {object} socket */
    names: (socket) => connections.get(socket)?.names,

    /** The same as a report says it. @param {object} socket @returns {Array<{ name: string, at: string | undefined }>} */
    through: (socket) => (connections.get(socket)?.list ?? []).map(({ name, at }) => ({ name, at }))
  }
}

/** @param {Function} listener */
function isNodes (listener) {
  return own(listener, 'name') === 'connectionListener'
}

/** @param {unknown} server @returns {server is object} */
function speaksHttp1 (server) {
  if (!isObject(server)) return false
  if (inherits(server, require('node:http').Server.prototype)) return true
  const events = own(server, '_events')
  if (!isObject(events) || own(events, 'secureConnection') === undefined) return false // no TLS
  if (inherits(server, require('node:https').Server.prototype)) return true
  for (let at = /** @type {object | null} */ (server); at !== null; at = getPrototypeOf(at)) {
    if (className(at) !== 'Http2SecureServer') continue
    const options = hidden(server, 'options')
    return isObject(options) && own(options, 'allowHTTP1') === true
  }
  return false
}

/** The connections that a server has already. @param {object} server @returns {Set<object>} */
function present (server) {
  const list = hidden(server, 'http.server.connections')
  const parsers = /** @type {object[]} */ (isObject(list) ? ask(list, 'all') ?? [] : [])
  const handles = /** @type {object[]} */ (/** @type {any} */ (process)._getActiveHandles())
  const sockets = [...parsers.map((parser) => own(parser, 'socket')), ...handles.filter((handle) => isObject(handle) && own(handle, 'server') === server)]
  return new Set(sockets.filter((socket) => isObject(socket) && isObject(own(socket, 'parser'))))
}

/** @param {Function} transform */
function nameOf (transform) {
  const name = own(transform, 'name')
  return typeof name === 'string' && name !== '' ? clean(name).slice(0, NAME) : 'an anonymous transform'
}

/** @param {readonly Interceptor[]} list */
function namesOf (list) {
  if (list.length === 0) return undefined
  const names = list.slice(0, NAMED).map(({ name }) => name)
  return names.join(', ') + (list.length > NAMED ? ` and ${list.length - NAMED} more` : '')
}

module.exports = { createIntercepts }
