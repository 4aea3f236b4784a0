'use strict'

// The sink of one file, pipe, terminal or device. Where event loop iterations are counted
// (core/loop-iterations.js), the lines of one iteration are one synchronous write, made before the loop
// polls; else each line is one. What is written is in the kernel, so that no end of the process loses it, and
// O_APPEND lets several threads and processes write to one file.
//
// No write ever blocks (see output-file.js). What cannot be written waits in a bounded backlog until the disk
// or the reader recovers; what does not fit is counted as dropped. A failed write is tried again: at once
// with a reader that makes progress, ever later with one that does not.
//
// Why no library: of sonic-boom, the well-kept one for this, a single writeSync() was of use here. Its
// synchronous mode makes a process.nextTick() after a write, which the program's async_hooks see, sleeps on
// EAGAIN, and opens a FIFO so that the process waits for a reader (its index.js: `release`, `openFile`). A
// renamed file, whole lines after a fault, a bounded backlog and descriptors that the program closes would
// remain to be handled here.

const { writeSync } = require('node:fs')
const { performance } = require('node:perf_hooks')
const { clearTimeout, setTimeout } = require('node:timers') // programs replace the global ones
const guard = require('../core/guard')
const { batching, schedule } = require('../core/loop-iterations')
const { Definitions, isDefinition } = require('../encoding/definitions')
const { OutputFile, codeOf, faultOf } = require('./output-file')

/**
 * @typedef {import('./output-file').Opened} Opened
 *
 * @typedef {{ warn: (code: string, sentence: string) => void }} SinkContext warn: gives a warning once a code
 */

const BATCH = 1 << 16 // bytes; what does not fit is written before the iteration is over
const MAX_BYTES = 3 // of a UTF-16 code unit in UTF-8
const BACKLOG = 1 << 20 // bytes
const PIPE_BUF = 4096 // bytes that reach a pipe without those of another writer in between; see pipe(7)
const RETRY_MS = 1000 // after a fault
const BUSY_MS = { min: 2, max: 100 } // until the next try with a slow reader
// At exit, for a slow reader: while it reads nothing, in all, between two tries.
const FLUSH_MS = { idle: 300, max: 1000, pause: 2 }
const LINE_FEED = 10

/** A slow reader: nothing is wrong. @type {Set<string | undefined>} */
const busyCodes = new Set(['EAGAIN', 'EBUSY'])
/**
 * The rest of a line can follow later; after any other fault the file is opened again and the line written
 * whole.
 * @type {Set<string | undefined>}
 */
const passingCodes = new Set([...busyCodes, 'ENOSPC', 'EDQUOT', 'EFBIG', 'EIO', 'ENOMEM', 'EINTR'])

const now = performance.now.bind(performance)
const neverNotified = new Int32Array(new SharedArrayBuffer(4))

/** Lines that could not be written yet, as texts of bytes: in order, and of bounded size. */
class Backlog {
  /** @type {string[]} */
  #lines = []
  #bytes = 0

  /** The number of lines that wait. */
  get size () { return this.#lines.length }

  /** The number of spans among them. */
  get spans () { return countSpans(this.#lines) }

  /** The oldest line. @returns {string} */
  get first () { return this.#lines[0] }

  /** @param {string} line @returns {boolean} false: there is no space for it, and others wait */
  add (line) {
    const size = line.length
    if (this.#bytes > 0 && this.#bytes + size > BACKLOG) return false
    this.#bytes += size
    this.#lines[this.#lines.length] = line
    return true
  }

  /** Puts lines before all others, however many. @param {string} text of bytes, whole lines */
  prepend (text) {
    this.#lines = [...linesOf(text), ...this.#lines]
    this.#bytes += text.length
  }

  /** Removes the oldest line. @returns {string} it */
  shift () {
    const line = /** @type {string} */ (this.#lines.shift())
    this.#bytes -= line.length
    return line
  }

  /** Removes all lines. @returns {number} how many spans there were */
  clear () {
    const { spans } = this
    this.#lines = []
    this.#bytes = 0
    return spans
  }
}

class LineSink {
  #target
  #name
  #warn
  #file
  definitions = new Definitions()
  /**
   * lines of the present iteration: as texts they would be copied by each scavenge
   * @type {Buffer | undefined}
   */
  #batch
  #batchBytes = 0
  #batchLines = 0
  /** the file that has all that was defined @type {Opened | undefined} */
  #definedIn
  #backlog = new Backlog()
  /**
   * the unwritten part of the backlog's first line, and the file that has its beginning
   * @type {{ bytes: Buffer, opened: Opened } | undefined}
   */
  #remainder
  /** the error of the last write @type {unknown} */
  #failure
  /** the reader is slow */
  #isBusy = false
  #busyMs = BUSY_MS.min
  #retryAt = 0
  /** @type {NodeJS.Timeout | undefined} */
  #retryTimer
  /** it will never be written to again */
  #isClosed = false

  /**
   * @param {{ fd?: number, path?: string }} target
   * @param {string} name as it is printed
   * @param {SinkContext} context
   */
  constructor (target, name, { warn }) {
    this.#target = target
    this.#name = name
    this.#warn = warn
    this.#file = new OutputFile(target)
    /** why nothing can be written now @type {string | undefined} */
    this.fault = undefined
    /** spans */
    this.written = 0
    this.dropped = 0
    this.#proceed()
  }

  /** @param {string} lines one, behind definitions that it needs, without the last line feed */
  write (lines) {
    if (this.#isClosed) return this.#drop(1)
    const maxBytes = lines.length * MAX_BYTES + 1
    const isBatching = batching()
    if (!isBatching || this.#batchBytes + maxBytes > BATCH) this.#writeBatch()
    if (!isBatching || maxBytes > BATCH) return this.#writeLines(Buffer.from(`${lines}\n`), 1)
    const batch = this.#batch ??= Buffer.allocUnsafeSlow(BATCH)
    const length = batch.write(lines, this.#batchBytes)
    batch[this.#batchBytes + length] = LINE_FEED
    this.#batchBytes += length + 1
    if (this.#batchLines++ === 0) schedule(this.#writeBatch)
  }

  /** @param {number} time ms */
  #check (time) {
    if (this.#isClosed || this.#file.check(time)) return
    this.#isClosed = true
    this.#report({ code: 'EBADF' })
  }

  #writeBatch = () => {
    if (this.#batchLines === 0) return
    const bytes = /** @type {Buffer} */ (this.#batch).subarray(0, this.#batchBytes)
    const count = this.#batchLines
    this.#batchBytes = this.#batchLines = 0
    try {
      this.#writeLines(bytes, count)
    } catch {
      this.dropped += count // a stack overflow: the caller's own line is one of many here
      this.definitions.clear()
    }
  }

  /**
   * @param {Buffer} bytes whole lines, good until this returns
   * @param {number} count of spans among them
   */
  #writeLines (bytes, count) {
    const time = now()
    this.#check(time)
    if (this.#isClosed) return this.#drop(count)
    const isDue = time >= this.#retryAt
    const { opened, isMoved } = this.#file
    const isKnown = opened !== undefined && opened === this.#definedIn
    if (this.#backlog.size === 0 && isKnown && !(isMoved && isDue)) {
      return this.#writeThrough(opened, bytes, count)
    }
    this.#keep(bytes.toString('latin1'))
    if (isDue || !isKnown) this.#proceed()
  }

  /**
   * Writes while nothing waits: by one write where other writers cannot tear a batch, else as many whole
   * lines at a time as a pipe takes in one piece.
   * @param {Opened} opened
   * @param {Buffer} bytes whole lines
   * @param {number} count of spans among them
   */
  #writeThrough (opened, bytes, count) {
    for (let start = 0; start < bytes.length;) {
      const end = opened.regular ? bytes.length : endOfPiece(bytes, start)
      const piece = bytes.subarray(start, end)
      const length = this.#writeOnce(opened.fd, piece)
      if (length < piece.length) return this.#keepRest(opened, bytes.subarray(start), length)
      this.written += piece.length === bytes.length ? count : countSpans(linesOf(piece.toString('latin1')))
      start = end
    }
  }

  /**
   * Has what remains after a short write wait: a part of a line first.
   * @param {Opened} opened
   * @param {Buffer} bytes whole lines
   * @param {number} done how many of the bytes are written
   */
  #keepRest (opened, bytes, done) {
    const lineStart = done === 0 ? 0 : bytes.lastIndexOf(LINE_FEED, done - 1) + 1
    this.written += countSpans(linesOf(bytes.toString('latin1', 0, lineStart)))
    this.#keep(bytes.toString('latin1', lineStart))
    if (done > lineStart) {
      const lineEnd = bytes.indexOf(LINE_FEED, done) + 1
      this.#remainder = { bytes: Buffer.from(bytes.subarray(done, lineEnd)), opened }
    }
    if (this.#failure === undefined) this.#proceed()
    else this.#stall(this.#failure)
  }

  /**
   * Writes once; `#failure` is set where that fails.
   * @param {number} fd
   * @param {Buffer} bytes
   * @returns {number} bytes written
   */
  #writeOnce (fd, bytes) {
    this.#failure = undefined
    try {
      const length = writeSync(fd, bytes, 0, bytes.length)
      this.#file.noteWritten(length)
      if (length === 0) this.#failure = { code: 'EAGAIN' }
      return length
    } catch (error) {
      this.#failure = error
      return 0
    }
  }

  /**
   * Keeps lines for later. From one that does not fit on all are dropped: they may refer to it.
   * @param {string} text whole lines
   */
  #keep (text) {
    let isFull = false
    linesOf(text).forEach((line) => {
      isFull ||= !this.#backlog.add(line)
      if (isFull && !isDefinition(line)) this.#drop(1)
    })
    if (isFull) this.definitions.clear()
  }

  /** The number of spans that wait. */
  get waiting () { return this.#backlog.spans }

  /** Counts lines as dropped. @param {number} count */
  #drop (count) {
    this.dropped += count
    if (this.#isBusy && count > 0) {
      this.#warn('SPANS_SLOW_READER', `the reader of ${this.#name} is too slow: ` +
        'spans are dropped, and counted in trace.stats().spans.')
    }
  }

  /** Opens the file again by its name; where that fails, it is tried again. */
  reopen () {
    this.#writeBatch()
    if (this.#target.path === undefined) return
    this.#file.reopen()
    this.#proceed()
  }

  /** Opens the file if need be, and writes the backlog as far as possible. */
  #proceed () {
    this.#check(now())
    if (this.#isClosed || !this.#prepare()) return
    const opened = /** @type {Opened} */ (this.#file.opened)
    while (this.#backlog.size > 0) {
      if (!this.#writeFirst(opened)) return this.#stall(this.#failure)
      this.#remainder = undefined
      if (!isDefinition(this.#backlog.shift())) this.written++
      this.#busyMs = BUSY_MS.min
    }
    this.#recover()
  }

  /**
   * Writes the oldest line of the backlog, or the rest of it.
   * @param {Opened} opened
   * @returns {boolean} complete
   */
  #writeFirst (opened) {
    let bytes = this.#remainder?.opened === opened
      ? this.#remainder.bytes
      : Buffer.from(this.#backlog.first, 'latin1')
    while (bytes.length > 0) {
      bytes = bytes.subarray(this.#writeOnce(opened.fd, bytes))
      this.#remainder = { bytes, opened }
      if (this.#failure !== undefined) return false
    }
    return true
  }

  /** Opens what is to be written to; a file that was opened anew begins with all that was defined. */
  #prepare () {
    const file = this.#file
    try {
      file.prepare(now())
      if (file.opened !== this.#definedIn) {
        this.#definedIn = file.opened
        this.#backlog.prepend(Buffer.from(this.definitions.text).toString('latin1'))
      }
    } catch (error) {
      if (file.opened === undefined) this.#stall(error)
      else this.#report(error)
    }
    return file.opened !== undefined
  }

  /** Nothing more can be written now. @param {any} error */
  #stall (error) {
    const code = codeOf(error)
    this.#isBusy = busyCodes.has(code)
    if (this.#isBusy) {
      this.#retryIn(this.#busyMs)
      this.#busyMs = Math.min(2 * this.#busyMs, BUSY_MS.max)
      return
    }
    if (!passingCodes.has(code)) this.#file.release()
    this.#report(error)
  }

  /** @param {any} error */
  #report (error) {
    const { code, reason } = faultOf(error)
    this.fault = reason
    // The reader of a standard stream never comes back.
    this.#isClosed ||= this.#target.fd !== undefined && code === 'EPIPE'
    if (this.#isClosed) {
      this.#drop(this.#backlog.clear())
      this.#file.release()
    } else {
      this.#retryIn(RETRY_MS)
    }
    this.#warn(`SPANS_${code}`, `spans cannot be written to ${this.#name}: ${reason}. ${this.#outlook()}`)
  }

  #outlook () {
    if (this.#isClosed) return 'They are dropped.'
    if (this.#file.isMoved && this.#file.opened !== undefined) {
      return 'Writing to the renamed file until the path can be reopened.'
    }
    return 'Up to 1 MiB of them wait until it can be written to; more are dropped.'
  }

  #recover () {
    this.#isBusy = false
    if (this.#file.isMoved) return // written, but not yet to the file of that name
    this.fault = undefined
    this.#retryAt = 0
    clearTimeout(this.#retryTimer)
  }

  /** @param {number} ms */
  #retryIn (ms) {
    this.#retryAt = now() + ms
    clearTimeout(this.#retryTimer)
    this.#retryTimer = setTimeout(() => { guard.runQuietly(() => this.#proceed()) }, ms).unref()
  }

  /** Writes what waits; waits for a slow reader, for a bounded time. */
  flush () {
    this.#writeBatch()
    const start = now()
    let progress = start
    for (let before = -1; this.#backlog.size > 0; before = this.written) {
      this.#proceed()
      if (this.written !== before) progress = now()
      const isSlow = this.#isBusy && this.#backlog.size > 0
      if (!isSlow || now() > Math.min(progress + FLUSH_MS.idle, start + FLUSH_MS.max)) return
      Atomics.wait(neverNotified, 0, 0, FLUSH_MS.pause)
    }
  }

  close () {
    this.#writeBatch()
    this.#proceed()
    this.#drop(this.#backlog.clear())
    this.#isClosed = true
    clearTimeout(this.#retryTimer)
    this.#file.release()
  }

  stats () {
    this.#writeBatch()
    return this
  }
}

/**
 * Returns where the whole lines end that one write of a pipe takes, or the first line where that is longer.
 * @param {Buffer} bytes
 * @param {number} start
 */
function endOfPiece (bytes, start) {
  if (start + PIPE_BUF >= bytes.length) return bytes.length
  const end = bytes.lastIndexOf(LINE_FEED, start + PIPE_BUF - 1) + 1
  return end > start ? end : bytes.indexOf(LINE_FEED, start) + 1
}

/** @param {string} text whole lines @returns {string[]} each with its line feed */
const linesOf = (text) => text.split('\n').slice(0, -1).map((line) => `${line}\n`)

/** Counts the spans among lines; the others are definitions. @param {string[]} lines */
const countSpans = (lines) => lines.filter((line) => !isDefinition(line)).length

module.exports = { LineSink }
