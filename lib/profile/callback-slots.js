'use strict'

// The callbacks that ran last, while a profile is on: when each began and ended, and for which request. By
// slots: a newer resource takes the slot of an older one. Hot path.

const {
  CAUSE, MASK, ONE_SHOT, PASSED, SIZE, TICKS, isRequest
} = require('../core/records')
const { timeAt } = require('../core/record-ids')
const { NEAR_STEPS, requestOf } = require('../core/request-of')

const NO_WAIT = -1 // a callback that waited for nothing, or whose wait is not known
const REQUESTS = 1 << 13 // slots of requests, as in core/request-records.js
const TICK_US = 1000 / TICKS

// Words of a slot, times in µs since the profile began. What is touched at once is in one cache line.
const SLOT = 4
const SLOT_REF = 0
const SLOT_REQUEST = 1
const SLOT_START = 2
const SLOT_END = 3
const RECENT = 1 << 13 // slots of what runs once: few, so that they stay in the CPU's cache
const NOTHING = (RECENT + SIZE + REQUESTS) * SLOT // slot of what is not known

/**
 * Returns the index of the slot for what runs now.
 * @param {number} ref
 * @param {number} flags of its record
 */
function slotFor (ref, flags) {
  if (isRequest(ref)) return requestSlot(ref)
  return (ref & 1) === 0 && (flags & ONE_SHOT) === 0 ? repeatedSlot(ref) : (ref & (RECENT - 1)) * SLOT
}

/** @param {number} ref of a request */
const requestSlot = (ref) => (RECENT + SIZE + ((ref >> 1) & (REQUESTS - 1))) * SLOT

/** @param {number} ref of what may run more than once: it keeps its slot for longer */
const repeatedSlot = (ref) => (RECENT + ((ref >> 1) & MASK)) * SLOT

class CallbackSlots {
  /** @param {number} start ms of the clock when the profile began */
  constructor (start) {
    this.start = start
    this.slots = new Int32Array(NOTHING + SLOT)
    /** slot of the callback that runs, or ran last */
    this.running = NOTHING
  }

  /** Notes that the running callback ends, or goes on until now. @param {number} time */
  endAt (time) {
    this.slots[this.running + SLOT_END] = time
  }

  /** Returns whether a resource or promise ran last in its slot. @param {number} slot @param {number} ref */
  isIn (slot, ref) {
    return this.slots[slot + SLOT_REF] === ref
  }

  /**
   * Finds the slot of what ran before.
   * @param {number} ref
   * @returns {number} NOTHING: it has not run, or too long ago
   */
  find (ref) {
    if (ref === 0) return NOTHING
    if (isRequest(ref)) return this.isIn(requestSlot(ref), ref) ? requestSlot(ref) : NOTHING
    const recent = (ref & (RECENT - 1)) * SLOT
    if (this.isIn(recent, ref)) return recent
    return (ref & 1) === 0 && this.isIn(repeatedSlot(ref), ref) ? repeatedSlot(ref) : NOTHING
  }

  /** @param {number} slot @returns {number} reference of the request, 0: none */
  requestIn (slot) {
    return this.slots[slot + SLOT_REQUEST]
  }

  /** @param {number} slot @param {number} ref @param {number} request @param {number} time */
  setRunning (slot, ref, request, time) {
    const { slots } = this
    slots[slot + SLOT_REF] = ref
    slots[slot + SLOT_REQUEST] = request
    slots[slot + SLOT_START] = time
    slots[slot + SLOT_END] = time
    this.running = slot
  }

  /**
   * Returns how long a callback has waited since the end of the callback that registered it, but not longer
   * than the profile lasts. The record of what the filter leaves out has no time of its own.
   * @param {number} flags
   * @param {Int32Array} words
   * @param {number} offset
   * @param {number} time now
   * @returns {number} µs, or NO_WAIT
   */
  waitOf (flags, words, offset, time) {
    const { slots } = this
    const cause = words[offset + CAUSE]
    const slot = this.find(cause)
    const isCauseRecent = slot !== NOTHING
    if ((flags & PASSED) !== 0) {
      return isCauseRecent && (flags & ONE_SHOT) !== 0 ? time - slots[slot + SLOT_END] : NO_WAIT
    }
    const registered = (timeAt(words, offset) - this.start) * 1e3
    const isOfLastRun = isCauseRecent && registered + TICK_US >= slots[slot + SLOT_START]
    if (isOfLastRun && registered <= slots[slot + SLOT_END]) return time - slots[slot + SLOT_END]
    const isSince = registered > -TICK_US // of the last tick before: what was made just after the start
    if (isSince) return Math.max(0, time - Math.max(0, registered))
    return (flags & ONE_SHOT) === 0 ? NO_WAIT : time // what is not over with one callback may have run before
  }

  /**
   * Returns the request that a step belongs to.
   * @param {number} ref
   * @returns {number} reference, 0: none
   */
  requestOf (ref) {
    if (ref === 0 || isRequest(ref)) return ref
    const slot = this.find(ref)
    return slot === NOTHING ? requestOf(ref, undefined, NEAR_STEPS) : this.slots[slot + SLOT_REQUEST]
  }
}

module.exports = { NOTHING, NO_WAIT, CallbackSlots, slotFor }
