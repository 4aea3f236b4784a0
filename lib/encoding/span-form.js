'use strict'

// The two forms of a span, with OpenTelemetry's names and longstack's figures: a complete object for
// listeners and OTLP, and a line of a file (format 2, docs/spans.md), which refers to definitions of its
// resource, stacks and sites. Pure functions, also used by workers and commands.

const { placeText, endText } = require('../text')
const { lineOf, withAttributes } = require('./serialize')
const { MIN_RANGE, defined, toMicros, us } = require('./span-figures')
const { secondsAt, unixNano } = require('./times')

const MIN_MS = 0.0005 // below that a figure is zero, once rounded
const MIN_SHARE = 1 / 100 // of the duration, of a part that is listed
const UNANSWERED = -1 // in place of a time

/**
 * @typedef {import('./definitions').Definitions} Definitions
 * @typedef {import('./span-figures').Site} Site
 * @typedef {import('./span-figures').SiteRun} SiteRun
 * @typedef {import('./span-figures').SiteWait} SiteWait
 * @typedef {{ code: 'UNSET' | 'OK' | 'ERROR', message?: string }} Status
 * @typedef {{ name: string, time: number, attributes: Record<string, unknown> }} SpanEvent time in ms of the
 *   clock
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
 *
 * @typedef {object} Told of a span that has ended
 * @property {string} traceId
 * @property {string} spanId
 * @property {string | undefined} [parentSpanId]
 * @property {string} name
 * @property {'SERVER' | 'CLIENT' | 'INTERNAL'} kind
 * @property {number} origin ms since 1970 at which the clock was 0
 * @property {number} start ms of the clock
 * @property {number} end
 * @property {Status} status
 * @property {Record<string, unknown>} attributes
 * @property {Record<string, unknown> | undefined} [shared] attributes that many spans have, one object for
 *   equal ones
 * @property {SpanEvent[] | undefined} [events]
 *
 * @typedef {object} Delayer who delayed a span
 * @property {string | undefined} spanId undefined: code outside of any span
 * @property {string | undefined} name
 * @property {number} us
 * @property {number} max us
 * @property {string | undefined} at
 *
 * @typedef {object} Asked a query
 * @property {number} start ms after that of the span
 * @property {number} ms
 * @property {boolean} unanswered
 * @property {Site} site
 * @property {string | undefined} peer
 * @property {number} connection asyncId
 * @property {number} unsent ms
 * @property {number} out bytes, 0 or less: not known
 * @property {number} in likewise
 * @property {{ operation: string, system: string }} [operation]
 *
 * @typedef {[start: number, us: number, type: string, wait?: SiteWait]} Run a callback: microseconds after
 *   the start of the span, and which wait it ended
 *
 * @typedef {object} Figures of a span, in microseconds where nothing else is said
 * @property {string | undefined} trace the long stack of the place that made it
 * @property {number} duration ms
 * @property {number} run
 * @property {number} beside own code beside the path
 * @property {Record<string, number> | undefined} sums waits by subsystem of what ended them
 * @property {number} summed their sum; that of all waits is `waited`
 * @property {number} waited
 * @property {number} delayed
 * @property {number} delayedMax
 * @property {Delayer[] | undefined} delayers
 * @property {import('./span-figures').Delay[] | undefined} delays
 * @property {SiteWait[]} waits worst first
 * @property {SiteRun[] | undefined} ran likewise; undefined: it is not the outermost span of its process
 * @property {Asked[] | undefined} asked in order of start
 * @property {Run[] | undefined} runs in order
 */

/** A span that has ended, or is written while it is open. Its figures are computed when they are needed. */
class SpanForm {
  /** @type {SpanRecord | undefined} */
  #record
  /** @type {Figures | undefined} */
  #figures
  #compute
  #resource

  /** @param {Told} span @param {() => Figures} figures @param {Record<string, unknown>} resource */
  constructor (span, figures, resource) {
    this.span = span
    this.#compute = figures
    this.#resource = resource
  }

  /** Returns the record, the same object each time. @returns {SpanRecord} */
  record () {
    this.#record ??= recordOf(this.span, this.#known(), this.#resource)
    return this.#record
  }

  /** Returns the same span with other attributes. @param {Record<string, unknown>} attributes */
  with (attributes) {
    return new SpanForm({ ...this.span, attributes }, () => this.#known(), this.#resource)
  }

  #known () {
    this.#figures ??= this.#compute()
    return this.#figures
  }

  /**
   * Returns the span as a line of a file, behind those that define what it refers to. Figures are whole
   * microseconds, which V8 prints faster, beside the attributes, which stay what they are.
   * @param {Definitions} definitions of the file
   * @param {number} weight the part of all spans that is written, 1 where it stands for itself
   * @param {() => void} onReplaced called for each attribute that cannot be written
   */
  line (definitions, weight, onReplaced) {
    const { span } = this
    const figures = this.#known()
    const { trace, duration, sums, waited, delayed, delayedMax, delayers, delays, waits } = figures
    const { origin, traceId, spanId, parentSpanId, name, kind, status, events, shared } = span
    // All of it is read before JSON.stringify runs what the program may have put there.
    const line = lineOf({
      traceId,
      spanId,
      start: secondsAt(origin, span.start),
      duration: us(duration),
      parentSpanId,
      name,
      kind: kind === 'SERVER' ? undefined : kind,
      status: status.code === 'UNSET' ? undefined : status,
      source: definitions.sourceOf(this.#resource),
      stack: trace === undefined ? undefined : definitions.numberOfStack(trace),
      shared: shared === undefined ? undefined : definitions.numberOfShared(shared),
      attributes: weight === 1
        ? span.attributes
        : withAttributes(span.attributes, { 'longstack.sample_ratio': weight }),
      run: figures.run,
      beside: figures.beside === 0 ? undefined : figures.beside,
      wait: sums,
      waited: waited === figures.summed ? undefined : waited,
      delayed: delayed === 0 ? undefined : delayed,
      delayed_max: delayedMax > delayed ? delayedMax : undefined,
      delayed_by: delayers === undefined ? undefined : delayerLines(delayers, definitions),
      waits: waits.length === 0 ? undefined : listed(waits, duration, waitLine, definitions),
      asked: figures.asked?.map((question) => askedLine(question, definitions)),
      ran: figures.ran === undefined ? null : ranLines(figures.ran, duration, definitions),
      delays,
      runs: runNumbers(figures, definitions),
      events: events === undefined ? undefined : eventsOf(span)
    }, onReplaced)
    return definitions.takeNew() + line
  }

  // What outputs decide by.
  get ms () { return this.span.end - this.span.start }
  get failed () { return this.span.status.code === 'ERROR' }
  get traceId () { return this.span.traceId }
  get spanId () { return this.span.spanId }
}

/**
 * @param {Told} span
 * @param {Figures} figures
 * @param {Record<string, unknown>} resource
 * @returns {SpanRecord}
 */
function recordOf (span, figures, resource) {
  const { origin, traceId, spanId, parentSpanId, name, kind, status, events, shared } = span
  const { trace, beside, sums, delayed, delayedMax, waits, ran, delayers, delays, duration } = figures
  const startTimeUnixNano = unixNano(origin, span.start)
  const endTimeUnixNano = unixNano(origin, span.start, us(duration)) // as in a file
  const attributes = withAttributes(span.attributes, defined({
    ...shared,
    'longstack.run_ms': toMs(figures.run),
    'longstack.beside_ms': beside === 0 ? undefined : toMs(beside),
    'longstack.wait_ms': sumsInMs(sums),
    'longstack.waited_ms': toMs(figures.waited),
    'longstack.delayed_ms': toMs(delayed),
    'longstack.delayed_max_ms': delayedMax > delayed ? toMs(delayedMax) : undefined,
    'longstack.delayed_by': delayers === undefined ? [] : delayers.map(delayerOf),
    'longstack.delays': delays?.map((delay) => delay.map(toMs)),
    'longstack.runs': runLines(figures, String)
      ?.map(([start, micros, ...others]) => [toMs(start), toMs(micros), ...others]),
    'code.stacktrace': trace,
    'longstack.waits': listed(waits, duration, waitOf),
    'longstack.asked': figures.asked?.map(askedRecord),
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

/**
 * Returns the parts that matter, in another form.
 * @template {{ ms: number, delayed: number }} T
 * @template R
 * @param {T[]} parts worst first
 * @param {number} duration ms
 * @param {(part: T, definitions: any) => R} form
 * @param {Definitions} [definitions]
 * @returns {R[]}
 */
function listed (parts, duration, form, definitions) {
  return parts.filter((part) => isListed(part, duration)).map((part) => form(part, definitions))
}

/** @param {{ ms: number, delayed: number }} part @param {number} duration ms */
const isListed = ({ ms, delayed }, duration) => ms + delayed >= duration * MIN_SHARE

/** Returns the events of a span as they are written. @param {Told} span */
function eventsOf ({ origin, events = [] }) {
  return events.map(({ time, ...event }) => ({ ...event, timeUnixNano: unixNano(origin, time) }))
}

/** @param {Record<string, number> | undefined} sums in microseconds, by subsystem */
function sumsInMs (sums = {}) {
  /** @type {Record<string, number>} */
  const times = {}
  for (const subsystem of Object.keys(sums)) times[subsystem] = toMs(sums[subsystem])
  return times
}

/** @param {Delayer} delayer */
function delayerOf ({ spanId, name, us: micros, max, at: frame }) {
  return defined({ spanId, name, ms: toMs(micros), max: max > micros ? toMs(max) : undefined, at: frame })
}

/** @param {Delayer[]} delayers @param {Definitions} definitions */
function delayerLines (delayers, definitions) {
  return delayers.map(({ spanId, name, us: micros, max, at: frame }) => {
    if (spanId === undefined && max === micros && frame === undefined) return [micros]
    const line = [micros, spanId ?? 0, name === undefined ? 0 : definitions.numberOfName(name)]
    if (frame !== undefined) line.push(max, frame)
    else if (max > micros) line.push(max)
    return line
  })
}

/**
 * @template T
 * @typedef {[start: number, us: number, type: T, wait?: number]} RunLine
 */

/**
 * Returns the runs of a span with the numbers of their types.
 * @param {Figures} figures
 * @param {Definitions} definitions
 * @returns {number | RunLine<number>[] | undefined} the number of the type, where the span was one callback
 */
function runNumbers (figures, definitions) {
  const { runs, duration } = figures
  if (runs?.length === 1 && runs[0][0] === 0 && runs[0][1] === us(duration)) {
    return definitions.numberOfName(runs[0][2])
  }
  return runLines(figures, (name) => definitions.numberOfName(name))
}

/**
 * Returns the runs of a span, with the numbers of the listed waits that they ended.
 * @template T
 * @param {Figures} figures
 * @param {(type: string) => T} formOf
 * @returns {RunLine<T>[] | undefined}
 */
function runLines ({ runs, waits, duration }, formOf) {
  return runs?.map(([start, length, type, wait]) => {
    /** @type {RunLine<T>} */
    const line = [start, length, formOf(type)]
    if (wait !== undefined && isListed(wait, duration)) line.push(waits.indexOf(wait) + 1) // worst first
    return line
  })
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
    ...textsOf(site),
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
    until: wait.until === undefined ? undefined : definitions.numberOfName(wait.until),
    peer: wait.peer,
    request: wait.request === undefined ? undefined : definitions.numberOfName(wait.request)
  }
}

/**
 * Returns own code on a path as it is written: nothing where there is none of length.
 * @param {SiteRun[]} ran
 * @param {number} duration ms
 * @param {Definitions} definitions
 */
function ranLines (ran, duration, definitions) {
  const lines = listed(ran, duration, runLine, definitions)
  return lines.length === 0 ? undefined : lines
}

/** Returns own code likewise. @param {SiteRun} run */
function runOf ({ ms, count, site }) {
  return defined({ ms: toMicros(ms), count, ...textsOf(site) })
}

/** @param {SiteRun} run @param {Definitions} definitions */
function runLine ({ ms, count, site }, definitions) {
  const number = definitions.numberOfSite(site)
  if (count !== 1) return [us(ms), number ?? 0, count]
  return number === undefined ? [us(ms)] : [us(ms), number]
}

/** Returns a query as listeners get it. @param {Asked} question */
function askedRecord ({ start, ms, unanswered, site, peer, connection, unsent, out, in: read, operation }) {
  return defined({
    start: toMicros(start),
    ms: toMicros(ms),
    unanswered: unanswered || undefined,
    ...textsOf(site),
    peer,
    connection,
    unsent: us(unsent) > 0 ? toMicros(unsent) : undefined,
    out: out > 0 ? out : undefined,
    in: read > 0 ? read : undefined,
    ...operation
  })
}

/** Returns it as it is written to a file. @param {Asked} question @param {Definitions} definitions */
function askedLine (question, definitions) {
  const { start, ms, unanswered, site, peer, connection, unsent, out, in: read, operation } = question
  const line = [
    us(start),
    unanswered ? UNANSWERED : us(ms),
    definitions.numberOfSite(site) ?? 0,
    peer === undefined ? 0 : definitions.numberOfName(peer),
    connection,
    Math.max(0, us(unsent)),
    Math.max(0, out),
    Math.max(0, read),
    operation === undefined ? 0 : definitions.numberOfName(operation.operation),
    operation === undefined ? 0 : definitions.numberOfName(operation.system)
  ]
  while (line[line.length - 1] === 0) line.pop()
  return line
}

/** Returns a site as it is told. @param {Site} site */
function textsOf ({ at: place, callers, label }) {
  return { at: place && placeText(place), callers: callers?.map(placeText), label }
}

/** @param {number} [micros] */
const toMs = (micros = 0) => micros / 1000

module.exports = { SpanForm, textsOf }
