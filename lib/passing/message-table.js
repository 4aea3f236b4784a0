'use strict'

// Memory that all threads of a process share: the chains of messages as texts, and which chain each of the
// last messages has. A message is known by its channel, its direction, and how many went before it: the table
// holds nothing else of it but the channel of a port that it transfers. What does not fit is left out, and
// its chain is not known. The channel between a worker and its maker has the number of the worker's thread.

const { add, compareExchange, load, store } = Atomics

const TEXT_BYTES = 1 << 20 // the system gives memory when it is written
const SLOTS = 1 << 14 // messages, a power of two
const WORDS = 8 // of a slot
// Words of a slot.
const VERSION = 0 // odd while it is written
const KEY = 1
const COUNT = 2
const TEXT = 3 // where the text begins, 0: none
const PORT = 4 // key of the port that the message transfers, 0: none that is known

const FIRST_CHANNEL = 1 << 20 // more than there are threads
const CHANNELS = 1 << 29

// Words before the texts.
const NEXT_TEXT = 0
const NEXT_CHANNEL = 1
const FIRST_TEXT = 8 // bytes
const textStart = SLOTS * WORDS * 4 // bytes

/** @returns {SharedArrayBuffer} */
function createMemory () {
  const memory = new SharedArrayBuffer(textStart + TEXT_BYTES)
  new Int32Array(memory, textStart).set([FIRST_TEXT, FIRST_CHANNEL])
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
    this.#next = new Int32Array(memory, textStart, 2)
    this.#texts = new Uint8Array(memory, textStart)
  }

  /** @returns {number} of a new channel; 0: there are no more */
  addChannel () {
    if (load(this.#next, NEXT_CHANNEL) >= CHANNELS) return 0
    return add(this.#next, NEXT_CHANNEL, 1)
  }

  /** @param {string} text @returns {number} where it begins, 0: there is no room */
  addText (text) {
    const bytes = Buffer.from(text)
    const size = (4 + bytes.length + 3) & ~3
    if (load(this.#next, NEXT_TEXT) + size > TEXT_BYTES) return 0
    const start = add(this.#next, NEXT_TEXT, size)
    if (start + size > TEXT_BYTES) return 0 // another thread was faster; no more is added
    new Int32Array(this.memory, textStart + start, 1)[0] = bytes.length
    this.#texts.set(bytes, start + 4)
    return start
  }

  /** @param {number} start @returns {string} */
  textAt (start) {
    const length = new Int32Array(this.memory, textStart + start, 1)[0]
    return Buffer.from(this.#texts.slice(start + 4, start + 4 + length)).toString()
  }

  /**
   * Notes the chain of a message, before it is sent.
   * @param {number} key of its port
   * @param {number} count messages before it
   * @param {number} text where it begins, 0: it has none
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

  /** @param {number} key @param {number} count @returns {number} where its text begins, 0: not known */
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

/** @param {number} key @param {number} count */
function slotOf (key, count) {
  return ((Math.imul(key, 0x9E3779B1) >>> 8) + count & (SLOTS - 1)) * WORDS
}

module.exports = { MessageTable, createMemory }
