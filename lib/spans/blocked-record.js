'use strict'

// A long run of the event loop as a record among the spans. One that is written while it still runs is written again when it
// is over, under the same id: readers take the last.

const ids = require('./ids')
const { unixNano } = require('./span-record')

/**
 * @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {import('../blocked/blocking-callback').BlockingCallback} BlockingCallback
 */

/** @type {WeakMap<BlockingCallback, { traceId: string, spanId: string, parentSpanId?: string }>} */
const known = new WeakMap()

/**
 * @param {BlockedEvent} event
 * @param {BlockingCallback} run
 * @param {Record<string, unknown>} resource
 * @returns {import('./span-record').SpanRecord}
 */
function blockedRecord (event, run, resource) {
  const { ms, startUnixMs, stack, stillRunning, sampledLate, span } = event
  return {
    ...idsOf(event, run),
    name: 'blocked',
    kind: 'INTERNAL',
    startTimeUnixNano: unixNano(startUnixMs, 0),
    endTimeUnixNano: unixNano(startUnixMs, ms),
    status: { code: 'UNSET' },
    attributes: {
      'longstack.blocked_ms': ms,
      'code.stacktrace': stack,
      ...(span === undefined ? {} : { 'longstack.blocked_by': span.name }), // which may never be written: the process is killed
      ...(sampledLate === undefined ? {} : { 'longstack.sampled_late_ms': sampledLate }),
      ...(stillRunning ? { 'longstack.end': 'open' } : {})
    },
    resource
  }
}

/** @param {BlockedEvent} event @param {BlockingCallback} run */
function idsOf ({ span }, run) {
  let found = known.get(run)
  if (found === undefined) {
    found = { traceId: span?.traceId ?? ids.traceId(), spanId: ids.spanId(), ...(span === undefined ? {} : { parentSpanId: span.spanId }) }
    known.set(run, found)
  }
  return found
}

module.exports = { blockedRecord }
