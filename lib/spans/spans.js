'use strict'

// The room of spans: begins and ends them, keeps those that are open, and hands what has ended to listeners and sinks.
// Who makes a span says what it is about (requests/http1.js, trace.span); where its time goes is told by hooks/async-hooks.js
// through LoopTime. Everything here runs guarded.

const { performance } = require('node:perf_hooks')

const { Span } = require('./span')
const { allOpen, identityAt, spanAt } = require('./identities')
const { blockedRecord } = require('./blocked-record')
const { Writing } = require('./span-record')
const { activeSpanContext } = require('./otel-context')

const OPEN = 100_000 // spans kept while they are open; more than that are counted, and not written
const wallClock = Date.now // programs replace it in their tests
const EVENTS = 32 // errors of one span
const MOST_WAITING = 512 // spans that have ended and are not written yet
const CLOCKS_MS = 10 // between two looks at the clock of the world
const LEAST_WAIT = 0.001 // ms
/** @type {End} */
const NO_END = {}
/** @type {import('./wait-sites').PathWait[]} */
const NO_WAITS = []
const DRIFT = 5 // ms between the two clocks that are not corrected

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./span').SpanKind} SpanKind
 * @typedef {import('./span-record').SpanRecord} SpanRecord
 *
 * @typedef {object} Remote where a trace comes from
 * @property {string} traceId
 * @property {string} spanId
 * @property {boolean} sampled
 *
 * @typedef {object} End
 * @property {'OK' | 'ERROR'} [code]
 * @property {string} [message]
 * @property {string} [end] `longstack.end`: aborted, timeout, upgraded
 * @property {unknown} [error]
 * @property {Record<string, unknown>} [attributes]
 */

/**
 * @param {object} deps
 * @param {import('./loop-time').LoopTime} deps.loop
 * @param {() => number} deps.now
 * @param {() => { chain: number, run: number }} deps.step that runs now
 * @param {() => void} deps.settle who rejected is known from now on
 * @param {() => number} deps.spanNumber of the span that runs now, 0 for none
 * @param {(span: Span) => import('./wait-sites').PathWait[]} deps.pathOf its waits in words
 * @param {(span: Span) => string | undefined} deps.stack the long stack of the place that made a span
 * @param {(error: unknown) => { type: string, message: string, stacktrace?: string } | undefined} deps.describe an error
 * @param {(record: SpanRecord, atOnce?: boolean) => void} deps.tell listeners
 * @param {() => boolean} deps.listening is there one?
 * @param {() => ReturnType<typeof import('../sinks/sinks').createSinks> | undefined} deps.sinks
 * @param {(start: number, end: number) => string | undefined} deps.frameAt the innermost frame seen inside a blocked run
 * @param {() => Record<string, unknown>} deps.resource
 * @param {(work: () => void) => boolean} deps.schedule has it done right before the event loop polls next; false: nothing can be put off now
 */
function createSpans ({ loop, now, step, settle, spanNumber, pathOf, stack, describe, tell, listening, sinks, frameAt, resource, schedule }) {
  let openCount = 0
  let ended = 0
  let dropped = 0
  let origin = performance.timeOrigin + performance.now() - now()
  let originTime = -Infinity
  /** requests that have ended: what one iteration brings is written in one go, which costs half @type {Span[]} */
  let waiting = []

  /** The clock of the world may be set, now() never is. */
  function originNow (/** @type {number} */ time) {
    if (time - originTime < CLOCKS_MS) return origin
    originTime = time
    const before = now()
    const seen = wallClock() - before
    if (Math.abs(seen - origin) > DRIFT && now() - before < 1) origin = seen // else this thread stood still in between
    return origin
  }

  /**
   * Begins a span. Its parent is what the caller was told by another process, else OpenTelemetry's active span where that
   * is the inner one, else the running span.
   * @param {object} given
   * @param {string} given.name
   * @param {SpanKind} given.kind
   * @param {Remote} [given.remote]
   * @param {Context} [given.context] the place that makes it; default the running one
   * @param {number} [given.since] ms, where it began before
   * @returns {Span}
   */
  function start ({ name, kind, remote, context, since }) {
    const { chain } = step()
    const time = now()
    loop.account(time)
    const number = kind === 'SERVER' ? 0 : context === undefined ? spanNumber() : context.spanNumber
    const found = number === 0 ? undefined : identityAt(number)
    const outer = activeSpanContext()
    const above = outer !== undefined && outer.spanId !== found?.outerId ? outer : found
    const cause = remote ?? above
    const parent = number === 0 ? undefined : spanAt(number)
    const span = new Span({
      name,
      kind,
      traceId: cause?.traceId,
      parentSpanId: cause?.spanId,
      sampled: cause?.sampled ?? true,
      parent,
      start: since ?? time,
      origin: parent === undefined ? originNow(time) : parent.origin,
      loop
    })
    span.outerId = outer?.spanId
    span.chain = context === undefined ? chain : context.chain
    if (openCount < OPEN) {
      openCount++
    } else {
      span.isCounted = false
      dropped++
    }
    return span
  }

  /** Its first run has just begun: what it took to get there is not its own. @param {Span} span */
  function begin (span) {
    if (span.run === 0) span.begin(loop)
  }

  /** @param {Span} span @param {End} [given] @param {number} [when] ms, where that was before now */
  function end (span, given = NO_END, when = undefined) {
    if (span.ended) return
    const { code, message, end: how, attributes } = given
    step() // in light mode that may begin a run
    const time = when ?? now()
    if (attributes !== undefined) Object.assign(span.attributes, attributes)
    if (how !== undefined) span.attributes['longstack.end'] = how
    if (code !== undefined) span.status = message === undefined ? { code } : { code, message }
    if (code === 'ERROR') settle()
    const reason = given.error ?? (code === 'ERROR' ? span.rejection?.deref() : undefined)
    if (reason !== undefined || Object.hasOwn(given, 'error')) recordException(span, reason)
    close(span, time)
    if (!span.isCounted) return span.forget()
    openCount--
    if (span.kind !== 'INTERNAL' && putOff(span)) return // its attributes hold nothing that may change
    written(span)
    if (openCount === 0 && waiting.length === 0) loop.forget()
  }

  /** @param {Span} span @returns {boolean} it is written when the iteration is over */
  function putOff (span) {
    if (waiting.length === 0 && !schedule(drain)) return false
    if (waiting.push(span) >= MOST_WAITING) drain()
    return true
  }

  /** Writes those that wait. */
  function drain () {
    const spans = waiting
    waiting = []
    for (let i = 0; i < spans.length; i++) written(spans[i])
    if (openCount === 0) loop.forget()
  }

  /** @param {Span} span that has ended */
  function written (span) {
    try {
      write(span)
    } finally {
      span.forget()
    }
  }

  /** Its figures stand. @param {Span} span @param {number} time ms */
  function close (span, time) {
    loop.account(time)
    const { run } = step()
    span.finish(time, loop, run !== 0 && spanAt(spanNumber())?.log === span.log ? run : 0)
    loop.ends(span)
  }

  /** @param {Span} span that has ended */
  function write (span) {
    ended++
    span.path ??= span.waited < LEAST_WAIT ? NO_WAITS : pathOf(span)
    const writing = new Writing(span, { loop, resource: resource(), stack, frameAt })
    sinks()?.write(writing)
    if (listening()) tell(writing.record())
  }

  /** An error belongs to a span. @param {Span} span @param {unknown} error */
  function recordException (span, error) {
    const found = describe(error)
    if (found === undefined || span.ended) return
    const { type, message, stacktrace } = found
    span.events ??= []
    if (span.events.length >= EVENTS) return
    if (span.events.some(({ attributes }) => attributes['exception.stacktrace'] === stacktrace && attributes['exception.message'] === message)) return
    span.attributes['error.type'] ??= type
    span.events.push({
      name: 'exception',
      time: now(),
      attributes: { 'exception.type': type, 'exception.message': message, ...(stacktrace === undefined ? {} : { 'exception.stacktrace': stacktrace }) }
    })
  }

  return {
    start,
    begin,
    end,
    drain,
    recordException,

    /** It is as if there had been none. @param {Span} span */
    drop (span) {
      if (span.ended) return
      close(span, now())
      if (span.isCounted) openCount--
      span.forget()
    },

    /** A promise was rejected: a span that fails later on has that as its error. @param {object} reason @param {Span} span */
    noteRejection (reason, span) {
      if (!span.ended) span.rejection = new WeakRef(reason)
    },

    /**
     * A long run of the loop is written as a record of its own; one that still runs at once.
     * @param {import('../blocked/blocking-callback').BlockedEvent} event
     * @param {import('../blocked/blocking-callback').BlockingCallback} run
     */
    recordBlocking (event, run) {
      if (sinks() === undefined && !listening()) return // nobody would read the record
      if (event.stillRunning) drain()
      const record = blockedRecord(event, run, resource())
      sinks()?.write({ ms: event.ms, failed: false, traceId: record.traceId, record: () => record })
      if (event.stillRunning) sinks()?.flush(true)
      if (listening()) tell(record, event.stillRunning)
    },

    /** The program ends: what is open is written as it is. */
    flush () {
      drain()
      const time = now()
      for (const span of allOpen()) {
        if (!span.isCounted) continue
        span.attributes['longstack.end'] = 'open'
        const error = span.events?.[0]
        if (error !== undefined && span.status.code === 'UNSET') span.status = { code: 'ERROR', message: String(error.attributes['exception.message']) }
        close(span, time)
        write(span)
        span.forget()
      }
      openCount = 0
    },

    /** @returns {{ open: number, ended: number, dropped: number }} */
    stats: () => ({ open: openCount, ended, dropped })
  }
}

module.exports = { createSpans }
