'use strict'

// A span as the record that is written: OpenTelemetry's names, and where the time went. Data in, data out.

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./span').Status} Status
 *
 * @typedef {object} SpanRecord a span, as written in JSON Lines and given to listeners
 * @property {string} traceId 32 hex digits
 * @property {string} spanId 16 hex digits
 * @property {string} [parentSpanId]
 * @property {string} name
 * @property {'SERVER' | 'CLIENT' | 'INTERNAL'} kind
 * @property {string} startTimeUnixNano decimal
 * @property {string} endTimeUnixNano decimal
 * @property {Status} status
 * @property {Record<string, any>} attributes OpenTelemetry's, and `longstack.run_ms` and its like; README tells
 * @property {Array<{ name: string, timeUnixNano: string, attributes: Record<string, unknown> }>} [events]
 * @property {Record<string, unknown>} resource
 *
 * @typedef {object} Surroundings
 * @property {import('./loop-time').LoopTime} loop
 * @property {Record<string, unknown>} resource
 * @property {(span: Span) => string | undefined} stack the long stack of the place that made it
 * @property {(start: number, end: number) => string | undefined} at the innermost frame seen inside a blocked run of that time
 */

const DELAYERS = 5

/**
 * @param {Span} span that has ended, or is written while it is open
 * @param {Surroundings} surroundings
 * @returns {SpanRecord}
 */
function recordOf (span, surroundings) {
  const { resource } = surroundings
  const { origin, traceId, spanId, parentSpanId, name, kind, status, events } = span
  const startTimeUnixNano = unixNano(origin, span.start)
  const endTimeUnixNano = unixNano(origin, span.end)
  const attributes = attributesOf(span, surroundings)
  /** @type {SpanRecord} */
  const record = parentSpanId === undefined
    ? { traceId, spanId, name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
    : { traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
  if (events !== undefined) record.events = events.map(({ time, ...event }) => ({ ...event, timeUnixNano: unixNano(origin, time) }))
  return record
}

/** Adds to the span's own, which nobody needs after this: bench/run.js, longstack-spans. @param {Span} span @param {Surroundings} surroundings */
function attributesOf (span, { loop, stack, at }) {
  const total = span.end - span.start
  const run = Math.min(span.run, total)
  const delayed = within(span.delayed, total - run)
  const waited = within(span.waited, total - run - delayed)
  const { attributes } = span
  const trace = stack(span)
  if (trace !== undefined) attributes['code.stacktrace'] = trace
  attributes['longstack.run_ms'] = micro(run)
  attributes['longstack.wait_ms'] = sums(span.path ?? [])
  attributes['longstack.waited_ms'] = micro(total - run - delayed)
  attributes['longstack.waits'] = (span.path ?? []).slice(0, 10).map(({ ms, count, at, until, label }) => ({ ms: micro(ms), count, at, until, label }))
  attributes['longstack.delayed_ms'] = micro(delayed)
  attributes['longstack.delayed_by'] = delayed < 0.2 ? [] : delayers(span, loop, at, delayed)
  if (span.runs.length > 0) attributes['longstack.runs'] = span.runs.map(([start, ms, type]) => [micro(start - span.start), micro(ms), type])
  return attributes
}

/** @param {import('./sites').PathWait[]} path */
function sums (path) {
  /** @type {Record<string, number>} */
  const waits = {}
  for (const { ms, subsystem = 'unknown' } of path) waits[subsystem] = (waits[subsystem] ?? 0) + ms
  for (const name of Object.keys(waits)) waits[name] = micro(waits[name])
  return waits
}

/** @param {Span} span @param {Surroundings['loop']} loop @param {Surroundings['at']} at @param {number} most ms */
function delayers (span, loop, at, most) {
  let rest = most // the share of many short runs in a part of their time is an estimate
  return loop.delayers(span, span.end, DELAYERS).map(({ span: other, ms: given, start, longest }) => {
    const ms = Math.min(given, rest)
    const frame = at(start, start + longest)
    rest -= ms
    return {
      ...(other === undefined ? {} : { spanId: other.spanId, name: other.name }),
      ms: micro(ms),
      ...(frame === undefined ? {} : { at: frame })
    }
  })
}

/** Sums of small figures are not exact. @param {number} ms @param {number} most */
function within (ms, most) {
  return Math.max(0, Math.min(ms, most))
}

/** @param {number} ms */
function micro (ms) {
  return Math.round(ms * 1000) / 1000
}

/**
 * @param {number} origin ms since 1970
 * @param {number} time ms after it
 * @returns {string} ns since 1970
 */
function unixNano (origin, time) {
  const us = Math.floor(origin * 1000) // below 2 ** 53, which ns are not
  const ns = Math.round(time * 1e6)
  const high = us + Math.floor(ns / 1000)
  const low = ns - Math.floor(ns / 1000) * 1000
  return `${high}${low < 10 ? '00' : low < 100 ? '0' : ''}${low}`
}

module.exports = { recordOf, unixNano }
