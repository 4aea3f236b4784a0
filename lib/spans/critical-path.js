'use strict'

// The critical path of a span: the long stack of its end, with times. Each run of a request is recorded with
// its cause (the run that registered it, and for a continuation the run that settled what it awaited) and
// with three counters at that moment: how long the event loop had waited, had run the code of others, and
// had run the request's own. Back from the run in which the span ended, each step leads to a cause
// (path-walk.js).
//
// One log serves a request with all spans inside of it, for their runs cause one another. Runs are numbered
// from 1. Hot path, while spans are timed: `continues` and `add`.

const FIRST_SIZE = 32 // runs
const MAX_SIZE = 1024 // then the oldest are forgotten; a power of two, as the first
const WORDS = 5
const REGISTERED = 0 // run in which it was registered, 0: one of another request, or before the span
const SETTLED = 1 // run that settled what it awaited, 0: one of another request, or none; or UNASKED
const SETTLER = 2 // number of the span that settled it, where that is another request's
const SITE = 3 // number of the chain that was registered, 0: not known
const CALLBACK_CHAIN = 4
const TIMES = 7
const IDLE = 0 // ms that the loop had waited when it began
const OTHERS = 1 // ms that it had run the code of others
const OWN = 2 // ms that the request had run
const CALLBACK = 3 // asyncId of the resource whose callback the event loop ran
const CAME_BY = 4 // when what it waited for had come, in ms since the counters began; 0: with its cause
const CAME_AFTER = 5 // the same, at the earliest
/**
 * where an answer on a connection began it: OWN_QUESTION, or how long the loop had waited when the question
 * was sent for nobody, Infinity: for another request; NaN: not known
 */
const SENT = 6
const SENT_SIZE = 8 // connections on which a request sent something last
const OWN_QUESTION = -1
const UNASKED = -1 // in place of a run: the callback of a connection on which nobody asked
const MIN_SPLIT = 0.1 // ms that a run took before another that it caused counts as one of its own
const INEXACT = 1e-5 // ms by which a difference of two sums may be wrong
const POOL = 64 // logs kept for the requests to come

/**
 * @typedef {object} Moment what LoopTime has counted by then
 * @property {number} idle ms in which the loop waited
 * @property {number} busy ms in which it ran JavaScript
 * @property {number} callbackId asyncId of what it runs
 * @property {number} callbackChain
 * @property {number} cameBy when what the callback, or the run, waited for had come: see arrivals.js
 * @property {number} cameAfter
 */

class PathLog {
  constructor () {
    this.size = FIRST_SIZE
    this.count = 0
    /** open spans that need it, or that are not written yet */
    this.users = 0
    this.times = new Float64Array(FIRST_SIZE * TIMES)
    this.words = new Int32Array(FIRST_SIZE * WORDS)
    /** connections on which it sent something: reference, run */
    this.questions = new Int32Array(SENT_SIZE * 2)
    this.questionCount = 0
  }

  /**
   * Records that a run begins.
   * @param {Moment} moment
   * @param {number} own ms that the request has run
   * @param {number} registered
   * @param {number} settled
   * @param {number} settler
   * @param {number} site
   * @returns {number} its number
   */
  add (moment, own, registered, settled, settler, site) {
    if (this.count >= this.size && this.size < MAX_SIZE) this.grow()
    const slot = this.count & (this.size - 1)
    const { words, times } = this
    const time = slot * TIMES
    times[time + IDLE] = moment.idle
    times[time + OTHERS] = moment.busy - own
    times[time + OWN] = own
    const offset = slot * WORDS
    words[offset + REGISTERED] = registered
    words[offset + SETTLED] = settled
    words[offset + SETTLER] = settler
    words[offset + SITE] = site
    times[time + CALLBACK] = moment.callbackId
    times[time + CAME_BY] = moment.cameBy
    times[time + CAME_AFTER] = moment.cameAfter
    words[offset + CALLBACK_CHAIN] = moment.callbackChain
    times[time + SENT] = NaN
    return ++this.count
  }

  /**
   * Notes what awaited that which came unasked on a connection, as its end: that has no other cause.
   * @param {number} run in which it came, or another one
   * @param {number} registered run in which it was awaited
   * @param {number} site
   */
  noteAwaited (run, registered, site) {
    if (!this.has(run)) return
    const offset = ((run - 1) & (this.size - 1)) * WORDS
    const { words } = this
    if (words[offset + SETTLED] !== UNASKED || words[offset + REGISTERED] >= registered) return
    words[offset + REGISTERED] = registered
    words[offset + SETTLED] = 0
    words[offset + SITE] = site
  }

  /** Notes that a run sent something. @param {number} ref of the connection @param {number} run */
  noteSent (ref, run) {
    const last = ((this.questionCount - 1) & (SENT_SIZE - 1)) * 2
    const isSame = this.questionCount > 0 && this.questions[last] === ref
    const index = isSame ? last : (this.questionCount++ & (SENT_SIZE - 1)) * 2
    this.questions[index] = ref
    this.questions[index + 1] = run
  }

  /** @param {number} ref of a connection @param {number} run @returns {boolean} it sent from there on */
  hasSent (ref, run) {
    const count = Math.min(this.questionCount, SENT_SIZE)
    for (let i = 0; i < count * 2; i += 2) {
      if (this.questions[i] === ref && this.questions[i + 1] >= run) return true
    }
    return false
  }

  /** @param {number} run @param {number} sent see SENT */
  setSent (run, sent) {
    if (this.has(run)) this.times[((run - 1) & (this.size - 1)) * TIMES + SENT] = sent
  }

  /**
   * Returns whether what a run causes now is part of it: the loop has neither waited nor run others since it
   * began, and it has not taken long.
   * @param {number} run
   * @param {Moment} moment
   * @param {number} own ms that the request has run
   */
  continues (run, moment, own) {
    if (!this.has(run)) return false
    const time = ((run - 1) & (this.size - 1)) * TIMES
    const { times } = this
    return times[time + IDLE] === moment.idle && moment.busy - own - times[time + OTHERS] < INEXACT &&
      own - times[time + OWN] < MIN_SPLIT
  }

  grow () {
    const { times, words, size } = this
    this.size = size * 4 > MAX_SIZE ? MAX_SIZE : size * 4
    this.times = new Float64Array(this.size * TIMES)
    this.words = new Int32Array(this.size * WORDS)
    this.times.set(times)
    this.words.set(words)
  }

  /** @param {number} run @returns {boolean} whether it is still recorded */
  has (run) {
    return run > 0 && run <= this.count && run > this.count - this.size
  }

  /** @param {number} run @param {number} time which one, IDLE to SENT @returns {number} */
  timeAt (run, time) {
    return this.times[((run - 1) & (this.size - 1)) * TIMES + time]
  }

  /** @param {number} run @param {number} word which one, REGISTERED to CALLBACK_CHAIN @returns {number} */
  wordAt (run, word) {
    return this.words[((run - 1) & (this.size - 1)) * WORDS + word]
  }

  /** @param {number} run @returns {number} when it began, in ms since the counters began */
  beginOf (run) {
    return this.timeAt(run, IDLE) + this.timeAt(run, OTHERS) + this.timeAt(run, OWN)
  }
}

/** @type {PathLog[]} */
const pool = []

/** @returns {PathLog} */
function takeLog () {
  return pool.pop() ?? new PathLog()
}

/** @param {PathLog} log that no open span needs */
function putLog (log) {
  log.count = log.questionCount = 0
  if (pool.length < POOL && log.size === FIRST_SIZE) pool.push(log)
}

module.exports = {
  CALLBACK,
  CALLBACK_CHAIN,
  CAME_AFTER,
  CAME_BY,
  IDLE,
  MIN_SPLIT,
  OTHERS,
  OWN,
  OWN_QUESTION,
  REGISTERED,
  SENT,
  SETTLED,
  SETTLER,
  SITE,
  UNASKED,
  PathLog,
  putLog,
  takeLog
}
