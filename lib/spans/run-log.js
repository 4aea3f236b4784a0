'use strict'

// Who ran of late, and when: a ring. Hot path, as loop-time.js is.

const { delayerAt, isInside, signatureAt } = require('./identities')

/**
 * @typedef {{ name: string, spanId: string }} Signature
 *
 * @typedef {object} Delay
 * @property {Signature | undefined} span undefined: what ran was part of none
 * @property {number} ms
 * @property {number} start of the longest run, in ms of the clock
 * @property {number} longest ms
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
   * Adds up who ran while a span was open.
   * @param {number} span number
   * @param {number} begin of it, in ms
   * @param {number} end of it, in ms
   * @param {Sums} sums
   */
  sum (span, begin, end, sums) {
    const oldest = Math.max(0, this.count - this.size)
    for (let i = this.count - 1; i >= oldest; i--) {
      const slot = i & (this.size - 1)
      if (this.end[slot] <= begin) break
      const other = this.spans[slot]
      if (other !== 0 && isInside(other, span)) continue
      const start = Math.max(this.start[slot], begin)
      const ms = (Math.min(this.end[slot], end) - start) / (this.end[slot] - this.start[slot]) * this.ms[slot]
      if (ms > 0) sums.add(other, ms, start, this.signatures?.[slot])
    }
  }
}

/** Who delayed one span, summed up in the same arrays each time. */
class Sums {
  constructor () {
    this.count = 0
    this.spans = new Int32Array(SUMS)
    this.ms = new Float64Array(SUMS)
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
   */
  add (span, ms, start, signature) {
    const place = span & (SUMS - 1)
    let i = this.places[place] - 1
    if (i < 0 || i >= this.count || this.spans[i] !== span) {
      if (this.count === SUMS) return
      i = this.count++
      this.places[place] = i + 1
      this.spans[i] = span
      this.ms[i] = this.longest[i] = 0
    }
    this.ms[i] += ms
    if (signature !== undefined) this.signatures[i] = signature
    if (ms <= this.longest[i]) return
    this.longest[i] = ms
    this.start[i] = start
  }

  /**
   * Takes the one that ran longest out of the sums.
   * @returns {Delay | undefined}
   */
  takeLongest () {
    let index = -1
    for (let i = 0; i < this.count; i++) {
      if (this.ms[i] > 0 && (index === -1 || this.ms[i] > this.ms[index])) index = i
    }
    if (index === -1) return undefined
    const ms = this.ms[index]
    const number = this.spans[index]
    this.ms[index] = 0
    const span = this.signatures[index] ?? (number === 0 ? undefined : delayerAt(number))
    return { span, ms, start: this.start[index], longest: this.longest[index] }
  }

  /** Releases the signatures. */
  clear () {
    for (let i = 0; i < this.count; i++) if (this.signatures[i] !== undefined) this.signatures[i] = undefined
    this.count = 0
  }
}

module.exports = { RunLog, Sums }
