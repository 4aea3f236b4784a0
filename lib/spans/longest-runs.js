'use strict'

// The longest runs of one span, in lists that serve one span after another.

const MAX_RUNS = 64
const GAP = 0.01 // ms between two parts of one run
const POOL = 64 // lists kept for the spans to come

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

module.exports = { LongestRuns, putLongestRuns, takeLongestRuns }
