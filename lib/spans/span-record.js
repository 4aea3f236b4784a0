'use strict'

// Records in addition to the program's own spans: errors as span events in OpenTelemetry's terms, and
// blocking callbacks.

const { isNativeError } = require('node:util').types
const { spanResource } = require('./outputs')
const { cutUrlCredentials } = require('../text')
const { defined } = require('../encoding/span-figures')
const { unixNano } = require('../encoding/times')
const { own } = require('../objects')
const { messageOf } = require('../warnings')
const ids = require('../encoding/ids')

const MAX_EVENTS = 32 // errors per span

/** @typedef {import('../encoding/span-form').SpanRecord} SpanRecord */
/** @typedef {{ type: string, message: string, stacktrace?: string }} ExceptionDescription */

/**
 * Adds an error to a span, once.
 * @param {import('./span').Span} span
 * @param {ExceptionDescription} exception
 * @param {number} time ms of the clock
 */
function addException (span, { type, message, stacktrace }, time) {
  const events = span.events ??= []
  if (events.length >= MAX_EVENTS) return
  const isRecorded = events.some(({ attributes }) => {
    return attributes['exception.stacktrace'] === stacktrace && attributes['exception.message'] === message
  })
  if (isRecorded) return
  if (span.attributes['longstack.end'] !== 'cancelled') span.attributes['error.type'] ??= type
  events.push({
    name: 'exception',
    time,
    attributes: defined({
      'exception.type': type, 'exception.message': message, 'exception.stacktrace': stacktrace
    })
  })
}

/**
 * Describes an error. A value that is not an Error has no stack.
 * @param {unknown} error
 * @param {(error: Error) => string | undefined} errorStack
 * @returns {ExceptionDescription}
 */
function describeException (error, errorStack) {
  const message = cutUrlCredentials(messageOf(error))
  if (!isNativeError(error)) return { type: typeof error, message }
  const code = own(error, 'code')
  const type = typeof code === 'string' ? code : nameOf(error)
  const stacktrace = errorStack(error)
  return { type, message, stacktrace: stacktrace && cutUrlCredentials(stacktrace) }
}

/** @param {Error} error */
function nameOf (error) {
  const name = own(error, 'name') ?? own(Object.getPrototypeOf(error) ?? {}, 'name')
  return typeof name === 'string' ? name : 'Error'
}

// A blocking callback as a record among the spans. If it is written while still running, it is written again
// at its end under the same id; readers use the last one.

/**
 * @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {import('../blocked/blocking-callback').BlockingCallback} BlockingCallback
 */

/** @type {import('./span').Status} */
const UNSET = { code: 'UNSET' }

/**
 * @param {BlockedEvent} event
 * @param {BlockingCallback} run
 * @returns {SpanRecord}
 */
function blockedRecord (event, run) {
  const { ms, startUnixMs, stack, stillRunning, sampledLate, span } = event
  run.ids ??= {
    traceId: span?.traceId ?? ids.traceId(),
    spanId: ids.spanId(),
    ...(span && { parentSpanId: span.spanId })
  }
  const [start, end] = [unixNano(startUnixMs, 0), unixNano(startUnixMs, ms)]
  return internalRecord('blocked', run.ids, start, end, defined({
    'longstack.blocked_ms': ms,
    'code.stacktrace': stack,
    'longstack.blocked_by': span?.name, // the span itself is never written if the process is killed
    'longstack.sampled_late_ms': sampledLate,
    'longstack.end': stillRunning ? 'open' : undefined
  }))
}

/**
 * Returns a record that is not one of the program's spans.
 * @param {string} name
 * @param {{ traceId: string, spanId: string, parentSpanId?: string }} ids
 * @param {string} startTimeUnixNano
 * @param {string} endTimeUnixNano
 * @param {Record<string, unknown>} attributes
 * @returns {SpanRecord}
 */
function internalRecord (name, ids, startTimeUnixNano, endTimeUnixNano, attributes) {
  const resource = spanResource()
  const status = UNSET
  return { ...ids, name, kind: 'INTERNAL', startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
}

module.exports = { addException, blockedRecord, describeException, internalRecord }
