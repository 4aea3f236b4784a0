'use strict'

// The two forms of a span, with OpenTelemetry's names and longstack's figures: a complete object for
// listeners and OTLP, and a line of a file (format 2, docs/spans.md), which refers to definitions of its
// resource, stacks and sites. Pure functions, also used by workers and commands.

const { placeText, endText } = require('../text')
const { lineOf, withAttributes } = require('./serialize')
const { MIN_RANGE, defined, us } = require('./span-figures')
const { secondsAt, unixNano } = require('./times')

const MIN_MS = 0.0005 // smaller figures round to zero
const MIN_SHARE = 1 / 100 // fraction of the duration, for a listed part
const UNANSWERED = -1 // instead of a time

/**
 * @typedef {import('./definitions').Definitions} Definitions
 * @typedef {import('./span-figures').Site} Site
 * @typedef {import('./span-figures').SiteRun} SiteRun
 * @typedef {import('./span-figures').SiteWait} SiteWait
 * @typedef {{ code: 'UNSET' | 'OK' | 'ERROR', message?: string }} Status
 * @typedef {{ name: string, time: number, attributes: Record<string, unknown> }} SpanEvent time in ms of the
 *   clock
 *
 * @typedef {object} SpanRecord a span as passed to listeners
 * @property {string} traceId 32 hex digits
 * @property {string} spanId 16 hex digits
 * @property {string} [parentSpanId]
 * @property {string} name
 * @property {'SERVER' | 'CLIENT' | 'INTERNAL'} kind
 * @property {string} startTimeUnixNano decimal
 * @property {string} endTimeUnixNano decimal
 * @property {Status} status
 * @property {Record<string, any>} attributes OpenTelemetry's, and `longstack.run_ms` and the like, see
 *   docs/spans.md
 * @property {Array<{ name: string, timeUnixNano: string, attributes: Record<string, unknown> }>} [events]
 * @property {Record<string, unknown>} resource
 *
 * @typedef {object} Told data of an ended span
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
 * @property {Record<string, unknown> | undefined} [shared] attributes of many spans, the same object for
 *   equal ones
 * @property {SpanEvent[] | undefined} [events]
 *
 * @typedef {object} Delayer code that delayed a span
 * @property {string | undefined} spanId undefined: code outside of any span
 * @property {string | undefined} name
 * @property {number} us
 * @property {number} max us
 * @property {string | undefined} at
 *
 * @typedef {object} Asked a query
 * @property {number} start ms after the start of the span
 * @property {number} ms
 * @property {boolean} unanswered
 * @property {Site} site
 * @property {string | undefined} peer
 * @property {number} connection asyncId
 * @property {number} unsent ms
 * @property {number} out bytes, 0 or less if unknown
 * @property {number} in likewise
 * @property {{ operation: string, system: string }} [operation]
 *
 * @typedef {{ start: number, us: number, type: string, wait: SiteWait | undefined }} Run a callback: start in
 *   microseconds after the start of the span, and the wait that it ended
 *
 * @typedef {object} Figures of a span, in microseconds unless noted
 * @property {string | undefined} trace long stack of the place that created it
 * @property {number} duration ms
 * @property {number} run
 * @property {number} beside own code off the critical path
 * @property {Record<string, number> | undefined} sums waits by the subsystem that ended them
 * @property {number} summed their sum; that of all waits is `waited`
 * @property {number} waited
 * @property {number} delayed
 * @property {number} delayedMax
 * @property {Delayer[] | undefined} delayers
 * @property {import('./span-figures').Delay[] | undefined} delays
 * @property {SiteWait[]} waits worst first
 * @property {SiteRun[] | undefined} ran worst first; undefined unless it is the outermost span of its process
 * @property {Asked[] | undefined} asked in order of start
 * @property {Run[] | undefined} runs in order
 */

/** A span that has ended, or is written while open. */
class SpanForm {
  /** @type {SpanRecord | undefined} */
  #record
  #figures
  #resource

  /** @param {Told} span @param {Figures} figures @param {Record<string, unknown>} resource */
  constructor (span, figures, resource) {
    this.span = span
    this.#figures = figures
    this.#resource = resource
  }

  /** Returns the record, the same object each time. @returns {SpanRecord} */
  record () {
    this.#record ??= recordOf(this.span, this.#figures, this.#resource)
    return this.#record
  }

  /** Returns the same span with other attributes. @param {Record<string, unknown>} attributes */
  with (attributes) {
    return new SpanForm({ ...this.span, attributes }, this.#figures, this.#resource)
  }

  /**
   * Returns the span as a line of a file, after the definitions that it needs. Figures are whole
   * microseconds, which V8 prints faster, next to the unchanged attributes.
   * @param {Definitions} definitions of the file
   * @param {number} weight fraction of the spans that is written, 1 if the span represents only itself
   * @param {() => void} onReplaced called for each attribute that cannot be written
   */
  line (definitions, weight, onReplaced) {
    const { span } = this
    const figures = this.#figures
    const { trace, duration, sums, waited, delayed, delayedMax, delayers, delays, waits, ran } = figures
    const { origin, traceId, spanId, parentSpanId, name, kind, status, events, shared } = span
    // Everything is read before JSON.stringify runs code of the program.
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
      ran: ran === undefined ? null : unlessEmpty(listed(ran, duration, runLine, definitions)),
      delays,
      runs: callbackLines(figures, definitions),
      events: events === undefined ? undefined : eventsOf(span)
    }, onReplaced)
    return definitions.takeNew() + line
  }

  // Criteria of the outputs.
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
    'longstack.run_ms': toMs(figures.run ?? 0),
    'longstack.beside_ms': beside === 0 ? undefined : toMs(beside),
    'longstack.wait_ms': sumsInMs(sums),
    'longstack.waited_ms': toMs(figures.waited ?? 0),
    'longstack.delayed_ms': toMs(delayed ?? 0),
    'longstack.delayed_max_ms': delayedMax > delayed ? toMs(delayedMax) : undefined,
    'longstack.delayed_by': delayers === undefined ? [] : delayers.map(delayerOf),
    'longstack.delays': delays?.map((delay) => delay.map(toMs)),
    'longstack.runs': figures.runs?.map((run) => {
      const [start, micros, ...others] = callbackLine(run, figures, run.type)
      return [toMs(start), toMs(micros), ...others]
    }),
    'code.stacktrace': trace,
    'longstack.waits': listed(waits, duration, waitOf),
    'longstack.asked': figures.asked?.map(askedOf),
    'longstack.ran': ran === undefined ? undefined : listed(ran, duration, runOf)
  }))
  const tail = { name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
  /** @type {SpanRecord} */
  const record = { traceId, spanId, ...(parentSpanId !== undefined && { parentSpanId }), ...tail }
  if (events !== undefined) record.events = eventsOf(span)
  return record
}

/**
 * Returns the significant parts, each converted.
 * @template {{ ms: number, delayed: number }} T
 * @template R
 * @param {T[]} parts worst first
 * @param {number} duration ms
 * @param {(part: T, definitions: any) => R} form
 * @param {Definitions} [definitions]
 * @returns {R[]}
 */
function listed (parts, duration, form, definitions) {
  const forms = []
  for (const part of parts) if (isListed(part, duration)) forms.push(form(part, definitions))
  return forms
}

/** @template T @param {T[]} list @returns {T[] | undefined} */
const unlessEmpty = (list) => list.length === 0 ? undefined : list

/** @param {{ ms: number, delayed: number }} part @param {number} duration ms */
const isListed = ({ ms, delayed }, duration) => ms + delayed >= duration * MIN_SHARE

/** Returns the events of a span as written. @param {Told} span */
function eventsOf ({ origin, events = [] }) {
  return events.map(({ time, ...event }) => ({ ...event, timeUnixNano: unixNano(origin, time) }))
}

/** @param {Record<string, number> | undefined} sums in microseconds, by subsystem */
function sumsInMs (sums = {}) {
  /** @type {Record<string, number>} */
  const times = {}
  for (const subsystem of Object.keys(sums)) times[subsystem] = sums[subsystem] / 1000
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
 * Returns the runs of a span with the numbers of their types.
 * @param {Figures} figures
 * @param {Definitions} definitions
 * @returns {number | unknown[][] | undefined} number of the type if the span was a single callback
 */
function callbackLines (figures, definitions) {
  const { runs, duration } = figures
  if (runs?.length === 1 && runs[0].start === 0 && runs[0].us === us(duration)) {
    return definitions.numberOfName(runs[0].type)
  }
  return runs?.map((run) => callbackLine(run, figures, definitions.numberOfName(run.type)))
}

/**
 * Returns a callback as written, with the number of the listed wait that it ended.
 * @param {Run} run
 * @param {Figures} figures
 * @param {unknown} type its name or number
 * @returns {any[]}
 */
function callbackLine ({ start, us: micros, wait }, { waits, duration }, type) {
  if (wait === undefined || !isListed(wait, duration)) return [start, micros, type]
  return [start, micros, type, waits.indexOf(wait) + 1] // worst first
}

/** Returns a wait as passed to listeners. @param {SiteWait} wait */
function waitOf (wait) {
  const line = waitLine(wait)
  const { us: micros, count = 1, delayed, delayed_max: delayedMax, unproven, on, sent, beside } = line
  const { unsent, jobs, opening } = line
  return defined({
    ms: toMs(micros),
    count,
    delayed: toMs(delayed),
    delayed_max: toMs(delayedMax),
    unproven,
    on,
    sent,
    unsent: toMs(unsent),
    jobs,
    opening: toMs(opening),
    beside,
    ...textsOf(wait.site),
    until: endText(wait)
  })
}

/**
 * Returns a wait as written to a file.
 * @param {SiteWait} wait
 * @param {Definitions} [definitions] if omitted, only the figures are returned
 */
function waitLine (wait, definitions) {
  const { ms, count, delayed, delayedMax, unproven, sent, unsent, jobs, opening, beside, on, site } = wait
  return {
    us: us(ms),
    count: count === 1 ? undefined : count,
    delayed: delayed >= MIN_MS ? us(delayed) : undefined,
    delayed_max: delayedMax - delayed >= MIN_RANGE ? us(delayedMax) : undefined,
    unproven: unproven || undefined,
    on,
    sent: sent > 0 ? sent : undefined,
    unsent: unsent >= MIN_MS ? us(unsent) : undefined,
    jobs: jobs > 0 ? jobs : undefined,
    opening: opening >= MIN_MS ? us(opening) : undefined,
    beside: sent > 0 && beside > 0 ? beside : undefined,
    site: definitions?.numberOfSite(site),
    until: wait.until === undefined ? undefined : definitions?.numberOfName(wait.until),
    peer: wait.peer,
    request: wait.request === undefined ? undefined : definitions?.numberOfName(wait.request)
  }
}

/** Returns own code as passed to listeners. @param {SiteRun} run */
function runOf ({ ms, count, site }) {
  return defined({ ms: toMs(us(ms)), count, ...textsOf(site) })
}

/** @param {SiteRun} run @param {Definitions} definitions */
function runLine ({ ms, count, site }, definitions) {
  const number = definitions.numberOfSite(site)
  if (count !== 1) return [us(ms), number ?? 0, count]
  return number === undefined ? [us(ms)] : [us(ms), number]
}

/** Returns a query as passed to listeners. @param {Asked} question */
function askedOf ({ start, ms, unanswered, site, peer, connection, unsent, out, in: read, operation }) {
  return defined({
    start: toMs(us(start)),
    ms: toMs(us(ms)),
    unanswered: unanswered || undefined,
    ...textsOf(site),
    peer,
    connection,
    unsent: us(unsent) > 0 ? toMs(us(unsent)) : undefined,
    out: out > 0 ? out : undefined,
    in: read > 0 ? read : undefined,
    ...operation
  })
}

/** Returns a query as written to a file. @param {Asked} question @param {Definitions} definitions */
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

/** Returns a site as text. @param {Site} site */
function textsOf ({ at: place, callers, label }) {
  return { at: place && placeText(place), callers: callers?.map(placeText), label }
}

/** @param {number} [micros] */
const toMs = (micros) => micros === undefined ? undefined : micros / 1000

module.exports = { SpanForm, textsOf }
