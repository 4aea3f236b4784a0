'use strict'

// Writes whole lines to one file, pipe, terminal or device, without ever blocking (see open-file.js). What
// cannot be written waits in a bounded backlog until the disk or the reader recovers; what does not fit is
// counted as dropped.

const { writeSync } = require('node:fs')
const { performance } = require('node:perf_hooks')
const { Backlog } = require('./backlog')
const { isDefinition } = require('../encoding/definitions')
const { busyCodes, codeOf, faultOf, passingCodes } = require('./file-faults')
const { OutputFile } = require('./output-file')
const { RetryTimer } = require('./retry-timer')
const { LINE_FEED, PIPE_BUF, countSpans, endOfPiece } = require('./whole-lines')

/** @typedef {import('./open-file').Opened} Opened */

const BACKLOG = 1 << 20 // bytes
// At exit, for a slow reader: while it reads nothing, in all, between two tries.
const FLUSH_MS = { idle: 300, max: 1000, pause: 2 }

const now = performance.now.bind(performance)

class LineWriter {
  #target
  #name
  #warn
  #file
  #definitions
  /** the file that has all that was defined @type {Opened | undefined} */
  #definedIn
  #backlog = new Backlog(BACKLOG)
  /** the unwritten part of the backlog's first line @type {Buffer | undefined} */
  #remainder
  /** the file that has the beginning of that line @type {Opened | undefined} */
  #remainderFile
  /** the error of the last write @type {unknown} */
  #failure
  /** the reader is slow */
  #isBusy = false
  #retry = new RetryTimer(() => this.proceed())
  /** codes of warnings, each of which is given once @type {Set<string>} */
  #warned = new Set()

  /**
   * @param {{ fd?: number, path?: string }} target
   * @param {string} name as it is printed
   * @param {(code: string, sentence: string) => void} warn
   * @param {import('../encoding/definitions').Definitions} definitions
   */
  constructor (target, name, warn, definitions) {
    this.#target = target
    this.#name = name
    this.#warn = warn
    this.#file = new OutputFile(target)
    this.#definitions = definitions
    /** it will never be written to again */
    this.isClosed = false
    /** why nothing can be written now @type {string | undefined} */
    this.fault = undefined
    /** spans */
    this.written = 0
    this.dropped = 0
  }

  /**
   * @param {Buffer} bytes whole lines, good until this returns
   * @param {number} count of spans among them
   */
  write (bytes, count) {
    const time = now()
    if (!this.#file.check(time)) {
      this.isClosed = true
      this.#report({ code: 'EBADF' })
    }
    if (this.isClosed) return this.drop(count)
    const isDue = this.#retry.isDue(time)
    const { opened, isMoved } = this.#file
    const isKnown = opened !== undefined && opened === this.#definedIn
    if (this.#backlog.size === 0 && isKnown && !(isMoved && isDue)) {
      return this.#writeThrough(opened, bytes, count)
    }
    this.#keep(bytes.toString('latin1'))
    if (isDue || !isKnown) this.proceed()
  }

  /**
   * Writes while nothing waits: by one write where all goes well and other writers cannot tear a batch.
   * @param {Opened} opened
   * @param {Buffer} bytes whole lines
   * @param {number} count of them
   */
  #writeThrough (opened, bytes, count) {
    if (!opened.regular && bytes.length > PIPE_BUF) return this.#writePieces(opened, bytes)
    const length = this.#writeOnce(opened.fd, bytes)
    if (length === bytes.length) this.written += count
    else this.#writeRest(opened, bytes, length)
  }

  /**
   * Writes as many whole lines at a time as a pipe takes in one piece.
   * @param {Opened} opened
   * @param {Buffer} bytes whole lines
   */
  #writePieces (opened, bytes) {
    for (let start = 0, length; start < bytes.length; start += length) {
      const piece = bytes.subarray(start, endOfPiece(bytes, start))
      length = this.#writeOnce(opened.fd, piece)
      if (length < piece.length) return this.#writeRest(opened, bytes.subarray(start), length)
      this.written += countSpans(piece)
    }
  }

  /**
   * Continues after a short write, up to the first failure; what remains waits.
   * @param {Opened} opened
   * @param {Buffer} bytes whole lines
   * @param {number} done how many of the bytes are written
   */
  #writeRest (opened, bytes, done) {
    while (this.#failure === undefined && done < bytes.length) {
      done += this.#writeOnce(opened.fd, bytes.subarray(done))
    }
    const lineStart = done === 0 ? 0 : bytes.lastIndexOf(LINE_FEED, done - 1) + 1
    this.written += countSpans(bytes.subarray(0, lineStart))
    if (done === bytes.length) return
    this.#keep(bytes.toString('latin1', lineStart))
    if (done > lineStart) {
      this.#remainder = Buffer.from(bytes.subarray(done, bytes.indexOf(LINE_FEED, done) + 1))
      this.#remainderFile = opened
    }
    this.#stall(this.#failure)
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
    for (let start = 0, end; start < text.length; start = end) {
      end = text.indexOf('\n', start) + 1
      const line = text.slice(start, end)
      isFull ||= !this.#backlog.add(line)
      if (isFull && !isDefinition(line)) this.drop(1)
    }
    if (isFull) this.#definitions.clear()
  }

  /** The number of spans that wait. */
  get waiting () { return this.#backlog.spans }

  /** Counts lines as dropped. @param {number} count */
  drop (count) {
    this.dropped += count
    if (this.#isBusy && count > 0) {
      this.#warnOnce('SPANS_SLOW_READER', `the reader of ${this.#name} is too slow: ` +
        'spans are dropped, and counted in trace.stats().spans.')
    }
  }

  /** Opens the file again by its name; where that fails, it is tried again. */
  reopen () {
    this.#file.reopen()
    this.proceed()
  }

  /** Opens the file if need be, and writes the backlog as far as possible. */
  proceed () {
    if (this.isClosed || !this.#prepare()) return
    const opened = /** @type {Opened} */ (this.#file.opened)
    while (this.#backlog.size > 0) {
      if (!this.#writeFirst(opened)) return this.#stall(this.#failure)
      this.#remainder = undefined
      if (!isDefinition(this.#backlog.shift())) this.written++
      this.#retry.noteProgress()
    }
    this.#recover()
  }

  /**
   * Writes the oldest line of the backlog, or the rest of it.
   * @param {Opened} opened
   * @returns {boolean} complete
   */
  #writeFirst (opened) {
    let bytes = this.#remainderFile === opened ? this.#remainder : undefined
    bytes ??= Buffer.from(this.#backlog.first, 'latin1')
    while (bytes.length > 0) {
      bytes = bytes.subarray(this.#writeOnce(opened.fd, bytes))
      this.#remainder = bytes
      this.#remainderFile = opened
      if (this.#failure !== undefined) return false
    }
    return true
  }

  /** @returns {boolean} whether a file is open to be written to */
  #prepare () {
    const file = this.#file
    try {
      file.prepare(now())
      this.#define()
      return true
    } catch (error) {
      if (file.opened === undefined) this.#stall(error)
      else this.#report(error)
      return file.opened !== undefined
    }
  }

  /** Begins a file that was opened anew with all that was defined. */
  #define () {
    const { opened } = this.#file
    if (opened === this.#definedIn) return
    this.#definedIn = opened
    this.#backlog.prepend(Buffer.from(this.#definitions.text).toString('latin1'))
  }

  /** Nothing more can be written now. @param {any} error */
  #stall (error) {
    this.#isBusy = busyCodes.has(codeOf(error))
    if (this.#isBusy) return this.#retry.afterBusy()
    if (!passingCodes.has(codeOf(error))) this.#file.release()
    this.#report(error)
  }

  /** @param {any} error */
  #report (error) {
    const { code, reason } = faultOf(error)
    this.fault = reason
    // The reader of a standard stream never comes back.
    this.isClosed ||= this.#target.fd !== undefined && code === 'EPIPE'
    if (this.isClosed) {
      this.drop(this.#backlog.clear())
      this.#file.release()
    } else {
      this.#retry.afterFault()
    }
    this.#warnOnce(`SPANS_${code}`, `spans cannot be written to ${this.#name}: ${reason}. ${this.#outlook()}`)
  }

  #outlook () {
    if (this.isClosed) return 'They are dropped.'
    if (this.#file.isMoved && this.#file.opened !== undefined) {
      return 'Writing to the renamed file until the path can be reopened.'
    }
    return 'Up to 1 MiB of them wait until it can be written to; more are dropped.'
  }

  #recover () {
    this.#isBusy = false
    if (this.#file.isMoved) return // written, but not yet to the file of that name
    this.fault = undefined
    this.#retry.reset()
  }

  /** @param {string} code @param {string} sentence */
  #warnOnce (code, sentence) {
    if (this.#warned.has(code)) return
    this.#warned.add(code)
    this.#warn(code, sentence)
  }

  /** Writes the backlog; waits for a slow reader, for a bounded time. */
  flush () {
    const start = now()
    let progress = start
    for (let before = -1; this.#backlog.size > 0; before = this.written) {
      this.proceed()
      if (this.written !== before) progress = now()
      const isSlow = this.#isBusy && this.#backlog.size > 0
      if (!isSlow || now() > Math.min(progress + FLUSH_MS.idle, start + FLUSH_MS.max)) return
      sleep(FLUSH_MS.pause)
    }
  }

  close () {
    this.proceed()
    this.drop(this.#backlog.clear())
    this.isClosed = true
    this.#retry.stop()
    this.#file.release()
  }
}

const neverNotified = new Int32Array(new SharedArrayBuffer(4))

/** @param {number} ms */
function sleep (ms) {
  Atomics.wait(neverNotified, 0, 0, ms)
}

module.exports = { LineWriter }
