'use strict'

// The newest spans, open or ended, by their number: their ids as bytes, the rest in arrays. Most spans end
// within milliseconds, and are read afterwards now and then; an object or a text for each that has ended
// would be copied by scavenges, and V8 would grow the new space. Hot path: bench/run.js, longstack-spans.

const { source } = require('../core/source')
const { fill } = require('../encoding/ids')

const SLOTS = 1 << 11 // a number's lowest bits are its slot
const MASK = SLOTS - 1
const TRACE = 16 // bytes
const BYTES = 24 // of both ids
const TRACE_DIGITS = 2 * TRACE
const CHUNK = 1 << 8 // spans whose ids are drawn at once
const MAX_ENDED_OLDER = 256
const MAX_DEPTH = 63 // spans around a span

/**
 * @typedef {import('./span').Span} Span
 *
 * @typedef {object} Ended what is known of a span that has ended
 * @property {string} name
 * @property {string} traceId
 * @property {string} spanId
 * @property {boolean} sampled
 * @property {string | undefined} otelSpanId
 * @property {number} outer number of the innermost span around it that was open then
 */

/** open spans, by slot @type {Array<Span | undefined>} */
const open = Array(SLOTS).fill(undefined)
/** open spans whose slot was taken by another, by number @type {Map<number, Span>} */
const openOlder = new Map()
/** those of them that have ended, oldest first @type {Map<number, Ended>} */
const endedOlder = new Map()

// Of spans that have ended, by slot.
const numbers = new Int32Array(SLOTS)
const outers = new Int32Array(SLOTS)
const sampled = new Uint8Array(SLOTS)
/** @type {string[]} */
const names = Array(SLOTS).fill('')
/** @type {Array<string | undefined>} */
const otelSpanIds = Array(SLOTS).fill(undefined)

/** @type {Buffer | undefined} */
let ids
/** the same, in words of 32 bits @type {Int32Array} */
let idWords
let last = 0

/** Returns the number of the next span in this thread. @returns {number} */
function nextNumber () {
  const next = last % 0x7fffffff + 1
  if (ids === undefined || (next & (CHUNK - 1)) === 0) draw(next & MASK & ~(CHUNK - 1))
  last = next // V8 may terminate it before all are drawn
  return next
}

/** Draws the ids of the spans to come. @param {number} slot the first */
function draw (slot) {
  if (ids === undefined) {
    ids = fill(Buffer.alloc(SLOTS * BYTES))
    idWords = new Int32Array(ids.buffer, ids.byteOffset, SLOTS * BYTES / 4)
    return
  }
  for (let i = slot; i < slot + CHUNK; i++) {
    const span = open[i]
    if (span !== undefined) span.idText = span.ids
    if (numbers[i] !== 0) numbers[i] = 0
  }
  fill(ids.subarray(slot * BYTES, (slot + CHUNK) * BYTES))
}

/** @param {number} number @returns {string} both ids as one text, in hex digits, neither all zero */
function idsOf (number) {
  const index = (number & MASK) * BYTES
  withNonZeroId(index, TRACE)
  return withNonZeroId(index + TRACE, BYTES - TRACE).toString('hex', index, index + BYTES)
}

/**
 * Copies the ids of a span that are no text yet.
 * @param {number} number
 * @param {Int32Array} words
 * @param {number} index
 */
function copyIds (number, words, index) {
  const from = (number & MASK) * BYTES
  withNonZeroId(from, TRACE)
  withNonZeroId(from + TRACE, BYTES - TRACE)
  for (let i = 0; i < BYTES / 4; i++) words[index + i] = idWords[from / 4 + i]
}

/**
 * @param {number} index
 * @param {number} length in bytes
 * @returns {Buffer} all ids, of which this one is not all zero
 */
function withNonZeroId (index, length) {
  const bytes = /** @type {Buffer} */ (ids)
  if (bytes[index] !== 0) return bytes
  if (bytes.subarray(index, index + length).every((byte) => byte === 0)) bytes[index] = 1
  return bytes
}

/**
 * Adds a span that begins.
 * @param {Span} span
 * @param {string | undefined} traceId where another process named it
 */
function add (span, traceId) {
  const slot = span.seq & MASK
  const present = open[slot]
  if (present !== undefined) openOlder.set(present.seq, present)
  open[slot] = span
  if (traceId !== undefined) ids?.write(traceId, slot * BYTES, TRACE, 'hex')
}

/**
 * Notes that a span has ended.
 * @param {Span} span
 * @param {number} outer number of the innermost open span around it, 0: none
 */
function end (span, outer) {
  const { seq, name } = span
  const slot = seq & MASK
  if (open[slot] !== span) {
    if (!openOlder.delete(seq)) return
    const { traceId, spanId, sampled, otelSpanId } = span
    endedOlder.set(seq, { name, traceId, spanId, sampled, otelSpanId, outer })
    if (endedOlder.size <= MAX_ENDED_OLDER) return
    endedOlder.delete(/** @type {number} */ (endedOlder.keys().next().value))
    return
  }
  open[slot] = undefined
  numbers[slot] = seq
  outers[slot] = outer
  sampled[slot] = span.sampled ? 1 : 0
  if (names[slot] !== name) names[slot] = name
  if (otelSpanIds[slot] !== span.otelSpanId) otelSpanIds[slot] = span.otelSpanId
}

/** @param {number} number @returns {Span | undefined} */
function openAt (number) {
  const span = open[number & MASK]
  if (span !== undefined && span.seq === number) return span
  return openOlder.size === 0 ? undefined : openOlder.get(number)
}

/**
 * Returns the open spans, oldest first. No Set holds them: one that is added to and deleted from all
 * the time leaves a table behind whenever V8 makes a new one, each of which holds the next (SetNextTable in
 * src/objects/ordered-hash-table.cc), so that scavenges carry along what was in any of them until the next
 * mark-sweep.
 */
function allOpen () {
  const spans = [...openOlder.values()]
  open.forEach((span) => { if (span !== undefined) spans.push(span) })
  return spans.sort((a, b) => a.seq - b.seq)
}

/** @param {number} number @returns {Span | Ended | undefined} */
function identityAt (number) {
  const span = openAt(number)
  if (span !== undefined) return span
  const slot = number & MASK
  if (numbers[slot] !== number || number === 0) return endedOlder.get(number)
  const ids = idsOf(number)
  return {
    name: names[slot],
    traceId: ids.slice(0, TRACE_DIGITS),
    spanId: ids.slice(TRACE_DIGITS),
    sampled: sampled[slot] === 1,
    otelSpanId: otelSpanIds[slot],
    outer: outers[slot]
  }
}

/**
 * @param {number} number of a span that has ended
 * @returns {number} of the innermost span around it that was open then, 0: none is known
 */
function outerOf (number) {
  const slot = number & MASK
  return numbers[slot] === number ? outers[slot] : endedOlder.get(number)?.outer ?? 0
}

/**
 * @param {number} number
 * @returns {Span | undefined} the span, or where it has ended the innermost open one around it
 */
function spanAt (number) {
  let current = number
  for (let i = 0; current !== 0 && i < MAX_DEPTH; i++) {
    const span = openAt(current)
    if (span !== undefined) return span
    current = outerOf(current)
  }
  return undefined
}

Object.assign(source, { identityAt, spanAt })

module.exports = {
  TRACE_DIGITS,
  add,
  allOpen,
  copyIds,
  end,
  identityAt,
  idsOf,
  nextNumber,
  spanAt
}
