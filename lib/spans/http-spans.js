'use strict'

// Spans of requests, streams and connections. http1-server.js and its siblings call this when one begins,
// changes or ends, and pass Node's objects. Everything here runs guarded.

const { contextOfRequest, inOwnWork } = require('../core/current-step')
const { enterSpan, setSpan } = require('./step-spans')
const { handleOf, idOf, underlyingHandle } = require('../node-objects')
const { hidden, isObject, own } = require('../objects')
const { requestName } = require('../core/request-names')
const { settings } = require('../settings')
const koa = require('../requests/frameworks')
const connections = require('./connections')
const {
  describeConnect, describeRequested, describeRequestedStream, describeServed, describeServedStream,
  streamErrorName
} = require('./http-attributes')
const {
  CANCELLED_END, UPGRADED, endOfAnswer, endOfClose, endOfFailure, errorCode, errorOfSocket
} = require('./http-endings')
const rejections = require('./rejections')
const spans = require('./spans')
const { format, hasTraceparent, parse } = require('./traceparent')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../core/context').Context} Context
 * @typedef {ReturnType<typeof import('./connections').of>} Connection
 */

/** @param {Span} span of a request */
const methodOf = (span) => span.shared?.['http.request.method']

/** Adds status and route to a span. @param {Span} span @param {object} request @param {unknown} status */
function describeResponse (span, request, status) {
  if (typeof status === 'number') span.setStatusCode(status)
  if (typeof status === 'number' && status >= 500) span.attributes['error.type'] = String(status)
  const route = span.reportedRoute ?? koa.routeTextOf(request)
  if (route === undefined) return
  span.setRoute(route)
  span.name = requestName(String(methodOf(span)), route)
}

/** @param {Span} span @param {object} handle */
function takeHandle (span, handle) {
  const id = idOf(handle)
  if (id !== undefined) setSpan(id, span.seq)
}

/**
 * Adds the header, unless the program has its own.
 * @param {any} request of http or undici
 * @param {string} traceparent
 */
function addTraceparent (request, traceparent) {
  try {
    if (typeof request.addHeader !== 'function' || hasTraceparent(own(request, 'headers'))) return
    request.addHeader('traceparent', traceparent)
  } catch {}
}

/** @param {Span} span @param {number} code HTTP/2 error code */
function endOfClosedStream ({ kind }, code) {
  const state = kind === 'SERVER' ? 'finished' : 'complete'
  return endOfClose(false, `the stream was closed before the response was ${state}`, streamErrorName(code))
}

/**
 * Returns the socket of a stream's HTTP/2 session. Avoids the getter, for which Node makes a proxy.
 * @param {object} stream
 * @returns {unknown}
 */
function socketOf (stream) {
  const session = hidden(stream, 'kSession', 'session')
  return isObject(session) ? hidden(session, 'socket') : undefined
}

// Servers, HTTP/1

/**
 * Begins the span of a request that a server received; the rest of the callback belongs to it.
 * @param {object} request
 * @param {object} socket
 * @param {Connection} connection
 * @returns {Span | undefined}
 */
function requestServed (request, socket, connection) {
  if (inOwnWork()) return undefined
  const { name, path, peer, shared, traceparent } = describeServed(request, socket, connection)
  const span = spans.start({ name, kind: 'SERVER', remote: parse(traceparent), path, peer, shared })
  span.chain = enterSpan(span).chain
  spans.begin(span, socket, peer.isNew)
  return span
}

/**
 * Updates the span when more of the request is known.
 * @param {Span} span
 * @param {object} request
 * @param {object} socket
 * @param {Connection} connection
 */
function requestDescribed (span, request, socket, connection) {
  span.describe(describeServed(request, socket, connection))
}

/**
 * Ends the span when the last byte of the response was handed to the kernel.
 * @param {Span} span
 * @param {object} request
 * @param {object} response
 */
function responseFinished (span, request, response) {
  const status = own(response, 'statusCode')
  describeResponse(span, request, status)
  spans.end(span, endOfAnswer(request, status))
}

/**
 * Ends the span of a request whose connection closed before the response was finished.
 * @param {Span} span
 * @param {object} request
 * @param {object} response
 * @param {{ socket: object | undefined, timedOut: boolean }} close
 */
function connectionLost (span, request, response, { socket, timedOut }) {
  describeResponse(span, request, own(response, '_header') ? own(response, 'statusCode') : undefined)
  const code = errorCode(errorOfSocket(socket))
  const isTimeout = timedOut || code === 'ERR_HTTP_REQUEST_TIMEOUT'
  const reason = isTimeout ? 'closed by a timeout' : 'closed'
  const message = `the connection was ${reason} before the response was finished`
  spans.end(span, endOfClose(isTimeout, message, isTimeout ? undefined : code))
}

/**
 * Ends the span of a connection that switched to another protocol, or of one that closed after that.
 * @param {Span} span
 * @param {unknown} status
 */
function upgraded (span, status) {
  responseStarted(span, status)
  spans.end(span, UPGRADED)
}

/** Makes a socket's callbacks part of a span, also those of TCP below TLS. @type {typeof takeHandle} */
function takeSocket (span, socket) {
  const handle = handleOf(socket)
  for (const part of [handle, underlyingHandle(handle)]) if (part !== undefined) takeHandle(span, part)
}

/** Records the route that a framework reports. @param {Span} span @param {unknown} route */
function routeFound (span, route) {
  span.reportedRoute = koa.routeText(route) ?? span.reportedRoute
}

/** Notes an error that a framework reports. @param {Span} span @param {unknown} error */
function errorCaught (span, error) {
  if (isObject(error)) rejections.note(error, span)
}

// Clients: http, undici, connections

/**
 * Begins the span of an outgoing request, in the current context or in that of an earlier call.
 * @param {object} request
 * @param {Context} [call]
 * @returns {Span | undefined}
 */
function requestMade (request, call) {
  if (inOwnWork()) return undefined
  const context = call ?? contextOfRequest(requestMade)
  const span = spans.start({ ...describeRequested(request), kind: 'CLIENT', context })
  if (settings.options.propagate) addTraceparent(request, format(span))
  return span
}

/** @param {Span} span @returns {string | undefined} header to send, if any */
const traceparentFor = (span) => settings.options.propagate ? format(span) : undefined

/** Records the head of the response. @param {Span} span @param {unknown} status */
function responseStarted (span, status) {
  if (typeof status === 'number') span.setStatusCode(status)
}

/** Ends the span when the last byte of the response arrived. @param {Span} span */
function responseReceived (span) {
  const status = span.statusCode
  const isTunnel = methodOf(span) === 'CONNECT' && status < 300
  if (status === 101 || isTunnel) return spans.end(span, UPGRADED)
  spans.end(span, status >= 400 ? { code: 'ERROR', attributes: { 'error.type': String(status) } } : {})
}

/**
 * @param {Span} span
 * @param {unknown} error
 * @param {{ timedOut: boolean, isClosedHere: boolean }} close by this process or by the peer
 */
function requestFailed (span, error, { timedOut, isClosedHere }) {
  if (error !== undefined) return spans.end(span, endOfFailure(error, timedOut, isClosedHere))
  if (isClosedHere && !timedOut) return spans.end(span, CANCELLED_END)
  const reason = timedOut ? 'closed by a timeout' : 'closed'
  spans.end(span, endOfClose(timedOut, `the connection was ${reason} before the response was complete`))
}

/**
 * Begins the span of a connection attempt, at the time of the given context if there is one.
 * @param {Context} [since]
 * @returns {Span | undefined}
 */
function connectStarted (since) {
  if (inOwnWork()) return undefined
  const context = since ?? contextOfRequest(connectStarted)
  return spans.start({ name: 'connect', kind: 'CLIENT', context, since: since?.time })
}

/** @param {Span} span @param {import('./connects').ConnectEnd} end */
function connectEnded (span, end) {
  span.describe(describeConnect(end))
  const error = errorOfSocket(end.socket)
  if (end.done) spans.end(span)
  else if (error !== undefined) spans.end(span, endOfFailure(error, false))
  else spans.end(span, CANCELLED_END)
}

// HTTP/2

/**
 * Begins the span of a request that arrived on a stream.
 * @param {object} stream
 * @param {any} headers
 * @param {Context} [context] if it begins in its own callback
 * @returns {Span | undefined}
 */
function streamServed (stream, headers, context) {
  if (inOwnWork()) return undefined
  const socket = socketOf(stream)
  const remote = parse(own(headers, 'traceparent'))
  const connection = isObject(socket) ? connections.of(socket) : {}
  const described = describeServedStream(headers, socket, connection)
  const span = spans.start({ ...described, kind: 'SERVER', remote, context })
  if (context === undefined) {
    span.chain = enterSpan(span).chain
    spans.begin(span, socket)
  } else {
    context.span = span
  }
  return span
}

/** @param {any} headers @param {string | undefined} origin @returns {Span | undefined} */
function streamRequested (headers, origin) {
  if (inOwnWork()) return undefined
  const context = contextOfRequest(streamRequested)
  return spans.start({ ...describeRequestedStream(headers, origin), kind: 'CLIENT', context })
}

/** Updates the description. @param {Span} span @param {any} headers @param {string | undefined} origin */
const streamDescribed = (span, headers, origin) => span.describe(describeRequestedStream(headers, origin))

/** @param {Span} span @param {import('./http2').StreamEnd} end */
function streamEnded (span, { whole, code, status, error }) {
  if (status !== undefined) describeResponse(span, {}, status)
  if (error !== undefined) return spans.end(span, endOfFailure(error, false))
  const finalStatus = span.statusCode
  const isTunnel = methodOf(span) === 'CONNECT'
  if (isTunnel && (whole || finalStatus === 200)) return spans.end(span, UPGRADED)
  if (!whole) return spans.end(span, endOfClosedStream(span, code))
  if (span.kind === 'CLIENT') return responseReceived(span)
  spans.end(span, endOfAnswer({}, finalStatus))
}

module.exports = {
  connectEnded,
  connectStarted,
  connectionLost,
  errorCaught,
  requestDescribed,
  requestFailed,
  requestMade,
  requestServed,
  responseFinished,
  responseReceived,
  responseStarted,
  routeFound,
  streamDescribed,
  streamEnded,
  streamRequested,
  streamServed,
  takeHandle,
  takeSocket,
  traceparentFor,
  upgraded
}
