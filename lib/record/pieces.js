'use strict'

// Copies of run-log entries and their texts, kept until they are posted to the thread that builds spans
// (apart.js).

const { ENTRY_BYTES } = require('./block')

const MIN_BYTES = 1 << 16 // minimum size of the copy of entries
const MAX_PART = 1 << 16 // bytes of entries to read at once

/**
 * @typedef {import('./span-source').Batch} Batch
 * @typedef {import('./span-source').Part} Part
 */

/** Pieces not posted yet. */
class Pieces {
  /** @type {Array<Omit<Part, 'entries'> & { length: number }>} length: bytes of entries */
  #parts = []
  #bytes = new Uint8Array(0)
  #length = 0
  #textLength = 0
  #spans = 0
  #isAll = false
  #isLast = false
  isEmpty = true

  /** Approximate size in bytes. */
  get size () { return this.#length + this.#textLength }

  /** Number of spans and other records in them. */
  get spans () { return this.#spans }

  /** @param {import('./taking').Piece} piece */
  add ({ first, entries, spans, texts, now, isNewest, isAll, isLast }) {
    const length = entries.reduce((sum, part) => sum + part.length, 0)
    let end = this.#length
    this.#makeRoom(end + length)
    for (const part of entries) {
      this.#bytes.set(part, end)
      end += part.length
    }
    // The rest is atomic: V8 terminates nothing in between (guard.js)
    const last = this.#parts[this.#parts.length - 1]
    const isNext = last !== undefined && ((last.first + last.length / ENTRY_BYTES) | 0) === first
    if (isNext && last.length + length <= MAX_PART) {
      last.length += length
      last.texts += texts
      last.now = now
      last.isNewest = isNewest
    } else {
      this.#parts[this.#parts.length] = { first, length, texts, now, isNewest }
    }
    this.#length = end
    this.#textLength += texts.length
    this.#spans += spans
    this.#isAll ||= isAll
    this.#isLast ||= isLast
    this.isEmpty = false
  }

  /** @param {number} length */
  #makeRoom (length) {
    if (length <= this.#bytes.length) return
    const bytes = new Uint8Array(Math.max(MIN_BYTES, 2 * this.#bytes.length, length))
    bytes.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = bytes
  }

  /** Returns all pieces and clears them. @returns {Batch & { size: number, buffer: ArrayBuffer }} */
  take () {
    const { buffer } = this.#bytes
    let offset = 0
    const batch = {
      parts: this.#parts.map(({ length, ...part }) => {
        const entries = new Uint8Array(buffer, offset, length)
        offset += length
        return { ...part, entries }
      }),
      isAll: this.#isAll,
      isLast: this.#isLast,
      size: this.size,
      buffer
    }
    this.clear()
    return batch
  }

  /** Marks the end: no more pieces come. */
  end () {
    if (this.#isLast) return
    this.#isLast = this.#isAll = true
    this.isEmpty = false
  }

  clear () {
    this.#parts = []
    this.#bytes = new Uint8Array(0)
    this.#length = 0
    this.#textLength = this.#spans = 0
    this.#isAll = false
    this.isEmpty = true
  }
}

module.exports = { Pieces }
