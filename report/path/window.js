'use strict'

// Reads spans from a run log that comes block by block: the spans that have ended since, in bounded memory.

const { WORDS } = require('../../lib/core/run-log-words')
const { criticalPath } = require('./critical-path')
const { delaysOf } = require('./delays')
const { readEntries } = require('./entries')
const { figuresOf } = require('./figures')
const { queriesOf } = require('./queries')
const { requestsOf } = require('./requests')
const { NONE } = require('./timeline')

const BYTES = WORDS * 4 // of an entry
const WINDOW = 1 << 16 // entries

/**
 * @typedef {object} Block consecutive entries of one thread
 * @property {number} first number of the first entry
 * @property {Uint8Array} entries aligned to 8
 * @property {boolean} [isLast] the thread logs no more
 *
 * @typedef {object} EndedSpan runs and entries in it are numbers, 0: none
 * @property {import('./requests').Request} request
 * @property {import('./critical-path').Path} path
 * @property {import('./delays').Delayer[]} delays
 * @property {import('./queries').Query[]} queries
 * @property {ReturnType<typeof figuresOf>} figures
 */

class SpanReader {
  #first = 1
  #bytes = new Uint8Array(0)
  #isOver = false
  /** numbers of spans that were told @type {Set<number>} */
  #told = new Set()

  /** @param {Block} block */
  push ({ first, entries, isLast = false }) {
    const next = (this.#first + this.#bytes.length / BYTES) | 0
    if (this.#bytes.length === 0 || first !== next) {
      this.#first = first
      this.#bytes = new Uint8Array(entries)
    } else {
      const kept = this.#bytes.subarray(Math.max(0, this.#bytes.length - WINDOW * BYTES))
      this.#first = (this.#first + (this.#bytes.length - kept.length) / BYTES) | 0
      this.#bytes = new Uint8Array(kept.length + entries.length)
      this.#bytes.set(kept)
      this.#bytes.set(entries, kept.length)
    }
    if (isLast) this.end()
  }

  /** Says that no more blocks come. */
  end () {
    this.#isOver = true
  }

  /** Returns the spans that have ended since the last call; after the last block also those still open. */
  ended () {
    const recording = readEntries(this.#bytes, { first: this.#first })
    /** @type {EndedSpan[]} */
    const spans = []
    for (const request of requestsOf(recording)) {
      if ((request.isOpen && !this.#isOver) || this.#told.has(request.number)) continue
      this.#told.add(request.number)
      const path = criticalPath(recording, request)
      const delays = delaysOf(recording, request, path.waits)
      const figures = figuresOf(recording, request, path)
      const queries = queriesOf(recording, request)
      for (const wait of path.waits) {
        wait.run = this.#numberOf(wait.run)
        wait.callback = this.#numberOf(wait.callback)
      }
      for (const query of queries) {
        query.made = this.#numberOf(query.made)
        query.sent = this.#numberOf(query.sent)
        query.callback = this.#numberOf(query.callback)
      }
      spans.push({ request, path, delays, queries, figures })
    }
    return spans
  }

  /** @param {number} index of an entry @returns {number} its number, 0: none */
  #numberOf (index) {
    return index === NONE ? 0 : (this.#first + index) | 0
  }
}

module.exports = { SpanReader }
