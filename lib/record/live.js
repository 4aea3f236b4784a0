'use strict'

// Makes spans of this thread's run log while the program runs, and hands them to outputs. A consumer of
// taking.js, loaded when spans are first wanted.

const { SpanMaker } = require('../../report/path/span-maker')
const { SpanReader } = require('../../report/path/window')
const { attempt } = require('../files')
const { flushRecords, tell } = require('../spans/outputs')
const { ENTRY_BYTES } = require('./block')
const taking = require('./taking')

const NO_ENTRIES = new Uint8Array(0)

let reader = new SpanReader()
let maker = new SpanMaker()
let isOn = false
/** what came was read in full: V8 may terminate the code that it is read in */
let isWhole = true

/** @type {taking.Consumer} */
const consumer = {
  take ({ first, entries, texts, now, isNewest, isWithin, isAll, isLast }) {
    if (!isWhole) startAnew()
    isWhole = false
    maker.add(texts.split('\n'))
    let next = first
    for (const part of entries) {
      reader.push({ first: next, entries: part })
      next = (next + part.length / ENTRY_BYTES) | 0
    }
    if (isNewest) reader.push({ first: next, entries: NO_ENTRIES, until: now, isAll, isLast })
    const made = maker.make(reader.ended(), isAll ? Infinity : now)
    if (isLast) made.push(...maker.finish())
    isWhole = true
    for (const span of made) attempt(() => tell(span))
    if (!isWithin) flushRecords()
  },

  addSpan: (span) => maker.addSpan(toldOf(span)),
  isEager: true,
  isWaiting: () => reader.isWaiting || maker.isWaiting
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

/** Forgets what is known, some of which is half done. */
function startAnew () {
  reader = new SpanReader()
  maker = new SpanMaker()
  taking.repeat()
}

/** @param {boolean} isWanted whether spans are made */
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

  /** Makes the last ones: the program ends. */
  finish () {
    if (isOn) taking.take({ isLast: true })
  },

  /** @returns {number} spans that have ended and are not made yet */
  waiting: () => isOn ? maker.waiting + reader.waiting : 0
}
