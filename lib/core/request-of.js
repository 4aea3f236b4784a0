'use strict'

// Finds the request that a step belongs to by following its causes. Records of steps that have run are
// overwritten while steps they made still wait. So the request of a waiting promise is noted early: in
// DETAIL, which is unused until the promise settles. Starts with the first request of a server, and scans
// records in ranges of the ring, each once it is full of new ones.

const capture = require('../stacks/capture')
const { queriedAt, stepClock } = require('./clock')
const { distanceOf } = require('./loops')
const { timeAt } = require('./record-ids')
const records = require('./records')
const { source } = require('./source')
const requestRecords = require('./request-records')
const {
  AWAITED, CALLED, CAUSE, CHAIN, DETAIL, FLAGS, LIVE, ONE_SHOT, OUTER, PARTS, REF, RUNS, SETTLED, SHIFT, TIMER
} = require('./record-words')

const { findRecord, isAsk, isRequest, promises, resources } = records
const MAX_STEPS = 1 << 15 // steps up from a step to its request
const NEAR_STEPS = 64 // the same limit for frequent calls
const WAITS = LIVE | AWAITED
const MAX_KEPT = 1 << 12 // records
const MAX_LATE = 20 // ms that a timer is often late
const MAX_LOOPS = 1 << 10
const COPY_BYTES = 200 // approximate

/**
 * copies of request records that waiting steps need, and of last asks, by reference
 * @type {Map<number, Int32Array>}
 */
const kept = new Map()

/**
 * Requests of loops with a pending await, by reference of the step before the loop. A loop that awaits often
 * within one iteration of the event loop overwrites the record of that step.
 * @type {Map<number, number>}
 */
const loops = new Map()

/** for the current query: when work for others first ran, by reference of a request */
let searched = { query: 0, time: 0, firsts: /** @type {Map<number, number>} */ (new Map()) }

/** @typedef {Map<number, number>} Lookup results by reference of a step, for one query */

/**
 * Returns the request in which a step was made.
 * @param {number} ref
 * @param {Lookup} [lookup]
 * @param {number} [maxSteps]
 * @returns {number} reference of the request, 0: unknown
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
 * Returns the request of a step, or its cause; for a step in a loop, the cause of the loop.
 * @param {number} ref
 * @returns {number} reference, 0: unknown
 */
function causeOf (ref) {
  const record = findRecord(ref)
  if (record === undefined) return 0
  const { words, offset } = record
  const flags = words[offset + FLAGS]
  const isMarked = isAsk(ref) || (flags & (AWAITED | SETTLED)) === AWAITED
  if (isMarked && isRequest(words[offset + DETAIL])) return words[offset + DETAIL]
  const outer = distanceOf(flags) === 0 ? 0 : words[offset + OUTER]
  if (outer === 0) return words[offset + CAUSE]
  return findRecord(outer) === undefined ? loops.get(outer) ?? 0 : outer
}

/**
 * Returns when work for another request first ran after a given request began. The given request may have its
 * response: some keep working afterwards. Searches all records, once per query.
 * @param {number} own reference of the one that began
 * @param {number} begin ms of the clock
 * @returns {number} likewise; Infinity: none known
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
 * Returns whether the program made a step, or the step is a one-time system call, as in reading a file.
 * Node's own ticks and timers close connections.
 * @param {Int32Array} ring
 * @param {number} offset
 */
function isWork (ring, offset) {
  const isSystemCall = (ring[offset + FLAGS] & (CALLED | ONE_SHOT | TIMER)) === (CALLED | ONE_SHOT)
  return isSystemCall || capture.hasProgramFrame(ring[offset + CHAIN])
}

/**
 * Returns whether a timer of the program may have fired after a given time, or will. The end of an interval
 * is unknown.
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

/** Marks waiting steps of a ring with their requests. */
class RequestMarks {
  #ring
  #rangeWords
  /** the next range to scan */
  #range = 0
  /** reference of the first record of each range when it was last scanned */
  #firstRefs = new Int32Array(PARTS)

  /** @param {Int32Array} ring */
  constructor (ring) {
    this.#ring = ring
    this.#rangeWords = ring.length / PARTS
    for (let i = 0; i < PARTS; i++) this.#firstRefs[i] = ring[i * this.#rangeWords + REF]
  }

  /** Scans the ranges that are full of new records. */
  look () {
    for (let i = 0; i < PARTS; i++) {
      const next = (this.#range + 1) % PARTS
      const nextRef = this.#ring[next * this.#rangeWords + REF]
      if (nextRef === this.#firstRefs[next]) return
      this.scan()
      this.#firstRefs[next] = nextRef
      this.#range = next
    }
  }

  /** Scans the present range. */
  scan () {
    const start = this.#range * this.#rangeWords
    this.mark(this.#ring, start, start + this.#rangeWords)
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
      if (distanceOf(ring[offset + FLAGS]) !== 0) noteLoop(ring[offset + OUTER], request)
    }
  }
}

/** @param {number} outer reference of the step before a loop @param {number} request */
function noteLoop (outer, request) {
  if (isRequest(outer)) return
  loops.delete(outer) // it becomes the newest
  loops.set(outer, request)
  if (loops.size > MAX_LOOPS) loops.delete(/** @type {number} */ (loops.keys().next().value))
}

/** Keeps the last ask of each connection and its request: a pool may be idle for a long time. */
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

const ofResources = new RequestMarks(resources)
const marks = [new RequestMarks(promises), ofResources]

/** Keeps the record of a request or an ask when its ring wraps around. @param {number} ref 0: none */
function keepRecord (ref) {
  const record = kept.has(ref) ? undefined : findRecord(ref)
  if (record === undefined) return
  if (kept.size >= MAX_KEPT) kept.delete(/** @type {number} */ (kept.keys().next().value))
  kept.set(ref, record.words.slice(record.offset, record.offset + (1 << SHIFT)))
}

/**
 * Calls back for each request record, in order of arrival per resource.
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
  offsets.sort((a, b) => (ring[a + REF] - ring[b + REF]) << 1) // numbers may have wrapped around
  for (const offset of offsets) callback(ring, offset)
}

/** @param {Int32Array} ring of asks */
function watchAsks (ring) {
  marks.push(new AskMarks(ring))
}

/**
 * Marks waiting steps with their requests: an iteration of the event loop begins, or many promises were made.
 * @param {boolean} isWithin whether async_hooks reported many promises, perhaps within one iteration; loops
 *   are then known only by their pending awaits
 */
function markWaits (isWithin) {
  for (let i = 0; i < marks.length; i++) marks[i].look()
  if (isWithin) ofResources.scan()
}

/** @param {number} ref of a request @returns {{ words: Int32Array, offset: number } | undefined} */
function findKept (ref) {
  const copy = kept.get(ref)
  return copy && { words: copy, offset: 0 }
}

function clear () {
  kept.clear()
  loops.clear()
}

const bytes = () => kept.size * COPY_BYTES + loops.size * 40

module.exports = {
  NEAR_STEPS, bytes, clear, eachRequest, findKept, markWaits, othersWorkSince, requestOf, watchAsks
}
