'use strict'

// Hands spans that have ended to the sinks and listeners. Requests wait for the end of the event loop
// iteration: what one iteration brings is written in one go, which costs half.

const { blockedRecord } = require('./blocked-record')
const { createOpenIntervals } = require('./open-intervals')
const { SpanWriting } = require('./span-record')

const MAX_WAITING = 512 // spans that have ended and are not written yet

/**
 * @typedef {import('./span').Span} Span
 *
 * @typedef {object} SpanWriterDeps
 * @property {import('./loop-time').LoopTime} loop
 * @property {(span: Span) => import('./wait-sites').Path} pathOf where a span's time went
 * @property {(span: Span) => string | undefined} stack the long stack of the place that made a span
 * @property {(start: number, end: number) => string | undefined} frameAt the innermost frame sampled in a
 *   blocking callback
 * @property {() => Record<string, unknown>} resource
 * @property {() => number} now ms of the clock
 * @property {(chain: number) => import('./path-sites').Site} siteOf the place that registered a step
 * @property {ReturnType<typeof import('./span-listeners').createSpanListeners>} listeners
 * @property {() => ReturnType<typeof import('../sinks/sinks').createSinks> | undefined} sinks
 * @property {() => boolean} isBatching whether what is scheduled now runs before the event loop polls next
 * @property {(work: () => void) => void} schedule
 * @property {() => void} onWritten called when spans that had ended are written
 */

/** @param {SpanWriterDeps} deps */
function createSpanWriter (deps) {
  const { loop, pathOf, stack, frameAt, resource, listeners, sinks, isBatching, schedule, onWritten } = deps
  const openIntervals = createOpenIntervals(deps)
  /** @type {Span[]} */
  let waiting = []
  let written = 0

  /** @param {Span} span that has ended @returns {boolean} it is written when the iteration is over */
  function postpone (span) {
    if (waiting.length === 0) {
      if (!isBatching()) return false
      schedule(drain)
    }
    if (waiting.push(span) >= MAX_WAITING) drain()
    return true
  }

  /** Writes those that wait. */
  function drain () {
    const spans = waiting
    waiting = []
    for (let i = 0; i < spans.length; i++) writeAndRelease(spans[i])
    onWritten()
  }

  /** @param {Span} span that has ended */
  function writeAndRelease (span) {
    try {
      write(span)
    } finally {
      span.release()
    }
  }

  /** @param {Span} span that has ended */
  function write (span) {
    written++
    span.path ??= pathOf(span)
    const writing = new SpanWriting(span, { loop, resource: resource(), stack, frameAt })
    sinks()?.write(writing)
    if (listeners.areThere()) listeners.notify(writing.record())
    if (openIntervals.isDue(span.end)) writeOpenIntervals(span.end)
  }

  /** Writes what repeats on after its request. @param {number} time ms of the clock */
  function writeOpenIntervals (time) {
    const outputs = sinks()
    const record = outputs === undefined ? undefined : openIntervals.take(time)
    if (record !== undefined) outputs?.write(record)
  }

  return {
    drain,
    writeAndRelease,
    writeOpenIntervals,
    noteTimer: openIntervals.add,
    isWaiting: () => waiting.length > 0,
    count: () => written,

    /**
     * @param {Span} span that has ended
     * @param {boolean} mayWait its attributes hold nothing that the program may change
     */
    add (span, mayWait) {
      if (mayWait && postpone(span)) return
      writeAndRelease(span)
      onWritten()
    },

    /**
     * Writes a blocking callback as a record of its own; one that still runs at once.
     * @param {import('../blocked/detector').BlockedEvent} event
     * @param {import('../blocked/blocking-callback').BlockingCallback} run
     */
    addBlocking (event, run) {
      if (sinks() === undefined && !listeners.areThere()) return
      if (event.stillRunning) drain()
      const record = blockedRecord(event, run, resource())
      sinks()?.write({ ms: event.ms, failed: false, traceId: record.traceId, record: () => record })
      if (event.stillRunning) sinks()?.flush(true)
      if (listeners.areThere()) listeners.notify(record, event.stillRunning)
    }
  }
}

module.exports = { createSpanWriter }
