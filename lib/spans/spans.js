'use strict'

// Begins and ends spans, and keeps those that are open. Who makes a span describes it (http-spans.js,
// user-span.js); where its time goes is reported by the hooks through LoopTime. Everything here runs guarded.

const { addException } = require('./exception-events')
const { allOpen, spanAt } = require('./identities')
const { MIN_RANGE } = require('./span-figures')
const { toMicros } = require('./span-record')
const { createSpanStarter } = require('./span-start')
const { createSpanWriter } = require('./span-writer')
const { createSweep } = require('./sweep')

const MAX_OPEN = 100_000 // spans kept while they are open; more than that are counted, and not written
/** @type {End} */
const NO_END = {}

/**
 * @typedef {import('./span').Span} Span
 *
 * @typedef {object} End
 * @property {'OK' | 'ERROR'} [code]
 * @property {string} [message]
 * @property {string} [end] `longstack.end`: aborted, timeout, upgraded, unknown
 * @property {unknown} [error]
 * @property {Record<string, unknown>} [attributes]
 *
 * @typedef {object} EndDeps
 * @property {() => void} readSettled reads who rejected a promise, up to now
 * @property {(error: unknown) => import('./exception-events').ExceptionDescription} describeException
 *
 * @typedef {import('./span-start').SpanStartDeps & import('./span-writer').SpanWriterDeps & EndDeps}
 *   SpansDeps
 */

/** @param {Omit<SpansDeps, 'onWritten'>} deps */
function createSpans (deps) {
  const { loop, now, step, readSettled, spanNumber, describeException } = deps
  const writer = createSpanWriter({ ...deps, onWritten: clearRuns })
  const makeSpan = createSpanStarter(deps)
  const sweep = createSweep(end)
  let openCount = 0
  let dropped = 0

  /** Forgets who ran of late: no span is left that they could have delayed. */
  function clearRuns () {
    if (openCount === 0 && !writer.isWaiting()) loop.clear()
  }

  /** Begins a span. @param {import('./span-start').SpanStart} description */
  function start (description) {
    const span = makeSpan(description)
    span.isCounted = openCount < MAX_OPEN
    if (span.isCounted) openCount++
    else dropped++
    return span
  }

  /**
   * Excludes the time until its first callback from a span.
   * @param {Span} span
   * @param {unknown} [socket] on which it came
   * @param {boolean} [isNew] it is the first on that
   */
  function begin (span, socket = undefined, isNew = true) {
    if (span.run === 0) span.startNow(loop)
    if (socket !== undefined) noteQueue(span, socket, isNew, loop)
  }

  /** @param {Span} span @param {End} [ending] @param {number} [since] ms, where it ended before now */
  function end (span, ending = NO_END, since = undefined) {
    if (span.ended && !span.isEnding) return
    span.isEnding = true // until all is done: it may be terminated, and is done again then (user-span.js)
    if (!span.ended) close(span, ending, since)
    span.isEnding = false
    if (!span.isCounted) return span.release()
    openCount--
    writer.add(span, span.kind !== 'INTERNAL')
  }

  /** @param {Span} span @param {End} ending @param {number | undefined} since */
  function close (span, ending, since) {
    const { code, message, attributes } = ending
    const time = since ?? now()
    if (attributes !== undefined) Object.assign(span.attributes, attributes)
    if (ending.end !== undefined) span.attributes['longstack.end'] = ending.end
    sweep.noteMargin(span, time)
    if (code !== undefined) span.status = message === undefined ? { code } : { code, message }
    if (code === 'ERROR') readSettled()
    const reason = ending.error ?? (code === 'ERROR' ? span.rejection?.deref() : undefined)
    if (reason !== undefined || Object.hasOwn(ending, 'error')) recordException(span, reason)
    finish(span, time)
  }

  /** @param {Span} span @param {number} time ms */
  function finish (span, time) {
    loop.accountUntil(time)
    const { run } = step()
    span.finish(time, loop, run !== 0 && spanAt(spanNumber())?.log === span.log ? run : 0)
    loop.leave(span)
  }

  /** Adds an error to a span. @param {Span} span @param {unknown} error */
  function recordException (span, error) {
    if (!span.ended) addException(span, describeException(error), now())
  }

  return {
    start,
    begin,
    end,
    drain: writer.drain,
    recordException,
    recordBlocking: writer.addBlocking,
    noteTimer: writer.noteTimer,

    /** Ends what is over and was not reported. @param {number} time ms of the clock */
    sweep: (time) => sweep.run(time, false),

    /** Discards a span without recording it. @param {Span} span */
    discard (span) {
      if (span.ended) return
      finish(span, now())
      if (span.isCounted) openCount--
      span.release()
    },

    /**
     * Notes a rejection inside a span: if it fails later on, that is its error.
     * @param {object} reason
     * @param {Span} span
     */
    noteRejection (reason, span) {
      if (!span.ended) span.rejection = new WeakRef(reason)
    },

    /** Writes open spans as they are, since the program ends. */
    flush () {
      writer.drain()
      const time = now()
      sweep.run(time, true)
      writer.drain()
      writer.writeOpenIntervals(time) // of requests that have ended
      allOpen().forEach((span) => { // the program may have no iterators
        if (!span.isCounted) return
        span.attributes['longstack.end'] = 'open'
        const error = span.events?.[0]
        if (error !== undefined && span.status.code === 'UNSET') {
          span.status = { code: 'ERROR', message: String(error.attributes['exception.message']) }
        }
        finish(span, time)
        writer.writeAndRelease(span)
      })
      openCount = 0
    },

    /** @returns {{ open: number, ended: number, dropped: number }} */
    stats: () => ({ open: openCount, ended: writer.count(), dropped })
  }
}

/**
 * Notes how long a request lay there before it was read.
 * @param {Span} span that begins
 * @param {unknown} socket
 * @param {boolean} isNew
 * @param {import('./loop-time').LoopTime} loop
 */
function noteQueue (span, socket, isNew, loop) {
  const { ms, max } = loop.arrivals.queueTime(socket, isNew, loop.since - loop.zero)
  if (max === 0) return
  span.attributes['longstack.queued_ms'] = toMicros(ms)
  if (max - ms >= MIN_RANGE) span.attributes['longstack.queued_max_ms'] = toMicros(max)
}

module.exports = { createSpans }
