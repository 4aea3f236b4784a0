'use strict'

// Who ran of late, and when: a ring. Hot path, as loop-time.js is.

const { delayerAt, isInside, signatureAt } = require('./identities')

/**
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

const GAP = 0.01 // ms between two parts of one run

const SUMS = 1 << 11 // spans that are summed up for one, a power of two

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
   * @param {number} span number
   * @param {Lateness[]} late newest first, without overlaps
   * @param {number} zero of their times, in ms of the clock
   * @param {Sums} sums
   * @param {number} [count] how many of `late` count
   */
  sum (span, late, zero, sums, count = late.length) {
    const oldest = Math.max(0, this.count - this.size)
    let first = 0
    for (let i = this.count - 1; i >= oldest && first < count; i--) {
      const slot = i & (this.size - 1)
      const end = this.end[slot] - zero
      while (first < count && late[first].cameAfter >= end) first++
      const other = this.spans[slot]
      if (first === count || (other !== 0 && isInside(other, span))) continue
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
      const part = (Math.min(end, late[first].until) - begin) / (end - start)
      max = Math.min(max, this.ms[slot] * part)
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
   * @returns {Delay | undefined}
   */
  takeLongest () {
    let index = -1
    for (let i = 0; i < this.count; i++) {
      if (this.max[i] > 0 && (index === -1 || this.max[i] > this.max[index])) index = i
    }
    if (index === -1) return undefined
    const ms = this.ms[index]
    const max = this.max[index]
    const number = this.spans[index]
    this.max[index] = 0
    const span = this.signatures[index] ?? (number === 0 ? undefined : delayerAt(number))
    return { span, ms, max, start: this.start[index], longest: this.longest[index] }
  }

  /** Releases the signatures. */
  clear () {
    for (let i = 0; i < this.count; i++) if (this.signatures[i] !== undefined) this.signatures[i] = undefined
    this.count = 0
  }
}

module.exports = { RunLog, Sums }
