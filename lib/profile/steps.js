'use strict'

// The steps of a profile, read from the run log (core/run-log.js): which chain ran when, for which request,
// and how long it had waited. A step lasts until the next one; where the loop waits in the poll phase, one of
// IDLE lies between. What the log does not say of a step its record does, which is there for a while.

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
const PLACES = 1 << 15 // for what is remembered: what is newer takes the place of what is older
const UNKNOWN = PLACES // the place of a run that is not known

// In place of a chain, or of a wait in µs.
const IDLE = -1 // the loop waited
const NO_WAIT = -1 // a callback that waited for nothing, or whose wait is not known
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
    /** when each began; all times are µs since the profile did */
    this.times = new Int32Array(capacity + MARGIN)
    this.chains = new Int32Array(capacity + MARGIN)
    /** references, 0: none */
    this.requests = new Int32Array(capacity + MARGIN)
    /** µs, NO_WAIT, RESUMED or BEGUN */
    this.waits = new Int32Array(capacity + MARGIN)
    /** ms of the clock */
    this.start = 0
    /** when the last step began */
    this.since = 0

    // For each run: number, request, when it ended, or until when it has run
    this.runs = new Int32Array(PLACES + 1)
    this.runRequests = new Int32Array(PLACES + 1)
    this.runEnds = new Int32Array(PLACES + 1)
    /** place of the run that runs, or ran last */
    this.running = UNKNOWN
    // For what can run again: its reference, and the request it last ran for. What is over with one
    // callback may, as well, but soon
    this.repeated = new Int32Array(2 * PLACES)
    this.repeatedRequests = new Int32Array(2 * PLACES)

    /** the loop has polled since the last step */
    this.hasPolled = false
    /** entries that are read @type {Int32Array<ArrayBufferLike>} */
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
      if (kind !== log.RESUME) return // the profile begins with what runs
      this.start = ms
    }
    const time = Math.max(this.since, this.timeOf(ms))
    if (kind === log.POLL) this.poll(time, (x * 1e3) | 0)
    else if (kind === log.RUN && (head >> KIND_BITS & TURNED) === 0) this.enter(number, place, time)
    else this.goOn(kind === log.RUN ? number : 0, place, time)
  }

  /** The loop has polled. @param {number} time of the end @param {number} slept µs */
  poll (time, slept) {
    this.hasPolled = true
    if (slept > 0) this.leave(Math.max(this.since, time - slept), IDLE)
    if (slept > 0) this.leave(time, OWN_WORK_CHAIN)
  }

  /** Nothing of the program runs until the next entry. @param {number} time @param {number} chain */
  leave (time, chain) {
    this.add(time, chain, 0, RESUMED)
    this.running = UNKNOWN
  }

  /** A callback or continuation begins. @param {number} number @param {number} place @param {number} time */
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
   * A run goes on, which may be of another request from now on.
   * @param {number} turned number of what is another run then, 0: it is not
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
      // The request's head was no part of the one that came before on this connection
      if (run === this.running) this.requests[this.count - 1] = 0
      const parser = words[place + log.B] << 1
      const last = placeOfRepeated(parser, 0)
      if (this.repeated[last] === parser) this.repeatedRequests[last] = request
    }
    this.add(time, chain, request, request === present ? RESUMED : BEGUN)
    this.run(turned || number, request, time)
  }

  /** Notes what runs. @param {number} number 0: no known run @param {number} request @param {number} time */
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
   * Returns the request of a step: its record may have another one than the run that made it.
   * @param {number} ref
   * @param {number} flags of its run
   * @param {number} made place of the run that made it
   * @returns {number} reference, 0: none
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
   * Returns how long a callback has waited since the end of the callback that registered it, but not longer
   * than the profile lasts. What the filter leaves out has no record of its own.
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
    // Made by the last tick before, right after the start
    if (registered > this.start - 1 / TICKS) return Math.max(0, time - Math.max(0, this.timeOf(registered)))
    return isOneShot ? time : NO_WAIT // what is not over with one callback may have run before
  }

  /**
   * A step begins.
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

  /** Forgets steps. @param {number} count of the oldest */
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
 * Whether a step is a tick or an await of Node's own, which has no hop in a chain: what ran goes on.
 * @param {number} chain
 * @param {number} flags of its run
 */
function isInternal (chain, flags) {
  if (chain < FIRST_CHAIN || hasProgramFrame(chain)) return false
  return (flags & AWAITED) !== 0 || typeOfStep(chain, 0) === 'TickObject'
}

module.exports = { BEGUN, IDLE, RESUMED, Steps }
