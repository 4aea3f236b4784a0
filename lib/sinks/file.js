'use strict'

// A sink that writes lines to one file, pipe, terminal or device. If event loop iterations are counted
// (core/loop-iterations.js), the lines of one iteration are one synchronous write before the loop polls;
// otherwise each line is one write.

const { batching, schedule } = require('../core/loop-iterations')
const { Definitions, isDefinition } = require('../encoding/definitions')
const { OutputQueue } = require('./output-queue')

/**
 * @typedef {object} SinkContext
 * @property {(code: string, sentence: string) => void} warn warns once per code
 * @property {boolean} [isOwnThread] this is longstack's own thread, and at most one of its sinks sends
 */

const BATCH = 1 << 16 // bytes; a full batch is written before the iteration ends
const MAX_BYTES = 3 // bytes of a UTF-16 code unit in UTF-8
const PIPE_BUF = 4096 // bytes written to a pipe atomically; see pipe(7)
const LINE_FEED = 10

class LineSink {
  #queue
  definitions = new Definitions()
  /**
   * lines of the current iteration; each scavenge would copy them if they were strings
   * @type {Buffer | undefined}
   */
  #batch
  #batchBytes = 0
  #batchLines = 0

  /**
   * @param {{ fd?: number, path?: string }} target
   * @param {string} name as printed
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

  /** @param {string} lines one line after the definitions it needs, without the last line feed */
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
      this.#queue.dropped += count // a stack overflow: the batch has many lines besides the caller's
      this.definitions.clear()
    }
  }

  /** Writes pending lines; waits for a slow reader, for a bounded time. */
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
 * Returns the end of the whole lines that fit one write to a pipe, or of the first line if that is longer.
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
