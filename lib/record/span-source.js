'use strict'

// Builds spans from one thread's run log and texts, as they arrive. Uses no state of the traced process, so
// longstack's own thread can run it too (apart-thread.js).

const { SpanMaker } = require('../../report/path/span-maker')
const { SpanReader } = require('../../report/path/window')
const { ENTRY_BYTES } = require('./block')

/**
 * @typedef {import('../sinks/sinks').EndedSpan} EndedSpan
 * @typedef {import('../../report/path/source-texts').ToldSpan} ToldSpan
 *
 * @typedef {object} Part
 * @property {number} first number of its first entry
 * @property {Uint8Array} entries consecutive ones
 * @property {string} texts lines
 * @property {number} now ms of the clock
 * @property {boolean} isNewest the log had no more entries at that time
 *
 * @typedef {object} Batch
 * @property {Part[]} parts at least one, unless this is the last batch
 * @property {boolean} isAll return every span that has ended now
 * @property {boolean} isLast no more batches follow
 */

const NO_ENTRIES = new Uint8Array(0)

class SpanSource {
  #reader = new SpanReader()
  #maker = new SpanMaker()

  /** @param {() => void} [onTold] called often while entries are processed */
  constructor (onTold) {
    if (onTold !== undefined) this.#reader.onTold = onTold
    this.#reader.onAfter = (after) => this.#maker.addAfter(after)
    this.#reader.onCalled = (chain, start, due) => this.#maker.addCalled(chain, start, due)
  }

  /** Whether some ended spans are not returned yet. */
  get isWaiting () { return this.#reader.isWaiting || this.#maker.isWaiting }

  /** Number of ended spans not returned yet. */
  get waiting () { return this.#reader.waiting + this.#maker.waiting }

  /** Takes an ended span in place of its text. @param {ToldSpan} span */
  addSpan (span) { this.#maker.addSpan(span) }

  /**
   * Takes entries and the texts they need.
   * @param {Batch} batch
   * @returns {EndedSpan[]} spans that have ended since
   */
  take ({ parts, isAll, isLast }) {
    /** @type {EndedSpan[]} */
    const made = []
    const newest = parts.length - 1
    parts.forEach(({ first, entries, texts, now, isNewest }, i) => {
      const isEnd = isAll && i === newest
      this.#maker.add(texts.split('\n'))
      this.#reader.push({ first, entries })
      if (isNewest) this.#reader.push({ first, entries: NO_ENTRIES, until: now, isAll: isEnd })
      made.push(...this.#maker.make(this.#reader.ended(), isEnd ? Infinity : now))
    })
    if (!isLast) return made
    this.#reader.end()
    return [...made, ...this.#maker.make(this.#reader.ended()), ...this.#maker.finish()]
  }
}

/** @param {import('./taking').Piece} piece @returns {Batch} valid as long as the piece */
function batchOf ({ first, entries, texts, now, isNewest, isAll, isLast }) {
  let next = first
  const parts = entries.map((part, i) => {
    const isEnd = i === entries.length - 1
    const numbered = {
      first: next, entries: part, texts: i === 0 ? texts : '', now, isNewest: isNewest && isEnd
    }
    next = (next + part.length / ENTRY_BYTES) | 0
    return numbered
  })
  return { parts, isAll, isLast }
}

module.exports = { SpanSource, batchOf }
