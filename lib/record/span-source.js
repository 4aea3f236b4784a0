'use strict'

// Makes spans of the run log and the texts of one thread, as they come. It has no state of the traced
// process: a thread of longstack's own does the same (apart-thread.js).

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
 * @property {boolean} isNewest there were no more entries then
 *
 * @typedef {object} Batch
 * @property {Part[]} parts one at least, unless it is the last
 * @property {boolean} isAll whatever has ended is wanted now
 * @property {boolean} isLast no more come
 */

const NO_ENTRIES = new Uint8Array(0)

class SpanSource {
  #reader = new SpanReader()
  #maker = new SpanMaker()

  /** @param {() => void} [onTold] called often while entries are taken */
  constructor (onTold) {
    if (onTold !== undefined) this.#reader.onTold = onTold
    this.#reader.onAfter = (after) => this.#maker.addAfter(after)
  }

  /** Whether spans have ended that it has not returned. */
  get isWaiting () { return this.#reader.isWaiting || this.#maker.isWaiting }

  /** How many spans have ended that it has not returned. */
  get waiting () { return this.#reader.waiting + this.#maker.waiting }

  /** Takes a span that has ended, in place of its text. @param {ToldSpan} span */
  addSpan (span) { this.#maker.addSpan(span) }

  /**
   * Takes entries and the texts that they need.
   * @param {Batch} batch
   * @returns {EndedSpan[]} that have ended since
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

/** @param {import('./taking').Piece} piece @returns {Batch} good as long as the piece */
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
