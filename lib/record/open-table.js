'use strict'

// Open requests in a black box, for a reader after the end of the process. Each has a slot with its name, so
// nothing needs to be done when the process dies. A request without a free slot is left out.

const { MAX_NAME, SLOTS, SLOT_BYTES, slot: at } = require('./box-layout')

const TRIES = 8

class OpenTable {
  #bytes
  #words
  #times

  /** @param {Buffer} bytes all zero */
  constructor (bytes) {
    this.#bytes = bytes
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
    this.#times = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8)
  }

  /** @param {number} number @param {number} wanted what the slot must hold @returns {number} -1: none */
  #find (number, wanted) {
    for (let i = 0; i < TRIES; i++) {
      const offset = ((number + i) & (SLOTS - 1)) * SLOT_BYTES
      if (this.#words[offset >> 2] === wanted) return offset
    }
    return -1
  }

  /** @param {import('../spans/span').Span} span */
  add (span) {
    const offset = this.#find(span.seq, 0)
    if (offset === -1) return
    const word = offset >> 2
    this.#times[(offset + at.start) >> 3] = span.start
    this.#words[word + (at.kind >> 2)] = span.kind === 'SERVER' ? 1 : 0
    this.#words[word + (at.nameBytes >> 2)] = this.#bytes.write(span.name, offset + at.name, MAX_NAME)
    span.copyIds(this.#words, this.#bytes, word + (at.ids >> 2))
    this.#words[word] = span.seq
  }

  /** @param {import('../spans/span').Span} span that has ended */
  remove ({ seq }) {
    const offset = this.#find(seq, seq)
    if (offset !== -1) this.#words[offset >> 2] = 0
  }
}

module.exports = { OpenTable }
