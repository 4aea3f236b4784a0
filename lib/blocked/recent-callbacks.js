'use strict'

// The latest blocking callbacks, for the question what delayed a span.

const MAX_ENTRIES = 64

/**
 * @typedef {object} Entry
 * @property {number} start ms of the clock
 * @property {number} end
 * @property {import('./blocking-callback').BlockingCallback | undefined} callback until it is reported
 * @property {string | undefined} frame innermost frame of the program, once it is reported
 */

class RecentCallbacks {
  /** @type {Entry[]} */
  #entries = []

  /**
   * @param {import('./blocking-callback').BlockingCallback} callback
   * @param {number} end
   */
  add (callback, end) {
    this.#entries.push({ start: callback.start, end, callback, frame: undefined })
    if (this.#entries.length > MAX_ENTRIES) this.#entries = this.#entries.slice(-MAX_ENTRIES / 2)
  }

  /**
   * Keeps only the frame of a reported callback, and releases its samples and context.
   * @param {import('./blocking-callback').BlockingCallback} callback
   * @param {string | undefined} frame
   */
  setFrame (callback, frame) {
    const entry = this.#entries.find((entry) => entry.callback === callback)
    if (entry === undefined) return
    entry.callback = undefined
    entry.frame = frame
  }

  /**
   * Returns the longest callback that overlaps an interval.
   * @param {number} start ms of the clock
   * @param {number} end
   * @returns {Entry | undefined}
   */
  longestDuring (start, end) {
    const overlapping = this.#entries.filter((entry) => entry.end > start && entry.start < end)
    if (overlapping.length === 0) return undefined
    return overlapping.reduce((longest, entry) => lengthOf(entry) > lengthOf(longest) ? entry : longest)
  }
}

/** @param {Entry} entry */
function lengthOf ({ start, end }) {
  return end - start
}

module.exports = { RecentCallbacks }
