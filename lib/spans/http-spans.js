'use strict'

// Spans of requests, streams and connections, as requests/layer.js reports them. Everything here runs
// guarded.

const { hidden, isObject, own } = require('../objects')
const { createClientSpans } = require('./client-spans')
const { describeRequestedStream, describeServedStream, streamErrorName } = require('./http-attributes')
const { UPGRADED, endOfAnswer, endOfClose, endOfFailure } = require('./http-endings')
const { createServerSpans } = require('./server-spans')
const { parse } = require('./traceparent')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../context/context').Context} Context
 * @typedef {Omit<import('../requests/layer').RequestListener, 'asyncIdsOf'>} HttpSpans
 *
 * @typedef {object} HttpSpansDeps
 * @property {ReturnType<typeof import('./spans').createSpans>} spans
 * @property {import('./connect').AsyncLayer} asyncLayer
 * @property {() => import('../options').Options} options
 * @property {(above: Function) => Context} contextOfRequest a context for a request made here
 * @property {ReturnType<typeof import('./frameworks').createKoaRoutes>} koaRoutes
 * @property {(socket: object) => object[]} handlesOf a socket: its own handle and what lies below
 */

/** @param {HttpSpansDeps} deps @returns {HttpSpans} */
function createHttpSpans (deps) {
  const { spans, asyncLayer } = deps
  const server = createServerSpans(deps)
  const client = createClientSpans(deps)

  /** @type {HttpSpans} */
  const listener = {
    ...server.listener,
    ...client.listener,
    endsBy: (span, subject, look) => span.endsBy(subject, look),

    streamServed (stream, headers, context) {
      if (asyncLayer.inOwnWork()) return undefined
      const { name, attributes, shared } = describeServedStream(headers, socketOf(stream))
      const span = spans.start({ name, kind: 'SERVER', remote: parse(own(headers, 'traceparent')), context })
      span.attributes = attributes
      span.shared = shared
      if (context === undefined) {
        span.chain = asyncLayer.enterSpan(span).chain
        spans.begin(span, socketOf(stream), true)
      } else {
        context.span = span
      }
      return span
    },

    streamRequested (headers, origin) {
      if (asyncLayer.inOwnWork()) return undefined
      return client.start(describeRequestedStream(headers, origin), listener.streamRequested)
    },

    streamDescribed (span, headers, origin) {
      span.describe(describeRequestedStream(headers, origin))
    },

    streamEnded (span, { whole, code, status, error }) {
      if (status !== undefined) server.describeResponse(span, {}, status)
      if (error !== undefined) return spans.end(span, endOfFailure(error, false))
      const finalStatus = span.attributes['http.response.status_code']
      const isTunnel = span.attributes['http.request.method'] === 'CONNECT'
      if (isTunnel && (whole || finalStatus === 200)) return spans.end(span, UPGRADED)
      if (!whole) return spans.end(span, endOfClosedStream(span, code))
      if (span.kind === 'CLIENT') return client.listener.responseReceived(span)
      spans.end(span, endOfAnswer({}, finalStatus))
    }
  }
  return listener
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

module.exports = { createHttpSpans }
