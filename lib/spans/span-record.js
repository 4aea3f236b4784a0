'use strict'

// A span as it is told: OpenTelemetry's names, and where the time went. As an object for listeners and OTLP,
// with everything in it; as a line of a file (format 2, docs/spans.md) that refers to what the file already
// defines: its resource, stacks, and the sites of waits and runs.

const { isNativeError } = require('node:util').types
const { lineOf, withAttributes } = require('../encoding/serialize')
const { askedLines, askedRecords, moreAsked } = require('./asked')
const { spanResource } = require('./outputs')
const { textsOf } = require('./path-sites')
const { cutUrlCredentials, endText } = require('../text')
const { MIN_RANGE, appended, defined, figuresOf, toMicros, us } = require('./span-figures')
const { secondsAt, unixNano } = require('./wall-clock')
const { own } = require('../objects')
const { messageOf } = require('../warnings')
const ids = require('../encoding/ids')

const MAX_SITES = 10 // of waits, and of own code, in one record
const MIN_MS = 0.0005 // below that a figure is zero, once rounded
const MIN_SHARE = 1 / 100 // of the duration, of a part that is listed

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./span').Status} Status
 * @typedef {import('./span-figures').Figures} Figures
 * @typedef {import('./span-figures').Surroundings} Surroundings
 * @typedef {import('./wait-sites').SiteRun} SiteRun
 * @typedef {import('./wait-sites').Path['waits'][number]} SiteWait
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
  /** @type {import('./span-figures').Figures | undefined} */
  #figures
  #surroundings

  /** @param {Span} span @param {Surroundings} surroundings */
  constructor (span, surroundings) {
    this.span = span
    this.#surroundings = surroundings
  }

  /** Returns the record, the same object each time. @returns {SpanRecord} */
  record () {
    this.#record ??= recordOf(this.span, this.figures, this.#surroundings)
    return this.#record
  }

  get figures () {
    this.#figures ??= figuresOf(this.span, this.#surroundings)
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
    const { figures, span } = this
    const { loop } = this.#surroundings
    const { trace, duration, sums, waited, delayed, delayedMax, delayers, delays, path } = figures
    const { origin, traceId, spanId, parentSpanId, name, kind, status, events, shared } = span
    const { longestRuns: runs } = span
    const more = moreAsked(span)
    // All of it is read before JSON.stringify runs what the program may have put there.
    const line = lineOf({
      traceId,
      spanId,
      start: secondsAt(origin, span.start),
      duration: us(span.end - span.start),
      parentSpanId,
      name,
      kind: kind === 'SERVER' ? undefined : kind,
      status: status.code === 'UNSET' ? undefined : status,
      source: definitions.sourceOf(this.#surroundings.resource),
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
      waits: path.waits.length === 0 ? undefined : listed(path.waits, duration, waitLine, definitions),
      asked: askedLines(span, definitions),
      asked_more: more === undefined ? undefined : [more.count, us(more.ms)],
      ran: path.ran === undefined ? null : ranLines(path.ran, duration, definitions),
      delays,
      runs: runs === undefined ? undefined : runNumbers(span, runs, path, loop.zero, definitions),
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
 * @param {Surroundings} surroundings
 * @returns {SpanRecord}
 */
function recordOf (span, figures, { resource, loop: { zero } }) {
  const { origin, traceId, spanId, parentSpanId, name, kind, status, events, shared, longestRuns } = span
  const { trace, beside, sums, delayed, delayedMax, path, delayers, delays, duration } = figures
  const startTimeUnixNano = unixNano(origin, span.start)
  const endTimeUnixNano = unixNano(origin, span.start, us(span.end - span.start)) // as in a file
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
    'longstack.runs': longestRuns === undefined
      ? undefined
      : runLines(span, longestRuns, path, zero, String)
        ?.map(([start, micros, ...others]) => [toMs(start), toMs(micros), ...others]),
    'code.stacktrace': trace,
    'longstack.waits': listed(path.waits, duration, waitOf),
    'longstack.asked': askedRecords(span),
    'longstack.asked_more': moreAsked(span),
    'longstack.ran': path.ran === undefined ? undefined : listed(path.ran, duration, runOf)
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
 * Returns the worst parts, those that matter, in another form.
 * @template {{ ms: number, delayed: number }} T
 * @template R
 * @param {T[]} parts worst first
 * @param {number} duration ms
 * @param {(part: T, definitions: any) => R} form
 * @param {Definitions} [definitions]
 * @returns {R[]}
 */
function listed (parts, duration, form, definitions) {
  return parts.slice(0, MAX_SITES).filter(({ ms, delayed }) => ms + delayed >= duration * MIN_SHARE)
    .map((part) => form(part, definitions))
}

/** Returns the events of a span as they are written. @param {Span} span */
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

/** @param {import('./span-figures').Delayer} delayer */
function delayerOf ({ spanId, name, us: micros, max, at: frame }) {
  return defined({ spanId, name, ms: toMs(micros), max: max > micros ? toMs(max) : undefined, at: frame })
}

/** @param {import('./span-figures').Delayer[]} delayers @param {Definitions} definitions */
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
 * @param {Span} span
 * @param {import('./recent-runs').LongestRuns} runs
 * @param {import('./wait-sites').Path} path
 * @param {number} zero when the counters of LoopTime began
 * @param {Definitions} definitions
 * @returns {number | RunLine<number>[] | undefined} the number of the type, where the span was one callback
 */
function runNumbers (span, runs, path, zero, definitions) {
  const { count, starts: [start], lengths: [length], types: [type] } = runs
  const isOne = count === 1 && start === span.start && us(length) === us(span.end - start)
  if (isOne) return definitions.numberOfName(type)
  return runLines(span, runs, path, zero, (name) => definitions.numberOfName(name))
}

/**
 * Returns the runs of a span, in microseconds from its start, with the listed wait that each ended.
 * @template T
 * @param {Span} span
 * @param {import('./recent-runs').LongestRuns} runs
 * @param {import('./wait-sites').Path} path
 * @param {number} zero when the counters of LoopTime began
 * @param {(type: string) => T} formOf
 * @returns {RunLine<T>[] | undefined}
 */
function runLines ({ start, end }, { count, starts, lengths, types }, path, zero, formOf) {
  /** @type {RunLine<T>[] | undefined} */
  let lines
  let next = path.steps.length - 1
  for (let i = 0; i < count; i++) {
    /** @type {RunLine<T>} */
    const line = [us(starts[i] - start), us(lengths[i]), formOf(types[i])]
    let longest = -1 // of those between this run and the one before
    for (; next >= 0 && path.steps[next].until < starts[i] - zero + lengths[i]; next--) {
      if (longest === -1 || path.steps[next].ms > path.steps[longest].ms) longest = next
    }
    const wait = longest === -1 ? 0 : numberOfWait(path, path.merged[longest], end - start)
    if (wait > 0) line.push(wait)
    lines = appended(lines, line)
  }
  return lines
}

/**
 * Returns which of the listed waits one is.
 * @param {import('./wait-sites').Path} path
 * @param {SiteWait} wait
 * @param {number} duration ms
 * @returns {number} from 1; 0: none
 */
function numberOfWait ({ waits }, wait, duration) {
  const index = waits.indexOf(wait)
  return index < MAX_SITES && wait.ms + wait.delayed >= duration * MIN_SHARE ? index + 1 : 0
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

/** @param {number} [micros] */
const toMs = (micros = 0) => micros / 1000

// Errors as events of spans, in OpenTelemetry's terms.

const MAX_EVENTS = 32 // errors of one span

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
  span.attributes['error.type'] ??= type
  events.push({
    name: 'exception',
    time,
    attributes: defined({
      'exception.type': type, 'exception.message': message, 'exception.stacktrace': stacktrace
    })
  })
}

/**
 * Describes an error; what is no Error has no stack.
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

// A blocking callback as a record among the spans. One that is written while it still runs is written again
// when it has ended, under the same id: readers use the last.

/**
 * @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {import('../blocked/blocking-callback').BlockingCallback} BlockingCallback
 */

/** @type {Status} */
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
 * Returns a record among the spans that is none of the program's.
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

module.exports = { SpanWriting, addException, blockedRecord, describeException, internalRecord }
