'use strict'

// Block format of recordings. A block holds entries of one thread's run log, preceded by the texts they need.
// A file is a sequence of blocks from any number of threads and processes, each appended with one write. Pure
// functions, shared by the writer and the readers.
//
// Header, little endian, as 32-bit words:
//
//     0  magic             1  bytes of the block, a multiple of 8
//     2  source            3  number of the block in its source, from 1
//     4  number of the     5  entries
//        first entry
//     6  bytes of texts    7  flags
//     8  ms of the clock at its creation, a double
//    10  ms since 1970 when the clock was 0, a double
//    12  entries lost     13  version of the layout
//        (overwritten) before this block was created
//    14  checksum of the words before
//    15  checksum of the words after the header
//
// Texts are lines of JSON, padded with line feeds to a multiple of 8 bytes.

const MAGIC = 0x3152534c // "LSR1"
const VERSION = 1
const HEADER_BYTES = 64
const HEADER_WORDS = HEADER_BYTES / 4
const ENTRY_BYTES = 48
const LINE_FEED = 10
const MAX_BYTES = 1 << 30 // limit of a block: a larger size means damage

const LAST = 1 // flag: the source is complete
const REPEATS = 2 // flag: includes all texts of the source from earlier blocks

/**
 * @typedef {object} Head
 * @property {number} source random, one per thread and start of a recording
 * @property {number} number
 * @property {number} first number of the first entry
 * @property {number} flags
 * @property {number} now ms of the clock
 * @property {number} origin ms since 1970
 * @property {number} lost entries
 *
 * @typedef {Head & { bytes: number, entries: number, textBytes: number, sum: number }} Header
 */

/** @param {string} texts @param {number} entries @returns {number} maximum size of a block in bytes */
const maxBytesOf = (texts, entries) => HEADER_BYTES + texts.length * 3 + 7 + entries * ENTRY_BYTES

/**
 * Writes a block.
 * @param {Buffer} target aligned to 8, large enough
 * @param {Head} head
 * @param {string} texts lines, including line feeds
 * @param {Uint8Array[]} entries
 * @returns {number} bytes
 */
function encode (target, head, texts, entries) {
  const textEnd = HEADER_BYTES + (texts === '' ? 0 : target.write(texts, HEADER_BYTES))
  const start = (textEnd + 7) & ~7
  target.fill(LINE_FEED, textEnd, start)
  let end = start
  for (let i = 0; i < entries.length; i++) {
    target.set(entries[i], end)
    end += entries[i].length
  }
  const words = new Int32Array(target.buffer, target.byteOffset, end / 4)
  const doubles = new Float64Array(target.buffer, target.byteOffset, HEADER_BYTES / 8)
  words[0] = MAGIC
  words[1] = end
  words[2] = head.source
  words[3] = head.number
  words[4] = head.first
  words[5] = (end - start) / ENTRY_BYTES
  words[6] = start - HEADER_BYTES
  words[7] = head.flags
  doubles[4] = head.now
  doubles[5] = head.origin
  words[12] = head.lost
  words[13] = VERSION
  words[14] = sumOf(words, 0, 14)
  words[15] = sumOf(words, HEADER_WORDS, words.length)
  return end
}

/**
 * Returns the checksum of words, by exclusive or: V8 does overflowing additions in floating point, which
 * takes several times as long.
 * @param {Int32Array} words
 * @param {number} start
 * @param {number} end
 * @returns {number}
 */
function sumOf (words, start, end) {
  let sum = 0
  for (let i = start; i < end; i++) sum = (sum << 1 | sum >>> 31) ^ words[i]
  return sum
}

/**
 * Reads the header of a block.
 * @param {Buffer} bytes
 * @param {number} start
 * @returns {Header | undefined} undefined if there is none, or it is damaged
 */
function readHeader (bytes, start) {
  if (start + HEADER_BYTES > bytes.length || bytes.readInt32LE(start) !== MAGIC) return undefined
  const words = new Int32Array(HEADER_WORDS)
  for (let i = 0; i < HEADER_WORDS; i++) words[i] = bytes.readInt32LE(start + i * 4)
  if (words[14] !== sumOf(words, 0, 14) || words[13] !== VERSION) return undefined
  const [size, entries, textBytes] = [words[1], words[5], words[6]]
  const isWhole = entries >= 0 && textBytes >= 0 && textBytes % 8 === 0 && size <= MAX_BYTES &&
    size === HEADER_BYTES + textBytes + entries * ENTRY_BYTES
  if (!isWhole) return undefined
  return {
    bytes: size,
    source: words[2] >>> 0,
    number: words[3] >>> 0,
    first: words[4],
    entries,
    textBytes,
    flags: words[7],
    now: bytes.readDoubleLE(start + 32),
    origin: bytes.readDoubleLE(start + 40),
    lost: words[12] >>> 0,
    sum: words[15]
  }
}

/**
 * Returns the contents of a block.
 * @param {Buffer} bytes
 * @param {number} start
 * @param {Header} header of it
 * @returns {{ texts: string[], entries: Uint8Array } | undefined} a copy, aligned to 8; undefined if it
 *   is damaged or truncated
 */
function readBody (bytes, start, { bytes: size, textBytes, sum }) {
  if (start + size > bytes.length) return undefined
  const body = new Uint8Array(size - HEADER_BYTES)
  body.set(bytes.subarray(start + HEADER_BYTES, start + size))
  const words = new Int32Array(body.buffer)
  if (sumOf(words, 0, words.length) !== sum) return undefined
  const text = Buffer.from(body.buffer, 0, textBytes).toString()
  return { texts: text.split('\n').filter((line) => line !== ''), entries: body.subarray(textBytes) }
}

module.exports = {
  ENTRY_BYTES, HEADER_BYTES, LAST, MAGIC, REPEATS, encode, maxBytesOf, readBody, readHeader
}
