'use strict'

// Builds spans from this thread's run log while the program runs, and passes them to outputs. A consumer of
// taking.js, loaded when spans are first needed.

const { attempt } = require('../files')
const { flushRecords, tell } = require('../spans/outputs')
const { SpanSource, batchOf } = require('./span-source')
const taking = require('./taking')

let source = new SpanSource()
let isOn = false
/** whether the last piece was read completely: V8 may terminate the code that reads it */
let isWhole = true

/** @type {taking.Consumer} */
const consumer = {
  take (piece) {
    if (!isWhole) startAnew()
    isWhole = false
    const made = source.take(batchOf(piece))
    isWhole = true
    for (const span of made) attempt(() => tell(span))
  },

  taken (isWithin) {
    if (!isWithin) flushRecords()
  },

  addSpan: (span) => source.addSpan(toldOf(span)),
  isEager: true,
  isPartial: true,
  isWaiting: () => source.isWaiting
}

/** @param {import('../spans/span').Span} span @returns {import('../../report/path/source-texts').ToldSpan} */
function toldOf (span) {
  return {
    number: span.seq,
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: span.name,
    kind: span.kind,
    origin: span.origin,
    start: span.start,
    end: span.end,
    status: span.status,
    attributes: span.attributes,
    shared: span.shared,
    events: span.events,
    open: span.attributes['longstack.end'] === 'open'
  }
}

/** Starts over, because the current state may be incomplete. */
function startAnew () {
  source = new SpanSource()
  taking.repeat()
}

/** @param {boolean} isWanted whether to build spans */
function setLive (isWanted) {
  if (isWanted === isOn) return
  isOn = isWanted
  if (isWanted) {
    startAnew()
    taking.add(consumer)
  } else {
    taking.remove(consumer)
  }
}

module.exports = {
  setLive,

  /** @returns {number} spans that have ended and are not built yet */
  waiting: () => isOn ? source.waiting : 0
}
