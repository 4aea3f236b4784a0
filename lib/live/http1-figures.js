'use strict'

// Requests over HTTP/1 that servers get. Those of a connection are answered in order, so their times are kept
// by socket. No object of the program is held.

const requests = require('../context/request-names')
const { now } = require('../context/clock')
const { handleOf } = require('../node-objects')
const { isObject, own } = require('../objects')

const LOOKED_AT = 200 // connections at a time, whether they are closed
const MIN_LOST_MS = 500 // a request is looked at when it is open for as long

class Connection {
  open = 0
  /** ms of the clock when the oldest open request began */
  since = 0
  method = ''
  url = ''
  /** that Fastify reports @type {string | undefined} */
  route
  /** of what is pipelined @type {Array<{ since: number, method: string, url: string }> | undefined} */
  queue

  /** @param {object} socket */
  constructor (socket) {
    this.socket = new WeakRef(socket)
  }

  /** @param {number} since @param {string} method @param {string} url */
  begin (since, method, url) {
    if (this.open++ > 0) {
      (this.queue ??= []).push({ since, method, url })
      return
    }
    this.since = since
    this.method = method
    this.url = url
  }

  /** Ends the oldest request. */
  finish () {
    this.route = undefined
    this.url = ''
    if (--this.open === 0) return
    const next = this.queue?.shift()
    if (next === undefined) return
    this.since = next.since
    this.method = next.method
    this.url = next.url
  }

  /** Forgets what is open. @returns {number} how many requests that was */
  clear () {
    const { open } = this
    this.open = 0
    this.url = ''
    this.queue = this.route = undefined
    return open
  }
}

/**
 * @param {import('./route-figures').RouteTable} table
 * @param {import('./route-names').RouteNames} names
 */
function createHttp1Figures (table, names) {
  /** by socket @type {WeakMap<object, Connection>} */
  const connections = new WeakMap()
  /** the same, until they are seen closed @type {Connection[]} */
  const list = []
  let lookedAt = 0
  let inFlight = 0

  /** @param {object} socket @returns {Connection} */
  function add (socket) {
    const connection = new Connection(socket)
    connections.set(socket, connection)
    list.push(connection)
    return connection
  }

  /** @param {Connection} connection @param {any} request @param {number} since */
  function begin (connection, request, since) {
    const isPlain = requests.hasNodePrototype(request)
    const method = isPlain ? request.method : own(request, 'method')
    const url = isPlain ? request.url : own(request, 'url')
    connection.begin(since, String(method), typeof url === 'string' ? url : '')
    inFlight++
  }

  /** @param {{ request: any, socket: any }} message */
  function requestStarted ({ request, socket }) {
    const connection = connections.get(socket) ?? add(socket)
    // Node sets _httpMessage while a response is due: else the end of the one before was not seen
    if (connection.open > 0 && !socket._httpMessage) inFlight -= connection.clear()
    begin(connection, request, now())
  }

  /** @param {{ request: object, response: object, socket: object }} message */
  function responseFinished ({ request, response, socket }) {
    const connection = connections.get(socket)
    if (connection === undefined || connection.open === 0) return
    const us = (now() - connection.since) * 1000
    table.get(names.ofAnswered(request, connection)).add(us, own(response, 'statusCode'))
    connection.finish()
    inFlight--
  }

  /** Notes the route when Fastify runs a handler. @param {{ request: any, route: any }} message */
  function routed ({ request, route }) {
    const raw = isObject(request) ? own(request, 'raw') : undefined
    const socket = isObject(raw) ? own(raw, 'socket') : undefined
    const url = isObject(route) ? own(route, 'url') : undefined
    const connection = isObject(socket) ? connections.get(socket) : undefined
    if (connection !== undefined && typeof url === 'string') connection.route = url
  }

  /** @param {Connection} connection that is closed or gone */
  function lose (connection) {
    for (; connection.open > 0; connection.finish()) {
      table.get(names.ofOpen(connection)).lost++
      inFlight--
    }
  }

  /** @param {Connection} connection @param {number} time @returns {boolean} whether it is to be kept */
  function isKept (connection, time) {
    if (connection.open > 0 && time - connection.since < MIN_LOST_MS) return true
    const socket = connection.socket.deref()
    return socket !== undefined && handleOf(socket) !== undefined
  }

  return {
    /** @type {Array<[string, (message: any) => void]>} */
    subscriptions: [
      ['http.server.request.start', requestStarted],
      ['http.server.response.finish', responseFinished],
      ['tracing:fastify.request.handler:start', routed]
    ],

    inFlight: () => inFlight,

    /** Adds a request that began before. @param {{ socket: object, request: object, time: number }} request */
    adopt ({ socket, request, time }) {
      if (!connections.has(socket)) begin(add(socket), request, time)
    },

    /** Returns the request that is in flight for the longest time. */
    oldest () {
      /** @type {Connection | undefined} */
      let oldest
      for (const connection of list) {
        if (connection.open === 0) continue
        if (oldest === undefined || connection.since < oldest.since) oldest = connection
      }
      return oldest === undefined ? undefined : { ms: now() - oldest.since, name: names.ofOpen(oldest) }
    },

    /** Looks at some connections: those that are closed are forgotten, and their requests are lost. */
    sweep () {
      const time = now()
      for (let i = Math.min(LOOKED_AT, list.length); i > 0; i--) {
        if (lookedAt >= list.length) lookedAt = 0
        const connection = list[lookedAt]
        if (isKept(connection, time)) {
          lookedAt++
          continue
        }
        lose(connection)
        const last = /** @type {Connection} */ (list.pop())
        if (last !== connection) list[lookedAt] = last
      }
    },

    /** Tracing was off for a while: what began before may have ended unseen. */
    forgetOpen () {
      for (const connection of list) connection.clear()
      inFlight = 0
    }
  }
}

module.exports = { createHttp1Figures }
