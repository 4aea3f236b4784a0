'use strict'

// A span as the record that is written: OpenTelemetry's names, and where the time went. Data in, data out.

const { subsystemOf } = require('../context/subsystems')

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
  attributes['longstack.wait_ms'] = waitsOf(span, waited)
  attributes['longstack.waited_ms'] = micro(waited)
  attributes['longstack.delayed_ms'] = micro(delayed)
  attributes['longstack.delayed_by'] = delayed < 0.2 ? [] : delayers(span, loop, at, delayed)
  attributes['longstack.idle_ms'] = micro(total - run - delayed - waited)
  if (span.idleUntil !== undefined) attributes['longstack.idle_until'] = bySubsystem(span.idleUntil)
  if (span.runs.length > 0) attributes['longstack.runs'] = span.runs.map(([start, ms, type]) => [micro(start - span.start), micro(ms), type])
  return attributes
}

/** @param {Span} span @param {number} most ms */
function waitsOf (span, most) {
  /** @type {Record<string, number>} */
  const waits = {}
  for (const { name, ms } of span.waits) if (ms >= 0.001) waits[name] = micro(Math.min(ms, most))
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

/** @param {Record<string, number>} byType ms */
function bySubsystem (byType) {
  /** @type {Record<string, number>} */
  const sums = {}
  for (const [type, ms] of Object.entries(byType)) {
    const name = subsystemOf(type) ?? type
    sums[name] = micro((sums[name] ?? 0) + ms)
  }
  return sums
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
