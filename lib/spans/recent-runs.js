'use strict'

// Who ran of late: two rings, for long runs and for short ones; and of each span its longest runs. Hot path,
// as loop-time.js is.

const { isInside, signatureAt } = require('./identities')

const LONG = 4096 // long runs remembered, for the question who delayed a span; a power of two
const SHORT = 1024 // shorter ones: with many open spans they are many, and each span that ends reads all
const MIN_LONG = 2 // ms
const MIN_SHORT = 0.2 // ms
const ADD_UP = 20 // ms in which shorter runs of one span are added up, to be remembered as one
const GAP = 0.01 // ms between two parts of one run
const SUMS = 1 << 11 // spans that are summed up for one, a power of two
const MAX_RUNS = 64 // of one span
const POOL = 64 // lists of these kept for the spans to come

/**
 * @typedef {import('./span').Span} Span
 * @typedef {{ seq: number, shortRuns: number, shortRunsSince: number }} Runner a span: ms of its short runs
 *   since a time, in ms
 * @typedef {{ name: string, spanId: string }} Signature
 *
 * @typedef {object} Delay
 * @property {Signature | undefined} span undefined: what ran was part of none
 * @property {number} ms
 * @property {number} max ms, more than `ms` where it is not known when what was delayed had come
 * @property {number} start of the longest run, in ms of the clock
 * @property {number} longest ms
 *
 * @typedef {Pick<import('./path-walk').Wait, 'cameAfter' | 'cameBy' | 'until'>} Lateness
 */

class RunLog {
  /**
   * @param {number} size a power of two
   * @param {boolean} keepsSignatures of who ran, for as long as the run is remembered
   */
  constructor (size, keepsSignatures) {
    this.size = size
    this.count = 0
    this.start = new Float64Array(size)
    this.end = new Float64Array(size)
    /** ms of what was run between the two: short runs of others may lie in between */
    this.ms = new Float64Array(size)
    /** numbers of spans, 0: none */
    this.spans = new Int32Array(size)
    /** @type {Array<Signature | undefined> | undefined} */
    this.signatures = keepsSignatures ? Array(size).fill(undefined) : undefined
  }

  /**
   * @param {number} span number of the one that ran
   * @param {number} start
   * @param {number} end
   * @param {number} ms
   */
  add (span, start, end, ms) {
    const last = (this.count - 1) & (this.size - 1)
    if (this.count > 0 && this.spans[last] === span && start - this.end[last] < GAP) {
      this.end[last] = end
      this.ms[last] += ms
      return
    }
    const slot = this.count++ & (this.size - 1)
    this.start[slot] = start
    this.end[slot] = end
    this.ms[slot] = ms
    this.spans[slot] = span
    if (this.signatures !== undefined) this.signatures[slot] = span === 0 ? undefined : signatureAt(span)
  }

  clear () {
    if (this.count === 0) return
    this.signatures?.fill(undefined, 0, Math.min(this.count, this.size))
    this.count = 0
  }

  /**
   * Adds up who ran while a span was delayed.
   * @param {{ seq: number, hasInner: boolean }} span its number, and whether other spans are inside of it
   * @param {Lateness[]} late newest first, without overlaps
   * @param {number} zero of their times, in ms of the clock
   * @param {Sums} sums
   */
  sum ({ seq, hasInner }, late, zero, sums) {
    const { length: count } = late
    const oldest = Math.max(0, this.count - this.size)
    let first = 0
    for (let i = this.count - 1; i >= oldest && first < count; i--) {
      const slot = i & (this.size - 1)
      const end = this.end[slot] - zero
      while (first < count && late[first].cameAfter >= end) first++
      const other = this.spans[slot]
      if (first === count || other === seq || (hasInner && other !== 0 && isInside(other, seq))) continue
      const start = this.start[slot] - zero
      let [ms, max, begin] = [0, 0, start]
      for (let j = first; j < count && late[j].until > start; j++) {
        const { cameAfter, cameBy, until } = late[j]
        const latest = Math.min(end, until)
        ms += Math.max(0, latest - Math.max(start, cameBy))
        max += Math.max(0, latest - Math.max(start, cameAfter))
        begin = Math.max(start, cameAfter)
      }
      // Where short runs are added up: these in between, as far as the span was late, and did not run itself
      if (this.ms[slot] < end - start) {
        const part = (Math.min(end, late[first].until) - begin) / (end - start)
        max = Math.min(max, this.ms[slot] * part)
      }
      if (max > 0) sums.add(other, Math.min(ms, max), begin + zero, this.signatures?.[slot], max)
    }
  }
}

/** Who delayed one span, summed up in the same arrays each time. */
class Sums {
  constructor () {
    this.count = 0
    this.spans = new Int32Array(SUMS)
    this.ms = new Float64Array(SUMS)
    this.max = new Float64Array(SUMS)
    /** start and length of the longest run, in ms */
    this.start = new Float64Array(SUMS)
    this.longest = new Float64Array(SUMS)
    /** @type {Array<Signature | undefined>} */
    this.signatures = Array(SUMS).fill(undefined)
    /** index of a span's sum, and one more, by the lowest bits of its number */
    this.places = new Int32Array(SUMS)
  }

  /**
   * @param {number} span
   * @param {number} ms
   * @param {number} start
   * @param {Signature | undefined} signature
   * @param {number} [max] ms that it may be
   */
  add (span, ms, start, signature, max = ms) {
    const place = span & (SUMS - 1)
    let i = this.places[place] - 1
    if (i < 0 || i >= this.count || this.spans[i] !== span) {
      if (this.count === SUMS) return
      i = this.count++
      this.places[place] = i + 1
      this.spans[i] = span
      this.ms[i] = this.max[i] = this.longest[i] = 0
    }
    this.ms[i] += ms
    this.max[i] += max
    if (signature !== undefined) this.signatures[i] = signature
    if (max <= this.longest[i]) return
    this.longest[i] = max
    this.start[i] = start
  }

  /**
   * Takes the one that ran longest out of the sums.
   * @param {number} [min] ms
   * @returns {Delay | undefined} undefined: none is left that ran for so long
   */
  takeLongest (min = 0) {
    let index = -1
    let longest = 0
    for (let i = 0; i < this.count; i++) {
      if (this.max[i] > longest) longest = this.max[index = i]
    }
    if (index === -1 || longest < min) return undefined
    const ms = this.ms[index]
    const max = this.max[index]
    const number = this.spans[index]
    this.max[index] = 0
    const span = this.signatures[index] ?? (number === 0 ? undefined : signatureAt(number))
    return { span, ms, max, start: this.start[index], longest: this.longest[index] }
  }

  /** Releases the signatures. */
  clear () {
    for (let i = 0; i < this.count; i++) if (this.signatures[i] !== undefined) this.signatures[i] = undefined
    this.count = 0
  }
}

class RecentRuns {
  constructor () {
    this.long = new RunLog(LONG, true)
    this.short = new RunLog(SHORT, false)
    /** @type {Sums | undefined} */
    this.sums = undefined
    /** code of no span @type {Runner} */
    this.outside = { seq: 0, shortRuns: 0, shortRunsSince: 0 }
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
   * @param {Lateness[]} late when it was, newest first
   * @param {number} zero of these times, in ms of the clock
   * @returns {Sums} the same each time, to be cleared
   */
  sumOf (span, late, zero) {
    const sums = this.sums ??= new Sums()
    this.long.sum(span, late, zero, sums)
    this.short.sum(span, late, zero, sums)
    return sums
  }
}

/** The longest runs of one span, in lists that serve one span after another. */
class LongestRuns {
  constructor () {
    this.count = 0
    /** ms of the clock @type {number[]} */
    this.starts = []
    /** ms @type {number[]} */
    this.lengths = []
    /** @type {string[]} */
    this.types = []
  }

  /** @param {number} start @param {number} ms @param {string} type */
  add (start, ms, type) {
    const { starts, lengths } = this
    const last = this.count - 1
    if (last >= 0 && start - starts[last] - lengths[last] < GAP) {
      lengths[last] += ms
    } else {
      if (this.count === MAX_RUNS && !this.removeShortest(ms)) return
      starts[this.count] = start
      lengths[this.count] = ms
      this.types[this.count++] = type
    }
  }

  /** @param {number} ms @returns {boolean} false: none is shorter */
  removeShortest (ms) {
    const { lengths } = this
    let shortest = 0
    for (let i = 1; i < MAX_RUNS; i++) if (lengths[i] < lengths[shortest]) shortest = i
    if (lengths[shortest] >= ms) return false
    for (const list of [this.starts, lengths, this.types]) list.splice(shortest, 1)
    this.count--
    return true
  }
}

/** @type {LongestRuns[]} */
const pool = []

/** @returns {LongestRuns} */
function takeLongestRuns () {
  return pool.pop() ?? new LongestRuns()
}

/** @param {LongestRuns} runs that no span needs */
function putLongestRuns (runs) {
  runs.count = 0
  if (pool.length < POOL) pool.push(runs)
}

module.exports = { LongestRuns, MIN_SHORT, RecentRuns, RunLog, Sums, putLongestRuns, takeLongestRuns }
