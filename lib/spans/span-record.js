'use strict'

// A span as it is told: OpenTelemetry's names, and where the time went. As an object for listeners and OTLP,
// with everything in it; as a line of a file (format 2, docs/spans.md) that refers to what the file already
// defines: its resource, stacks, and the sites of waits and runs.

const { lineOf, withAttributes } = require('../encoding/serialize')
const { endText, placeText } = require('../text')
const { MIN_RANGE, appended, figuresOf, toMicros, us } = require('./span-figures')
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

/** A span that has ended, or is written while it is open. Its figures are computed when they are needed. */
class SpanWriting {
  /** @type {SpanRecord | undefined} */
  #record
  #surroundings

  /** @param {Span} span @param {Surroundings} surroundings */
  constructor (span, surroundings) {
    this.span = span
    this.#surroundings = surroundings
  }

  /** Returns the record, the same object each time. @returns {SpanRecord} */
  record () {
    if (this.#record === undefined) {
      const figures = figuresOf(this.span, this.#surroundings)
      this.#record = recordOf(this.span, figures, this.#surroundings.resource)
    }
    return this.#record
  }

  /**
   * Returns the span as a line of a file, behind those that define what it refers to. Figures beside the
   * attributes are whole microseconds, which V8 prints faster.
   * @param {Definitions} definitions of the file
   * @param {number} weight the part of all spans that is written, 1 where it stands for itself
   * @param {() => void} onReplaced called for each attribute that cannot be written
   */
  line (definitions, weight, onReplaced) {
    const { span } = this
    const figures = figuresOf(span, this.#surroundings)
    const { trace, duration, delays, path } = figures
    const { origin, traceId, spanId, parentSpanId, name, kind, status, events, shared } = span
    const { longestRuns: runs } = span
    // All of it is read before JSON.stringify runs what the program may have put there.
    const line = lineOf({
      traceId,
      spanId,
      parentSpanId,
      name,
      kind,
      startTimeUnixNano: unixNano(origin, span.start),
      endTimeUnixNano: unixNano(origin, span.end),
      status: status.code === 'UNSET' ? undefined : status,
      source: definitions.sourceOf(this.#surroundings.resource),
      stack: trace === undefined ? undefined : definitions.numberOfStack(trace),
      shared: shared === undefined ? undefined : definitions.numberOfShared(shared),
      attributes: attributesOfLine(span, figures, weight),
      waits: path.waitCount === 0
        ? undefined
        : listed(path.waits, path.waitCount, duration, waitLine, definitions),
      ran: path.ranCount < 0 ? undefined : listed(path.ran, path.ranCount, duration, runLine, definitions),
      delays,
      runs: runs === undefined ? undefined : runLines(runs, span.start, definitions),
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
function recordOf (span, figures, resource) {
  const { origin, traceId, spanId, parentSpanId, name, kind, status, events, shared, runs } = span
  const { trace, run, sums, waited, delayed, delayedMax, path, delayers, delays, duration } = figures
  const startTimeUnixNano = unixNano(origin, span.start)
  const endTimeUnixNano = unixNano(origin, span.end)
  const attributes = withAttributes(span.attributes, defined({
    ...shared,
    'longstack.run_ms': toMicros(run),
    'longstack.beside_ms': path.beside >= MIN_MS ? toMicros(path.beside) : undefined,
    'longstack.wait_ms': { ...sums },
    'longstack.waited_ms': toMicros(waited),
    'longstack.delayed_ms': toMicros(delayed),
    'longstack.delayed_max_ms': delayedMax > delayed ? toMicros(delayedMax) : undefined,
    'longstack.delayed_by': delayers === undefined ? [] : delayers.map((delayer) => defined({ ...delayer })),
    'longstack.delays': delays?.map((delay) => delay.map((micros = 0) => micros / 1000)),
    'longstack.runs': runs.length === 0
      ? undefined
      : runs.map(([start, ms, type]) => [toMicros(start - span.start), toMicros(ms), type]),
    'code.stacktrace': trace,
    'longstack.waits': listed(path.waits, path.waitCount, duration, waitOf),
    'longstack.ran': path.ranCount < 0 ? undefined : listed(path.ran, path.ranCount, duration, runOf)
  }))
  const tail = { name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
  /** @type {SpanRecord} */
  const record = parentSpanId === undefined
    ? { traceId, spanId, ...tail }
    : { traceId, spanId, parentSpanId, ...tail }
  if (events !== undefined) record.events = eventsOf(span)
  return record
}

/**
 * Returns the attributes that are written with a span itself: what is zero is left out.
 * @param {Span} span that has ended, whose attributes nobody reads any more
 * @param {Figures} figures
 * @param {number} weight
 */
function attributesOfLine ({ attributes, kind }, figures, weight) {
  const { run, sums, summed, waited, delayed, delayedMax, delayers, path: { beside } } = figures
  const isWhole = kind === 'INTERNAL' // the program may have taken the names
  attributes['longstack.run_ms'] = toMicros(run)
  if (beside >= MIN_MS) attributes['longstack.beside_ms'] = toMicros(beside)
  if (isWhole || sums !== undefined) attributes['longstack.wait_ms'] = sums ?? {}
  if (isWhole || us(waited) !== summed) attributes['longstack.waited_ms'] = toMicros(waited)
  if (isWhole || us(delayed) !== 0) attributes['longstack.delayed_ms'] = toMicros(delayed)
  if (delayedMax > delayed) attributes['longstack.delayed_max_ms'] = toMicros(delayedMax)
  if (isWhole || delayers !== undefined) attributes['longstack.delayed_by'] = delayers ?? []
  return weight === 1 ? attributes : withAttributes(attributes, { 'longstack.sample_ratio': weight })
}

/**
 * Returns the worst parts, those that matter, in another form.
 * @template {{ ms: number, delayed: number }} T
 * @template R
 * @param {T[]} parts worst first
 * @param {number} count
 * @param {number} duration ms
 * @param {(part: T, definitions: any) => R} form
 * @param {Definitions} [definitions]
 * @returns {R[]}
 */
function listed (parts, count, duration, form, definitions) {
  /** @type {R[] | undefined} */
  let result
  for (let i = 0; i < count && i < MAX_SITES; i++) {
    if (parts[i].ms + parts[i].delayed < duration * MIN_SHARE) break
    result = appended(result, form(parts[i], definitions))
  }
  return result ?? []
}

/** Returns the events of a span as they are written. @param {Span} span */
function eventsOf ({ origin, events = [] }) {
  return events.map(({ time, ...event }) => ({ ...event, timeUnixNano: unixNano(origin, time) }))
}

/**
 * @param {import('./longest-runs').LongestRuns} runs
 * @param {number} zero start of the span
 * @param {Definitions} definitions
 */
function runLines ({ count, starts, lengths, types }, zero, definitions) {
  let lines
  for (let i = 0; i < count; i++) {
    lines = appended(lines, [us(starts[i] - zero), us(lengths[i]), definitions.numberOfType(types[i])])
  }
  return lines
}

/** Returns a wait as listeners get it. @param {SiteWait} wait */
function waitOf (wait) {
  const { ms, count, delayed, delayedMax, unproven, sent, unsent, beside, on, site } = wait
  return defined({
    ms: toMicros(ms),
    count,
    delayed: delayed >= MIN_MS ? toMicros(delayed) : undefined,
    delayed_max: delayedMax - delayed >= MIN_RANGE ? toMicros(delayedMax) : undefined,
    unproven: unproven || undefined,
    on,
    sent: sent > 0 ? sent : undefined,
    unsent: unsent >= MIN_MS ? toMicros(unsent) : undefined,
    beside: sent > 0 && beside > 0 ? beside : undefined,
    ...placeOf(site),
    until: endText(wait)
  })
}

/** Returns it as it is written to a file. @param {SiteWait} wait @param {Definitions} definitions */
function waitLine (wait, definitions) {
  const { ms, count, delayed, delayedMax, unproven, sent, unsent, beside, on, site } = wait
  return {
    us: us(ms),
    count: count === 1 ? undefined : count,
    delayed: delayed >= MIN_MS ? us(delayed) : undefined,
    delayed_max: delayedMax - delayed >= MIN_RANGE ? us(delayedMax) : undefined,
    unproven: unproven || undefined,
    on,
    sent: sent > 0 ? sent : undefined,
    unsent: unsent >= MIN_MS ? us(unsent) : undefined,
    beside: sent > 0 && beside > 0 ? beside : undefined,
    site: definitions.numberOfSite(site),
    until: wait.until,
    peer: wait.peer,
    request: wait.request
  }
}

/** Returns own code likewise. @param {SiteRun} run */
function runOf ({ ms, count, site }) {
  return defined({ ms: toMicros(ms), count, ...placeOf(site) })
}

/** @param {SiteRun} run @param {Definitions} definitions */
function runLine ({ ms, count, site }, definitions) {
  return { us: us(ms), count: count === 1 ? undefined : count, site: definitions.numberOfSite(site) }
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

module.exports = { SpanWriting }
