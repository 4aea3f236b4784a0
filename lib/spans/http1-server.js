'use strict'

// HTTP/1 requests received by servers. The span of an upgrade request (WebSocket, CONNECT) lasts until the
// connection closes.

const { isAnyObject, own } = require('../objects')
const connections = require('./connections')
const httpSpans = require('./http-spans')

const { spanTag } = connections

/**
 * @typedef {import('./span').Span} Span
 * @typedef {ReturnType<typeof connections.of>} Connection
 */

/** @param {{ request: object, response: object, socket: object }} message */
function requestStarted ({ request, response, socket }) {
  connections.checkWithoutHandle()
  const begun = spanTag.read(request) // an upgrade request that the server handles like any other
  const connection = connections.of(socket)
  const span = begun ?? httpSpans.requestServed(request, socket, connection)
  if (span === undefined) return
  if (begun !== undefined) httpSpans.requestDescribed(span, request, socket, connection)
  connection.addPresentResource()
  span.endsBy(response, lookAtAnswer)
  // The connection maps them to their span; a tag would change their shape in V8.
  if (connection.add(socket, span, checkLost, request, response)) return
  spanTag.write(request, span)
  spanTag.write(response, span)
}

/** Returns the span of a request that a server received. @param {any} request */
function spanOfRequest (request) {
  const connection = connections.get(request.socket)
  const isHeld = connection !== undefined && connection.request === request
  return isHeld ? connection.span : spanTag.read(request)
}

/**
 * Ends an open request if its connection is lost.
 * @param {Connection} connection
 * @param {Span} span
 * @param {object | undefined} request
 * @param {object | undefined} response
 */
function checkLost (connection, span, request, response) {
  if (!connection.isClosed) return
  connection.remove(span)
  const close = { socket: connection.socket.deref(), timedOut: connection.timedOut }
  httpSpans.connectionLost(span, request ?? {}, response ?? {}, close)
}

/** @param {{ request: object, response: object, socket: object }} message */
function responseFinished ({ request, response, socket }) {
  const connection = connections.get(socket)
  const isHeld = connection !== undefined && connection.response === response
  const span = isHeld ? connection.span : spanTag.read(response)
  if (span !== undefined) finish(connection, span, request, response)
}

/**
 * @param {Connection | undefined} connection
 * @param {Span} span
 * @param {object} request
 * @param {object} response
 */
function finish (connection, span, request, response) {
  connection?.remove(span)
  httpSpans.responseFinished(span, request, response)
}

/** @type {import('./span').Look} */
function lookAtAnswer (span, response) {
  const request = own(response, 'req')
  const connection = isAnyObject(request) ? connections.get(own(request, 'socket')) : undefined
  if (connection?.isClosed) return () => connection.runChecks()
  if (!isWritten(response)) return undefined
  return () => finish(connection, span, isAnyObject(request) ? request : {}, response)
}

/** Returns whether the whole response was handed to the kernel. @param {object} response */
function isWritten (response) {
  const socket = own(response, 'socket')
  const hasBytes = isAnyObject(socket) && /** @type {any} */ (socket).writableLength > 0
  return own(response, 'finished') === true && own(response, 'outputSize') === 0 && !hasBytes
}

/**
 * Checks the socket of an upgraded connection.
 * @type {import('./span').Look}
 */
function lookAtUpgraded (span, socket) {
  const connection = connections.get(socket)
  return connection?.isClosed ? () => connection.runChecks() : undefined
}

/**
 * Begins the span of an upgrade request. No channel reports one that a server accepts.
 * @param {object} request
 */
function upgradeRequested (request) {
  const socket = own(request, 'socket')
  if (own(request, 'upgrade') !== true || !isAnyObject(socket)) return
  if (!isAnyObject(own(socket, 'server'))) return
  if (spanTag.read(request) !== undefined) return
  const connection = connections.of(socket)
  const span = httpSpans.requestServed(request, socket, connection)
  if (span === undefined) return
  spanTag.write(request, span)
  span.endsBy(socket, lookAtUpgraded)
  followUpgrade(request, socket, span, connection)
}

/** @param {object} request @param {object} socket @param {Span} span @param {Connection} connection */
function followUpgrade (request, socket, span, connection) {
  const weakRequest = new WeakRef(request)
  let isTaken = false
  let isRefused = false
  connection.addPresentResource()
  connection.add(socket, span, () => {
    const present = weakRequest.deref()
    const presentSocket = connection.socket.deref()
    if (!isTaken && present !== undefined && presentSocket !== undefined) take(present, presentSocket)
    if (connection.isClosed) close()
  })

  /** @param {object} request @param {object} socket */
  function take (request, socket) {
    isTaken = true
    httpSpans.requestDescribed(span, request, socket, connection)
    isRefused = own(request, 'method') === 'CONNECT' && !hasListener(own(socket, 'server'), 'connect')
    if (!connection.isClosed) httpSpans.takeSocket(span, socket)
  }

  function close () {
    connection.remove(span)
    const present = connection.socket.deref()
    if (!isRefused) httpSpans.upgraded(span, undefined)
    else httpSpans.connectionLost(span, weakRequest.deref() ?? {}, {}, { socket: present, timedOut: false })
  }
}

/** @param {object} emitter @param {string} event */
function hasListener (emitter, event) {
  const events = own(emitter, '_events')
  return isAnyObject(events) && own(events, event) !== undefined
}

/** @type {Array<[string, (message: any) => void]>} */
const subscriptions = [
  ['http.server.request.start', requestStarted],
  ['http.server.response.finish', responseFinished],
  ['tracing:fastify.request.handler:start', ({ request, route }) => {
    const span = spanOfRequest(request.raw)
    if (span !== undefined) httpSpans.routeFound(span, route?.url)
  }],
  ['tracing:fastify.request.handler:error', ({ request, error }) => {
    const span = spanOfRequest(request.raw)
    if (span !== undefined) httpSpans.errorCaught(span, error)
  }]
]

module.exports = { subscriptions, upgradeRequested }
