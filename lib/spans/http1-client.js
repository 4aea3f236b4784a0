'use strict'

// Outgoing HTTP/1 requests of http, fetch and undici (Node's copy and those from npm). Requests on a pooled
// undici connection run in the context of its first request, so they are identified by their objects.

const { executionAsyncId } = require('node:async_hooks')
const { className, hidden, isAnyObject, own } = require('../objects')
const connections = require('./connections')
const connects = require('./connects')
const { isClosedHere } = require('./http-endings')
const httpSpans = require('./http-spans')
const { listen, unlisten } = require('./run-listeners')
const { contextOfUndici } = require('../requests/undici-calls')

const { spanTag } = connections

/**
 * @typedef {import('./span').Span} Span
 * @typedef {ReturnType<typeof connections.of>} Connection
 */

/** Node's onSocketNT, on Node 20 @type {Function | undefined} */
let onSocket

/** @param {{ request: object }} message from http or undici @param {import('./span').Look} [look] */
function requestMade ({ request }, look = lookAtRequest) {
  if (spanTag.read(request) !== undefined) return // reported when it is created, and again when it is sent
  const call = look === lookAtUndici ? contextOfUndici(request, requestMade) : undefined
  const span = httpSpans.requestMade(request, call)
  if (span === undefined) return
  spanTag.write(request, span)
  span.endsBy(request, look)
}

/** @param {{ request: object }} message */
function requestSent (message) {
  requestMade(message)
  const { request } = message
  const socket = socketOf(request)
  if (!isAnyObject(socket)) return
  connects.leaveToHttp(socket)
  const span = spanTag.read(request)
  if (span === undefined || span.ended) return
  const connection = connections.of(socket)
  connection.add(socket, span, () => {
    const present = span.subject
    if (span.ended || present === undefined) return connection.remove(span)
    if (own(present, 'upgradeOrConnect') === true) upgraded(connection, span, present)
    // An error would have been reported earlier.
    else if (own(present, '_closed') === true) requestFailed({ request: present, error: undefined })
  })
}

/** @param {Connection | undefined} connection @param {Span} span @param {object} request */
function upgraded (connection, span, request) {
  const response = own(request, 'res')
  connection?.remove(span)
  httpSpans.upgraded(span, isAnyObject(response) ? own(response, 'statusCode') : undefined)
}

/**
 * Records the head of a response. The current resource is the parser, which will receive the rest.
 * @param {{ request: any, response: any }} message
 */
function responseStarted ({ request, response }) {
  const span = spanTag.read(request)
  if (span === undefined || span.ended) return
  httpSpans.responseStarted(span, response.statusCode)
  const parserId = executionAsyncId()
  const weakResponse = new WeakRef(response)
  const socket = /** @type {object} */ (socketOf(request))
  const connection = connectionOn(socket)
  const stop = () => {
    unlisten(parserId, parsed)
    connection?.remove(span)
  }
  const parsed = () => {
    if (!span.ended && weakResponse.deref()?.complete === false) return
    stop()
    httpSpans.responseReceived(span)
  }
  listen(parserId, parsed)
  connection?.add(socket, span, () => {
    if (!span.ended && !connection.isClosed) return
    const isComplete = weakResponse.deref()?.complete === true // the last byte arrived before the close
    stop()
    if (isComplete) httpSpans.responseReceived(span)
    else httpSpans.requestFailed(span, undefined, closeOf(connection, socket))
  })
}

/** @param {{ request: object, error: unknown }} message from http or undici */
function requestFailed ({ request, error }) {
  const span = spanTag.read(request)
  if (span === undefined) return
  const socket = socketOf(request)
  const connection = connections.get(socket)
  connection?.remove(span)
  const close = closeOf(connection, socket)
  // Without a socket, only the program can have ended it
  if (!isAnyObject(socket)) close.isClosedHere = own(request, 'destroyed') === true
  httpSpans.requestFailed(span, error, close)
}

/** @param {Connection | undefined} connection @param {unknown} socket */
const closeOf = (connection, socket) =>
  ({ timedOut: connection?.timedOut === true, isClosedHere: isClosedHere(socket) })

/**
 * Notes a request on Node 20, where http reports it only once it is sent. The request gets its socket in an
 * earlier tick.
 * @param {any} tick
 * @returns {boolean} whether it is such a tick
 */
function ticked ({ args, callback }) {
  if (callback !== onSocket && (onSocket !== undefined || callback.name !== 'onSocketNT')) return false
  if (!Array.isArray(args) || !isAnyObject(args[0]) || className(args[0]) !== 'ClientRequest') return true
  onSocket = callback
  if (own(args[0], 'destroyed') !== true) requestMade({ request: args[0] })
  return true
}

/** Returns the traceparent of an http request that is about to be written. @param {object} request */
function traceparentOf (request) {
  requestMade({ request })
  const span = spanTag.read(request)
  return span === undefined || span.ended ? undefined : httpSpans.traceparentFor(span)
}

/**
 * Watches a connection that undici may hand over to the program, which no channel reports.
 * @param {{ request: object, socket: object }} message
 */
function undiciSent ({ request, socket }) {
  const span = spanTag.read(request)
  if (span === undefined || span.ended) return
  if (!own(request, 'upgrade') && own(request, 'method') !== 'CONNECT') return
  const connection = connections.of(socket)
  const weakSocket = new WeakRef(socket)
  connection.add(socket, span, () => {
    const present = weakSocket.deref()
    if (span.ended) return connection.remove(span)
    // undici reports failures.
    if (present === undefined || connection.isClosed || hidden(present, 'parser') !== null) return
    connection.remove(span)
    httpSpans.upgraded(span, undefined)
  })
}

/** @type {import('./span').Look} */
function lookAtRequest (span, request) {
  const connection = connectionOn(socketOf(request))
  const response = own(request, 'res')
  if (own(request, 'upgradeOrConnect') === true) return () => upgraded(connection, span, request)
  if (isAnyObject(response) && own(response, 'complete') === true) {
    return () => answered(connection, span, response)
  }
  const isDestroyed = own(request, 'destroyed') === true || own(request, '_closed') === true
  if (!isDestroyed && connection?.isClosed !== true) return undefined
  return () => requestFailed({ request, error: hidden(request, 'kError') ?? undefined })
}

/** @param {Connection | undefined} connection @param {Span} span @param {object} response */
function answered (connection, span, response) {
  connection?.remove(span)
  httpSpans.responseStarted(span, own(response, 'statusCode'))
  httpSpans.responseReceived(span)
}

/** @type {import('./span').Look} */
function lookAtUndici (span, request) {
  if (own(request, 'completed') === true) return () => httpSpans.responseReceived(span)
  if (own(request, 'aborted') !== true) return undefined
  return () => httpSpans.requestFailed(span, undefined, closeOf(undefined, undefined))
}

/** @param {unknown} socket */
const connectionOn = (socket) => isAnyObject(socket) ? connections.of(socket) : undefined

/**
 * Returns the socket of an outgoing request, which is behind a symbol since Node 22.
 * @param {object} request
 * @returns {unknown}
 */
const socketOf = (request) => own(request, 'socket') ?? hidden(request, 'kSocket')

/** @type {Array<[string, (message: any) => void]>} */
const subscriptions = [
  ['http.client.request.created', requestMade],
  ['http.client.request.start', requestSent],
  ['http.client.response.finish', responseStarted],
  ['http.client.request.error', requestFailed],
  ['undici:request:create', (message) => requestMade(message, lookAtUndici)],
  ['undici:client:beforeConnect', connects.undiciConnects],
  ['undici:client:sendHeaders', undiciSent],
  ['undici:request:headers', ({ request, response }) => {
    const span = spanTag.read(request)
    if (span !== undefined) httpSpans.responseStarted(span, response.statusCode)
  }],
  ['undici:request:trailers', ({ request }) => {
    const span = spanTag.read(request)
    if (span !== undefined) httpSpans.responseReceived(span)
  }],
  ['undici:request:error', requestFailed]
]

module.exports = { subscriptions, ticked, traceparentOf }
