'use strict'

// Writes units (lines, blocks) to the file behind a name so that each is stored whole. Written data is in the
// kernel and survives any end of the process. O_APPEND lets several threads and processes write to one file.
//
// No write ever blocks (see output-file.js). Unwritable data waits in a bounded backlog until the disk or the
// reader recovers; data that does not fit is counted as dropped. A failed write is retried: at once if the
// reader makes progress, with growing delays if it does not.
//
// Why no library: sonic-boom, the well-maintained one for this, would provide only a single writeSync(). Its
// synchronous mode calls process.nextTick() after a write, which the program's async_hooks see, sleeps on
// EAGAIN, and opens a FIFO so that the process waits for a reader (its index.js: `release`, `openFile`).
// Renamed files, whole lines after a fault, a bounded backlog and descriptors closed by the program would
// still have to be handled here.

const { writeSync } = require('node:fs')
const { performance } = require('node:perf_hooks')
const { setTimeout } = require('node:timers') // programs replace the global ones
const guard = require('../core/guard')
const { pauseWhile } = require('../core/pause')
const { OutputFile, codeOf, faultOf } = require('./output-file')

/**
 * @typedef {import('./output-file').Opened} Opened
 *
 * @typedef {object} Units description of the written units, as strings of bytes
 * @property {string} name for messages
 * @property {string} code prefix of their warning codes
 * @property {() => void} warnSlow warns that units are dropped because the reader is slow
 * @property {boolean} isText whether to end a line first that another process left unfinished
 * @property {(text: string) => string[]} split returns whole units
 * @property {(unit: string) => boolean} counts whether the unit is counted
 * @property {(bytes: Buffer, start: number) => number} pieceEnd returns the end of the next write to a pipe
 * @property {(bytes: Buffer, offset: number) => [start: number, end: number]} around returns the unit that
 *   contains the byte at an offset
 * @property {() => string} beginning returns the required beginning of a file
 * @property {() => void} forget called after units were dropped: later ones must not refer to them
 */

const BACKLOG = 1 << 20 // bytes
const RETRY_MS = 1000 // after a fault
const BUSY_MS = { min: 2, max: 100 } // delay of the next try if the reader is slow
// Limits at exit for a slow reader: without progress, in total, between two tries.
const FLUSH_MS = { idle: 300, max: 1000, pause: 2 }

/** Codes of a slow reader, which is not a fault. @type {Set<string | undefined>} */
const busyCodes = new Set(['EAGAIN', 'EBUSY'])
/**
 * Codes after which the rest of a line can follow later. After any other fault the file is reopened and the
 * whole line is written.
 * @type {Set<string | undefined>}
 */
const passingCodes = new Set([...busyCodes, 'ENOSPC', 'EDQUOT', 'EFBIG', 'EIO', 'ENOMEM', 'EINTR'])

const now = performance.now.bind(performance)
const neverNotified = new Int32Array(new SharedArrayBuffer(4))

/** Units not written yet: in order, and of bounded size. */
class Backlog {
  /** @type {string[]} */
  units = []
  #bytes = 0

  /** Number of pending units. */
  get size () { return this.units.length }

  /** @param {string} unit @returns {boolean} false if there is no space for it, and others wait */
  add (unit) {
    const size = unit.length
    if (this.#bytes > 0 && this.#bytes + size > BACKLOG) return false
    this.#bytes += size
    this.units[this.units.length] = unit
    return true
  }

  /** Inserts units before all others, beyond the limit if necessary. @param {string[]} units */
  prepend (units) {
    this.units = [...units, ...this.units]
    for (const { length } of units) this.#bytes += length
  }

  /** Removes the oldest unit. @returns {string} the unit */
  shift () {
    const unit = /** @type {string} */ (this.units.shift())
    this.#bytes -= unit.length
    return unit
  }

  clear () {
    this.units = []
    this.#bytes = 0
  }
}

class OutputQueue {
  #target
  #name
  #units
  #warn
  #file
  /** the file that has its required beginning @type {Opened | undefined} */
  #begunIn
  /** the next write needs no check */
  #isChecked = false
  #backlog = new Backlog()
  /**
   * the unwritten rest of the backlog's first unit, and the file that has its beginning
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

  /**
   * @param {{ fd?: number, path?: string }} target
   * @param {string} name as printed
   * @param {Units} units
   * @param {(code: string, sentence: string) => void} warn warns once per code
   */
  constructor (target, name, units, warn) {
    this.#target = target
    this.#name = name
    this.#units = units
    this.#warn = warn
    this.#file = new OutputFile(target, units.isText)
    /** reason why nothing can be written now @type {string | undefined} */
    this.fault = undefined
    /** nothing will be written any more */
    this.isClosed = false
    this.written = 0
    this.dropped = 0
    this.#proceed()
  }

  /** @param {number} time ms */
  #check (time) {
    if (this.isClosed || this.#file.check(time)) return
    this.isClosed = true
    this.#report({ code: 'EBADF' })
  }

  /**
   * Writes units, or keeps them for later.
   * @param {Buffer} bytes whole units, valid until this returns
   * @param {number} count of counted units
   */
  write (bytes, count) {
    const time = now()
    if (!this.#isChecked) this.#check(time)
    this.#isChecked = false
    if (this.isClosed) return this.drop(count)
    const isDue = time >= this.#retryAt
    const { opened, isMoved } = this.#file
    const isKnown = opened !== undefined && opened === this.#begunIn
    if (this.#backlog.size === 0 && isKnown && !(isMoved && isDue)) {
      return this.#writeThrough(opened, bytes, count)
    }
    this.#keep(bytes.toString('latin1'))
    if (isDue || !isKnown) this.#proceed()
  }

  /**
   * Writes while nothing waits: in one write if other writers cannot tear a batch, otherwise as many whole
   * units at a time as a pipe accepts atomically.
   * @param {Opened} opened
   * @param {Buffer} bytes whole units
   * @param {number} count of counted units
   */
  #writeThrough (opened, bytes, count) {
    for (let start = 0; start < bytes.length;) {
      const end = opened.regular ? bytes.length : this.#units.pieceEnd(bytes, start)
      const piece = bytes.subarray(start, end)
      const length = this.#writeOnce(opened.fd, piece)
      if (length < piece.length) return this.#keepRest(opened, bytes.subarray(start), length)
      this.written += piece.length === bytes.length ? count : this.#count(piece)
      start = end
    }
  }

  /**
   * Keeps the rest after a short write, beginning with the rest of a partly written unit.
   * @param {Opened} opened
   * @param {Buffer} bytes whole units
   * @param {number} done number of bytes written
   */
  #keepRest (opened, bytes, done) {
    const [start, end] = this.#units.around(bytes, done)
    this.written += this.#count(bytes.subarray(0, start))
    this.#keep(bytes.toString('latin1', start))
    if (done > start) this.#remainder = { bytes: Buffer.from(bytes.subarray(done, end)), opened }
    if (this.#failure === undefined) this.#proceed()
    else this.#stall(this.#failure)
  }

  /** Counts units. @param {Buffer} bytes whole ones */
  #count (bytes) {
    return this.#units.split(bytes.toString('latin1')).filter(this.#units.counts).length
  }

  /**
   * Writes once; sets `#failure` on an error.
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
   * Keeps units for later. If one does not fit, drops it and all that follow: they may refer to it.
   * @param {string} text whole units
   */
  #keep (text) {
    let isFull = false
    this.#units.split(text).forEach((unit) => {
      isFull ||= !this.#backlog.add(unit)
      if (isFull && this.#units.counts(unit)) this.drop(1)
    })
    if (isFull) this.#units.forget()
  }

  /** Number of counted units that wait. */
  get waiting () { return this.#backlog.units.filter(this.#units.counts).length }

  /** Counts units as dropped. @param {number} count */
  drop (count) {
    this.dropped += count
    if (this.#isBusy && count > 0) this.#units.warnSlow()
  }

  /** Writes the beginning of a new file now, rather than in the following write. */
  prepare () {
    const time = now()
    this.#check(time)
    if (!this.isClosed && time >= this.#retryAt) this.#prepare()
    this.#isChecked = true
  }

  /** Opens the file if necessary, and writes as much of the backlog as possible. */
  #proceed () {
    this.#check(now())
    if (this.isClosed || !this.#prepare()) return
    const opened = /** @type {Opened} */ (this.#file.opened)
    while (this.#backlog.size > 0) {
      if (!this.#writeFirst(opened)) return this.#stall(this.#failure)
      this.#remainder = undefined
      if (this.#units.counts(this.#backlog.shift())) this.written++
      this.#busyMs = BUSY_MS.min
    }
    this.#recover()
  }

  /**
   * Writes the oldest unit of the backlog, or the rest of it.
   * @param {Opened} opened
   * @returns {boolean} whether it is complete
   */
  #writeFirst (opened) {
    let bytes = this.#remainder?.opened === opened
      ? this.#remainder.bytes
      : Buffer.from(this.#backlog.units[0], 'latin1')
    while (bytes.length > 0) {
      bytes = bytes.subarray(this.#writeOnce(opened.fd, bytes))
      this.#remainder = { bytes, opened }
      if (this.#failure !== undefined) return false
    }
    return true
  }

  /** Opens the file, and queues the required beginning of a newly opened one. */
  #prepare () {
    const file = this.#file
    try {
      file.prepare(now())
      if (file.opened !== this.#begunIn) {
        this.#begunIn = file.opened
        this.#backlog.prepend(this.#units.split(this.#units.beginning()))
      }
    } catch (error) {
      if (file.opened === undefined) this.#stall(error)
      else this.#report(error)
    }
    return file.opened !== undefined
  }

  /** Handles a failed write: schedules a retry, or reports the fault. @param {any} error */
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
    // The reader of a standard stream never returns.
    this.isClosed ||= this.#target.fd !== undefined && code === 'EPIPE'
    if (this.isClosed) {
      this.#dropAll()
      this.#file.release()
    } else {
      this.#retryIn(RETRY_MS)
    }
    const units = this.#units
    const sentence = `${units.name} cannot be written to ${this.#name}: ${reason}. ${this.#outlook()}`
    this.#warn(`${units.code}_${code}`, sentence)
  }

  #dropAll () {
    const { waiting } = this
    this.#backlog.clear()
    this.drop(waiting)
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
    if (this.#file.isMoved) return // written, but not to the file that has the name now
    this.fault = undefined
    this.#retryAt = 0
    this.#retryTimer = undefined
  }

  /**
   * Schedules a retry. An obsolete timer still fires: clearing a timer in a hook before its own callback
   * makes Node throw (listOnTimeout in lib/internal/timers.js).
   * @param {number} ms
   */
  #retryIn (ms) {
    this.#retryAt = now() + ms
    const timer = setTimeout(() => {
      if (timer === this.#retryTimer) guard.runQuietly(() => this.#proceed())
    }, ms).unref()
    this.#retryTimer = timer
  }

  /** Writes pending units; waits for a slow reader, for a bounded time. */
  flush () {
    const start = now()
    let progress = start
    for (let before = -1; this.#backlog.size > 0; before = this.written) {
      this.#proceed()
      if (this.written !== before) progress = now()
      const isSlow = this.#isBusy && this.#backlog.size > 0
      if (!isSlow || now() > Math.min(progress + FLUSH_MS.idle, start + FLUSH_MS.max)) return
      pauseWhile(neverNotified, 0, 0, FLUSH_MS.pause)
    }
  }

  close () {
    this.#proceed()
    this.#dropAll()
    this.isClosed = true
    this.#retryTimer = undefined
    this.#file.release()
  }
}

module.exports = { OutputQueue }
