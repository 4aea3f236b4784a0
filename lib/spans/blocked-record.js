'use strict'

// A blocking callback as a record among the spans. One that is written while it still runs is written again
// when it has ended, under the same id: readers use the last.

const ids = require('../encoding/ids')
const { unixNano } = require('./wall-clock')

/**
 * @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {import('../blocked/blocking-callback').BlockingCallback} BlockingCallback
 */

/** @type {WeakMap<BlockingCallback, { traceId: string, spanId: string, parentSpanId?: string }>} */
const idsByRun = new WeakMap()

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
      // The span itself is never written if the process is killed.
      ...(span === undefined ? {} : { 'longstack.blocked_by': span.name }),
      ...(sampledLate === undefined ? {} : { 'longstack.sampled_late_ms': sampledLate }),
      ...(stillRunning ? { 'longstack.end': 'open' } : {})
    },
    resource
  }
}

/** @param {BlockedEvent} event @param {BlockingCallback} run */
function idsOf ({ span }, run) {
  let identity = idsByRun.get(run)
  if (identity === undefined) {
    identity = { traceId: span?.traceId ?? ids.traceId(), spanId: ids.spanId() }
    if (span !== undefined) identity.parentSpanId = span.spanId
    idsByRun.set(run, identity)
  }
  return identity
}

module.exports = { blockedRecord }
