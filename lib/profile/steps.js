'use strict'

// The steps of a profile, read from the run log (core/run-log.js): which chain ran when, for which request,
// and how long it had waited. A step lasts until the next one; a wait of the loop in the poll phase is a step
// of IDLE. Facts that the log lacks come from the record of the step, which is kept for a while.

const { typeOfStep } = require('../core/context')
const {
  CAUSE, FIRST_CHAIN, MASK, NO_CHAIN, OWN_WORK_CHAIN, REF, SHIFT, TICKS, findRecord, isRequest, promises,
  resources
} = require('../core/records')
const { timeAt } = require('../core/record-ids')
const { NEAR_STEPS, requestOf } = require('../core/request-of')
const log = require('../core/run-log-words')
const { hasProgramFrame } = require('../stacks/capture')

const { AWAITED, KIND_BITS, ONE_SHOT, OUTSIDE, TURNED, WORDS } = log
const KIND = (1 << KIND_BITS) - 1
const MARGIN = 1 << 12 // more steps than a piece of the log has
const PLACES = 1 << 15 // for remembered runs; newer ones replace older ones
const UNKNOWN = PLACES // the place of an unknown run

// Values instead of a chain, or of a wait in µs.
const IDLE = -1 // the loop waited
const NO_WAIT = -1 // a callback without a wait, or with an unknown one
const RESUMED = -2 // no callback: the present one goes on
const BEGUN = -3 // a request begins, within the callback of its parser

class Steps {
  /**
   * @param {number} capacity
   * @param {() => void} onFull forgets some
   */
  constructor (capacity, onFull) {
    this.capacity = capacity
    this.onFull = onFull
    this.count = 0
    /** start of each step; all times are µs since the start of the profile */
    this.times = new Int32Array(capacity + MARGIN)
    this.chains = new Int32Array(capacity + MARGIN)
    /** references, 0 for none */
    this.requests = new Int32Array(capacity + MARGIN)
    /** µs, NO_WAIT, RESUMED or BEGUN */
    this.waits = new Int32Array(capacity + MARGIN)
    /** ms of the clock */
    this.start = 0
    /** start of the last step */
    this.since = 0

    // Per run: its number, its request, and when it ended or last ran
    this.runs = new Int32Array(PLACES + 1)
    this.runRequests = new Int32Array(PLACES + 1)
    this.runEnds = new Int32Array(PLACES + 1)
    /** place of the present or last run */
    this.running = UNKNOWN
    // Per resource that can run again: its reference, and the request that it last ran for. One-shot
    // resources may run again too, but only soon after
    this.repeated = new Int32Array(2 * PLACES)
    this.repeatedRequests = new Int32Array(2 * PLACES)

    /** the loop has polled since the last step */
    this.hasPolled = false
    /** entries being read @type {Int32Array<ArrayBufferLike>} */
    this.words = new Int32Array(0)
  }

  /** Reads a piece of the log. @param {import('../record/taking').Piece} piece */
  take ({ entries, first }) {
    let number = first
    for (const { buffer, byteOffset, length } of entries) {
      this.words = new Int32Array(buffer, byteOffset, length / 4)
      const floats = new Float64Array(buffer, byteOffset, length / 8)
      for (let place = 0; place < this.words.length; place += WORDS) {
        this.read(number, place, floats[(place >> 1) + log.TIME], floats[(place >> 1) + log.X])
        number = (number + 1) | 0
      }
    }
    if (this.count > this.capacity) this.onFull()
  }

  /** @param {number} ms of the clock @returns {number} µs since the start */
  timeOf (ms) {
    return ((ms - this.start) * 1e3) | 0
  }

  /** @param {number} number of an entry @param {number} place @param {number} ms TIME @param {number} x X */
  read (number, place, ms, x) {
    const head = this.words[place]
    const kind = head & KIND
    if (kind !== log.RUN && kind !== log.POLL && kind !== log.RESUME) return
    if (this.count === 0) {
      if (kind !== log.RESUME) return // the profile begins with the present step
      this.start = ms
    }
    const time = Math.max(this.since, this.timeOf(ms))
    if (kind === log.POLL) this.poll(time, (x * 1e3) | 0)
    else if (kind === log.RUN && (head >> KIND_BITS & TURNED) === 0) this.enter(number, place, time)
    else this.goOn(kind === log.RUN ? number : 0, place, time)
  }

  /** Notes that the loop has polled. @param {number} time of the end @param {number} slept µs */
  poll (time, slept) {
    this.hasPolled = true
    if (slept > 0) this.leave(Math.max(this.since, time - slept), IDLE)
    if (slept > 0) this.leave(time, OWN_WORK_CHAIN)
  }

  /** Ends the run: no program code until the next entry. @param {number} time @param {number} chain */
  leave (time, chain) {
    this.add(time, chain, 0, RESUMED)
    this.running = UNKNOWN
  }

  /** Begins a callback or continuation. @param {number} number @param {number} place @param {number} time */
  enter (number, place, time) {
    const { words } = this
    const flags = words[place] >> KIND_BITS
    const ref = words[place + log.REF]
    const chain = words[place + log.CHAIN]
    const made = this.find(words[place + log.REGISTERED])
    this.runEnds[this.running] = time
    if (!this.hasPolled && isInternal(chain, flags)) {
      return this.run(number, this.requestOf(ref, flags, made), time)
    }
    this.hasPolled = false
    const last = placeOfRepeated(ref, flags)
    const mayRepeat = ref !== 0 && (flags & (AWAITED | OUTSIDE)) === 0
    const isRepeated = mayRepeat && this.repeated[last] === ref
    const request = isRepeated ? this.repeatedRequests[last] : this.requestOf(ref, flags, made)
    if (mayRepeat) {
      this.repeated[last] = ref
      this.repeatedRequests[last] = request
    }
    const waited = isRepeated ? NO_WAIT : this.waitOf(ref, flags, made, time)
    this.add(time, chain, chain === OWN_WORK_CHAIN ? 0 : request, waited)
    this.run(number, request, time)
  }

  /**
   * Continues a run, which may belong to another request from now on.
   * @param {number} turned number of the run if it becomes another one, 0 if not
   * @param {number} place
   * @param {number} time
   */
  goOn (turned, place, time) {
    const { words } = this
    const chain = words[place + log.CHAIN]
    const number = words[place + log.REGISTERED]
    if (turned === 0 && number === 0 && chain === NO_CHAIN) return this.leave(time, OWN_WORK_CHAIN)
    const run = this.find(number)
    const ref = words[place + log.REF]
    const present = run === UNKNOWN ? requestOf(ref, undefined, NEAR_STEPS) : this.runRequests[run]
    const request = turned !== 0 && isRequest(ref) ? ref : present
    if (request !== present) {
      // The head of the request was no part of the previous request on this connection
      if (run === this.running) this.requests[this.count - 1] = 0
      const parser = words[place + log.B] << 1
      const last = placeOfRepeated(parser, 0)
      if (this.repeated[last] === parser) this.repeatedRequests[last] = request
    }
    this.add(time, chain, request, request === present ? RESUMED : BEGUN)
    this.run(turned || number, request, time)
  }

  /** Notes a run. @param {number} number 0 if unknown @param {number} request @param {number} time */
  run (number, request, time) {
    const place = number === 0 ? UNKNOWN : number & (PLACES - 1)
    this.running = place
    this.runs[place] = number
    this.runRequests[place] = request
    this.runEnds[place] = time
  }

  /** @param {number} number of a run @returns {number} its place, or UNKNOWN */
  find (number) {
    const place = number & (PLACES - 1)
    return number !== 0 && this.runs[place] === number ? place : UNKNOWN
  }

  /**
   * Returns the request of a step; its record may have another one than the run that made it.
   * @param {number} ref
   * @param {number} flags of its run
   * @param {number} made place of the run that made it
   * @returns {number} reference, 0 for none
   */
  requestOf (ref, flags, made) {
    if (ref === 0 || isRequest(ref)) return ref
    const words = (ref & 1) === 0 ? resources : promises
    const offset = ((ref >> 1) & MASK) << SHIFT
    const cause = (flags & OUTSIDE) === 0 && words[offset + REF] === ref ? words[offset + CAUSE] : 0
    if (isRequest(cause)) return cause
    return made === UNKNOWN ? requestOf(ref, undefined, NEAR_STEPS) : this.runRequests[made]
  }

  /**
   * Returns how long a callback has waited since the end of the callback that registered it, at most since
   * the start of the profile. Resources that the filter leaves out have no record of their own.
   * @param {number} ref
   * @param {number} flags of its run
   * @param {number} made place of the run that registered it
   * @param {number} time now
   * @returns {number} µs, or NO_WAIT
   */
  waitOf (ref, flags, made, time) {
    const isOneShot = (flags & ONE_SHOT) !== 0
    if ((flags & OUTSIDE) !== 0 && (made === UNKNOWN || !isOneShot)) return NO_WAIT
    if (made !== UNKNOWN) return time - this.runEnds[made]
    const record = findRecord(ref)
    const registered = record === undefined ? NaN : timeAt(record.words, record.offset)
    // Also if made right after the start: its time is rounded down to a tick
    if (registered > this.start - 1 / TICKS) return Math.max(0, time - Math.max(0, this.timeOf(registered)))
    return isOneShot ? time : NO_WAIT // others may have run before
  }

  /**
   * Begins a step.
   * @param {number} time
   * @param {number} chain
   * @param {number} request
   * @param {number} waited
   */
  add (time, chain, request, waited) {
    const index = this.count++
    this.times[index] = time
    this.chains[index] = chain
    this.requests[index] = request
    this.waits[index] = waited
    this.runEnds[this.running] = time
    this.since = time
  }

  /** Drops steps. @param {number} count of the oldest */
  forget (count) {
    const { chains, requests, times, waits } = this
    for (const words of [chains, requests, times, waits]) words.copyWithin(0, count, this.count)
    this.count -= count
  }
}

/** @param {number} ref @param {number} flags of its run @returns {number} */
function placeOfRepeated (ref, flags) {
  return (ref >> 1 & (PLACES - 1)) + ((flags & ONE_SHOT) === 0 ? 0 : PLACES)
}

/**
 * Whether a step is a tick or an await of Node itself, which has no hop in a chain: the last step goes on.
 * @param {number} chain
 * @param {number} flags of its run
 */
function isInternal (chain, flags) {
  if (chain < FIRST_CHAIN || hasProgramFrame(chain)) return false
  return (flags & AWAITED) !== 0 || typeOfStep(chain, 0) === 'TickObject'
}

module.exports = { BEGUN, IDLE, RESUMED, Steps }
