'use strict'

// Spans of the requests that servers get, over HTTP/1. Data comes in as Node's objects.

const { requestName } = require('../context/request-names')
const { idOf } = require('../node-objects')
const { isObject, own } = require('../objects')
const { routeText } = require('./frameworks')
const { describeServed } = require('./http-attributes')
const { UPGRADED, endOfAnswer, endOfClose, errorCode, errorOfSocket } = require('./http-endings')
const { parse } = require('./traceparent')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./http-spans').HttpSpansDeps} HttpSpansDeps
 */

/** @param {HttpSpansDeps} deps */
function createServerSpans ({ spans, asyncLayer, koaRoutes, handlesOf }) {
  /** routes that frameworks reported by themselves @type {WeakMap<Span, string>} */
  const routes = new WeakMap()
  let hasRoutes = false

  /** Adds status and route to a span. @param {Span} span @param {object} request @param {unknown} status */
  function describeResponse (span, request, status) {
    if (typeof status === 'number') span.attributes['http.response.status_code'] = status
    if (typeof status === 'number' && status >= 500) span.attributes['error.type'] = String(status)
    const reported = hasRoutes ? routes.get(span) : undefined
    const route = reported ?? koaRoutes.routeTextOf(request)
    if (route === undefined) return
    span.attributes['http.route'] = route
    span.name = requestName(String(span.attributes['http.request.method']), route)
  }

  /** @param {Span} span @param {object} handle */
  function takeHandle (span, handle) {
    const id = idOf(handle)
    if (id !== undefined) asyncLayer.setSpan(id, span.seq)
  }

  return {
    describeResponse,

    /** @type {Pick<import('../requests/layer').RequestListener, ServerEvents>} */
    listener: {
      requestServed (request, socket) {
        if (asyncLayer.inOwnWork()) return undefined
        const { name, attributes, shared, traceparent, isNew } = describeServed(request, socket)
        const span = spans.start({ name, kind: 'SERVER', remote: parse(traceparent) })
        span.attributes = attributes
        span.shared = shared
        span.chain = asyncLayer.enterSpan(span).chain
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

      takeSocket (socket, span) {
        for (const handle of handlesOf(socket)) takeHandle(span, handle)
      },

      takeHandle,

      routeFound (span, route) {
        const text = routeText(route)
        if (text === undefined) return
        routes.set(span, text)
        hasRoutes = true
      },

      errorCaught (span, error) {
        if (isObject(error)) spans.noteRejection(error, span)
      },

      serverUsed: (server) => koaRoutes.observeServer(server)
    }
  }
}

/**
 * @typedef {'requestServed' | 'requestDescribed' | 'responseFinished' | 'connectionLost' | 'upgraded' |
 *   'takeSocket' | 'takeHandle' | 'routeFound' | 'errorCaught' | 'serverUsed'} ServerEvents
 */

module.exports = { createServerSpans }
