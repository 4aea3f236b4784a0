'use strict'

// Which chain ran when: an entry for each callback and continuation that begins, while a profile is on. An
// entry lasts until the next one; where the loop waits in the poll phase, an entry of IDLE lies between. The
// wait is libuv's own count (uv_metrics_idle_time), so that no clock is read where a callback ends.
//
// Hot path while a profile is on: docs/profile.md says what it costs.

const { executionAsyncId } = require('node:async_hooks')
const { performance } = require('node:perf_hooks')
const { now } = require('../core/clock')
const { CURRENT_CAUSE, CURRENT_CHAIN, current } = require('../core/current')
const {
  CAUSE, DETAIL, FLAGS, INCOMING, isRequest, MASK, ONE_SHOT, PARSER, PASSED, readWord, ROOT_CHAIN, SIZE,
  TICKS
} = require('../core/records')
const { timeAt } = require('../core/record-ids')
const { NEAR_STEPS, requestOf } = require('../core/request-of')

const IDLE = -1 // in place of a chain: the loop waited
const RESUMED = -2 // no callback: the present one goes on
const BEGUN = -3 // a request begins, within the callback of its parser
const LONG_US = 200 // after which the loop may have waited, though no hook reported an iteration
const MAX_LOOP_US = 300 // from the end of a callback to the poll phase
const PIECE = 1 << 12 // entries that are handed on at once
const LAG = 1 << 10 // newest entries that are not handed on yet: routes of requests become known late

// Words of an entry: what is touched at once is in one cache line.
const ENTRY = 4
const ENTRY_TIME = 0 // when it began
const ENTRY_CHAIN = 1
const ENTRY_REQUEST = 2 // reference, 0: none
const ENTRY_WAIT = 3 // µs, NO_WAIT, RESUMED or BEGUN

/** Returns µs that the event loop has waited in the poll phase so far; costs some 30 ns. */
const idleTime = () => performance.nodeTiming.idleTime * 1e3

class StepLog {
  /**
   * @param {number} capacity entries, above PIECE + LAG
   * @param {import('./totals').Totals} totals get all entries, in order
   * @param {() => void} onFull empties the log before the next entry
   * @param {boolean} isInterrupted signals of V8's profiler interrupt the poll phase
   */
  constructor (capacity, totals, onFull, isInterrupted) {
    this.isInterrupted = isInterrupted
    this.totals = totals
    this.onFull = onFull
    this.capacity = capacity
    this.entries = new Int32Array(capacity * ENTRY)
    this.count = 0
    /** entries that were handed on */
    this.handedOn = 0
    /** ms of the clock; all other times are µs since then */
    this.start = now()
    this.callbacks = new CallbackSlots(this.start)
    /** when the last entry began */
    this.since = 0
    /** libuv's count when it was read last */
    this.polled = idleTime()
    /** when the last callback returned to the loop, where the poll phase is interrupted */
    this.left = 0
    /** the loop may have waited since libuv's count was read */
    this.mayHavePolled = false
    /** the main script may still run */
    this.inMainScript = executionAsyncId() === 1
  }

  /** Returns the time, in µs since the start. */
  now () {
    return ((now() - this.start) * 1e3) | 0
  }

  /**
   * Notes that a callback or continuation begins: the current step.
   * @param {number} ref of its record
   * @param {number} flags
   * @param {Int32Array} words
   * @param {number} offset
   */
  enter (ref, flags, words, offset) {
    const time = this.now()
    if (this.mayHavePolled || time - this.since >= LONG_US) this.addPoll(time)
    const { callbacks } = this
    const slot = slotFor(ref, flags)
    const isRepeated = callbacks.isIn(slot, ref)
    let request = callbacks.requestOf(isRepeated ? ref : words[offset + CAUSE])
    const waited = isRepeated ? NO_WAIT : callbacks.waitOf(flags, words, offset, time)
    if ((flags & PARSER) !== 0) request = words[offset + INCOMING] === 0 ? 0 : words[offset + DETAIL]
    this.add(time, current[CURRENT_CHAIN], request, waited)
    callbacks.setRunning(slot, ref, request, time)
  }

  /**
   * Notes that the present callback goes on with another step: the current one.
   * @param {number} [waited] RESUMED, or BEGUN where a request came
   */
  resume (waited = RESUMED) {
    const time = this.count === 0 ? 0 : this.now() // the first entry begins with the profile
    const { callbacks } = this
    const ref = current[CURRENT_CAUSE]
    const request = callbacks.requestOf(ref)
    this.add(time, current[CURRENT_CHAIN], request, waited)
    const slot = callbacks.find(ref)
    if (slot !== NOTHING) callbacks.running = slot
    else callbacks.setRunning(ref === 0 ? NOTHING : slotFor(ref, readWord(ref, FLAGS)), ref, request, time)
  }

  /** Notes that the callback of a parser goes on with a request. */
  beginRequest () {
    this.resume(BEGUN)
  }

  /** Notes that a callback has returned to nothing, which may be the main script. */
  leave () {
    if (this.isInterrupted) this.left = this.now()
    if (!this.inMainScript) return
    this.inMainScript = executionAsyncId() === 1
    if (this.inMainScript) this.add(this.now(), ROOT_CHAIN, 0, RESUMED)
  }

  /** Notes that a callback begins of which there is no record. */
  enterUnrecorded () {
    const time = this.now()
    if (this.mayHavePolled || time - this.since >= LONG_US) this.addPoll(time)
    this.resume(NO_WAIT)
  }

  /** An iteration of the event loop begins. */
  startIteration () {
    this.mayHavePolled = true
    this.inMainScript = false
  }

  /**
   * Adds an entry for the time in which the loop waited, just before now. Of a poll that a signal interrupted
   * libuv counts only what came after (uv__io_poll in src/unix/linux.c).
   * @param {number} time now
   */
  addPoll (time) {
    this.mayHavePolled = false
    const polled = idleTime()
    const waited = (polled - this.polled) | 0
    if (waited <= 0) return
    this.polled = polled
    const isCut = this.left > this.since && time - waited - this.left > MAX_LOOP_US
    this.add(isCut ? this.left : Math.max(this.since, time - waited), IDLE, 0, RESUMED)
    this.callbacks.running = NOTHING
  }

  /**
   * Adds an entry: the one before ends.
   * @param {number} time
   * @param {number} chain
   * @param {number} request reference, 0: none
   * @param {number} waited µs, NO_WAIT, RESUMED or BEGUN
   */
  add (time, chain, request, waited) {
    if (this.count === this.capacity) {
      this.onFull()
      time = this.now()
    }
    const { entries } = this
    const index = this.count * ENTRY
    entries[index + ENTRY_TIME] = time
    entries[index + ENTRY_CHAIN] = chain
    entries[index + ENTRY_REQUEST] = request
    entries[index + ENTRY_WAIT] = waited
    this.count++
    this.callbacks.endAt(time)
    this.since = time
    if (this.count - this.handedOn >= PIECE + LAG) this.handOn(this.handedOn + PIECE)
  }

  /**
   * Hands entries on: the last one has ended.
   * @param {number} end index
   */
  handOn (end) {
    const start = this.handedOn
    this.handedOn = end
    this.totals.add(this, start, end)
  }

  /** Forgets all entries but the last, which goes on. */
  keepLast () {
    const last = (this.count - 1) * ENTRY
    this.entries.copyWithin(0, last, last + ENTRY)
    this.count = 1
    this.handedOn = 0
  }

  /** @param {number} index @param {number} word ENTRY_TIME to ENTRY_WAIT @returns {number} */
  at (index, word) {
    return this.entries[index * ENTRY + word]
  }
}

// The callbacks that ran last, while a profile is on: when each began and ended, and for which request. By
// slots: a newer resource takes the slot of an older one. Hot path.

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

module.exports = { BEGUN, ENTRY_CHAIN, ENTRY_REQUEST, ENTRY_TIME, ENTRY_WAIT, IDLE, RESUMED, StepLog }
