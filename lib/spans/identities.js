'use strict'

// Newest spans, open or ended, by number: ids as bytes, the rest in arrays. Most spans end within
// milliseconds and are rarely read later. With an object or string per ended span, scavenges would copy them
// and V8 would grow the new space. Hot path: bench/run.js, longstack-spans.

const { source } = require('../core/source')
const { fill } = require('../encoding/ids')

const SLOTS = 1 << 11 // the lowest bits of a number are its slot
const MASK = SLOTS - 1
const TRACE = 16 // bytes
const BYTES = 24 // bytes of both ids
const TRACE_DIGITS = 2 * TRACE
const CHUNK = 1 << 8 // ids drawn at once, in spans
const MAX_ENDED_OLDER = 256
const MAX_DEPTH = 63 // nesting depth

/**
 * @typedef {import('./span').Span} Span
 *
 * @typedef {object} Ended facts kept of an ended span
 * @property {string} name
 * @property {string} traceId
 * @property {string} spanId
 * @property {boolean} sampled
 * @property {string | undefined} otelSpanId
 * @property {number} outer number of the innermost span around it that was open at its end
 */

/** open spans, by slot @type {Array<Span | undefined>} */
const open = Array(SLOTS).fill(undefined)
/** open spans that lost their slot to a newer span, by number @type {Map<number, Span>} */
const openOlder = new Map()
/** ended spans that had lost their slot, oldest first @type {Map<number, Ended>} */
const endedOlder = new Map()

// Fields of ended spans, by slot.
const numbers = new Int32Array(SLOTS)
const outers = new Int32Array(SLOTS)
const sampled = new Uint8Array(SLOTS)
/** @type {string[]} */
const names = Array(SLOTS).fill('')
/** @type {Array<string | undefined>} */
const otelSpanIds = Array(SLOTS).fill(undefined)

/** @type {Buffer | undefined} */
let ids
/** the same memory, in 32-bit words @type {Int32Array} */
let idWords
let last = 0

/** Returns the number of the next span in this thread. @returns {number} */
function nextNumber () {
  const next = last % 0x7fffffff + 1
  if (ids === undefined || (next & (CHUNK - 1)) === 0) draw(next & MASK & ~(CHUNK - 1))
  last = next // last, because V8 may terminate the drawing of ids
  return next
}

/** Draws ids for the next spans. @param {number} slot first slot */
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

/** @param {number} number @returns {string} both ids as one hex string, neither all zero */
function idsOf (number) {
  const index = (number & MASK) * BYTES
  withNonZeroId(index, TRACE)
  return withNonZeroId(index + TRACE, BYTES - TRACE).toString('hex', index, index + BYTES)
}

/**
 * Copies the ids of a span that were not made a string yet.
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
 * @returns {Buffer} all ids; the one at the index is not all zero
 */
function withNonZeroId (index, length) {
  const bytes = /** @type {Buffer} */ (ids)
  if (bytes[index] !== 0) return bytes
  if (bytes.subarray(index, index + length).every((byte) => byte === 0)) bytes[index] = 1
  return bytes
}

/**
 * Adds a new span.
 * @param {Span} span
 * @param {string | undefined} traceId if another process set it
 */
function add (span, traceId) {
  const slot = span.seq & MASK
  const present = open[slot]
  if (present !== undefined) openOlder.set(present.seq, present)
  open[slot] = span
  if (traceId !== undefined) ids?.write(traceId, slot * BYTES, TRACE, 'hex')
}

/**
 * Notes the end of a span.
 * @param {Span} span
 * @param {number} outer number of the innermost open span around it, 0 if none
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
 * Returns the open spans, oldest first. They are not kept in a Set: with constant adds and deletes, V8 keeps
 * replacing its table, and each old table holds the next (SetNextTable in src/objects/ordered-hash-table.cc).
 * Scavenges would then keep the contents of all these tables alive until the next mark-sweep.
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
 * @param {number} number of an ended span
 * @returns {number} number of the innermost span around it that was open at its end, 0 if unknown
 */
function outerOf (number) {
  const slot = number & MASK
  return numbers[slot] === number ? outers[slot] : endedOlder.get(number)?.outer ?? 0
}

/**
 * @param {number} number
 * @returns {Span | undefined} the span, or the innermost open span around it if it has ended
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
