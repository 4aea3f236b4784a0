'use strict'

// A span as it is told: OpenTelemetry's names, and where the time went. As an object for listeners and OTLP,
// with everything in it; as a line of a file (format 2, docs/spans.md) that refers to what the file already
// defines: its resource, stacks, and the sites of waits and runs.

const { lineOf, withAttributes } = require('../encoding/serialize')
const { endText, placeText } = require('../text')
const { MIN_RANGE, figuresOf } = require('./span-figures')
const { unixNano } = require('./unix-nano')

const MAX_SITES = 10 // of waits, and of own code, in one record
const MIN_MS = 0.0005 // below that a figure is zero, once rounded
const MIN_SHARE = 1 / 100 // of the duration, of a part that is listed

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./span').Status} Status
 * @typedef {import('./span-figures').Figures} Figures
 * @typedef {import('./span-figures').Surroundings} Surroundings
 * @typedef {import('./path-sites').Site} Site
 * @typedef {import('./wait-sites').SiteRun} SiteRun
 * @typedef {import('./wait-sites').SiteWait} SiteWait
 * @typedef {import('../encoding/definitions').Definitions} Definitions
 *
 * @typedef {object} SpanRecord a span, as it is given to listeners
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
 * A span that has ended, or is written while it is open. Its figures are computed once, when they are first
 * needed.
 */
class SpanWriting {
  /** @type {Figures | undefined} */
  #figures
  /** @type {SpanRecord | undefined} */
  #record
  #surroundings

  /** @param {Span} span @param {Surroundings} surroundings */
  constructor (span, surroundings) {
    this.span = span
    this.#surroundings = surroundings
  }

  /** Adds what all forms have to the span's own attributes, which the program does not change any more. */
  #measure () {
    if (this.#figures === undefined) {
      this.#figures = figuresOf(this.span, this.#surroundings)
      addFigures(this.span, this.#figures)
    }
    return this.#figures
  }

  /** Returns the record, the same object each time. @returns {SpanRecord} */
  record () {
    this.#record ??= recordOf(this.span, this.#measure(), this.#surroundings.resource)
    return this.#record
  }

  /**
   * Returns the span as a line of a file, behind those that define what it refers to.
   * @param {Definitions} definitions of the file
   * @param {number} weight the part of all spans that is written, 1 where it stands for itself
   * @param {() => void} onReplaced called for each attribute that cannot be written
   */
  line (definitions, weight, onReplaced) {
    const { trace, waits, ran, duration } = this.#measure()
    const { span } = this
    const { origin, traceId, spanId, parentSpanId, name, kind, status, events } = span
    const line = lineOf({
      traceId,
      spanId,
      parentSpanId,
      name,
      kind,
      startTimeUnixNano: unixNano(origin, span.start),
      endTimeUnixNano: unixNano(origin, span.end),
      status,
      source: definitions.sourceOf(this.#surroundings.resource),
      stack: trace === undefined ? undefined : definitions.numberOfStack(trace),
      attributes: weight === 1
        ? span.attributes
        : withAttributes(span.attributes, { 'longstack.sample_ratio': weight }),
      waits: waits.length === 0 ? undefined : listed(waits, duration, (wait) => waitLine(wait, definitions)),
      ran: ran === undefined ? undefined : listed(ran, duration, (run) => runLine(run, definitions)),
      events: events === undefined ? undefined : eventsOf(span)
    }, onReplaced)
    return definitions.takeNew() + line
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
function recordOf (span, { trace, waits, ran, duration }, resource) {
  const { origin, traceId, spanId, parentSpanId, name, kind, status, events } = span
  const startTimeUnixNano = unixNano(origin, span.start)
  const endTimeUnixNano = unixNano(origin, span.end)
  const attributes = withAttributes(span.attributes, defined({
    'code.stacktrace': trace,
    'longstack.waits': listed(waits, duration, waitOf),
    'longstack.ran': ran === undefined ? undefined : listed(ran, duration, runOf)
  }))
  const tail = { name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
  /** @type {SpanRecord} */
  const record = parentSpanId === undefined
    ? { traceId, spanId, ...tail }
    : { traceId, spanId, parentSpanId, ...tail }
  if (events !== undefined) record.events = eventsOf(span)
  return record
}

/** Returns the events of a span as they are written. @param {Span} span */
function eventsOf ({ origin, events = [] }) {
  return events.map(({ time, ...event }) => ({ ...event, timeUnixNano: unixNano(origin, time) }))
}

/** @param {Span} span @param {Figures} figures */
function addFigures ({ attributes, runs, start }, figures) {
  const { run, beside, sums, waited, delayed, delayedMax, delayers, delays } = figures
  attributes['longstack.run_ms'] = toMicros(run)
  if (beside >= MIN_MS) attributes['longstack.beside_ms'] = toMicros(beside)
  for (const subsystem of Object.keys(sums)) sums[subsystem] = toMicros(sums[subsystem])
  attributes['longstack.wait_ms'] = sums
  attributes['longstack.waited_ms'] = toMicros(waited)
  attributes['longstack.delayed_ms'] = toMicros(delayed)
  if (delayedMax > delayed) attributes['longstack.delayed_max_ms'] = toMicros(delayedMax)
  attributes['longstack.delayed_by'] = delayers.map(({ by: delayer, ms, max, at: frame }) => defined({
    spanId: delayer?.spanId,
    name: delayer?.name,
    ms: toMicros(ms),
    max: max > ms ? toMicros(max) : undefined,
    at: frame
  }))
  if (delays.length > 0) {
    attributes['longstack.delays'] = delays.map(({ start: delayStart, ms, certain }) => {
      return certain < ms ? [delayStart, ms, certain].map(toMicros) : [delayStart, ms].map(toMicros)
    })
  }
  if (runs.length > 0) {
    attributes['longstack.runs'] = runs.map(([runStart, ms, type]) => {
      return [toMicros(runStart - start), toMicros(ms), type]
    })
  }
}

/**
 * Returns the worst parts, those that matter, in another form.
 * @template {{ ms: number, delayed?: number }} T
 * @template R
 * @param {T[]} parts worst first
 * @param {number} duration ms
 * @param {(part: T) => R} form
 * @returns {R[]}
 */
function listed (parts, duration, form) {
  const result = []
  for (let i = 0; i < parts.length && i < MAX_SITES; i++) {
    const { ms, delayed = 0 } = parts[i]
    if (ms + delayed < duration * MIN_SHARE) break
    result.push(form(parts[i]))
  }
  return result
}

/** Returns a wait as listeners get it. @param {SiteWait} wait */
function waitOf (wait) {
  return defined({ ...figuresOfWait(wait), ...placeOf(wait.site), until: endText(wait.until) })
}

/** Returns a wait as it is written to a file. @param {SiteWait} wait @param {Definitions} definitions */
function waitLine (wait, definitions) {
  const figures = figuresOfWait(wait)
  if (wait.count === 1) figures.count = undefined
  return { ...figures, site: definitions.numberOfSite(wait.site), ...wait.until }
}

/**
 * Returns the figures of a wait; undefined where one is zero.
 * @param {SiteWait} wait
 * @returns {Record<string, any>}
 */
function figuresOfWait ({ ms, count, delayed, delayedMax, unproven, sent, unsent, beside, on: connections }) {
  return {
    ms: toMicros(ms),
    count,
    delayed: delayed >= MIN_MS ? toMicros(delayed) : undefined,
    delayed_max: delayedMax - delayed >= MIN_RANGE ? toMicros(delayedMax) : undefined,
    unproven: unproven || undefined,
    on: connections,
    sent: sent > 0 ? sent : undefined,
    unsent: unsent >= MIN_MS ? toMicros(unsent) : undefined,
    beside: sent > 0 && beside > 0 ? beside : undefined
  }
}

/** Returns own code likewise. @param {SiteRun} run */
function runOf ({ ms, count, site }) {
  return defined({ ms: toMicros(ms), count, ...placeOf(site) })
}

/** @param {SiteRun} run @param {Definitions} definitions */
function runLine ({ ms, count, site }, definitions) {
  return { ms: toMicros(ms), count: count === 1 ? undefined : count, site: definitions.numberOfSite(site) }
}

/** @param {Site} site */
function placeOf ({ at: place, callers, label }) {
  return { at: place && placeText(place), callers: callers?.map(placeText), label }
}

/** Removes the properties that are undefined. @template {object} T @param {T} object @returns {T} */
function defined (object) {
  for (const key of Object.keys(object)) {
    if (/** @type {any} */ (object)[key] === undefined) delete /** @type {any} */ (object)[key]
  }
  return object
}

/** Rounds to microseconds. @param {number} ms */
function toMicros (ms) {
  return Math.round(ms * 1000) / 1000
}

module.exports = { SpanWriting, toMicros }
