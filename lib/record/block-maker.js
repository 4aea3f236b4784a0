'use strict'

// Turns pieces of this thread's run log (taking.js) into blocks (block.js).

const { fill } = require('../encoding/ids')
const { originAt } = require('../spans/wall-clock')
const { LAST, REPEATS, encode, maxBytesOf } = require('./block')

const BUFFER_BYTES = 1 << 17 // initial size of the buffer for blocks
const KEPT_BYTES = 1 << 20 // the largest buffer that is kept

class BlockMaker {
  source = fill(Buffer.alloc(4)).readUInt32LE()
  #target = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #blocks = 0

  /**
   * @param {import('./taking').Piece} piece
   * @param {string} [ownTexts] lines to add to those of the piece
   * @returns {Buffer} a block, valid until the next call
   */
  make ({ first, count, entries, lost, texts, repeats, now, isLast }, ownTexts = '') {
    const allTexts = texts + ownTexts
    const target = this.#room(maxBytesOf(allTexts, count))
    const length = encode(target, {
      source: this.source,
      number: ++this.#blocks,
      first,
      flags: (isLast ? LAST : 0) | (repeats ? REPEATS : 0),
      now,
      origin: originAt(now),
      lost
    }, allTexts, entries)
    return target.subarray(0, length)
  }

  /** @param {number} bytes */
  #room (bytes) {
    if (bytes <= this.#target.length) return this.#target
    const target = Buffer.allocUnsafeSlow(bytes)
    if (bytes <= KEPT_BYTES) this.#target = target
    return target
  }
}

module.exports = { BlockMaker }
