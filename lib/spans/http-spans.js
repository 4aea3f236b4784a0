'use strict'

// Spans of requests, streams and connections: the listener that lib/requests/ tells of them. Data comes in as
// Node's objects. Everything here runs guarded.

const { contextOfRequest, inOwnWork } = require('../core/current-step')
const { enterSpan, setSpan, spanOf } = require('./step-spans')
const { handleOf, idOf, underlyingHandle } = require('../node-objects')
const { hidden, isObject, own } = require('../objects')
const { requestName } = require('../core/request-names')
const { settings } = require('../settings')
const koa = require('../requests/frameworks')
const reports = require('../requests/listener')
const {
  describeConnect, describeRequested, describeRequestedStream, describeServed, describeServedStream,
  streamErrorName
} = require('./http-attributes')
const {
  UPGRADED, endOfAnswer, endOfClose, endOfFailure, errorCode, errorOfSocket
} = require('./http-endings')
const spans = require('./spans')
const { format, hasTraceparent, parse } = require('./traceparent')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../core/context').Context} Context
 */

/** routes that frameworks reported by themselves @type {WeakMap<Span, string>} */
const routes = new WeakMap()
let hasRoutes = false

/** @param {Span} span of a request */
const methodOf = (span) => span.shared?.['http.request.method']

/** Adds status and route to a span. @param {Span} span @param {object} request @param {unknown} status */
function describeResponse (span, request, status) {
  if (typeof status === 'number') span.attributes['http.response.status_code'] = status
  if (typeof status === 'number' && status >= 500) span.attributes['error.type'] = String(status)
  const reported = hasRoutes ? routes.get(span) : undefined
  const route = reported ?? koa.routeTextOf(request)
  if (route === undefined) return
  span.attributes['http.route'] = route
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

/** @param {Span} span @param {number} code of HTTP/2 */
function endOfClosedStream ({ kind }, code) {
  const state = kind === 'SERVER' ? 'finished' : 'complete'
  return endOfClose(false, `the stream was closed before the response was ${state}`, streamErrorName(code))
}

/**
 * Returns the socket that a session of HTTP/2 is on. Not by its getter, for which Node makes a proxy.
 * @param {object} stream
 * @returns {unknown}
 */
function socketOf (stream) {
  const session = hidden(stream, 'kSession', 'session')
  return isObject(session) ? hidden(session, 'socket') : undefined
}

/** @type {import('../requests/listener').RequestListener} */
const listener = {
  spanOf,
  setSpan,
  endsBy: (span, subject, look) => span.endsBy(subject, look),
  discard: spans.discard,

  // Servers, HTTP/1

  requestServed (request, socket) {
    if (inOwnWork()) return undefined
    const { name, attributes, shared, traceparent, isNew } = describeServed(request, socket)
    const span = spans.start({ name, kind: 'SERVER', remote: parse(traceparent), attributes, shared })
    span.chain = enterSpan(span).chain
    spans.begin(span, socket, isNew)
    return span
  },

  requestDescribed (span, request, socket) {
    span.describe(describeServed(request, socket))
  },

  responseFinished (span, request, response) {
    const status = own(response, 'statusCode')
    describeResponse(span, request, status)
    spans.end(span, endOfAnswer(request, status))
  },

  connectionLost (span, request, response, { socket, timedOut }) {
    describeResponse(span, request, own(response, '_header') ? own(response, 'statusCode') : undefined)
    const code = errorCode(errorOfSocket(socket))
    const isTimeout = timedOut || code === 'ERR_HTTP_REQUEST_TIMEOUT'
    const reason = isTimeout ? 'closed by a timeout' : 'closed'
    const message = `the connection was ${reason} before the response was finished`
    spans.end(span, endOfClose(isTimeout, message, isTimeout ? undefined : code))
  },

  upgraded (span, status) {
    if (status !== undefined) span.attributes['http.response.status_code'] = status
    spans.end(span, UPGRADED)
  },

  takeSocket (socket, span) { // what lies below it under TLS, too
    const handle = handleOf(socket)
    for (const part of [handle, underlyingHandle(handle)]) if (part !== undefined) takeHandle(span, part)
  },

  takeHandle,

  routeFound (span, route) {
    const text = koa.routeText(route)
    if (text === undefined) return
    routes.set(span, text)
    hasRoutes = true
  },

  errorCaught (span, error) {
    if (isObject(error)) spans.noteRejection(error, span)
  },

  // Clients: http, undici, connections

  requestMade (request, call) {
    if (inOwnWork()) return undefined
    const context = call ?? contextOfRequest(listener.requestMade)
    const span = spans.start({ ...describeRequested(request), kind: 'CLIENT', context })
    if (settings.options.propagate) addTraceparent(request, format(span))
    return span
  },

  hasTraceparent,

  traceparentFor: (span) => settings.options.propagate ? format(span) : undefined,

  responseStarted (span, status) {
    if (typeof status === 'number') span.attributes['http.response.status_code'] = status
  },

  responseReceived (span) {
    const status = Number(span.attributes['http.response.status_code'])
    const isTunnel = methodOf(span) === 'CONNECT' && status < 300
    if (status === 101 || isTunnel) return spans.end(span, UPGRADED)
    spans.end(span, status >= 400 ? { code: 'ERROR', attributes: { 'error.type': String(status) } } : {})
  },

  requestFailed (span, error, timedOut) {
    if (error !== undefined) return spans.end(span, endOfFailure(error, timedOut))
    const reason = timedOut ? 'closed by a timeout' : 'closed'
    spans.end(span, endOfClose(timedOut, `the connection was ${reason} before the response was complete`))
  },

  connectStarted (since) {
    if (inOwnWork()) return undefined
    const context = since ?? contextOfRequest(listener.connectStarted)
    return spans.start({ name: 'connect', kind: 'CLIENT', context, since: since?.time })
  },

  connectEnded (span, end) {
    span.describe(describeConnect(end))
    const error = errorOfSocket(end.socket)
    if (end.done) spans.end(span)
    else if (error !== undefined) spans.end(span, endOfFailure(error, false))
    else spans.end(span, endOfClose(false, 'the socket was closed before it was connected'))
  },

  // HTTP/2

  streamServed (stream, headers, context) {
    if (inOwnWork()) return undefined
    const socket = socketOf(stream)
    const remote = parse(own(headers, 'traceparent'))
    const span = spans.start({ ...describeServedStream(headers, socket), kind: 'SERVER', remote, context })
    if (context === undefined) {
      span.chain = enterSpan(span).chain
      spans.begin(span, socket)
    } else {
      context.span = span
    }
    return span
  },

  streamRequested (headers, origin) {
    if (inOwnWork()) return undefined
    const context = contextOfRequest(listener.streamRequested)
    return spans.start({ ...describeRequestedStream(headers, origin), kind: 'CLIENT', context })
  },

  streamDescribed (span, headers, origin) {
    span.describe(describeRequestedStream(headers, origin))
  },

  streamEnded (span, { whole, code, status, error }) {
    if (status !== undefined) describeResponse(span, {}, status)
    if (error !== undefined) return spans.end(span, endOfFailure(error, false))
    const finalStatus = span.attributes['http.response.status_code']
    const isTunnel = methodOf(span) === 'CONNECT'
    if (isTunnel && (whole || finalStatus === 200)) return spans.end(span, UPGRADED)
    if (!whole) return spans.end(span, endOfClosedStream(span, code))
    if (span.kind === 'CLIENT') return listener.responseReceived(span)
    spans.end(span, endOfAnswer({}, finalStatus))
  }
}

reports.listener = listener
