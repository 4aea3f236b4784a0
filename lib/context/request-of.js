'use strict'

// The request in which a step was made, found up its causes. Records of steps that have run are overwritten
// while what they made still waits, so the request of a promise that waits is noted before: in DETAIL, which
// has no other meaning until it is settled. Begins with the first request of a server, and looks at records
// in ranges of RANGE, once there are as many new ones.

const records = require('./records')
const requestRecords = require('./request-records')
const {
  AWAITED, CAUSE, DETAIL, DISTANCE, FLAGS, LIVE, OUTER, REF, SETTLED, SHIFT, SIZE
} = require('./record-words')

const { findRecord, isRequest, promises, resources } = records
const MAX_STEPS = 1 << 15 // from a step up to its request
const RANGES = 4 // of a ring
const RANGE_WORDS = (SIZE / RANGES) << SHIFT
const WAITS = LIVE | AWAITED
const MAX_KEPT = 1 << 12 // requests
const COPY_BYTES = 200 // about

/** copies of records of requests for which something waits, by reference @type {Map<number, Int32Array>} */
const kept = new Map()

/** Finds requests, and remembers what was found: for as long as a query lasts. */
class RequestLookup {
  /** by reference of a step @type {Map<number, number>} */
  #requests = new Map()

  /**
   * Returns the request in which a step was made.
   * @param {number} ref
   * @returns {number} reference of the request, 0: none is known
   */
  of (ref) {
    const steps = []
    let step = ref
    let request = 0
    while (step !== 0 && steps.length < MAX_STEPS) {
      const remembered = isRequest(step) ? step : this.#requests.get(step)
      if (remembered !== undefined) {
        request = remembered
        break
      }
      steps.push(step)
      step = causeOf(step)
    }
    for (const passed of steps) this.#requests.set(passed, request)
    return request
  }
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
  const isMarked = (flags & (AWAITED | SETTLED)) === AWAITED && isRequest(words[offset + DETAIL])
  if (isMarked) return words[offset + DETAIL]
  const isRepetition = ((flags >> DISTANCE) & 15) !== 0
  return (isRepetition && words[offset + OUTER]) || words[offset + CAUSE]
}

/** Notes the requests of what waits in a ring. */
class RequestMarks {
  #ring
  /** the range that is looked at next */
  #range = 0
  /** reference of the first record of each range, when it was looked at */
  #firstRefs = new Int32Array(RANGES)

  /** @param {Int32Array} ring */
  constructor (ring) {
    this.#ring = ring
    for (let range = 0; range < RANGES; range++) this.#firstRefs[range] = ring[range * RANGE_WORDS + REF]
  }

  /** Looks at the ranges that are full of new records. */
  look () {
    for (let i = 0; i < RANGES; i++) {
      const next = (this.#range + 1) % RANGES
      const nextRef = this.#ring[next * RANGE_WORDS + REF]
      if (nextRef === this.#firstRefs[next]) return
      this.#mark(this.#range * RANGE_WORDS)
      this.#firstRefs[next] = nextRef
      this.#range = next
    }
  }

  /** @param {number} start index of its first word */
  #mark (start) {
    const ring = this.#ring
    const lookup = new RequestLookup()
    for (let offset = start; offset < start + RANGE_WORDS; offset += 1 << SHIFT) {
      if ((ring[offset + FLAGS] & WAITS) !== WAITS || ring[offset + DETAIL] !== 0) continue
      const request = lookup.of(ring[offset + REF])
      if (request === 0) continue
      ring[offset + DETAIL] = request
      keepRequest(request)
    }
  }
}

const marks = [new RequestMarks(promises), new RequestMarks(resources)]

/** Keeps the record of a request when its ring goes on. @param {number} ref */
function keepRequest (ref) {
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
  for (const copy of kept.values()) callback(copy, 0)
  const ring = requestRecords.all()
  if (ring === undefined) return
  const offsets = []
  for (let offset = 0; offset < ring.length; offset += 1 << SHIFT) {
    if (ring[offset + REF] !== 0) offsets.push(offset)
  }
  offsets.sort((a, b) => (ring[a + REF] - ring[b + REF]) << 1) // their numbers may have begun anew
  for (const offset of offsets) callback(ring, offset)
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

module.exports = { RequestLookup, bytes, clear, eachRequest, findKept, markWaits }
