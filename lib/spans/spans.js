'use strict'

// Begins spans (choosing parent and trace) and ends them, keeps open spans, and writes ended ones. The module
// that creates a span describes it (http-spans.js, user-span.js); its time is attributed from the run log
// (record/live.js). Texts of ended requests are built at the end of the event loop iteration. Everything
// here runs guarded.

const { errorStack } = require('../attribution/error-hops')
const { now } = require('../core/clock')
const { currentStep, spanNumber } = require('../core/current-step')
const { MIN_RANGE, us } = require('../encoding/span-figures')
const runLog = require('../core/run-log')
const { CLIENT, DISCARDED, ERROR, INNER, OK, SERVER, UNSET } = require('../core/run-log-words')
const { read: readSettlements } = require('../core/settlements')
const { allOpen, identityAt, spanAt } = require('./identities')
const taking = require('../record/taking')
const texts = require('../record/texts')
const openIntervals = require('./open-intervals')
const { batching, schedule } = require('../core/loop-iterations')
const outputs = require('./outputs')
const { addException, blockedRecord, describeException } = require('./span-record')
const { activeSpanContext } = require('./traceparent')
const { Span } = require('./span')
const { settings } = require('../settings')
const { cutUrlCredentials } = require('../text')
const { originAt } = require('./wall-clock')

const MAX_OPEN = 100_000 // open spans; further ones are counted, but not written
const MAX_WAITING = 512 // ended spans not yet written
const MIN_AGE = 1000 // ms that a span is open before a sweep checks it; most end sooner
/** @type {End} */
const NO_END = {}
/** @type {End} */
const UNKNOWN_END = { end: 'unknown' }

/**
 * @typedef {object} End
 * @property {'OK' | 'ERROR'} [code]
 * @property {string} [message]
 * @property {string} [end] `longstack.end`: aborted, cancelled, timeout, upgraded, unknown
 * @property {unknown} [error]
 * @property {Record<string, unknown>} [attributes]
 */

/**
 * @typedef {object} SpanStart
 * @property {string} name
 * @property {import('./span').SpanKind} kind
 * @property {import('./traceparent').SpanContext} [remote] parent span in another process
 * @property {import('../core/context').Context} [context] context that creates it; default: the current one
 * @property {number} [since] ms of the clock, if it began earlier
 * @property {string} [path]
 * @property {import('./http-attributes').Peer} [peer] the other end
 * @property {Record<string, unknown>} [attributes] other attributes
 * @property {Record<string, unknown>} [shared] attributes common to many spans
 */

let openCount = 0
let dropped = 0
let writtenCount = 0
let isSweeping = false
/** of a black box @type {import('../record/open-table').OpenTable | undefined} */
let openTable
/** ended spans not yet written @type {Span[]} */
let waiting = []

/**
 * Begins a span. Its parent is the remote span, else OpenTelemetry's active span if that is the inner one,
 * else the current span.
 * @param {SpanStart} start
 * @returns {Span}
 */
function start ({ name, kind, remote, context, since, path, peer, attributes, shared }) {
  const time = now()
  if (runLog.isOn()) runLog.accountUntil(time)
  const number = kind === 'SERVER' ? 0 : context === undefined ? spanNumber() : context.spanNumber
  const running = number === 0 ? undefined : identityAt(number)
  const active = activeSpanContext()
  const outer = active !== undefined && active.spanId !== running?.otelSpanId ? active : running
  const cause = remote ?? outer
  const parent = number === 0 ? undefined : spanAt(number)
  const span = new Span({
    name,
    kind,
    traceId: cause?.traceId,
    parentSpanId: cause?.spanId,
    sampled: cause?.sampled ?? true,
    parent,
    start: since ?? time,
    origin: parent === undefined ? originAt(time) : parent.origin,
    path,
    peer,
    attributes,
    shared
  })
  span.otelSpanId = active?.spanId
  span.chain = context === undefined ? currentStep().chain : context.chain
  span.isCounted = openCount < MAX_OPEN
  if (span.isCounted) openCount++
  else dropped++
  if (kind === 'CLIENT' || context !== undefined) logBegin(span) // otherwise `begin` logs it
  return span
}

/** Start of the current run, in ms of the clock. */
const presentSince = () => runLog.isOn() ? runLog.since() : now()

/**
 * Excludes the time before its first callback from a span, and records how long a request waited before Node
 * read it.
 * @param {Span} span
 * @param {unknown} [socket] socket of the request
 * @param {boolean} [isNew] it is the first request on the socket
 */
function begin (span, socket = undefined, isNew = true) {
  span.start = presentSince()
  if (socket === undefined || !runLog.isOn()) return logBegin(span)
  const { ms, max } = runLog.queueTime(socket, isNew, span.start)
  logBegin(span, ms)
  if (max === 0) return
  span.queued = us(ms)
  if (max - ms >= MIN_RANGE) span.queuedMax = us(max)
}

/** @param {Span} span @param {number} [unread] ms it waited before Node read it */
function logBegin (span, unread = 0) {
  const { seq, chain, start, kind, parent } = span
  if (openTable !== undefined && parent === undefined && kind !== 'CLIENT') openTable.add(span)
  if (!runLog.isOn()) return
  const kindNumber = kind === 'SERVER' ? SERVER : kind === 'CLIENT' ? CLIENT : INNER
  runLog.began(seq, chain, start, kindNumber, parent?.seq ?? 0, unread)
}

/** @param {Span} span @param {End} [ending] @param {number} [since] ms of the clock, if it ended earlier */
function end (span, ending = NO_END, since = undefined) {
  if (span.ended && !span.isEnding) return
  span.isEnding = true // until all is done: if V8 terminates this, it is repeated (user-span.js)
  if (!span.ended) close(span, ending, since)
  span.isEnding = false
  if (!span.isCounted) return span.release()
  openCount--
  if (pack(span)) return
  // The program may mutate the attribute values of its own spans, so these are written at once.
  if (span.kind !== 'INTERNAL' && postpone(span)) return
  writeAndRelease(span)
  taking.takeSoon()
  if (batching()) outputs.flushIfMany()
  else outputs.flushRecords()
}

/** @param {Span} span @param {End} ending @param {number | undefined} since */
function close (span, ending, since) {
  const { code, message, attributes } = ending
  const time = since ?? now()
  if (attributes !== undefined) Object.assign(span.attributes, attributes)
  if (ending.end !== undefined) span.attributes['longstack.end'] = ending.end
  if (isSweeping) { // the real end was earlier by at most these ms
    span.attributes['longstack.end_margin_ms'] = Math.ceil(time - Math.max(span.aliveAt, span.start))
  }
  if (code !== undefined) {
    span.status = message === undefined ? { code } : { code, message: cutUrlCredentials(message) }
  }
  if (code === 'ERROR') readSettlements()
  addReason(span, ending)
  finish(span, time)
}

/**
 * Adds the error of a span: the given one, or that of its last rejection.
 * @param {Span} span
 * @param {End} ending
 */
function addReason (span, ending) {
  const { rejection } = span
  const noted = rejection?.reason.deref()
  const isOther = ending.error === undefined || ending.error !== noted
  if (Object.hasOwn(ending, 'error') && isOther) return recordException(span, ending.error)
  if (ending.code !== 'ERROR' || rejection === undefined) return
  const description = rejection.description ?? (noted && describeException(noted, errorStack))
  if (description !== undefined) addException(span, description, rejection.time)
}

/** @param {Span} span @param {number} time ms @param {number} [status] see run-log-words.js */
function finish (span, time, status = statusOf(span)) {
  if (runLog.isOn()) runLog.accountUntil(time)
  span.finish(time)
  openTable?.remove(span)
  if (!runLog.isOn()) return
  span.isWanted = outputs.isWanted(span)
  runLog.ended(span.seq, span.end, span.isWanted ? status : DISCARDED)
}

/** @param {Span} span @returns {number} */
const statusOf = ({ status: { code } }) => code === 'ERROR' ? ERROR : code === 'OK' ? OK : UNSET

/** Adds an error to a span. @param {Span} span @param {unknown} error */
function recordException (span, error) {
  if (!span.ended) addException(span, describeException(error, errorStack), now())
}

/** Discards a span without recording it. @param {Span} span */
function discard (span) {
  if (span.ended) return
  finish(span, now(), DISCARDED)
  if (span.isCounted) openCount--
  span.release()
}

/** @param {Span} span ended span @returns {boolean} a recording holds it in packed form */
function pack (span) {
  if (!span.isWanted || !texts.pack(span)) return false
  writtenCount++
  span.release()
  if (openIntervals.isDue(span.end)) writeOpenIntervals(span.end)
  return true
}

/** @param {Span} span ended span @returns {boolean} it will be written at the end of the iteration */
function postpone (span) {
  if (waiting.length === 0) {
    if (!batching()) return false
    if (texts.isOn()) taking.takeSoon()
    else schedule(drain)
  }
  if (waiting.push(span) >= MAX_WAITING) drain()
  return true
}

/** Writes all waiting spans. */
function drain () {
  const spans = waiting
  waiting = []
  for (let i = 0; i < spans.length; i++) writeAndRelease(spans[i])
}

/** @param {Span} span ended span */
function writeAndRelease (span) {
  try {
    writtenCount++
    if (span.isWanted) texts.addSpan(span)
    else texts.addName(span)
    if (openIntervals.isDue(span.end)) writeOpenIntervals(span.end)
  } finally {
    span.release()
  }
}

/** Writes the repeating timers that outlived their requests. @param {number} time ms of the clock */
function writeOpenIntervals (time) {
  const record = texts.isOn() ? openIntervals.take(time) : undefined
  if (record !== undefined) outputs.addRecord(record)
}

/**
 * Adds a blocking callback as a separate record.
 * @param {import('../blocked/blocking-callback').BlockedEvent} event
 * @param {import('../blocked/blocking-callback').BlockingCallback} run
 */
function addBlocking (event, run) {
  // Otherwise a command requested it.
  const isWanted = settings.options.blocked !== undefined
  if (texts.isOn()) outputs.addRecord(blockedRecord(event, run), isWanted)
}

/**
 * Ends spans whose end was missed, so that no span stays open forever. The subject of a span must be over in
 * two consecutive sweeps, since the report of its end may still be pending.
 * @param {number} time ms of the clock
 * @param {boolean} isLast final sweep: checks all spans
 */
function sweep (time, isLast) {
  isSweeping = true
  try {
    allOpen().forEach((span) => {
      if (!span.ended && (isLast || time - span.start >= MIN_AGE)) lookAt(span, time, isLast)
    })
  } finally {
    isSweeping = false
  }
}

/** @param {Span} span open span @param {number} time @param {boolean} isLast */
function lookAt (span, time, isLast) {
  const { subject } = span
  if (subject === undefined) return end(span, UNKNOWN_END)
  const finishSpan = span.look(span, subject)
  if (finishSpan === undefined) span.aliveAt = time
  if (finishSpan !== undefined && (span.isOver || isLast)) finishSpan()
  span.isOver = finishSpan !== undefined
  if (!span.ended && !span.isOver) span.weaken()
}

/** Writes spans that are still open when the program ends. */
function flush () {
  drain()
  const time = now()
  sweep(time, true)
  drain()
  texts.addWaits()
  writeOpenIntervals(time) // only of ended requests
  allOpen().forEach((span) => { // the program may have no iterators
    if (!span.isCounted) return
    span.attributes['longstack.end'] = 'open'
    span.status = span.openStatus
    finish(span, time)
    writeAndRelease(span)
  })
  openCount = 0
}

const stats = () => ({ open: openCount, ended: writtenCount, dropped })

module.exports = {
  addBlocking,
  begin,
  discard,
  drain,
  end,
  flush,
  presentSince,
  recordException,

  /** @param {import('../record/open-table').OpenTable | undefined} table of a black box */
  setOpenTable (table) { openTable = table },

  start,
  stats,
  sweep
}
