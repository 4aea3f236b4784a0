'use strict'

// The sink of lines in one file, pipe, terminal or device. Where event loop iterations are counted
// (core/loop-iterations.js), the lines of one iteration are one synchronous write, made before the loop
// polls; else each line is one.

const { batching, schedule } = require('../core/loop-iterations')
const { Definitions, isDefinition } = require('../encoding/definitions')
const { OutputQueue } = require('./output-queue')

/**
 * @typedef {object} SinkContext
 * @property {(code: string, sentence: string) => void} warn gives a warning once a code
 * @property {boolean} [isOwnThread] this is a thread of longstack's own, and of its sinks one at most sends
 */

const BATCH = 1 << 16 // bytes; what does not fit is written before the iteration is over
const MAX_BYTES = 3 // of a UTF-16 code unit in UTF-8
const PIPE_BUF = 4096 // bytes that reach a pipe without those of another writer in between; see pipe(7)
const LINE_FEED = 10

class LineSink {
  #queue
  definitions = new Definitions()
  /**
   * lines of the present iteration: as texts they would be copied by each scavenge
   * @type {Buffer | undefined}
   */
  #batch
  #batchBytes = 0
  #batchLines = 0

  /**
   * @param {{ fd?: number, path?: string }} target
   * @param {string} name as it is printed
   * @param {SinkContext} context
   */
  constructor (target, name, { warn }) {
    this.#queue = new OutputQueue(target, name, {
      name: 'spans',
      code: 'SPANS',
      warnSlow: () => warn('SPANS_SLOW_READER', `the reader of ${name} is too slow: ` +
        'spans are dropped, and counted in trace.stats().spans.'),
      isText: true,
      split: linesOf,
      counts: (line) => !isDefinition(line),
      pieceEnd,
      around: lineAround,
      beginning: () => Buffer.from(this.definitions.text).toString('latin1'),
      forget: () => this.definitions.clear()
    }, warn)
  }

  /** @param {string} lines one, behind definitions that it needs, without the last line feed */
  write (lines) {
    const queue = this.#queue
    if (queue.isClosed) return queue.drop(1)
    const maxBytes = lines.length * MAX_BYTES + 1
    const isBatching = batching()
    if (!isBatching || this.#batchBytes + maxBytes > BATCH) this.#writeBatch()
    if (!isBatching || maxBytes > BATCH) return queue.write(Buffer.from(`${lines}\n`), 1)
    const batch = this.#batch ??= Buffer.allocUnsafeSlow(BATCH)
    const length = batch.write(lines, this.#batchBytes)
    batch[this.#batchBytes + length] = LINE_FEED
    this.#batchBytes += length + 1
    if (this.#batchLines++ === 0) schedule(this.#writeBatch)
  }

  #writeBatch = () => {
    if (this.#batchLines === 0) return
    const bytes = /** @type {Buffer} */ (this.#batch).subarray(0, this.#batchBytes)
    const count = this.#batchLines
    this.#batchBytes = this.#batchLines = 0
    try {
      this.#queue.write(bytes, count)
    } catch {
      this.#queue.dropped += count // a stack overflow: the caller's own line is one of many here
      this.definitions.clear()
    }
  }

  /** Writes what waits; waits for a slow reader, for a bounded time. */
  flush () {
    this.#writeBatch()
    this.#queue.flush()
  }

  close () {
    this.#writeBatch()
    this.#queue.close()
  }

  stats () {
    this.#writeBatch()
    return this.#queue
  }
}

/**
 * Returns where the whole lines end that one write of a pipe takes, or the first line where that is longer.
 * @param {Buffer} bytes
 * @param {number} start
 */
function pieceEnd (bytes, start) {
  if (start + PIPE_BUF >= bytes.length) return bytes.length
  const end = bytes.lastIndexOf(LINE_FEED, start + PIPE_BUF - 1) + 1
  return end > start ? end : bytes.indexOf(LINE_FEED, start) + 1
}

/** @param {Buffer} bytes @param {number} offset @returns {[start: number, end: number]} */
function lineAround (bytes, offset) {
  const start = offset === 0 ? 0 : bytes.lastIndexOf(LINE_FEED, offset - 1) + 1
  return [start, bytes.indexOf(LINE_FEED, offset) + 1]
}

/** @param {string} text whole lines @returns {string[]} each with its line feed */
const linesOf = (text) => text.split('\n').slice(0, -1).map((line) => `${line}\n`)

module.exports = { LineSink }
