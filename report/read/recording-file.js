'use strict'

// Reads the blocks of a recording (lib/record/block.js) from a file that may be cut, damaged, rotated, or
// growing. Unreadable bytes are counted and skipped, up to the next valid header.

const fs = require('node:fs')
const { setTimeout: wait } = require('node:timers/promises')
const {
  ENTRY_BYTES, HEADER_BYTES, LAST, MAGIC, REPEATS, readBody, readHeader
} = require('../../lib/record/block')

const HEAD_BYTES = 1 << 16 // the first block starts within these bytes
const CHUNK_BYTES = 1 << 20
const FOLLOW_MS = 100 // interval between checks for growth
const magic = Buffer.alloc(4)
magic.writeInt32LE(MAGIC)

/**
 * @typedef {object} Block
 * @property {number} source
 * @property {number} number of the block in its source, from 1
 * @property {number} first number of the first entry
 * @property {Uint8Array} entries aligned to 8
 * @property {string[]} texts lines of JSON
 * @property {number} now ms on the source's clock when it was made
 * @property {number} origin ms since 1970 when the clock was 0
 * @property {number} lost entries overwritten before this block
 * @property {boolean} isLast block of its source
 * @property {boolean} hasAllTexts repeats the texts of earlier blocks
 *
 * @typedef {object} SourceState state of one source
 * @property {number} last number of its last block so far
 * @property {number} next number of the next expected entry
 * @property {number} earlier entries before the first block; they are in another file
 * @property {number} blocks missing since then
 * @property {number} entries missing, either in missing blocks or overwritten before they were written
 * @property {boolean} isComplete its last block was read
 *
 * @typedef {object} Missing
 * @property {number} skipped bytes that belong to no block
 * @property {number} cut files that end within a block
 * @property {number} repeated blocks that were read before
 * @property {Map<number, SourceState>} sources
 */

/**
 * Returns whether a file, or its first bytes, is a recording.
 * @param {string | Uint8Array} file name or bytes
 */
function isRecording (file) {
  const bytes = typeof file === 'string' ? headOf(file) : bufferOf(file)
  return bytes !== undefined && firstHeader(bytes.subarray(0, HEAD_BYTES)) !== undefined
}

/** @param {Uint8Array} bytes @returns {Buffer} view of the same memory */
const bufferOf = ({ buffer, byteOffset, length }) => Buffer.from(buffer, byteOffset, length)

/** @param {string} name @returns {Buffer | undefined} undefined if it is not a file or cannot be read */
function headOf (name) {
  try {
    if (!fs.statSync(name).isFile()) return undefined // a pipe can be read only once
    const fd = fs.openSync(name, 'r')
    try {
      const bytes = Buffer.alloc(HEAD_BYTES)
      return bytes.subarray(0, fs.readSync(fd, bytes, 0, HEAD_BYTES, 0))
    } finally {
      fs.closeSync(fd)
    }
  } catch {
    return undefined
  }
}

/** @param {Buffer} bytes @returns {import('../../lib/record/block').Header | undefined} of the first block */
function firstHeader (bytes) {
  for (let start = bytes.indexOf(magic); start !== -1; start = bytes.indexOf(magic, start + 1)) {
    const header = readHeader(bytes, start)
    if (header !== undefined) return header
  }
}

/** Reads blocks from bytes as they arrive. */
class BlockReader {
  /** @type {Buffer[]} */
  #chunks = []
  #size = 0
  #needed = HEADER_BYTES // bytes required before the next read
  #isTorn = false // the latest bytes belong to no block

  /** unreadable and missing parts so far @type {Missing} */
  missing = { skipped: 0, cut: 0, repeated: 0, sources: new Map() }

  /** @param {Uint8Array} chunk @returns {Block[]} blocks completed by the chunk */
  push (chunk) {
    this.#chunks.push(bufferOf(chunk))
    this.#size += chunk.length
    return this.#size < this.#needed ? [] : this.#read(false)
  }

  /** Ends the file. @returns {Block[]} blocks found within a truncated block */
  end () {
    const blocks = this.#read(true)
    if (this.#isTorn) this.missing.cut++
    this.#isTorn = false
    return blocks
  }

  /** @param {boolean} isEnd */
  #read (isEnd) {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks)
    /** @type {Block[]} */
    const blocks = []
    let start = 0
    this.#needed = HEADER_BYTES
    for (;;) {
      const found = bytes.indexOf(magic, start)
      start = this.#skip(start, found !== -1 ? found : Math.max(start, bytes.length - (isEnd ? 0 : 3)))
      if (found === -1 || (!isEnd && start + HEADER_BYTES > bytes.length)) break
      const header = readHeader(bytes, start)
      if (header !== undefined && !isEnd && start + header.bytes > bytes.length) {
        this.#needed = header.bytes
        break
      }
      const body = header === undefined ? undefined : readBody(bytes, start, header)
      if (header === undefined || body === undefined) {
        // If the writer was killed within a block, another block may begin inside it
        start = this.#skip(start, start + 1)
        continue
      }
      this.#isTorn = false
      start += header.bytes
      const block = blockOf(header, body)
      if (this.#note(block)) blocks.push(block)
    }
    const rest = bytes.subarray(start)
    this.#chunks = rest.length === 0 ? [] : [rest]
    this.#size = rest.length
    return blocks
  }

  /** @param {number} start @param {number} end of bytes that belong to no block @returns {number} the end */
  #skip (start, end) {
    this.missing.skipped += end - start
    this.#isTorn ||= end > start
    return end
  }

  /** @param {Block} block @returns {boolean} false if it was read before */
  #note ({ source, number, first, entries, lost, isLast }) {
    const next = (first + entries.length / ENTRY_BYTES) | 0
    const state = this.missing.sources.get(source)
    if (state === undefined) {
      const earlier = number === 1 ? 0 : Math.max(0, first - 1 - lost)
      const state = { last: number, next, earlier, blocks: 0, entries: lost, isComplete: isLast }
      this.missing.sources.set(source, state)
      return true
    }
    if (number <= state.last) {
      this.missing.repeated++
      return false
    }
    state.blocks += number - state.last - 1
    state.entries += Math.max(0, (first - state.next) | 0)
    Object.assign(state, { last: number, next, isComplete: isLast })
    return true
  }
}

/**
 * @param {import('../../lib/record/block').Header} header
 * @param {{ texts: string[], entries: Uint8Array }} body
 * @returns {Block}
 */
function blockOf ({ source, number, first, flags, now, origin, lost }, { texts, entries }) {
  const [isLast, hasAllTexts] = [LAST, REPEATS].map((flag) => (flags & flag) !== 0)
  return { source, number, first, entries, texts, now, origin, lost, isLast, hasAllTexts }
}

/**
 * Yields the bytes of a file and everything appended to it; switches to the file that takes over its name.
 * @param {string} name
 * @param {AbortSignal} [signal] stops following
 * @returns {AsyncGenerator<Buffer>}
 */
async function * follow (name, signal) {
  /** @type {fs.promises.FileHandle | undefined} */
  let file
  let offset = 0
  try {
    while (signal?.aborted !== true) {
      file ??= await fs.promises.open(name, 'r')
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, offset)
      if (bytesRead > 0) {
        offset += bytesRead
        yield chunk.subarray(0, bytesRead)
        continue
      }
      const [own, named] = await Promise.all([file.stat(), fs.promises.stat(name).catch(() => undefined)])
      if (own.size < offset) offset = 0 // it was truncated
      if (named !== undefined && (named.ino !== own.ino || named.dev !== own.dev)) {
        if (own.size > offset) continue
        await file.close()
        file = undefined
        offset = 0
        continue
      }
      await wait(FOLLOW_MS, undefined, { signal }).catch(() => {})
    }
  } finally {
    await file?.close()
  }
}

/**
 * Sorts files by the time of their first block. Rotated files must be read in order.
 * @param {string[]} names
 * @returns {string[]}
 */
function inOrder (names) {
  const times = new Map(names.map((name) => {
    const header = firstHeader(headOf(name) ?? Buffer.alloc(0))
    return [name, header === undefined ? Infinity : header.origin + header.now]
  }))
  const timeOf = (/** @type {string} */ name) => /** @type {number} */ (times.get(name))
  return [...names].sort((a, b) => timeOf(a) === timeOf(b) ? 0 : timeOf(a) - timeOf(b))
}

/**
 * Describes missing parts.
 * @param {Missing} missing
 * @param {(source: number) => string} nameOf name of a process or thread
 * @returns {string[]} sentences, without full stops
 */
function describeMissing ({ skipped, cut, sources }, nameOf) {
  const sentences = []
  if (skipped > 0) sentences.push(`${count(skipped, 'byte')} cannot be read and are skipped`)
  if (cut > 0) sentences.push('the end is cut off')
  for (const [source, { blocks, earlier, entries, isComplete }] of sources) {
    const name = nameOf(source)
    if (earlier > 0) {
      sentences.push(`${name}: the first ${count(earlier, 'entry', 'entries')} are in another file`)
    }
    if (entries > 0) {
      const where = blocks > 0 ? `, ${count(blocks, 'block')} of the file` : ''
      sentences.push(`${name}: ${count(entries, 'entry', 'entries')} are missing${where}`)
    }
    if (!isComplete) sentences.push(`${name}: has no end; it was killed, or still runs`)
  }
  return sentences
}

/** @param {number} number @param {string} one @param {string} [more] */
const count = (number, one, more = `${one}s`) => `${number} ${number === 1 ? one : more}`

module.exports = { BlockReader, describeMissing, follow, inOrder, isRecording }
