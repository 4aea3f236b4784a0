'use strict'

// Who ran of late, and when: a ring. A hot room, as loop-time.js is.

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./span').Others} Others
 */

const GAP = 0.01 // ms between two parts of one run

class RunLog {
  /** @param {number} size a power of two */
  constructor (size) {
    this.size = size
    this.count = 0
    this.start = new Float64Array(size)
    this.end = new Float64Array(size)
    /** ms of what was run between the two: short runs of others may lie in between */
    this.ms = new Float64Array(size)
    /** @type {Array<Span | undefined>} */
    this.spans = []
  }

  /** @param {Span | undefined} span that ran @param {number} start @param {number} end @param {number} ms */
  add (span, start, end, ms) {
    const last = (this.count - 1) & (this.size - 1)
    if (this.count > 0 && this.spans[last] === span && start - this.end[last] < GAP) {
      this.end[last] = end
      this.ms[last] += ms
      return
    }
    const at = this.count++ & (this.size - 1)
    this.start[at] = start
    this.end[at] = end
    this.ms[at] = ms
    this.spans[at] = span
  }

  clear () {
    if (this.count === 0) return
    this.count = 0
    this.spans = []
  }

  /**
   * Adds up who ran while a span was open; the sums are kept by those who did.
   * @param {Span} span
   * @param {number} end of it, in ms
   * @param {Others} nobody what ran outside of any
   * @param {Others[]} found those that had not been found before are added
   */
  sum (span, end, nobody, found) {
    const begin = span.start
    const oldest = Math.max(0, this.count - this.size)
    for (let i = this.count - 1; i >= oldest; i--) {
      const at = i & (this.size - 1)
      if (this.end[at] <= begin) break
      const other = this.spans[at]
      if (other !== undefined && other.within(span)) continue
      const start = Math.max(this.start[at], begin)
      const ms = (Math.min(this.end[at], end) - start) / (this.end[at] - this.start[at]) * this.ms[at]
      if (ms > 0) note(other === undefined ? nobody : other.sum, span.seq, start, ms, found)
    }
  }
}

/** @param {Others} sum @param {number} seq of the span that asks @param {number} start @param {number} ms @param {Others[]} found */
function note (sum, seq, start, ms, found) {
  if (sum.asked !== seq) {
    sum.asked = seq
    sum.ms = sum.longest = 0
    found.push(sum)
  }
  sum.ms += ms
  if (ms <= sum.longest) return
  sum.longest = ms
  sum.start = start
}

module.exports = { RunLog }
