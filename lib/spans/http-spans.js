'use strict'

// Spans of the web: what becomes of the requests, streams and connections that requests/http1.js tells of. Data comes
// in as Node's objects and is read by http.js and frameworks.js. Everything here runs guarded.

const { idOf } = require('../node-objects')
const { messageOf } = require('../warnings')
const { expressError, expressRoute, routeText } = require('./frameworks')
const http = require('./http-attributes')
const { parse, format } = require('./traceparent')
const { isObject, own } = require('../objects')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./spans').End} End
 * @typedef {import('../context/context').Context} Context
 * @typedef {Omit<import('../requests/http1').RequestRooms, 'idsOf' | 'carries'>} HttpSpans
 */

const TIMED_OUT = /TIMEOUT$|^ETIMEDOUT$/
const ABORTED = /^(ABORT_ERR|ECONNRESET|EPIPE|UND_ERR_ABORTED|UND_ERR_SOCKET|ERR_STREAM_PREMATURE_CLOSE)$/

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('./spans').createSpans>} deps.spans
 * @param {ReturnType<typeof import('../hooks/async-hooks').createAsyncLayer>} deps.asyncLayer
 * @param {() => import('../options').Options} deps.options
 * @param {(above: Function) => Context} deps.contextOfRequest a context for a request made here
 * @param {ReturnType<typeof import('./frameworks').createKoaRoutes>} deps.koaRoutes
 * @param {(socket: object) => object[]} deps.handlesOf a socket: its own handle and what lies below
 */
function createHttpSpans ({ spans, asyncLayer, options, contextOfRequest, koaRoutes, handlesOf }) {
  /** routes that frameworks told by themselves @type {WeakMap<Span, string>} */
  const routes = new WeakMap()
  let hasRoutes = false

  /** @param {Span} span @param {object} request @param {unknown} status */
  function describeAnswer (span, request, status) {
    if (typeof status === 'number') span.attributes['http.response.status_code'] = status
    if (typeof status === 'number' && status >= 500) span.attributes['error.type'] = String(status)
    const known = hasRoutes ? routes.get(span) : undefined
    const route = known ?? routeText(expressRoute(request) ?? koaRoutes.routeOf(request))
    if (route === undefined) return
    span.attributes['http.route'] = route
    span.name = http.requestName(String(span.attributes['http.request.method']), route)
  }

  /** What else it failed for than a rejection. @param {object} request @param {unknown} status @returns {End} */
  function verdict (request, status) {
    if (typeof status !== 'number' || status < 500) return {}
    const error = expressError(request)
    return { code: 'ERROR', ...(isObject(error) ? { error } : {}) }
  }

  /** @param {string} name @param {Record<string, unknown>} attributes @param {Function} above @returns {Span} */
  function client (name, attributes, above) {
    const span = spans.start({ name, kind: 'CLIENT', context: contextOfRequest(above) })
    span.attributes = attributes
    return span
  }

  /** @param {Span} span */
  function received (span) {
    const status = Number(span.attributes['http.response.status_code'])
    if (status === 101 || (span.attributes['http.request.method'] === 'CONNECT' && status < 300)) return spans.end(span, { end: 'upgraded' })
    spans.end(span, { code: status >= 400 ? 'ERROR' : undefined, attributes: status >= 400 ? { 'error.type': String(status) } : undefined })
  }

  /** @type {HttpSpans} */
  const rooms = {
    served (request, socket) {
      if (asyncLayer.inOwnWork()) return undefined
      const { name, attributes, traceparent, head } = http.served(request, socket)
      const span = spans.start({ name, kind: 'SERVER', remote: parse(traceparent) })
      span.attributes = span.headed = attributes
      span.head = head
      span.chain = asyncLayer.enterSpan(span).chain
      spans.begin(span)
      return span
    },

    met (span, request, socket) {
      const { name, attributes } = http.served(request, socket)
      span.name = name
      Object.assign(span.attributes, attributes)
      span.head = undefined
    },

    answered (span, request, response) {
      const status = own(response, 'statusCode')
      describeAnswer(span, request, status)
      spans.end(span, verdict(request, status))
    },

    broken (span, request, response, { socket, timedOut }) {
      if (own(response, '_header')) describeAnswer(span, request, own(response, 'statusCode'))
      else describeAnswer(span, request, undefined)
      const code = errorCode(reasonOf(socket))
      const late = timedOut || code === 'ERR_HTTP_REQUEST_TIMEOUT'
      spans.end(span, ended(late, `the connection was closed ${late ? 'by a timeout ' : ''}before the response was finished`, late ? undefined : code))
    },

    switched (span, status) {
      if (status !== undefined) span.attributes['http.response.status_code'] = status
      spans.end(span, { end: 'upgraded' })
    },

    takes (socket, span) {
      for (const handle of handlesOf(socket)) rooms.takesHandle(span, handle)
    },

    takesHandle (span, handle) {
      const id = idOf(handle)
      if (id !== undefined) asyncLayer.setSpan(id, span.seq)
    },

    requested (request) {
      if (asyncLayer.inOwnWork()) return undefined
      const { name, attributes } = http.made(request)
      const span = client(name, attributes, rooms.requested)
      if (options().propagate) addHeader(request, format(span))
      return span
    },

    header: (span) => options().propagate ? format(span) : undefined,

    responded (span, status) {
      if (typeof status === 'number') span.attributes['http.response.status_code'] = status
    },

    received,

    failed (span, error, timedOut) {
      if (error === undefined) return spans.end(span, ended(timedOut, `the connection was closed ${timedOut ? 'by a timeout ' : ''}before the response was complete`))
      spans.end(span, { code: 'ERROR', message: wordsOf(error), error, ...endingOf(error, timedOut) })
    },

    streamServed (stream, headers, context) {
      if (asyncLayer.inOwnWork()) return undefined
      const { name, attributes } = http.streamServed(headers, socketOf(stream))
      const span = spans.start({ name, kind: 'SERVER', remote: parse(own(headers, 'traceparent')), context })
      span.attributes = attributes
      if (context === undefined) {
        span.chain = asyncLayer.enterSpan(span).chain
        spans.begin(span)
      } else {
        context.span = span
      }
      return span
    },

    streamRequested (headers, origin) {
      if (asyncLayer.inOwnWork()) return undefined
      const { name, attributes } = http.streamMade(headers, origin)
      return client(name, attributes, rooms.streamRequested)
    },

    streamMet (span, headers, origin) {
      const { name, attributes } = http.streamMade(headers, origin)
      span.name = name
      Object.assign(span.attributes, attributes)
    },

    streamEnded (span, { whole, code, status, error }) {
      if (status !== undefined) describeAnswer(span, {}, status)
      if (error !== undefined) return spans.end(span, { code: 'ERROR', message: wordsOf(error), error, ...endingOf(error, false) })
      const tunnel = span.attributes['http.request.method'] === 'CONNECT'
      if (tunnel && (whole || span.attributes['http.response.status_code'] === 200)) return spans.end(span, { end: 'upgraded' })
      if (!whole) return spans.end(span, ended(false, `the stream was closed before the response was ${span.kind === 'SERVER' ? 'finished' : 'complete'}`, http.streamError(code)))
      if (span.kind === 'CLIENT') return received(span)
      spans.end(span, verdict({}, span.attributes['http.response.status_code']))
    },

    routed (span, route) {
      const text = routeText(route)
      if (text === undefined) return
      routes.set(span, text)
      hasRoutes = true
    },

    caught (span, error) {
      if (isObject(error)) spans.noteRejection(error, span)
    },

    serves: (server) => koaRoutes.observeServer(server),

    connecting (since) {
      if (asyncLayer.inOwnWork()) return undefined
      const context = since ?? contextOfRequest(rooms.connecting)
      return spans.start({ name: 'connect', kind: 'CLIENT', context, since: since?.time })
    },

    connected (span, end) {
      const { name, attributes } = http.connected(end)
      span.name = name
      Object.assign(span.attributes, attributes)
      const error = reasonOf(end.socket)
      if (end.done) spans.end(span)
      else if (error === undefined) spans.end(span, ended(false, 'the socket was closed before it was connected'))
      else spans.end(span, { code: 'ERROR', message: wordsOf(error), error, ...endingOf(error, false) })
    },

    dropped: spans.drop
  }

  return { rooms }
}

/** @param {boolean} timedOut @param {string} message @param {string} [type] @returns {End} */
function ended (timedOut, message, type) {
  const end = timedOut ? 'timeout' : 'aborted'
  return { code: 'ERROR', end, message, attributes: { 'error.type': type ?? end } }
}

/** How a request ended that failed for an error. @param {unknown} error @param {boolean} timedOut @returns {End} */
function endingOf (error, timedOut) {
  const code = errorCode(error) ?? ''
  const name = exceptionName(error)
  const cause = isObject(error) ? own(error, 'cause') : undefined
  const late = timedOut || TIMED_OUT.test(code) || name === 'TimeoutError' || (isObject(cause) && exceptionName(cause) === 'TimeoutError')
  const end = late ? 'timeout' : ABORTED.test(code) || name === 'AbortError' ? 'aborted' : undefined
  return { ...(end === undefined ? {} : { end }), ...(name === undefined ? {} : { attributes: { 'error.type': name } }) }
}

/** @param {unknown} error @returns {string | undefined} */
function errorCode (error) {
  const code = isObject(error) ? own(error, 'code') : undefined
  return typeof code === 'string' ? code : undefined
}

/** The name of what abort signals give, which is no error to V8 everywhere. @param {unknown} error @returns {string | undefined} */
function exceptionName (error) {
  return exceptionField(error, 'name')
}

/** @param {unknown} error @returns {string} */
function wordsOf (error) {
  return exceptionField(error, 'message') ?? messageOf(error)
}

/** @param {unknown} error @param {'name' | 'message'} field @returns {string | undefined} */
function exceptionField (error, field) {
  if (!isObject(error) || !(error instanceof DOMException)) return undefined
  try {
    return Object.getOwnPropertyDescriptor(DOMException.prototype, field)?.get?.call(error)
  } catch {
    return undefined
  }
}

/** What a socket was destroyed with. @param {any} socket */
function reasonOf (socket) {
  try {
    return socket?.errored ?? undefined
  } catch {
    return undefined
  }
}

/** @param {any} stream of HTTP/2 */
function socketOf (stream) {
  try {
    return stream.session?.socket
  } catch {
    return undefined
  }
}

/** @param {any} request of http or undici; the program's own header stays @param {string} traceparent */
function addHeader (request, traceparent) {
  try {
    if (typeof request.addHeader === 'function' && !http.hasHeader(own(request, 'headers'), 'traceparent')) request.addHeader('traceparent', traceparent)
  } catch {}
}

module.exports = { createHttpSpans }
