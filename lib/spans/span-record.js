'use strict'

// A span as it is written: OpenTelemetry's names, and where the time went. As an object for listeners, or as
// JSON for files (span-json.js); both are the same to the letter.

const { begin, text } = require('../encoding/bytes')
const { isRewritten } = require('../encoding/json')
const { MIN_MS, MIN_RANGE, isListed } = require('./path-json')
const { PREPARED_KEYS } = require('./prepared-attributes')
const { figuresOf } = require('./span-figures')
const { eventsOf, preparedOf, putSpan } = require('./span-json')
const { unixNano } = require('./unix-nano')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./span').Status} Status
 * @typedef {import('./span-figures').Figures} Figures
 * @typedef {import('./span-figures').Surroundings} Surroundings
 * @typedef {import('./wait-sites').SiteRun} SiteRun
 * @typedef {import('./wait-sites').SiteWait} SiteWait
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
 * @property {Record<string, any>} attributes OpenTelemetry's, and `longstack.run_ms` and its like, see
 *   docs/spans.md
 * @property {Array<{ name: string, timeUnixNano: string, attributes: Record<string, unknown> }>} [events]
 * @property {Record<string, unknown>} resource
 */

/**
 * Names of attributes that make a record's JSON more than the sum of its parts: those of longstack's figures,
 * which overwrite the program's, and that of the method that JSON.stringify calls.
 */
const specialNames = new Set([
  'toJSON', 'code.stacktrace', 'longstack.run_ms', 'longstack.waits', 'longstack.ran',
  'longstack.beside_ms', 'longstack.wait_ms', 'longstack.waited_ms', 'longstack.delayed_ms',
  'longstack.delayed_max_ms', 'longstack.delayed_by', 'longstack.delays',
  'longstack.runs', 'longstack.sample_ratio'
])

/**
 * A span that has ended, or is written while it is open. Its figures are computed once, when they are first
 * needed.
 */
class SpanWriting {
  /** @param {Span} span @param {Surroundings} surroundings */
  constructor (span, surroundings) {
    this.span = span
    this.surroundings = surroundings
    /** @type {Figures | undefined} */
    this.figures = undefined
    /** of the attributes without longstack's figures @type {string[]} */
    this.keys = []
    /** @type {SpanRecord | undefined} */
    this.object = undefined
  }

  measure () {
    if (this.figures === undefined) {
      this.keys = Object.keys(this.span.attributes)
      this.figures = figuresOf(this.span, this.surroundings)
    }
    return this.figures
  }

  /** Returns the record, the same object each time. @returns {SpanRecord} */
  record () {
    this.object ??= recordOf(this.span, this.measure(), this.surroundings.resource)
    return this.object
  }

  /**
   * Puts the record's JSON into the buffer of bytes.js.
   * @param {number} weight the part of all spans that is written, 1 where it stands for itself
   * @param {() => void} onReplaced called for each attribute that cannot be written
   * @returns {boolean} false: only JSON.stringify can make it
   */
  put (weight, onReplaced) {
    const figures = this.measure()
    if (isRewritten()) return false
    for (let i = preparedOf(this.span) === undefined ? 0 : PREPARED_KEYS; i < this.keys.length; i++) {
      if (specialNames.has(this.keys[i])) return false
    }
    begin()
    putSpan(this.span, this.keys, figures, this.surroundings.resource, weight, onReplaced)
    return true
  }

  /**
   * Returns the record's JSON as a text of bytes, undefined where only JSON.stringify can make it.
   * @param {number} weight
   * @param {() => void} onReplaced
   * @returns {string | undefined}
   */
  json (weight, onReplaced) {
    return this.put(weight, onReplaced) ? text() : undefined
  }

  // What outputs decide by.
  get ms () { return this.span.end - this.span.start }
  get failed () { return this.span.status.code === 'ERROR' }
  get traceId () { return this.span.traceId }
}

/**
 * @param {Span} span
 * @param {Figures} figures
 * @param {Record<string, unknown>} resource
 * @returns {SpanRecord}
 */
function recordOf (span, figures, resource) {
  const { origin, traceId, spanId, parentSpanId, name, kind, status, events } = span
  const startTimeUnixNano = unixNano(origin, span.start)
  const endTimeUnixNano = unixNano(origin, span.end)
  const attributes = addFigures(span, figures)
  const tail = { name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
  /** @type {SpanRecord} */
  const record = parentSpanId === undefined
    ? { traceId, spanId, ...tail }
    : { traceId, spanId, parentSpanId, ...tail }
  if (events !== undefined) record.events = eventsOf(span)
  return record
}

/**
 * Adds to the span's own attributes, which are read no more after this.
 * @param {Span} span
 * @param {Figures} figures
 */
function addFigures ({ attributes, runs, start }, figures) {
  const { trace, run, duration, waits, ran, beside, sums, waited } = figures
  const { delayed, delayedMax, delayers, delays } = figures
  if (trace !== undefined) attributes['code.stacktrace'] = trace
  attributes['longstack.run_ms'] = toMicros(run)
  attributes['longstack.waits'] = listed(waits, duration).map(waitOf)
  if (ran !== undefined) attributes['longstack.ran'] = listed(ran, duration).map(runOf)
  if (beside >= MIN_MS) attributes['longstack.beside_ms'] = toMicros(beside)
  attributes['longstack.wait_ms'] = rounded(sums)
  attributes['longstack.waited_ms'] = toMicros(waited)
  attributes['longstack.delayed_ms'] = toMicros(delayed)
  if (delayedMax > delayed) attributes['longstack.delayed_max_ms'] = toMicros(delayedMax)
  attributes['longstack.delayed_by'] = delayers.map(({ by: delayer, ms, max, at: frame }) => ({
    ...(delayer === undefined ? {} : { spanId: delayer.spanId, name: delayer.name }),
    ms: toMicros(ms),
    ...(max > ms ? { max: toMicros(max) } : {}),
    ...(frame === undefined ? {} : { at: frame })
  }))
  if (delays.length > 0) {
    attributes['longstack.delays'] = delays.map(({ start, ms, certain }) => {
      return certain < ms ? [start, ms, certain].map(toMicros) : [start, ms].map(toMicros)
    })
  }
  if (runs.length > 0) {
    attributes['longstack.runs'] = runs.map(([runStart, ms, type]) => {
      return [toMicros(runStart - start), toMicros(ms), type]
    })
  }
  return attributes
}

/**
 * Returns the parts that are listed.
 * @template {{ ms: number, delayed?: number }} T
 * @param {T[]} parts worst first
 * @param {number} duration ms
 * @returns {T[]}
 */
function listed (parts, duration) {
  let count = 0
  while (isListed(parts, count, duration)) count++
  return parts.slice(0, count)
}

/** Returns a wait as it is written. @param {SiteWait} wait */
function waitOf (wait) {
  const { ms, count, delayed, delayedMax, site, until, unproven, sent, unsent, beside } = wait
  const { on: connections } = wait
  return {
    ms: toMicros(ms),
    count,
    ...(delayed >= MIN_MS ? { delayed: toMicros(delayed) } : {}),
    ...(delayedMax - delayed >= MIN_RANGE ? { delayed_max: toMicros(delayedMax) } : {}),
    ...placeOf(site),
    ...(until === undefined ? {} : { until }),
    ...(unproven ? { unproven } : {}),
    ...(connections === undefined ? {} : { on: connections }),
    ...(sent > 0 ? { sent } : {}),
    ...(unsent >= MIN_MS ? { unsent: toMicros(unsent) } : {}),
    ...(sent > 0 && beside > 0 ? { beside } : {})
  }
}

/** Returns own code as it is written. @param {SiteRun} run */
function runOf ({ ms, count, site }) {
  return { ms: toMicros(ms), count, ...placeOf(site) }
}

/** @param {import('./path-sites').Site} site */
function placeOf ({ at: frame, callers, label }) {
  return {
    ...(frame === undefined ? {} : { at: frame }),
    ...(callers === undefined ? {} : { callers }),
    ...(label === undefined ? {} : { label })
  }
}

/** @param {Record<string, number>} sums ms by name */
function rounded (sums) {
  /** @type {Record<string, number>} */
  const result = {}
  for (const name of Object.keys(sums)) result[name] = toMicros(sums[name])
  return result
}

/** Rounds to microseconds. @param {number} ms */
function toMicros (ms) {
  return Math.round(ms * 1000) / 1000
}

module.exports = { SpanWriting, toMicros }
