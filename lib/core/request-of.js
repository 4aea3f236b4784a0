'use strict'

// The request in which a step was made, found up its causes. Records of steps that have run are overwritten
// while what they made still waits, so the request of a promise that waits is noted before: in DETAIL, which
// has no other meaning until it is settled. Begins with the first request of a server, and looks at records
// in ranges of RANGE, once there are as many new ones.

const capture = require('../stacks/capture')
const { queriedAt, stepClock } = require('./clock')
const { distanceOf } = require('./loops')
const { timeAt } = require('./record-ids')
const records = require('./records')
const { source } = require('./source')
const requestRecords = require('./request-records')
const {
  AWAITED, CALLED, CAUSE, CHAIN, DETAIL, FLAGS, LIVE, ONE_SHOT, OUTER, REF, RUNS, SETTLED, SHIFT, TIMER
} = require('./record-words')

const { findRecord, isAsk, isRequest, promises, resources } = records
const MAX_STEPS = 1 << 15 // from a step up to its request
const NEAR_STEPS = 64 // likewise, where it is asked for often
const RANGES = 4 // of a ring
const WAITS = LIVE | AWAITED
const MAX_KEPT = 1 << 12 // records
const MAX_LATE = 20 // ms that a timer is late, as likely as not
const COPY_BYTES = 200 // about

/**
 * copies of records of requests for which something waits, and of last asks, by reference
 * @type {Map<number, Int32Array>}
 */
const kept = new Map()

/** of the present query: when others were worked for first, by reference of a request */
let searched = { query: 0, time: 0, firsts: /** @type {Map<number, number>} */ (new Map()) }

/** @typedef {Map<number, number>} Lookup what was found, by reference of a step: while a query lasts */

/**
 * Returns the request in which a step was made.
 * @param {number} ref
 * @param {Lookup} [lookup]
 * @param {number} [maxSteps]
 * @returns {number} reference of the request, 0: none is known
 */
function requestOf (ref, lookup, maxSteps = MAX_STEPS) {
  const steps = []
  let step = ref
  let request = 0
  while (step !== 0 && steps.length < maxSteps) {
    const found = isRequest(step) ? step : lookup?.get(step)
    if (found !== undefined) {
      request = found
      break
    }
    steps.push(step)
    step = causeOf(step)
  }
  if (lookup !== undefined) for (const passed of steps) lookup.set(passed, request)
  return request
}

/**
 * Returns the request of a step, or what came before it and before the loop that it repeats.
 * @param {number} ref
 * @returns {number} reference, 0: none is known
 */
function causeOf (ref) {
  const record = findRecord(ref)
  if (record === undefined) return 0
  const { words, offset } = record
  const flags = words[offset + FLAGS]
  const isMarked = isAsk(ref) || (flags & (AWAITED | SETTLED)) === AWAITED
  if (isMarked && isRequest(words[offset + DETAIL])) return words[offset + DETAIL]
  return (distanceOf(flags) !== 0 && words[offset + OUTER]) || words[offset + CAUSE]
}

/**
 * Returns when another request was worked for first, after one began. It may be answered: some go on behind
 * that. Searches all records, once a query.
 * @param {number} own reference of the one that began
 * @param {number} begin ms of the clock
 * @returns {number} likewise; Infinity: not known to be
 */
function othersWorkSince (own, begin) {
  if (searched.query !== queriedAt() || searched.time !== stepClock[0]) {
    searched = { query: queriedAt(), time: stepClock[0], firsts: new Map() }
  }
  let first = searched.firsts.get(own)
  if (first === undefined) searched.firsts.set(own, first = findOthersWork(own, begin))
  return first
}

/** @type {typeof othersWorkSince} */
function findOthersWork (own, begin) {
  const lookup = new Map()
  let first = Infinity
  for (const ring of [resources, promises]) {
    for (let offset = 0; offset < ring.length; offset += 1 << SHIFT) {
      const time = timeAt(ring, offset)
      if (!(time < first)) continue
      if (!(time >= begin ? isWork(ring, offset) : isTimerAt(ring, offset, begin))) continue
      const request = requestOf(ring[offset + REF], lookup)
      if (request !== 0 && request !== own) first = Math.max(time, begin)
    }
  }
  return first
}

/**
 * Whether the program made a step, or began what has more of them, as the reading of a file. Node's own ticks
 * and timers close connections.
 * @param {Int32Array} ring
 * @param {number} offset
 */
function isWork (ring, offset) {
  const isSystemCall = (ring[offset + FLAGS] & (CALLED | ONE_SHOT | TIMER)) === (CALLED | ONE_SHOT)
  return isSystemCall || capture.hasProgramFrame(ring[offset + CHAIN])
}

/**
 * Whether a timer of the program may have run after a time, or will. When an interval ended is not known.
 * @param {Int32Array} ring
 * @param {number} offset
 * @param {number} time ms of the clock
 */
function isTimerAt (ring, offset, time) {
  const flags = ring[offset + FLAGS]
  if ((flags & TIMER) === 0 || !capture.hasProgramFrame(ring[offset + CHAIN])) return false
  const isInterval = ring[offset + RUNS] > 0
  return isInterval || (flags & LIVE) !== 0 || timeAt(ring, offset) + ring[offset + DETAIL] + MAX_LATE >= time
}

/** Notes the requests of what waits in a ring. */
class RequestMarks {
  #ring
  #rangeWords
  /** the range that is looked at next */
  #range = 0
  /** reference of the first record of each range, when it was looked at */
  #firstRefs = new Int32Array(RANGES)

  /** @param {Int32Array} ring */
  constructor (ring) {
    this.#ring = ring
    this.#rangeWords = ring.length / RANGES
    for (let i = 0; i < RANGES; i++) this.#firstRefs[i] = ring[i * this.#rangeWords + REF]
  }

  /** Looks at the ranges that are full of new records. */
  look () {
    for (let i = 0; i < RANGES; i++) {
      const next = (this.#range + 1) % RANGES
      const nextRef = this.#ring[next * this.#rangeWords + REF]
      if (nextRef === this.#firstRefs[next]) return
      const start = this.#range * this.#rangeWords
      this.mark(this.#ring, start, start + this.#rangeWords)
      this.#firstRefs[next] = nextRef
      this.#range = next
    }
  }

  /** @param {Int32Array} ring @param {number} start index of its first word @param {number} end */
  mark (ring, start, end) {
    const lookup = new Map()
    for (let offset = start; offset < end; offset += 1 << SHIFT) {
      if ((ring[offset + FLAGS] & WAITS) !== WAITS || ring[offset + DETAIL] !== 0) continue
      const request = requestOf(ring[offset + REF], lookup)
      if (request === 0) continue
      ring[offset + DETAIL] = request
      keepRecord(request)
    }
  }
}

/** Keeps the last ask of each connection, and its request: a pool may be idle for long. */
class AskMarks extends RequestMarks {
  /** @override @param {Int32Array} ring @param {number} start @param {number} end */
  mark (ring, start, end) {
    const lookup = new Map()
    for (const ref of source.lastAsks()) {
      const record = kept.has(ref) ? undefined : findRecord(ref)
      if (record === undefined || record.offset < start || record.offset >= end) continue
      ring[record.offset + DETAIL] = requestOf(ref, lookup)
      keepRecord(ref)
      keepRecord(ring[record.offset + DETAIL])
    }
  }
}

const marks = [new RequestMarks(promises), new RequestMarks(resources)]

/** Keeps a record of a request, or an ask, when its ring goes on. @param {number} ref 0: none */
function keepRecord (ref) {
  const record = kept.has(ref) ? undefined : findRecord(ref)
  if (record === undefined) return
  if (kept.size >= MAX_KEPT) kept.delete(/** @type {number} */ (kept.keys().next().value))
  kept.set(ref, record.words.slice(record.offset, record.offset + (1 << SHIFT)))
}

/**
 * Calls back for each record of a request; of one resource in the order in which they came.
 * @param {(words: Int32Array, offset: number) => void} callback
 */
function eachRequest (callback) {
  for (const copy of kept.values()) if (isRequest(copy[REF])) callback(copy, 0)
  const ring = requestRecords.all()
  if (ring === undefined) return
  const offsets = []
  for (let offset = 0; offset < ring.length; offset += 1 << SHIFT) {
    if (ring[offset + REF] !== 0) offsets.push(offset)
  }
  offsets.sort((a, b) => (ring[a + REF] - ring[b + REF]) << 1) // their numbers may have begun anew
  for (const offset of offsets) callback(ring, offset)
}

/** @param {Int32Array} ring of asks */
function watchAsks (ring) {
  marks.push(new AskMarks(ring))
}

/** An iteration of the event loop begins: notes the requests of what waits. */
function markWaits () {
  for (let i = 0; i < marks.length; i++) marks[i].look()
}

/** @param {number} ref of a request @returns {{ words: Int32Array, offset: number } | undefined} */
function findKept (ref) {
  const copy = kept.get(ref)
  return copy && { words: copy, offset: 0 }
}

const clear = () => kept.clear()
const bytes = () => kept.size * COPY_BYTES

module.exports = {
  NEAR_STEPS, bytes, clear, eachRequest, findKept, markWaits, othersWorkSince, requestOf, watchAsks
}
