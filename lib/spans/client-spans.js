'use strict'

// Spans of the requests that the program makes by http and undici, and of the connections that it makes.

const { own } = require('../objects')
const { describeConnect, describeRequested, hasHeader } = require('./http-attributes')
const { UPGRADED, endOfClose, endOfFailure, errorOfSocket } = require('./http-endings')
const { format } = require('./traceparent')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./http-spans').HttpSpansDeps} HttpSpansDeps
 */

/** @param {HttpSpansDeps} deps */
function createClientSpans ({ spans, asyncLayer, options, contextOfRequest }) {
  /**
   * @param {import('./http-attributes').Described} description
   * @param {Function} above
   * @returns {Span}
   */
  function start ({ name, attributes, shared }, above) {
    const span = spans.start({ name, kind: 'CLIENT', context: contextOfRequest(above) })
    span.attributes = attributes
    span.shared = shared
    return span
  }

  /** @type {Pick<import('../requests/layer').RequestListener, ClientEvents>} */
  const listener = {
    requestMade (request) {
      if (asyncLayer.inOwnWork()) return undefined
      const span = start(describeRequested(request), listener.requestMade)
      if (options().propagate) addTraceparent(request, format(span))
      return span
    },

    traceparentFor: (span) => options().propagate ? format(span) : undefined,

    responseStarted (span, status) {
      if (typeof status === 'number') span.attributes['http.response.status_code'] = status
    },

    responseReceived (span) {
      const status = Number(span.attributes['http.response.status_code'])
      const isTunnel = span.attributes['http.request.method'] === 'CONNECT' && status < 300
      if (status === 101 || isTunnel) return spans.end(span, UPGRADED)
      spans.end(span, status >= 400 ? { code: 'ERROR', attributes: { 'error.type': String(status) } } : {})
    },

    requestFailed (span, error, timedOut) {
      if (error !== undefined) return spans.end(span, endOfFailure(error, timedOut))
      const reason = timedOut ? 'closed by a timeout' : 'closed'
      spans.end(span, endOfClose(timedOut, `the connection was ${reason} before the response was complete`))
    },

    connectStarted (since) {
      if (asyncLayer.inOwnWork()) return undefined
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

    discard: spans.discard
  }

  return { start, listener }
}

/**
 * Adds the header, unless the program has its own.
 * @param {any} request of http or undici
 * @param {string} traceparent
 */
function addTraceparent (request, traceparent) {
  try {
    if (typeof request.addHeader !== 'function' || hasHeader(own(request, 'headers'), 'traceparent')) return
    request.addHeader('traceparent', traceparent)
  } catch {}
}

/**
 * @typedef {'requestMade' | 'traceparentFor' | 'responseStarted' | 'responseReceived' | 'requestFailed' |
 *   'connectStarted' | 'connectEnded' | 'discard'} ClientEvents
 */

module.exports = { createClientSpans }
