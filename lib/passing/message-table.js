'use strict'

// Memory shared by all threads of a process: the chains of messages as texts, and the chain of each recent
// message. A message is identified by its channel, its direction, and the number of messages before it;
// besides that, the table holds only the channel of a port that it transfers. Newer messages and texts
// overwrite the oldest ones, whose chains are then unknown. The channel between a worker and its parent
// thread has the number of the worker's thread.
//
// The place of a text counts words from the first one ever written, so places are unique until the count
// restarts. A text follows its length and a checksum over it and its place. They detect a text that was
// overwritten, or never finished because its thread was terminated.

const { add, compareExchange, load, store } = Atomics

const TEXT_WORDS = 1 << 20 // a power of two; the system allocates memory on the first write
const MAX_PLACE = 2 ** 31 - TEXT_WORDS
const SLOTS = 1 << 14 // messages, a power of two
const WORDS = 8 // words of a slot
// Words of a slot.
const VERSION = 0 // odd during a write
const KEY = 1
const COUNT = 2
const TEXT = 3 // start of the text, 0: none
const PORT = 4 // key of the port that the message transfers, 0 if none is known

const FIRST_CHANNEL = 1 << 20 // above all thread numbers
const CHANNELS = 1 << 29

// Words before the texts.
const NEXT_TEXT = 0
const NEXT_CHANNEL = 1
const FIRST_TEXT = 2 // place: lower ones have special meanings
const nextStart = SLOTS * WORDS * 4 // bytes
const textStart = nextStart + 8 // bytes
// Words of a text.
const LENGTH = 0 // bytes
const SUM = 1
const HEADER = 2

/** @returns {SharedArrayBuffer} */
function createMemory () {
  const memory = new SharedArrayBuffer(textStart + TEXT_WORDS * 4)
  new Int32Array(memory, nextStart).set([FIRST_TEXT, FIRST_CHANNEL])
  return memory
}

class MessageTable {
  #slots
  #texts
  #next // see NEXT_TEXT

  /** @param {SharedArrayBuffer} memory */
  constructor (memory) {
    this.memory = memory
    this.#slots = new Int32Array(memory, 0, SLOTS * WORDS)
    this.#next = new Int32Array(memory, nextStart, 2)
    this.#texts = new Int32Array(memory, textStart, TEXT_WORDS)
  }

  /** @returns {number} number of a new channel, 0 if none is left */
  addChannel () {
    if (load(this.#next, NEXT_CHANNEL) >= CHANNELS) return 0
    return add(this.#next, NEXT_CHANNEL, 1)
  }

  /** @param {string} text @returns {number} its place, 0 if it is too long */
  addText (text) {
    const bytes = Buffer.from(text)
    const size = HEADER + (bytes.length + 3 >> 2)
    if (size > TEXT_WORDS / 2) return 0
    const place = this.#reserve(size)
    const start = place & (TEXT_WORDS - 1)
    const words = this.#texts.subarray(start + HEADER, start + size)
    words[words.length - 1] = 0
    new Uint8Array(words.buffer, words.byteOffset).set(bytes)
    this.#texts[start + LENGTH] = bytes.length
    this.#texts[start + SUM] = sumOf(words, place)
    return place
  }

  /** @param {number} size in contiguous words @returns {number} place */
  #reserve (size) {
    for (;;) {
      const next = load(this.#next, NEXT_TEXT)
      const rest = TEXT_WORDS - (next & (TEXT_WORDS - 1))
      const place = next >= MAX_PLACE ? FIRST_TEXT : rest < size ? next + rest : next
      if (compareExchange(this.#next, NEXT_TEXT, next, place + size) === next) return place
    }
  }

  /** Whether a receiver can still read a text if it gets the text's place now. @param {number} place */
  isRecent (place) {
    const next = load(this.#next, NEXT_TEXT)
    return next >= place && next - place < TEXT_WORDS / 2
  }

  /** @param {number} place @returns {string | undefined} undefined if it was overwritten */
  textAt (place) {
    const start = place & (TEXT_WORDS - 1)
    const length = this.#texts[start + LENGTH]
    const end = start + HEADER + (length + 3 >> 2)
    if (length < 0 || end > TEXT_WORDS) return undefined
    const words = this.#texts.slice(start + HEADER, end)
    if (sumOf(words, place) !== this.#texts[start + SUM]) return undefined
    return Buffer.from(words.buffer, 0, length).toString()
  }

  /**
   * Notes the chain of a message before it is sent.
   * @param {number} key of its port
   * @param {number} count messages before it
   * @param {number} text place of its text, 0: none
   * @param {number} port key of the port that it transfers, 0: none
   */
  note (key, count, text, port) {
    const slot = slotOf(key, count)
    const version = load(this.#slots, slot + VERSION)
    const isFree = (version & 1) === 0
    if (!isFree || compareExchange(this.#slots, slot + VERSION, version, version + 1) !== version) return
    store(this.#slots, slot + KEY, key)
    store(this.#slots, slot + COUNT, count)
    store(this.#slots, slot + TEXT, text)
    store(this.#slots, slot + PORT, port)
    store(this.#slots, slot + VERSION, version + 2)
  }

  /** @param {number} key @param {number} count @returns {number} place of its text, 0 if unknown */
  find (key, count) {
    return this.#read(key, count, TEXT)
  }

  /** @param {number} key @param {number} count @returns {number} key of the port that it transfers */
  findPort (key, count) {
    return this.#read(key, count, PORT)
  }

  /** @param {number} key @param {number} count @param {number} word of the slot */
  #read (key, count, word) {
    const slot = slotOf(key, count)
    const version = load(this.#slots, slot + VERSION)
    if ((version & 1) !== 0 || load(this.#slots, slot + KEY) !== key) return 0
    const isSame = load(this.#slots, slot + COUNT) === count
    const value = load(this.#slots, slot + word)
    return isSame && load(this.#slots, slot + VERSION) === version ? value : 0
  }
}

/** @param {Int32Array} words of a text @param {number} place */
function sumOf (words, place) {
  let sum = place
  for (let i = 0; i < words.length; i++) sum = Math.imul(sum ^ words[i], 0x9E3779B1) ^ sum >>> 15
  return sum
}

/** @param {number} key @param {number} count */
function slotOf (key, count) {
  return ((Math.imul(key, 0x9E3779B1) >>> 8) + count & (SLOTS - 1)) * WORDS
}

module.exports = { MessageTable, createMemory }
