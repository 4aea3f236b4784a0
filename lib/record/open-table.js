'use strict'

// Open requests in a black box, for a reader after the end of the process. Each has a slot with its name, so
// nothing needs to be done when the process dies. Requests without a free slot are counted. A slot is kept
// after its request has ended, until another one needs it.

const { ENDED, MAX_NAME, SERVER, SLOTS, SLOT_BYTES, part, slot: at } = require('./box-layout')

const TRIES = 64
const KIND = at.kind >> 2 // index of a word

/** @param {number} number @returns {number} index of the first word of a slot */
const wordOf = (number) => ((number & (SLOTS - 1)) * SLOT_BYTES) >> 2

class OpenTable {
  #bytes
  #words
  #times
  #part

  /**
   * @param {Buffer} bytes all zero
   * @param {Buffer} part the page of the thread
   */
  constructor (bytes, part) {
    this.#bytes = bytes
    this.#part = part
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
    this.#times = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8)
  }

  /** @param {number} number @returns {number} index of the first word of its slot, -1: it has none */
  #find (number) {
    for (let i = 0; i < TRIES; i++) {
      const word = wordOf(number + i)
      if (this.#words[word] === number) return word
    }
    return -1
  }

  /** @param {number} number @returns {number} index of the first word of a free slot, -1: there is none */
  #findFree (number) {
    for (let i = 0; i < TRIES; i++) {
      const word = wordOf(number + i)
      if (this.#words[word] === 0 || (this.#words[word + KIND] & ENDED) !== 0) return word
    }
    return -1
  }

  /** @param {import('../spans/span').Span} span */
  add (span) {
    const word = this.#findFree(span.seq)
    if (word === -1) return this.#leaveOut(span, 1)
    this.#words[word] = 0 // cleared until all is written
    this.#words[word + KIND] = span.kind === 'SERVER' ? SERVER : 0
    this.#times[(word >> 1) + (at.start >> 3)] = span.start
    this.#words[word + (at.nameBytes >> 2)] = this.#bytes.write(span.name, word * 4 + at.name, MAX_NAME)
    span.copyIds(this.#words, this.#bytes, word + (at.ids >> 2))
    this.#words[word] = span.seq
  }

  /** @param {import('../spans/span').Span} span that has ended */
  remove (span) {
    const word = this.#find(span.seq)
    if (word === -1) this.#leaveOut(span, -1)
    else this.#words[word + KIND] |= ENDED
  }

  /** Counts served requests without a slot. @param {import('../spans/span').Span} span @param {number} by */
  #leaveOut ({ kind }, by) {
    if (kind !== 'SERVER') return
    this.#part.writeInt32LE(Math.max(0, this.#part.readInt32LE(part.leftOut) + by), part.leftOut)
  }

  /** @param {number} number of a span @returns {string | undefined} its name; undefined: it ended long ago */
  nameOf (number) {
    const word = this.#find(number)
    if (word === -1) return undefined
    const start = word * 4 + at.name
    return this.#bytes.toString('utf8', start, start + this.#words[word + (at.nameBytes >> 2)])
  }
}

module.exports = { OpenTable }
