'use strict'

// Opens files and standard input, and splits their bytes into lines. A file can be read twice, a pipe only if
// its bytes were kept, which is limited. The bytes of an overlong line are discarded as they arrive, so no
// file takes more memory than one line.

const fs = require('node:fs')
const { PassThrough, Readable, pipeline } = require('node:stream')
const { createGunzip } = require('node:zlib')
const { isRecording } = require('./recording-file')

const CHUNK_BYTES = 1 << 20
const HEAD_BYTES = 1 << 16 // start of a source, used to detect its format
const MAX_KEPT_BYTES = 32 << 20
const MAX_LINE_BYTES = 16 << 20
const NEWLINE = 10
const RETURN = 13
const BYTE_ORDER_MARK = '\xef\xbb\xbf'

/**
 * Opens a file by its name; `-` is standard input.
 * @typedef {(name: string) => AsyncIterable<Buffer>} Source
 */

/** @type {Source} */
function open (name) {
  return name === '-' ? process.stdin : fs.createReadStream(name, { highWaterMark: CHUNK_BYTES })
}

/**
 * @param {string} name
 * @returns {fs.BigIntStats | undefined} undefined for standard input and for unreadable files
 */
function stats (name) {
  try {
    return name === '-' ? undefined : fs.statSync(name, { bigint: true })
  } catch {
    return undefined
  }
}

/** Returns whether it exists and can be read only once. @param {string} name */
function isPipe (name) {
  const stat = stats(name)
  return stat !== undefined && !stat.isFile() && !stat.isDirectory()
}

/** Sources that can be read twice. */
class RereadableSources {
  /** @type {Map<string, Buffer[]>} */
  #kept = new Map()
  #size = 0
  #source

  /** @param {Source} [source] that can be read only once; default: files and standard input */
  constructor (source) { this.#source = source }

  /** @param {string} name */
  #isFile (name) { return this.#source === undefined && stats(name)?.isFile() === true }

  /** @type {Source} */
  first = (name) => this.#isFile(name) ? open(name) : this.#keep(name)

  /** @type {Source} */
  second = (name) => this.#isFile(name) ? open(name) : Readable.from(this.#kept.get(name) ?? [])

  /** Whether more bytes came through pipes than are kept. */
  get isIncomplete () { return this.#size > MAX_KEPT_BYTES }

  /** @param {string} name */
  async * #keep (name) {
    /** @type {Buffer[]} */
    const chunks = []
    this.#kept.set(name, chunks)
    for await (const chunk of (this.#source ?? open)(name)) {
      this.#size += chunk.length
      if (this.isIncomplete) this.#kept.clear()
      else chunks.push(chunk)
      yield chunk
    }
  }
}

/**
 * @typedef {object} LineHandler
 * @property {(bytes: Buffer, start: number, end: number, number: number) => void} line called with the bytes
 *   of a line without its newline, valid only during the call
 * @property {(number: number) => void} overlong called with the number of a discarded line
 */

class LineSplitter {
  #handler
  /** @type {Buffer[]} */
  #chunks = []
  #size = 0
  #number = 1

  /** @param {LineHandler} handler */
  constructor (handler) {
    this.#handler = handler
  }

  /** @param {Buffer} chunk */
  push (chunk) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (this.#size === 0 && end - start <= MAX_LINE_BYTES) this.#emit(chunk, start, end)
      else this.#complete(chunk.subarray(start, end))
      this.#number++
      start = end + 1
    }
    this.#hold(chunk.subarray(start))
  }

  /** Emits the last line if it has no newline, and returns whether there was one. */
  end () {
    const isUnterminated = this.#size > 0
    if (isUnterminated) this.#complete(Buffer.alloc(0))
    return isUnterminated
  }

  /**
   * @param {Buffer} bytes
   * @param {number} start
   * @param {number} end
   */
  #emit (bytes, start, end) {
    if (bytes[end - 1] === RETURN && end > start) end--
    if (this.#number === 1 && bytes.toString('latin1', start, start + 3) === BYTE_ORDER_MARK) start += 3
    if (end > start) this.#handler.line(bytes, start, end, this.#number)
  }

  /** Emits the line that began in earlier chunks. @param {Buffer} last end of the line */
  #complete (last) {
    const size = this.#size + last.length
    if (size > MAX_LINE_BYTES) this.#handler.overlong(this.#number)
    else this.#emit(Buffer.concat([...this.#chunks, last]), 0, size)
    this.#chunks = []
    this.#size = 0
  }

  /** @param {Buffer} bytes */
  #hold (bytes) {
    this.#size += bytes.length
    if (this.#size > MAX_LINE_BYTES) this.#chunks = []
    else if (bytes.length > 0) this.#chunks.push(Buffer.from(bytes)) // a copy, because the chunk may be large
  }
}

/**
 * Decompresses a source if it is gzip.
 * @param {AsyncIterable<Buffer>} source
 * @returns {AsyncGenerator<Buffer>}
 */
async function * decompressed (source) {
  const chunks = source[Symbol.asyncIterator]()
  const first = await chunks.next()
  if (first.done === true) return
  const whole = (async function * () {
    yield first.value
    yield * { [Symbol.asyncIterator]: () => chunks }
  })()
  const isGzip = first.value[0] === 0x1f && first.value[1] === 0x8b
  yield * isGzip ? pipeline(whole, createGunzip({ chunkSize: 1 << 18 }), new PassThrough(), () => {}) : whole
}

/**
 * Yields the chunks of a source, marked as recording or not.
 * @param {AsyncIterable<Buffer>} source
 * @returns {AsyncGenerator<{ chunk: Buffer, isRecording: boolean }>}
 */
async function * withForm (source) {
  /** @type {Buffer[]} */
  let head = []
  let size = 0
  /** @type {boolean | undefined} */
  let isKnown
  let error
  try {
    for await (const chunk of source) {
      head.push(chunk)
      size += chunk.length
      if (isKnown === undefined) {
        const isFound = isRecording(Buffer.concat(head))
        if (!isFound && size < HEAD_BYTES) continue
        isKnown = isFound
      }
      for (const each of head) yield { chunk: each, isRecording: isKnown }
      head = []
    }
  } catch (reason) {
    error = reason // yield the chunks before the error first
  }
  isKnown ??= isRecording(Buffer.concat(head))
  for (const chunk of head) yield { chunk, isRecording: isKnown }
  if (error !== undefined) throw error
}

/** Why a file cannot be read, by code of the error. @type {Record<string, string>} */
const fileFailures = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'is a directory'
}

module.exports = {
  LineSplitter,
  MAX_LINE_BYTES,
  RereadableSources,
  decompressed,
  fileFailures,
  isPipe,
  open,
  stats,
  withForm
}
