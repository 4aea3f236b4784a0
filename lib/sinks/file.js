'use strict'

// The sink of one file, pipe, terminal or device. Where event loop iterations are counted
// (core/loop-iterations.js), the lines of one iteration are one synchronous write, made before the loop
// polls; else each line is one. What is written is in the kernel, so that no end of the process loses it, and
// O_APPEND lets several threads and processes write to one file.
//
// Why no library: of sonic-boom, the well-kept one for this, a single writeSync() was of use here. Its
// synchronous mode makes a process.nextTick() after a write, which the program's async_hooks see, sleeps on
// EAGAIN, and opens a FIFO so that the process waits for a reader (its index.js: `release`, `openFile`). A
// renamed file, whole lines after a fault, a bounded backlog and descriptors that the program closes would
// remain to be handled here.

const { Definitions } = require('../encoding/definitions')
const { LINE_FEED, LineWriter } = require('./line-writer')

const BATCH = 1 << 16 // bytes; what does not fit is written before the iteration is over
const MAX_BYTES = 3 // of a UTF-16 code unit in UTF-8

/**
 * @typedef {object} SinkContext
 * @property {(code: string, sentence: string) => void} warn
 * @property {Pick<typeof import('../core/loop-iterations'), 'batching' | 'schedule'>} [loopIterations]
 *   default: each line is written at once
 */

/**
 * Creates the sink of one file, pipe, terminal or device.
 * @param {{ fd?: number, path?: string }} target
 * @param {string} name as it is printed
 * @param {SinkContext} context
 */
function createLineSink (target, name, { warn, loopIterations }) {
  const definitions = new Definitions()
  const writer = new LineWriter(target, name, warn, definitions)
  /**
   * lines of the present iteration: as texts they would be copied by each scavenge
   * @type {Buffer | undefined}
   */
  let batch
  let batchBytes = 0
  let batchLines = 0
  let isScheduled = false

  /** @param {string} lines one, behind definitions that it needs, without the last line feed */
  function write (lines) {
    if (writer.isClosed) return writer.drop(1)
    const maxBytes = lines.length * MAX_BYTES + 1
    const isBatching = loopIterations?.batching() === true
    if (!isBatching || batchBytes + maxBytes > BATCH) writeBatch()
    if (!isBatching || maxBytes > BATCH) return writer.write(Buffer.from(`${lines}\n`), 1)
    batch ??= Buffer.allocUnsafeSlow(BATCH)
    const length = batch.write(lines, batchBytes)
    batch[batchBytes + length] = LINE_FEED
    batchBytes += length + 1
    batchLines++
    if (isScheduled) return
    isScheduled = true
    loopIterations?.schedule(endIteration)
  }

  function endIteration () {
    isScheduled = false
    writeBatch()
  }

  function writeBatch () {
    if (batchLines === 0) return
    const bytes = /** @type {Buffer} */ (batch).subarray(0, batchBytes)
    const count = batchLines
    batchBytes = batchLines = 0
    try {
      writer.write(bytes, count)
    } catch {
      writer.dropped += count // a stack overflow: the caller's own line is one of many here
      definitions.clear()
    }
  }

  writer.proceed()

  return {
    definitions,
    write,

    /** Opens the file again by its name; where that fails, it is tried again. */
    reopen () {
      writeBatch()
      if (target.path !== undefined) writer.reopen()
    },

    /** Writes what waits; waits for a slow reader, for a bounded time. */
    flush () {
      writeBatch()
      writer.flush()
    },

    close () {
      writeBatch()
      writer.close()
    },

    stats () {
      writeBatch()
      return writer
    }
  }
}

module.exports = { createLineSink }
