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
const { CAUSE, DETAIL, FLAGS, INCOMING, PARSER, ROOT_CHAIN, readWord } = require('../core/records')
const { CallbackSlots, NOTHING, NO_WAIT, slotFor } = require('./callback-slots')

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
   * @param {object} listener
   * @param {(log: StepLog, start: number, end: number) => void} listener.add takes entries in order
   * @param {() => void} listener.full the log is full: it is to be emptied before the next entry
   * @param {boolean} isInterrupted signals of V8's profiler interrupt the poll phase
   */
  constructor (capacity, listener, isInterrupted) {
    this.isInterrupted = isInterrupted
    this.listener = listener
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
    let request = isRepeated ? callbacks.requestIn(slot) : callbacks.requestOf(words[offset + CAUSE])
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
      this.listener.full()
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
    this.listener.add(this, start, end)
  }

  /** Forgets all entries but the last, which goes on. */
  keepLast () {
    const last = (this.count - 1) * ENTRY
    this.entries.copyWithin(0, last, last + ENTRY)
    this.count = 1
    this.handedOn = 0
  }

  /** @param {number} index @returns {number} when the entry began */
  timeAt (index) {
    return this.entries[index * ENTRY + ENTRY_TIME]
  }

  /** @param {number} index @returns {number} */
  chainAt (index) {
    return this.entries[index * ENTRY + ENTRY_CHAIN]
  }

  /** @param {number} index @returns {number} reference */
  requestAt (index) {
    return this.entries[index * ENTRY + ENTRY_REQUEST]
  }

  /** @param {number} index @returns {number} µs, NO_WAIT, RESUMED or BEGUN */
  waitAt (index) {
    return this.entries[index * ENTRY + ENTRY_WAIT]
  }
}

module.exports = { BEGUN, IDLE, RESUMED, StepLog }
