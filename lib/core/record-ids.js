'use strict'

// Full ids and times of records, whose references and words have only 32 bits of them.

const older = require('./older-records')
const { findRecord, ids, isApart, isAsk, resources } = require('./records')
const {
  ERA, FLAGS, IDS, MASK, OUTER, OUTER_WRAPS, PRIOR, PRIOR_TIME, PRIOR_WRAPS, REF, TICKS, TIME, TRIGGER, WRAP,
  WRAP_BITS
} = require('./record-words')

const PROMISE_IDS = 2 ** 40 // ids from here on are longstack's own, for promises without an id from Node
const UNKNOWN_WRAPS = 2 ** WRAP_BITS - 1

/**
 * Returns the record of a context, or undefined if its reference leads to another context's record.
 * @param {{ ref: number, asyncId: number }} context
 * @returns {ReturnType<typeof findRecord>}
 */
function findRecordOf ({ ref, asyncId }) {
  const record = ref === 0 ? undefined : findRecord(ref)
  const isOther = record !== undefined && !isApart(ref) && idAt(record.words, record.offset) !== asyncId
  return isOther ? undefined : record
}

/**
 * Returns the async id of a record's resource, or longstack's own id for a promise without one from Node.
 * @param {Int32Array} words
 * @param {number} offset
 * @returns {number}
 */
function idAt (words, offset) {
  const ref = words[offset + REF]
  if ((ref & 1) === 0) return (words === resources ? ids : older.allIds())[offset >> IDS]
  if (!isApart(ref)) return PROMISE_IDS + (ref >>> 1)
  if (!isAsk(ref)) return idOf(words[offset + OUTER])
  return words[offset + OUTER_WRAPS] * WRAP + (words[offset + OUTER] >>> 1)
}

/**
 * Returns the id of a record's trigger, 0: none.
 * @param {Int32Array} words
 * @param {number} offset
 * @returns {number}
 */
function triggerIdAt (words, offset) {
  const ref = words[offset + REF]
  if ((ref & 1) === 0) return (words === resources ? ids : older.allIds())[(offset >> IDS) + 1]
  const outer = isApart(ref) ? findRecord(words[offset + OUTER]) : undefined
  if (outer !== undefined) {
    const isSame = idAt(outer.words, outer.offset) === idAt(words, offset) // not a collision
    return isSame ? triggerIdAt(outer.words, outer.offset) : 0
  }
  return isAsk(ref) || words[offset + TRIGGER] === 0 ? 0 : idOf(words[offset + TRIGGER])
}

/** @param {number} ref of a resource or promise @returns {number} its id, 0: no longer known */
function idOf (ref) {
  if ((ref & 1) !== 0) return PROMISE_IDS + (ref >>> 1)
  const record = findRecord(ref)
  if (record !== undefined) return idAt(record.words, record.offset)
  return ids[((ref >> 1) & MASK) << 1] < WRAP ? ref >>> 1 : 0 // else two resources share this reference
}

/** @param {Int32Array} words @param {number} offset @returns {number} creation time, see timeOf */
function timeAt (words, offset) {
  return timeOf(words[offset + TIME], words[offset + FLAGS] >>> ERA)
}

/**
 * Returns ms of the clock, NaN: not recorded.
 * @param {number} ticks modulo 2 ** 32
 * @param {number} era how often ticks had passed 2 ** 31 when this iteration began; at most one more since
 */
function timeOf (ticks, era) {
  if (ticks === 0) return NaN
  const passed = (era & 1) === ticks >>> 31 ? era : era + 1
  return (passed * 2 ** 31 + (ticks & 0x7fffffff)) / TICKS
}

/**
 * Stores in a record the step before its loop.
 * @param {Int32Array} ring
 * @param {number} offset
 * @param {number} ref of that step
 */
function notePrior (ring, offset, ref) {
  const record = findRecord(ref)
  ring[offset + PRIOR] = ref
  ring[offset + PRIOR_TIME] = record === undefined ? 0 : record.words[record.offset + TIME]
  const id = isApart(ref) ? 0 : idOf(ref)
  const wraps = id === 0 ? UNKNOWN_WRAPS : id / WRAP
  const era = record === undefined ? 0 : record.words[record.offset + FLAGS] >>> ERA
  ring[offset + PRIOR_WRAPS] = era << WRAP_BITS | wraps
}

/**
 * Returns the stored step before a loop, whose own record may be gone.
 * @param {{ words: Int32Array, offset: number }} record
 * @returns {{ asyncId: number, time: number }} 0: unknown; ms of the clock, NaN: not recorded
 */
function priorOf ({ words, offset }) {
  const ref = words[offset + PRIOR]
  const wraps = words[offset + PRIOR_WRAPS] & UNKNOWN_WRAPS
  const isKnown = wraps !== UNKNOWN_WRAPS
  return {
    asyncId: !isKnown ? 0 : (ref & 1) !== 0 ? idOf(ref) : wraps * WRAP + (ref >>> 1),
    time: timeOf(words[offset + PRIOR_TIME], words[offset + PRIOR_WRAPS] >>> WRAP_BITS)
  }
}

module.exports = { findRecordOf, idAt, idOf, notePrior, priorOf, timeAt, timeOf, triggerIdAt }
