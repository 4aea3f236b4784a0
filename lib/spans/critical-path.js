'use strict'

// The critical path of a span: the long stack of its end, with times. Each run of a request is recorded with
// its cause (the run that registered it, and for a continuation the run that settled what it awaited) and
// with how long the event loop had waited by then. Back from the run in which the span ended, each step leads
// to a cause; the waits in between add up to the time in which the loop waited while the span was open. What
// is not on the path explains nothing.
//
// One log serves a request with all spans inside of it, for their runs cause one another. Runs are numbered
// from 1. Hot path, while spans are timed: `add`.

const FIRST_SIZE = 32 // runs
const MAX_SIZE = 512 // then the oldest are forgotten; a power of two, as the first
const WORDS = 6
const REGISTERED = 0 // run in which it was registered, 0: one of another request, or before the span
const SETTLED = 1 // run that settled what it awaited, 0: one of another request, or none
const SETTLER = 2 // number of the span that settled it, where that is another request's
const SITE = 3 // number of the chain that was registered, 0: not known
const CALLBACK = 4 // reference of the resource whose callback the event loop ran
const CALLBACK_CHAIN = 5
const MIN_WAIT = 0.001 // ms of a wait that is reported
const POOL = 64 // logs kept for the requests to come

/**
 * @typedef {object} Wait a part of the path in which nothing of the span's ran, and the loop waited
 * @property {number} ms
 * @property {number} site number of the chain that was registered, 0: not known
 * @property {boolean} proven the run that ended it was registered by the span; else only that it came next is
 *   known
 * @property {number} callback reference of the resource whose callback ended it
 * @property {number} callbackChain
 * @property {number} settler number of the span of another request, in whose run it was settled
 */

class PathLog {
  constructor () {
    this.size = FIRST_SIZE
    this.count = 0
    /** ms that the event loop had waited when the run began, in all */
    this.idle = new Float64Array(FIRST_SIZE)
    this.words = new Int32Array(FIRST_SIZE * WORDS)
  }

  /**
   * Records that a run begins.
   * @param {number} idle ms
   * @param {number} registered
   * @param {number} settled
   * @param {number} settler
   * @param {number} site
   * @param {number} callback
   * @param {number} callbackChain
   * @returns {number} its number
   */
  add (idle, registered, settled, settler, site, callback, callbackChain) {
    if (this.count >= this.size && this.size < MAX_SIZE) this.grow()
    const slot = this.count & (this.size - 1)
    const offset = slot * WORDS
    const { words } = this
    this.idle[slot] = idle
    words[offset] = registered
    words[offset + SETTLED] = settled
    words[offset + SETTLER] = settler
    words[offset + SITE] = site
    words[offset + CALLBACK] = callback
    words[offset + CALLBACK_CHAIN] = callbackChain
    return ++this.count
  }

  grow () {
    const { idle, words, size } = this
    this.size = size * 4 > MAX_SIZE ? MAX_SIZE : size * 4
    this.idle = new Float64Array(this.size)
    this.words = new Int32Array(this.size * WORDS)
    this.idle.set(idle)
    this.words.set(words)
  }

  /** @param {number} run @returns {boolean} whether it is still recorded */
  has (run) {
    return run > 0 && run <= this.count && run > this.count - this.size
  }

  /** @param {number} run @returns {number} ms that the loop had waited when it began */
  idleAt (run) {
    return this.idle[(run - 1) & (this.size - 1)]
  }

  /**
   * Returns the waits on the path from the end of a span back to its beginning, newest first.
   * @param {number} first run of the span
   * @param {number} last run in which it ended, 0: it ended in none of its own
   * @param {number} count of runs by then
   * @param {{ idle: number, callback: number, callbackChain: number }} end what the loop had waited by then,
   *   and what it ran
   * @param {number} idleAtStart ms that the loop had waited when the span began
   * @returns {Wait[]}
   */
  waits (first, last, count, end, idleAtStart) {
    /** @type {Wait[]} */
    const waits = []
    let run = last
    if (run === 0) {
      run = count
      const ms = end.idle - (this.has(run) ? this.idleAt(run) : idleAtStart)
      const { callback, callbackChain } = end
      const site = this.siteOf(run)
      if (ms >= MIN_WAIT) waits.push({ ms, site, proven: false, callback, callbackChain, settler: 0 })
    }
    while (run > first && this.has(run)) {
      const offset = ((run - 1) & (this.size - 1)) * WORDS
      const registered = this.words[offset + REGISTERED]
      const settled = this.words[offset + SETTLED]
      if (settled > registered && settled < run && settled >= first && this.has(settled)) {
        this.addWait(waits, this.idleAt(run) - this.idleAt(settled), offset, run)
        run = settled
        continue
      }
      const proven = registered >= first && registered < run && this.has(registered)
      const cause = proven ? registered : Math.max(first, run - 1)
      const since = this.has(cause) ? this.idleAt(cause) : idleAtStart
      this.addWait(waits, this.idleAt(run) - since, offset, proven ? run : cause)
      run = cause
    }
    // What was before the oldest run that is still recorded.
    const idle = this.has(run) ? this.idleAt(run) : waits.length === 0 ? end.idle : idleAtStart
    const ms = idle - idleAtStart
    if (ms >= MIN_WAIT) waits.push({ ms, site: 0, proven: false, callback: 0, callbackChain: 0, settler: 0 })
    return waits
  }

  /**
   * @param {Wait[]} waits
   * @param {number} ms
   * @param {number} offset of the words of the run that ended the wait
   * @param {number} siteRun the run that has the site of the wait: that one, or the span's last one before
   */
  addWait (waits, ms, offset, siteRun) {
    if (ms < MIN_WAIT) return
    const { words } = this
    waits.push({
      ms,
      site: this.siteOf(siteRun),
      proven: words[offset + SITE] === this.siteOf(siteRun),
      callback: words[offset + CALLBACK],
      callbackChain: words[offset + CALLBACK_CHAIN],
      settler: words[offset + SETTLER]
    })
  }

  /** @param {number} run @returns {number} */
  siteOf (run) {
    return this.has(run) ? this.words[((run - 1) & (this.size - 1)) * WORDS + SITE] : 0
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
  log.count = 0
  if (pool.length < POOL && log.size === FIRST_SIZE) pool.push(log)
}

module.exports = { PathLog, putLog, takeLog }
