'use strict'

// The active span of @opentelemetry/api, where the program itself uses it. All copies of the API, however
// they were loaded, share one object under a global symbol, and store the span of a context under another:
// nothing is loaded here, and where there is no API one property is read.

const API = Symbol.for('opentelemetry.js.api.1')
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN')
const TRACE = /^(?!0{32})[0-9a-f]{32}$/
const ID = /^(?!0{16})[0-9a-f]{16}$/
const SAMPLED = 1

/** @returns {import('./traceparent').SpanContext | undefined} */
function activeSpanContext () {
  const api = /** @type {any} */ (globalThis)[API]
  if (api === undefined) return undefined
  try {
    const context = api.context?.active()?.getValue(SPAN)?.spanContext()
    if (context === undefined || !TRACE.test(context.traceId) || !ID.test(context.spanId)) return undefined
    return { traceId: context.traceId, spanId: context.spanId, sampled: (context.traceFlags & SAMPLED) !== 0 }
  } catch {} // a context manager or a span of the program's
}

module.exports = { activeSpanContext }
