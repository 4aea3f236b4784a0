'use strict'

// Reads the run log (lib/core/run-log.js) into a recording: one typed column per word of its entries. A run
// is its index in these columns. It can only refer to an earlier one, so causes have no cycles.

const {
  A, ARRIVED, B, CHAIN, COUNT, ENTRIES, HEAD, HEADER, KIND_BITS, POLL, REF, REGISTERED, REQUEST, RESUME, RUN,
  SETTLED, TIME, WORDS, X
} = require('../../lib/core/run-log-words')
const { spansOf } = require('./requests')
const { NONE, timelineOf } = require('./timeline')

const TYPE_SHIFT = 16 // in HEAD
const KIND_MASK = (1 << KIND_BITS) - 1

/**
 * @typedef {object} Columns one element per entry, oldest first
 * @property {number} count
 * @property {number} first number of the oldest entry
 * @property {number} lost entries that were asked for and had been overwritten
 * @property {Uint8Array} kind
 * @property {Uint8Array} flags
 * @property {Uint16Array} type number of the type of the resource that a run entered, 0: not known
 * @property {Int32Array} ref
 * @property {Int32Array} chain
 * @property {Int32Array} request number of the span
 * @property {Int32Array} registered index of an earlier run, NONE: there is none, or it is not recorded
 * @property {Int32Array} settled likewise
 * @property {Int32Array} caller likewise: of a run that was entered inside of another one
 * @property {Float64Array} time ms
 * @property {Int32Array} a
 * @property {Int32Array} b
 * @property {Float64Array} x
 *
 * @typedef {import('./timeline').Timeline} Timeline
 * @typedef {Columns & { timeline: Timeline, spans: import('./requests').Spans }} Recording
 */

/**
 * Returns the recording of a ring, which may be written meanwhile, or of a copy of consecutive entries.
 * @param {SharedArrayBuffer | Uint8Array} source
 * @param {object} [range] numbers of entries
 * @param {number} [range.first] of a copy: the number of its first entry; of a ring the default is the oldest
 * @param {number} [range.last] default: the newest
 * @returns {Recording}
 */
function readEntries (source, range = {}) {
  const { bytes, first, lost } = source instanceof Uint8Array ? copied(source, range) : taken(source, range)
  const columns = columnsOf(bytes, first, lost)
  const timeline = timelineOf(columns)
  return { ...columns, timeline, spans: spansOf(columns, timeline) }
}

/** @param {Uint8Array} source @param {{ first?: number, last?: number }} range */
function copied (source, { first = 1, last }) {
  const size = WORDS * 4
  const whole = source.length - source.length % size
  const end = last === undefined ? whole : Math.max(0, Math.min(whole, (((last - first) | 0) + 1) * size))
  return { bytes: new Uint8Array(source.subarray(0, end)), first: first | 0, lost: 0 }
}

/** @param {SharedArrayBuffer} ring @param {{ first?: number, last?: number }} range */
function taken (ring, range) {
  const words = new Int32Array(ring)
  const newest = words[COUNT]
  const last = range.last === undefined || ((range.last - newest) | 0) > 0 ? newest : range.last | 0
  const oldest = oldestOf(newest)
  const wanted = range.first ?? oldest
  const first = ((wanted - oldest) | 0) > 0 ? wanted | 0 : oldest
  const size = Math.max(0, Math.min(ENTRIES, (last - first + 1) | 0))
  const copy = new Int32Array(size * WORDS)
  const slot = (first - 1) & (ENTRIES - 1)
  const head = Math.min(size, ENTRIES - slot)
  copy.set(words.subarray(HEADER + slot * WORDS, HEADER + (slot + head) * WORDS))
  copy.set(words.subarray(HEADER, HEADER + (size - head) * WORDS), head * WORDS)
  // What was written meanwhile has overwritten the oldest entries.
  const overwritten = Math.max(0, Math.min(size, (oldestOf(words[COUNT]) - first) | 0))
  const bytes = new Uint8Array(copy.buffer, overwritten * WORDS * 4)
  const start = (first + overwritten) | 0
  return { bytes, first: start, lost: Math.max(0, (start - wanted) | 0) }
}

/**
 * Returns the oldest number in a ring that is whole: the writer may be overwriting the one before.
 * @param {number} newest
 */
const oldestOf = (newest) => newest >= 0 && newest < ENTRIES ? 1 : (newest - ENTRIES + 2) | 0

/** @param {Uint8Array} bytes aligned to 8 @param {number} first @param {number} lost @returns {Columns} */
function columnsOf (bytes, first, lost) {
  const { buffer, byteOffset, length } = bytes
  const words = new Int32Array(buffer, byteOffset, length / 4)
  const doubles = new Float64Array(buffer, byteOffset, length / 8)
  const count = words.length / WORDS
  const ints = () => new Int32Array(count)
  const columns = {
    count,
    first,
    lost,
    kind: new Uint8Array(count),
    flags: new Uint8Array(count),
    type: new Uint16Array(count),
    ref: ints(),
    chain: ints(),
    request: ints(),
    registered: ints(),
    settled: ints(),
    caller: ints(),
    time: new Float64Array(count),
    a: ints(),
    b: ints(),
    x: new Float64Array(count)
  }
  let time = 0
  for (let i = 0; i < count; i++) {
    const word = i * WORDS
    const double = word >> 1
    columns.kind[i] = words[word + HEAD] & KIND_MASK
    columns.flags[i] = words[word + HEAD] >>> KIND_BITS
    columns.type[i] = words[word + HEAD] >>> TYPE_SHIFT
    columns.ref[i] = words[word + REF]
    columns.chain[i] = words[word + CHAIN]
    columns.request[i] = words[word + REQUEST]
    columns.registered[i] = runOf(words[word + REGISTERED], first, i, columns.kind)
    columns.settled[i] = runOf(words[word + SETTLED], first, i, columns.kind)
    columns.a[i] = words[word + A]
    columns.b[i] = words[word + B]
    columns.caller[i] = runOf(words[word + A], first, i, columns.kind)
    const own = doubles[double + TIME]
    const isKnown = own > 0 && own < Infinity
    if (isKnown && moves(columns.kind[i])) time = own
    if (isKnown) columns.time[i] = own
    else if (columns.kind[i] !== ARRIVED) columns.time[i] = time // of that one, 0: with its cause
    columns.x[i] = Number.isFinite(doubles[double + X]) ? doubles[double + X] : 0
  }
  return columns
}

/** Whether an entry is written at its time. @param {number} kind */
const moves = (kind) => kind === RUN || kind === POLL || kind === RESUME

/**
 * Returns the index of a run.
 * @param {number} number 0: none
 * @param {number} first
 * @param {number} before entry that names it
 * @param {Uint8Array} kinds
 */
function runOf (number, first, before, kinds) {
  const index = number === 0 ? NONE : (number - first) | 0
  return index >= 0 && index < before && kinds[index] === RUN ? index : NONE
}

module.exports = { NONE, readEntries }
