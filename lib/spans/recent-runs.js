'use strict'

// Who ran of late: two rings, for long runs and for short ones. Hot path, as loop-time.js is.

const { RunLog, Sums } = require('./run-log')

const LONG = 4096 // long runs remembered, for the question who delayed a span; a power of two
const SHORT = 1024 // shorter ones: with many open spans they are many, and each span that ends reads all
const MIN_LONG = 2 // ms
const MIN_SHORT = 0.2 // ms
const ADD_UP = 20 // ms in which shorter runs of one span are added up, to be remembered as one

/**
 * @typedef {import('./span').Span} Span
 * @typedef {{ seq: number, shortRuns: number, shortRunsSince: number }} Runner a span: ms of its short runs
 *   since a time, in ms
 */

class RecentRuns {
  constructor () {
    this.long = new RunLog(0, true)
    this.short = new RunLog(0, false)
    /** @type {Sums | undefined} */
    this.sums = undefined
    /** code of no span @type {Runner} */
    this.outside = { seq: 0, shortRuns: 0, shortRunsSince: 0 }
  }

  start () {
    this.long = new RunLog(LONG, true)
    this.short = new RunLog(SHORT, false)
  }

  clear () {
    this.long.clear()
    this.short.clear()
  }

  /**
   * Adds a run. Short ones are added up: many of them delay others as one long run does.
   * @param {Runner | undefined} span that ran
   * @param {number} start ms
   * @param {number} end ms
   */
  add (span = this.outside, start, end) {
    const ms = end - start
    if (ms >= MIN_SHORT) return this.remember(span.seq, start, end, ms)
    if (start - span.shortRunsSince > ADD_UP) {
      span.shortRunsSince = start
      span.shortRuns = 0
    }
    span.shortRuns += ms
    if (span.shortRuns < MIN_SHORT) return
    this.remember(span.seq, span.shortRunsSince, end, span.shortRuns)
    span.shortRunsSince = -ADD_UP
  }

  /**
   * @param {number} number of the span
   * @param {number} start
   * @param {number} end
   * @param {number} ms of it, that the span ran
   */
  remember (number, start, end, ms) {
    if (ms >= MIN_LONG) this.long.add(number, start, end, ms)
    else this.short.add(number, start, end, ms)
  }

  /**
   * Adds up who ran while a span was delayed. Of short runs only the last are known.
   * @param {Span} span
   * @param {import('./run-log').Lateness[]} late when it was, newest first
   * @param {number} zero of these times, in ms of the clock
   * @param {number} [count] how many of `late` count
   * @returns {Sums} the same each time, to be cleared
   */
  sumOf (span, late, zero, count) {
    const sums = this.sums ??= new Sums()
    this.long.sum(span.seq, late, zero, sums, count)
    this.short.sum(span.seq, late, zero, sums, count)
    return sums
  }
}

module.exports = { MIN_SHORT, RecentRuns }
