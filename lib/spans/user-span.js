'use strict'

// What the function of trace.span gets: the span, to be described while it is open, and never a way to its insides.

const { format } = require('./traceparent')

/**
 * @typedef {object} SpanHandle
 * @property {string} traceId 32 hex digits; empty where spans are off
 * @property {string} spanId 16 hex digits; empty where spans are off
 * @property {string} traceparent the header that makes another service's spans children of this one; empty where spans are off
 * @property {(attributes: Record<string, unknown>) => SpanHandle} set adds attributes; any JSON values
 * @property {(error: unknown) => SpanHandle} fail the span ends as failed, with this error
 */

/** Programs keep it: it holds nothing but the span. @param {import('./span').Span} span @returns {SpanHandle} */
function handleOf (span) {
  /** @type {SpanHandle} */
  const handle = {
    traceId: span.traceId,
    spanId: span.spanId,
    traceparent: format(span),
    set (attributes) {
      if (!span.ended) span.attributes = { ...span.attributes, ...attributes }
      return handle
    },
    fail (error) {
      if (!span.ended) span.failure = { error }
      return handle
    }
  }
  return Object.freeze(handle)
}

/** @type {SpanHandle} */
const nothing = Object.freeze({ traceId: '', spanId: '', traceparent: '', set: () => nothing, fail: () => nothing })

module.exports = { handleOf, nothing }
