'use strict'

// Remote and OpenTelemetry parents of spans. Parses the traceparent header of incoming requests and formats
// it for outgoing ones, by W3C Trace Context level 1 with its rules for later versions. Invalid headers are
// ignored.

const HEADER = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?$/
const API = Symbol.for('opentelemetry.js.api.1')
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN')
const TRACE = /^(?!0{32})[0-9a-f]{32}$/
const ID = /^(?!0{16})[0-9a-f]{16}$/
const SAMPLED = 1
const MAX_LENGTH = 512 // limit for later versions; the specification sets none

/** @typedef {{ traceId: string, spanId: string, sampled: boolean }} SpanContext */

/**
 * @param {unknown} header as Node stores it: repeated headers are one comma-separated string, or a list
 * @returns {SpanContext | undefined}
 */
function parse (header) {
  const value = Array.isArray(header) && header.length === 1 ? header[0] : header
  if (typeof value !== 'string' || value.length > MAX_LENGTH) return undefined
  const parts = HEADER.exec(value)
  if (parts === null) return undefined
  const [, version, traceId, spanId, flags, extension] = parts
  if (version === '00' && extension !== undefined) return undefined
  return { traceId, spanId, sampled: (parseInt(flags, 16) & SAMPLED) !== 0 }
}

/** @param {{ traceId: string, spanId: string, sampled?: boolean }} span @returns {string} */
function format ({ traceId, spanId, sampled = true }) {
  return `00-${traceId}-${spanId}-0${sampled ? SAMPLED : 0}`
}

/**
 * Returns whether headers contain traceparent.
 * @param {any} headers in any form that Node accepts, or as undici keeps them: a list or a string
 */
function hasTraceparent (headers) {
  if (typeof headers === 'string') return /^traceparent:/im.test(headers)
  if (typeof headers !== 'object' || headers === null) return false
  if (!Array.isArray(headers)) return Object.keys(headers).some(isTraceparent)
  if (Array.isArray(headers[0])) return headers.some((pair) => isTraceparent(pair?.[0]))
  return headers.some((name, i) => i % 2 === 0 && isTraceparent(name))
}

/** @param {unknown} name of a header */
const isTraceparent = (name) => {
  return typeof name === 'string' && name.length === 11 && name.toLowerCase() === 'traceparent'
}

/**
 * Returns the active span of @opentelemetry/api if the program uses it. All copies of the API share one
 * object under a global symbol, and store a context's span under another. Nothing is loaded here; without the
 * API, this reads a single property.
 * @returns {SpanContext | undefined}
 */
function activeSpanContext () {
  const api = /** @type {any} */ (globalThis)[API]
  if (api === undefined) return undefined
  try {
    const context = api.context?.active()?.getValue(SPAN)?.spanContext()
    if (context === undefined || !TRACE.test(context.traceId) || !ID.test(context.spanId)) return undefined
    return { traceId: context.traceId, spanId: context.spanId, sampled: (context.traceFlags & SAMPLED) !== 0 }
  } catch {} // the program's context manager or span threw
}

module.exports = { activeSpanContext, format, hasTraceparent, parse }
