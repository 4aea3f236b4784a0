'use strict'

// Who the newest spans are, open or ended, by their number: their ids as bytes, the rest in arrays. Most spans are over
// within milliseconds, and are asked for afterwards now and then; an object or a text for each that has ended would have
// the collector carry it along, and V8 make more and more room for what is new. A hot room: bench/run.js, longstack-spans.

const { putHex } = require('../encoding/bytes')
const { fill } = require('./ids')

const SLOTS = 1 << 11 // a number's lowest bits say where it is
const MASK = SLOTS - 1
const TRACE = 16 // bytes
const BYTES = 24 // of both ids
const CHUNK = 1 << 8 // spans whose ids are drawn at once
const OTHERS = 2048 // of spans that were open for so long that their place was taken, remembered once they have ended
const MOST_AROUND = 63

/**
 * @typedef {import('./span').Span} Span
 *
 * @typedef {object} Ended what is still asked of a span that has ended
 * @property {string} name
 * @property {string} traceId
 * @property {string} spanId
 * @property {boolean} sampled
 * @property {string | undefined} outerId
 * @property {number} around number of the innermost one around it that was open then
 */

/** those that are open @type {Array<Span | undefined>} */
const open = Array(SLOTS).fill(undefined)
/** those whose place was taken while they were open, by number @type {Map<number, Span>} */
const older = new Map()
/** those of them that have ended, oldest first @type {Map<number, Ended>} */
const endedOlder = new Map()

// Of those that have ended.
const numbers = new Int32Array(SLOTS)
const arounds = new Int32Array(SLOTS)
const sampled = new Uint8Array(SLOTS)
/** @type {string[]} */
const names = Array(SLOTS).fill('')
/** @type {Array<string | undefined>} */
const outerIds = Array(SLOTS).fill(undefined)

/** @type {Buffer | undefined} */
let ids
let last = 0

/** @returns {number} of the next span in this thread */
function next () {
  last = last % 0x7fffffff + 1
  if (ids === undefined || (last & (CHUNK - 1)) === 0) draw(last & MASK & ~(CHUNK - 1))
  return last
}

/** Draws the ids of the spans to come. @param {number} slot the first */
function draw (slot) {
  if (ids === undefined) {
    ids = fill(Buffer.alloc(SLOTS * BYTES))
    return
  }
  for (let i = slot; i < slot + CHUNK; i++) {
    open[i]?.keepIds()
    if (numbers[i] !== 0) numbers[i] = 0
  }
  fill(ids.subarray(slot * BYTES, (slot + CHUNK) * BYTES))
}

/** @param {number} number @returns {string} 32 hex digits */
const traceIdOf = (number) => hex((number & MASK) * BYTES, TRACE)

/** @param {number} number @returns {string} 16 hex digits */
const spanIdOf = (number) => hex((number & MASK) * BYTES + TRACE, BYTES - TRACE)

/** @param {number} at @param {number} length in bytes @returns {string} never all zero */
function hex (at, length) {
  return unlikeZero(at, length).toString('hex', at, at + length)
}

/**
 * @param {number} at
 * @param {number} length in bytes
 * @returns {Buffer} the ids, of which this one is not all zero
 */
function unlikeZero (at, length) {
  const bytes = /** @type {Buffer} */ (ids)
  if (bytes[at] === 0 && bytes.subarray(at, at + length).every((byte) => byte === 0)) bytes[at] = 1
  return bytes
}

/**
 * Puts the 32 digits into the buffer of bytes.js: no text is made of them.
 * @param {number} number of a span
 */
function putTraceId (number) {
  const at = (number & MASK) * BYTES
  putHex(unlikeZero(at, TRACE), at, TRACE)
}

/** The 16 digits, likewise. @param {number} number of a span */
function putSpanId (number) {
  const at = (number & MASK) * BYTES + TRACE
  putHex(unlikeZero(at, BYTES - TRACE), at, BYTES - TRACE)
}

/** A span begins. @param {Span} span @param {string | undefined} trace its id, where that is another's */
function add (span, trace) {
  const slot = span.seq & MASK
  const present = open[slot]
  if (present !== undefined) older.set(present.seq, present)
  open[slot] = span
  if (trace !== undefined) ids?.write(trace, slot * BYTES, TRACE, 'hex')
}

/** It has ended. @param {Span} span @param {number} around number of the innermost one around it that is open, 0: none */
function end (span, around) {
  const { seq, name } = span
  const slot = seq & MASK
  if (open[slot] !== span) {
    if (!older.delete(seq)) return
    const { traceId, spanId, sampled, outerId } = span
    endedOlder.set(seq, { name, traceId, spanId, sampled, outerId, around })
    if (endedOlder.size > OTHERS) endedOlder.delete(/** @type {number} */ (endedOlder.keys().next().value))
    return
  }
  open[slot] = undefined
  numbers[slot] = seq
  arounds[slot] = around
  sampled[slot] = span.sampled ? 1 : 0
  if (names[slot] !== name) names[slot] = name
  if (outerIds[slot] !== span.outerId) outerIds[slot] = span.outerId
}

/** @param {number} number @returns {Span | undefined} */
function openAt (number) {
  const span = open[number & MASK]
  if (span !== undefined && span.seq === number) return span
  return older.size === 0 ? undefined : older.get(number)
}

/**
 * Returns those that are open, the oldest first. No Set holds them: one that is added to and deleted from all
 * the time leaves a table behind whenever V8 makes a new one, each of which holds the next (SetNextTable in
 * src/objects/ordered-hash-table.cc), so that scavenges carry along what was in any of them until the next
 * mark-sweep.
 */
function allOpen () {
  const spans = [...older.values()]
  for (const span of open) if (span !== undefined) spans.push(span)
  return spans.sort((one, other) => one.seq - other.seq)
}

/** @param {number} number @returns {Span | Ended | undefined} */
function identityAt (number) {
  const span = openAt(number)
  if (span !== undefined) return span
  const slot = number & MASK
  if (numbers[slot] !== number || number === 0) return endedOlder.get(number)
  return {
    name: names[slot],
    traceId: traceIdOf(number),
    spanId: spanIdOf(number),
    sampled: sampled[slot] === 1,
    outerId: outerIds[slot],
    around: arounds[slot]
  }
}

/**
 * Who delayed a span, for as long as that one is written: its id becomes a text only where that is asked for.
 */
class Delayer {
  /** @param {number} seq @param {string} name */
  constructor (seq, name) {
    this.seq = seq
    this.name = name
    /** @type {string | undefined} */
    this.id = undefined
  }

  get spanId () { return spanIdOf(this.seq) }
}

/** @param {number} number @returns {Span | Ended | Delayer | undefined} good until the next span begins */
function delayerAt (number) {
  const slot = number & MASK
  return numbers[slot] === number && number !== 0 ? new Delayer(number, names[slot]) : identityAt(number)
}

/** @param {number} number of a span that has ended @returns {number} of the innermost one around it that was open then, 0: none is known */
function aroundOf (number) {
  const slot = number & MASK
  return numbers[slot] === number ? arounds[slot] : endedOlder.get(number)?.around ?? 0
}

/** @param {number} number @returns {Span | undefined} the span, or where it has ended the innermost open one around it */
function spanAt (number) {
  let at = number
  for (let i = 0; at !== 0 && i < MOST_AROUND; i++) {
    const span = openAt(at)
    if (span !== undefined) return span
    at = aroundOf(at)
  }
  return undefined
}

/** Is it that one, or one inside of it? @param {number} number @param {number} outer */
function isInside (number, outer) {
  let at = number
  for (let i = 0; at >= outer && i < MOST_AROUND; i++) { // what is inside has begun later
    if (at === outer) return true
    const span = openAt(at)
    at = span === undefined ? aroundOf(at) : span.parent?.seq ?? 0
  }
  return false
}

module.exports = {
  add,
  allOpen,
  delayerAt,
  end,
  identityAt,
  isInside,
  next,
  putSpanId,
  putTraceId,
  spanAt,
  spanIdOf,
  traceIdOf
}
