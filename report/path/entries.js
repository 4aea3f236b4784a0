'use strict'

// A recording: entries of the run log (lib/core/run-log.js), with one typed column per word of an entry, and
// more columns for derived facts. Entries refer to each other by index. New ones are added at the end; if
// there is no room left, unneeded ones are dropped, and the others move up.

const {
  A, ARRIVED, B, CAME, CHAIN, HEAD, KIND_BITS, POLL, REF, REGISTERED, REQUEST, RESUME, RUN, SETTLED, TIME,
  WORDS, X
} = require('../../lib/core/run-log-words')

const NONE = -1
const KIND_MASK = (1 << KIND_BITS) - 1

/** Columns that hold an index of an earlier entry, or NONE. @type {Array<keyof Recording>} */
const LINKS = ['registered', 'settled', 'caller', 'slice', 'run', 'last', 'head', 'poll', 'arrived', 'came',
  'previous', 'asked', 'sent']
/** @type {Array<keyof Recording>} */
const COLUMNS = [...LINKS, 'number', 'kind', 'flags', 'ref', 'chain', 'request', 'a', 'b', 'outer',
  'time', 'x', 'at', 'end', 'busy']

class Recording {
  /** @param {number} size number of entries for which there is room */
  constructor (size) {
    const ints = () => new Int32Array(size)
    const doubles = () => new Float64Array(size)
    this.size = size
    this.count = 0
    /** number of entries on the timeline */
    this.placed = 0
    /** index from which on no entries are missing */
    this.dense = 0
    /** time of the first entry, ms */
    this.begin = 0
    /** times between which entries are lost, ms @type {Array<{ from: number, until: number }>} */
    this.gaps = []
    /** time of the last run or poll, and the latest of all, ms */
    this.latest = this.newest = 0

    // Words of the log; a run is the index of its entry.
    this.number = ints()
    this.kind = new Uint8Array(size)
    /** of a write: its state (query-writes.js) */
    this.flags = new Uint8Array(size)
    this.ref = ints()
    this.chain = ints()
    this.request = ints()
    this.registered = ints()
    this.settled = ints()
    /** the run inside which a run was entered */
    this.caller = ints()
    this.time = doubles()
    this.a = ints()
    this.b = ints()
    this.x = doubles()

    // The timeline (timeline.js). A slice is the entry with which a run begins or continues.
    /** when an entry was written, ms; never goes back */
    this.at = doubles()
    /** end of a slice, ms; for a held write, when it went out, 0 if it has not */
    this.end = doubles()
    /** ms of all slices that had ended by then */
    this.busy = doubles()
    /** the newest slice then */
    this.slice = ints()
    /** run of a slice */
    this.run = ints()
    /** last slice of a run */
    this.last = ints()
    /** number of a slice's outermost span, 0 if it belongs to none */
    this.outer = ints()
    /** run that the event loop called, whose callback contains a run */
    this.head = ints()
    /** the last poll before a run, or before another poll */
    this.poll = ints()
    /** entry that says when a run was due */
    this.arrived = ints()
    /** data that a run brought, that answered a write, or that settled a promise */
    this.came = ints()

    // Lists, newest first.
    /** slices of an outermost span; writes on a connection; queries that the same data answered */
    this.previous = ints()
    /** writes and queries of a span */
    this.asked = ints()
    /** write of a query; for a write, the one whose query it belongs to; for data, the newest query */
    this.sent = ints()
  }

  /**
   * Adds entries. The caller ensures that there is room.
   * @param {Int32Array} words
   * @param {Float64Array} floats of the same memory
   * @param {number} place of the first, in entries
   * @param {number} until place after the last
   * @param {number} first number of the first
   */
  add (words, floats, place, until, first) {
    const { a, b, caller, chain, flags, kind, number, ref, registered, request, settled, time, x } = this
    const { arrived, asked, came, last, previous, sent } = this
    let { count: i, latest, newest } = this
    const isFirst = i === 0
    for (let entry = place; entry < until; entry++, i++) {
      const word = entry * WORDS
      const float = word >> 1
      const head = words[word + HEAD]
      const what = head & KIND_MASK
      const own = floats[float + TIME]
      const isKnown = own > 0 && own < Infinity
      const extra = floats[float + X]
      if (isKnown && (what === RUN || what === POLL || what === RESUME)) latest = own
      number[i] = (first + entry - place) | 0
      kind[i] = what
      flags[i] = head >>> KIND_BITS
      ref[i] = words[word + REF]
      chain[i] = words[word + CHAIN]
      request[i] = words[word + REQUEST]
      registered[i] = runOf(this, words[word + REGISTERED], i)
      settled[i] = runOf(this, words[word + SETTLED], i)
      caller[i] = what === RUN ? runOf(this, words[word + A], i) : NONE
      time[i] = isKnown ? own : what === ARRIVED ? 0 : latest // 0: arrived with its cause
      if (time[i] > newest) newest = time[i]
      a[i] = words[word + A]
      b[i] = words[word + B]
      x[i] = extra > -Infinity && extra < Infinity ? extra : 0
      arrived[i] = came[i] = last[i] = previous[i] = asked[i] = sent[i] = NONE
    }
    if (isFirst) this.begin = time[0]
    this.count = i
    this.latest = latest
    this.newest = newest
  }

  /** Grows all columns. @param {number} size */
  grow (size) {
    for (const name of COLUMNS) {
      const column = /** @type {Int32Array} */ (this[name])
      const grown = new /** @type {Int32ArrayConstructor} */ (column.constructor)(size)
      grown.set(column)
      Object.assign(this, { [name]: grown })
    }
    this.size = size
  }

  /**
   * Drops older entries.
   * @param {Uint8Array} marks by index, nonzero if kept
   * @param {number} from index from which all are kept
   * @returns {Int32Array} new indexes by the old ones, NONE if dropped
   */
  keep (marks, from) {
    const { asked, count, kind, previous } = this
    const moved = new Int32Array(count)
    const older = new Int32Array(from) // older entries that are kept
    let olderCount = 0
    for (let i = 0; i < count; i++) {
      if (i >= from) {
        moved[i] = olderCount + i - from
      } else if (marks[i] === 0) {
        moved[i] = NONE
      } else {
        older[olderCount] = i
        moved[i] = olderCount++
      }
      if (previous[i] !== NONE && moved[previous[i]] === NONE) previous[i] = previous[previous[i]]
      if (kind[i] !== CAME && asked[i] !== NONE && moved[asked[i]] === NONE) asked[i] = asked[asked[i]]
    }
    for (const name of COLUMNS) {
      const column = /** @type {Int32Array} */ (this[name])
      for (let i = 0; i < olderCount; i++) column[i] = column[older[i]]
      column.copyWithin(olderCount, from, count)
    }
    const kept = olderCount + count - from
    for (const name of LINKS) {
      const column = /** @type {Int32Array} */ (this[name])
      for (let i = 0; i < kept; i++) if (column[i] !== NONE) column[i] = moved[column[i]]
    }
    this.dense = moved[Math.max(from, this.dense)] ?? kept
    this.count = this.placed = kept
    return moved
  }
}

/**
 * Returns the index of a run.
 * @param {Recording} recording
 * @param {number} wanted its number, 0 for none
 * @param {number} before index of the entry that names it
 */
function runOf ({ dense, kind, number }, wanted, before) {
  if (wanted === 0) return NONE
  const distance = (number[before] - wanted) | 0
  if (distance <= 0) return NONE
  let index = before - distance
  if (index < dense) {
    // Some of these have been dropped.
    let high = dense
    index = 0
    while (index < high) {
      const middle = (index + high) >>> 1
      if (((number[middle] - wanted) | 0) < 0) index = middle + 1
      else high = middle
    }
    if (index === dense || number[index] !== wanted) return NONE
  }
  return kind[index] === RUN ? index : NONE
}

module.exports = { NONE, Recording }
