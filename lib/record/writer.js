'use strict'

// Writes this thread's run log to a file, as blocks (block.js). Each block is one write. It is made before
// the event loop sleeps, after 64 KiB or 250 ms, when a quarter of the ring is unread (also within one long
// callback), and at the end of the process. All threads and processes of a program can share one file.
//
// The program's async_hooks see no resource of this module, with one exception: if the addon does not count
// the iterations of the event loop (core/loop-iterations.js), a timer writes the blocks.

const process = require('node:process')
const { setTimeout } = require('node:timers') // programs replace the global ones
const { now } = require('../core/clock')
const guard = require('../core/guard')
const loopIterations = require('../core/loop-iterations')
const { on } = require('../core/on')
const runLog = require('../core/run-log')
const { COUNT, ENTRIES, HEADER, WORDS } = require('../core/run-log-words')
const { fill } = require('../encoding/ids')
const { OutputQueue } = require('../sinks/output-queue')
const { targetOf } = require('../sinks/outputs')
const { originAt } = require('../spans/wall-clock')
const { warn } = require('../warnings')
const { ENTRY_BYTES, LAST, REPEATS, encode, maxBytesOf } = require('./block')

const BLOCK_BYTES = 1 << 16 // of entries
const MAX_ENTRIES = Math.floor(BLOCK_BYTES / ENTRY_BYTES)
const MAX_WAIT_MS = 250
const KEPT_BYTES = 1 << 20 // of the buffer that blocks are made in

/**
 * @typedef {object} Texts what tells what numbers in entries stand for (texts.js)
 * @property {(source: Record<string, unknown>) => void} begin
 * @property {(first: number, last: number) => string} takeNew returns what these entries need, and what has
 *   happened since, as lines of JSON
 * @property {() => string} all returns what begins a file; what entries need is told once more with them
 * @property {() => number} size how many characters wait to be taken
 * @property {() => void} end
 *
 * @typedef {object} RecordStats
 * @property {string} to
 * @property {number} ringBytes memory of the ring
 * @property {number} entries written to the ring
 * @property {number} lost entries that were overwritten before they could be written to the file
 * @property {number} written blocks
 * @property {number} bytes of blocks that were made
 * @property {number} waiting blocks that are not written yet
 * @property {number} dropped blocks
 * @property {string} [fault] why nothing can be written now
 */

class Recording {
  #texts
  #ring
  #ints
  #source = fill(Buffer.alloc(4)).readUInt32LE()
  /** @type {OutputQueue} */
  #queue
  /** number of the last entry that was taken */
  #taken = 0
  #blocks = 0
  #bytes = 0
  #lost = 0
  /** the next block has all texts */
  #repeats = true
  #target = Buffer.allocUnsafeSlow(2 * BLOCK_BYTES)
  /** ms of the clock when blocks were made last */
  #takenAt = now()
  /** where iterations are not counted @type {NodeJS.Timeout | undefined} */
  #timer
  #removeListener
  #isOver = false

  /**
   * @param {string} option the file, as it was named
   * @param {Texts} texts
   */
  constructor (option, texts) {
    this.option = option
    this.#texts = texts
    this.#ring = runLog.start()
    this.#ints = new Int32Array(this.#ring)
    texts.begin({ pid: process.pid, node: process.version })
    this.#queue = new OutputQueue(targetOf(option), option, {
      name: 'blocks of the recording',
      code: 'RECORD',
      warnSlow: () => warn('RECORD_SLOW_READER', `the reader of ${option} is too slow: ` +
        'blocks of the recording are dropped, and counted in trace.stats().record.'),
      isText: false,
      split: (block) => block === '' ? [] : [block],
      counts: () => true,
      pieceEnd: (bytes) => bytes.length,
      around: (bytes) => [0, bytes.length],
      beginning: () => this.#repeatTexts(),
      forget: () => this.#repeatTexts()
    }, warn)
    runLog.onDue(() => this.#take())
    this.#removeListener = on('iteration', (time) => this.#iterationBegan(time))
    this.#iterationBegan(now()) // for what the main script does
  }

  #repeatTexts () {
    this.#repeats = true
    return ''
  }

  /** @param {number} time ms of the clock */
  #iterationBegan (time) {
    if (loopIterations.areCounted()) {
      if (this.#isDue(time)) loopIterations.schedule(this.#takeRest)
      else loopIterations.scheduleBeforeSleep(this.#takeRest)
      return
    }
    this.#timer ??= guard.run(() => setTimeout(() => {
      this.#timer = undefined
      guard.runQuietly(this.#takeRest)
    }, MAX_WAIT_MS).unref())
  }

  /** @param {number} time ms of the clock */
  #isDue (time) {
    const bytes = ((this.#ints[COUNT] - this.#taken) | 0) * ENTRY_BYTES + this.#texts.size()
    return bytes >= BLOCK_BYTES || (bytes > 0 && time - this.#takenAt >= MAX_WAIT_MS)
  }

  #takeRest = () => {
    if (!this.#isOver) this.#take()
  }

  /** Writes all entries that are not written yet. @param {boolean} [isLast] there will be no more */
  #take (isLast = false) {
    this.#takenAt = now()
    const newest = this.#ints[COUNT]
    let unread = (newest - this.#taken) | 0
    if (unread === 0 && this.#texts.size() === 0 && !isLast) return
    let lost = Math.max(0, unread - ENTRIES)
    this.#taken = (this.#taken + lost) | 0
    this.#lost += lost
    unread -= lost
    do {
      const count = Math.min(unread, MAX_ENTRIES)
      unread -= count
      this.#write(count, lost, isLast && unread === 0 ? LAST : 0)
      lost = 0
    } while (unread > 0)
    runLog.taken(newest)
  }

  /**
   * Writes a block.
   * @param {number} count of entries
   * @param {number} lost before them
   * @param {number} flags
   */
  #write (count, lost, flags) {
    const first = (this.#taken + 1) | 0
    const last = (this.#taken + count) | 0
    this.#queue.prepare() // may have texts repeated
    const isRepeating = this.#repeats
    this.#repeats = true // unless this is written: V8 may terminate it
    const texts = (isRepeating ? this.#texts.all() : '') + this.#texts.takeNew(first, last)
    const target = this.#room(maxBytesOf(texts, count))
    const time = now()
    const length = encode(target, {
      source: this.#source,
      number: ++this.#blocks,
      first,
      flags: flags | (isRepeating ? REPEATS : 0),
      now: time,
      origin: originAt(time),
      lost
    }, texts, this.#entries(first, count))
    this.#taken = last
    this.#bytes += length
    this.#repeats = false
    this.#queue.write(target.subarray(0, length), 1)
  }

  /** @param {number} bytes @returns {Buffer} good until the next block is made */
  #room (bytes) {
    if (bytes <= this.#target.length) return this.#target
    const target = Buffer.allocUnsafeSlow(bytes)
    if (bytes <= KEPT_BYTES) this.#target = target
    return target
  }

  /** @param {number} first @param {number} count @returns {Uint8Array[]} in the ring, in one piece or two */
  #entries (first, count) {
    const slot = (first - 1) & (ENTRIES - 1)
    const head = Math.min(count, ENTRIES - slot)
    const start = HEADER * 4
    const pieces = [new Uint8Array(this.#ring, start + slot * WORDS * 4, head * ENTRY_BYTES)]
    if (count > head) pieces.push(new Uint8Array(this.#ring, start, (count - head) * ENTRY_BYTES))
    return pieces
  }

  /** Opens the file again by its name. */
  reopen () {
    this.#take()
    this.#queue.reopen()
  }

  /** The program ends: writes the rest, in bounded time. */
  finish () {
    loopIterations.hold() // the loop has ended
    this.#take(true)
    this.#queue.flush()
  }

  /** Ends the recording. */
  close () {
    this.#take(true)
    this.#isOver = true
    this.#removeListener()
    this.#queue.close()
    this.#texts.end()
    runLog.stop()
  }

  /** @returns {RecordStats} */
  stats () {
    const { written, waiting, dropped, fault } = this.#queue
    return {
      to: this.option,
      ringBytes: this.#ring.byteLength,
      entries: this.#ints[COUNT] >>> 0,
      lost: this.#lost,
      written,
      bytes: this.#bytes,
      waiting,
      dropped,
      ...(fault !== undefined && { fault })
    }
  }
}

module.exports = { Recording }
