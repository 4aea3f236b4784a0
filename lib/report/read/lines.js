'use strict'

// Bytes in, lines out. A line is held only as long as it may still be a span: one that grows past any sense is left
// out without being kept, so that no file, however odd, takes more memory than a line.

const { PassThrough, pipeline } = require('node:stream')
const { createGunzip } = require('node:zlib')

const LONGEST = 16 << 20 // bytes of a line
const NEWLINE = 10
const RETURN = 13

/**
 * @typedef {object} Taker
 * @property {(line: string, number: number) => void} line a line without its end
 * @property {(number: number) => void} long a line that was too long to be kept
 */

/** @param {Taker} taker */
function createSplitter (taker) {
  /** @type {Buffer[]} */
  let held = []
  let size = 0
  let number = 1

  /** @param {Buffer} bytes @param {number} from @param {number} to */
  function line (bytes, from, to) {
    if (bytes[to - 1] === RETURN && to > from) to--
    if (number === 1 && bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf) from += 3 // a byte order mark
    if (to > from) taker.line(bytes.toString('utf8', from, to), number)
  }

  /** The line that began in an earlier piece is complete. @param {Buffer} last */
  function complete (last) {
    if (size + last.length > LONGEST) {
      taker.long(number)
    } else if (held.length === 0) {
      line(last, 0, last.length)
    } else {
      line(Buffer.concat([...held, last]), 0, size + last.length)
    }
    held = []
    size = 0
  }

  /** @param {Buffer} rest */
  function hold (rest) {
    size += rest.length
    if (size > LONGEST) held = []
    else if (rest.length > 0) held.push(Buffer.from(rest)) // a copy: the piece it is cut from may be large
  }

  return {
    /** @param {Buffer} piece */
    push (piece) {
      let from = 0
      for (let to = piece.indexOf(NEWLINE); to !== -1; to = piece.indexOf(NEWLINE, from)) {
        if (size === 0 && to - from <= LONGEST) line(piece, from, to)
        else complete(piece.subarray(from, to))
        number++
        from = to + 1
      }
      hold(piece.subarray(from))
    },

    /** Gives the last line, if it has no end; says whether it had none. */
    end () {
      const short = size > 0
      if (short) complete(Buffer.alloc(0))
      return short
    }
  }
}

/**
 * The bytes of a source; gzip is undone.
 * @param {AsyncIterable<Buffer>} source
 * @returns {AsyncGenerator<Buffer>}
 */
async function * unpacked (source) {
  const pieces = source[Symbol.asyncIterator]()
  const first = await pieces.next()
  if (first.done === true) return
  const all = (async function * () {
    yield first.value
    while (true) {
      const next = await pieces.next()
      if (next.done === true) return
      yield next.value
    }
  })()
  const packed = first.value[0] === 0x1f && first.value[1] === 0x8b
  yield * packed ? pipeline(all, createGunzip({ chunkSize: 1 << 18 }), new PassThrough(), () => {}) : all
}

module.exports = { createSplitter, unpacked, LONGEST }
