'use strict'

// Lines to a file, a pipe, a terminal or a device. Where iterations of the event loop are counted (hooks/loop-iterations.js), what
// one iteration brings is one synchronous write of whole lines, made before the loop polls; else each line is. What is
// written is in the kernel, so that no end of the process loses it, and O_APPEND lets several threads and processes write
// to one file. Lines are texts of bytes, see encoding/json.js. No write blocks (see open.js). What cannot be written waits here in a bounded backlog until the disk or
// the reader recovers.

const { writeSync } = require('node:fs')
const { performance } = require('node:perf_hooks')
const timers = require('node:timers')
const guard = require('../context/guard')
const { createBacklog } = require('./backlog')
const { faultOf } = require('./file-faults')
const { open, close, isDeleted, isNamed, isOurs } = require('./open-file')

const BACKLOG = 1 << 20 // bytes
const BATCH = 1 << 16 // bytes; what does not fit is written before the iteration is over
const PIPE_BUF = 4096 // bytes that reach a pipe without those of another writer in between; see pipe(7)
const LINE_FEED = 10
const AGAIN_MS = 1000 // to the next try after a fault
const LOOK_MS = 1000 // between two looks whether the file is still there
const BUSY_MS = { least: 2, most: 100 } // to the next try with a slow reader
const FLUSH_MS = { idle: 300, most: 1000 } // at exit for a slow reader: while it reads nothing, and in all

const now = performance.now.bind(performance)
const { setTimeout, clearTimeout } = timers

/** A reader that is slow. */
const busyCodes = new Set(['EAGAIN', 'EBUSY'])
/** The rest of a line can follow later; after any other fault the file is opened again and the line written whole. */
const passing = new Set([...busyCodes, 'ENOSPC', 'EDQUOT', 'EFBIG', 'EIO', 'ENOMEM', 'EINTR'])

/**
 * @typedef {object} Rooms
 * @property {(code: string, sentence: string) => void} warn
 * @property {Pick<typeof import('../hooks/loop-iterations'), 'batching' | 'schedule'>} [loopIterations] default: each line is written at once
 */

/**
 * Creates the sink of one file, pipe, terminal or device.
 * @param {{ fd?: number, path?: string }} target
 * @param {string} name as it is printed
 * @param {Rooms} rooms
 */
function createLineSink (target, name, { warn, loopIterations }) {
  const backlog = createBacklog(BACKLOG)
  /** lines of the present iteration: as texts they would be carried along by the collector @type {Buffer | undefined} */
  let batch
  let batchBytes = 0
  let batchLines = 0
  let batchScheduled = false
  /** @type {import('./open-file').Opened | undefined} */
  let opened
  /** what is left of the backlog's first line, the beginning of which is written @type {Buffer | undefined} */
  let remainder
  /** the error of the last write @type {unknown} */
  let failure
  /** nobody will ever read it */
  let over = false
  let busy = false
  let pause = BUSY_MS.least
  let again = 0 // when to try again
  let look = 0 // when to look whether the file is still there
  let moved = false // it has to be opened again
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  /** @type {string | undefined} */
  let fault
  const said = new Set()
  let written = 0
  let dropped = 0

  /** @param {string} line as a text of bytes, with its line feed */
  function write (line) {
    if (over) return drop(1)
    if (loopIterations === undefined || !loopIterations.batching()) {
      writeBatch()
      return writeLines(Buffer.from(line, 'latin1'), 1)
    }
    if (batchBytes + line.length > BATCH) writeBatch()
    if (line.length > BATCH) return writeLines(Buffer.from(line, 'latin1'), 1)
    batch ??= Buffer.allocUnsafeSlow(BATCH)
    added(batch.write(line, batchBytes, 'latin1'))
  }

  /** The same line, as bytes that are good until this returns. @param {Buffer} bytes @param {number} length */
  function writeBytes (bytes, length) {
    if (over || length > BATCH || loopIterations === undefined || !loopIterations.batching()) return write(bytes.toString('latin1', 0, length))
    if (batchBytes + length > BATCH) writeBatch()
    batch ??= Buffer.allocUnsafeSlow(BATCH)
    bytes.copy(batch, batchBytes, 0, length)
    added(length)
  }

  /** @param {number} length of a line that is in the batch now, in bytes */
  function added (length) {
    batchBytes += length
    batchLines++
    if (batchScheduled) return
    batchScheduled = true
    loopIterations?.schedule(endIteration)
  }

  function endIteration () {
    batchScheduled = false
    writeBatch()
  }

  function writeBatch () {
    if (batchLines === 0) return
    const bytes = /** @type {Buffer} */ (batch).subarray(0, batchBytes)
    const count = batchLines
    batchBytes = batchLines = 0
    try {
      writeLines(bytes, count)
    } catch {
      dropped += count // a stack overflow: the caller's own line is one of many here
    }
  }

  /** @param {Buffer} bytes whole lines, good until this returns @param {number} count of them */
  function writeLines (bytes, count) {
    const time = now()
    if (time >= look) watch(time)
    if (over) return drop(count)
    const due = time >= again
    if (backlog.size() === 0 && opened !== undefined && !(moved && due)) return writeThrough(opened, bytes, count)
    addToBacklog(bytes.toString('latin1'))
    if (due) proceed()
  }

  /**
   * Writes while nothing waits: by one write where all goes well and a batch is not torn by other writers.
   * @param {import('./open-file').Opened} to
   * @param {Buffer} bytes whole lines
   * @param {number} count of them
   */
  function writeThrough ({ fd, regular }, bytes, count) {
    if (!regular && bytes.length > PIPE_BUF) return writePieces(fd, bytes)
    const length = tryWrite(fd, bytes)
    if (length === bytes.length) written += count
    else writeRest(fd, bytes, length)
  }

  /** Writes as many whole lines at a time as a pipe takes in one piece. @param {number} fd @param {Buffer} bytes whole lines */
  function writePieces (fd, bytes) {
    for (let start = 0, length; start < bytes.length; start += length) {
      const piece = bytes.subarray(start, endOfPiece(bytes, start))
      length = tryWrite(fd, piece)
      if (length < piece.length) return writeRest(fd, bytes.subarray(start), length)
      written += countLines(piece)
    }
  }

  /**
   * Writes on after a short write, up to the first failure; what is left then waits.
   * @param {number} fd
   * @param {Buffer} bytes whole lines
   * @param {number} done how many of them are written
   */
  function writeRest (fd, bytes, done) {
    while (failure === undefined && done < bytes.length) done += tryWrite(fd, bytes.subarray(done))
    const begin = done === 0 ? 0 : bytes.lastIndexOf(LINE_FEED, done - 1) + 1
    written += countLines(bytes.subarray(0, begin))
    if (done === bytes.length) return
    addToBacklog(bytes.toString('latin1', begin))
    if (done > begin) remainder = Buffer.from(bytes.subarray(done, bytes.indexOf(LINE_FEED, done) + 1))
    stalled(failure)
  }

  /**
   * Writes once. `failure` is set where that fails.
   * @param {number} fd
   * @param {Buffer} bytes
   * @returns {number} bytes written
   */
  function tryWrite (fd, bytes) {
    failure = undefined
    try {
      const length = writeSync(fd, bytes, 0, bytes.length)
      if (length === 0) failure = { code: 'EAGAIN' }
      return length
    } catch (error) {
      failure = error
      return 0
    }
  }

  /** Keeps lines for later; what does not fit is dropped. @param {string} text whole lines */
  function addToBacklog (text) {
    for (let start = 0, end; start < text.length; start = end) {
      end = text.indexOf('\n', start) + 1
      if (!backlog.add(text.slice(start, end))) drop(1)
    }
  }

  /** @param {number} count */
  function drop (count) {
    dropped += count
    if (busy && count > 0) say('SPANS_SLOW_READER', `${name} is read too slowly: spans are dropped, and counted in trace.stats().spans.`)
  }

  /** Writes what waits, as far as it goes. */
  function proceed () {
    if (over || !prepare()) return
    while (backlog.size() > 0) {
      if (!sendFirst()) return stalled(failure)
      remainder = undefined
      backlog.shift()
      written++
      pause = BUSY_MS.least
    }
    recovered()
  }

  /** Writes the oldest line that waits, or the rest of it. @returns {boolean} whether all of it is written */
  function sendFirst () {
    const { fd } = /** @type {import('./open-file').Opened} */ (opened)
    let bytes = remainder ?? Buffer.from(backlog.first(), 'latin1')
    while (bytes.length > 0) {
      const length = tryWrite(fd, bytes)
      bytes = bytes.subarray(length)
      remainder = bytes
      if (failure !== undefined) return false
    }
    return true
  }

  /** @returns {boolean} whether there is something to write to */
  function prepare () {
    try {
      if (opened === undefined) use(open(target))
      else if (moved) change()
      return true
    } catch (error) {
      if (opened === undefined) stalled(error)
      else trouble(error)
      return opened !== undefined
    }
  }

  /** @param {import('./open-file').Opened} next */
  function use (next) {
    opened = next
    moved = false
    remainder = undefined
    look = now() + LOOK_MS
  }

  /** The name may lead to another file now. Until that can be opened, the old one is as good as any, unless it is deleted. */
  function change () {
    const old = /** @type {import('./open-file').Opened} */ (opened)
    const next = openOr(old)
    moved = false
    if (next.identity === old.identity) return close(next)
    release()
    use(next)
  }

  /** @param {import('./open-file').Opened} old */
  function openOr (old) {
    try {
      return open(target)
    } catch (error) {
      if (!isOurs(old) || isDeleted(old)) release()
      throw error
    }
  }

  function release () {
    if (opened !== undefined) close(opened)
    opened = remainder = undefined
  }

  /** Is what is open still ours, and still what the name says? @param {number} time */
  function watch (time) {
    look = time + LOOK_MS
    if (opened === undefined) return
    if (!isOurs(opened)) {
      over = target.path === undefined
      if (over) trouble({ code: 'EBADF' })
      release()
    } else if (target.path !== undefined && opened.regular && !isNamed(opened, target.path)) {
      moved = true
    }
  }

  /** Nothing more can be written now. @param {any} error */
  function stalled (error) {
    busy = busyCodes.has(error?.code)
    if (busy) {
      later(pause)
      pause = Math.min(2 * pause, BUSY_MS.most)
      return
    }
    if (!passing.has(error?.code)) release()
    trouble(error)
  }

  /** @param {any} error */
  function trouble (error) {
    const { code, why } = faultOf(error)
    fault = why
    // The reader of a standard stream never comes back.
    over ||= target.fd !== undefined && code === 'EPIPE'
    if (over) {
      drop(backlog.clear())
      release()
    } else {
      later(AGAIN_MS)
    }
    say(`SPANS_${code}`, `spans cannot be written to ${name}: ${why}. ${outlook()}`)
  }

  function outlook () {
    if (over) return 'They are dropped.'
    if (moved && opened !== undefined) return 'They go to the file that had this name, until it can be opened again.'
    return 'Up to 1 MiB of them wait until they can; more are dropped.'
  }

  function recovered () {
    busy = false
    if (moved) return // it is written, but not to where it should be
    fault = undefined
    again = 0
    clearTimeout(timer)
    timer = undefined
  }

  /** Would waiting for the reader help? */
  function slow () {
    return busy && backlog.size() > 0
  }

  /** @param {number} ms */
  function later (ms) {
    again = now() + ms
    clearTimeout(timer)
    timer = setTimeout(retry, ms)
    timer.unref()
  }

  function retry () {
    guard.run(() => {
      timer = undefined
      try {
        proceed()
      } catch {}
    })
  }

  /** Each of them once. @param {string} code @param {string} sentence */
  function say (code, sentence) {
    if (said.has(code)) return
    said.add(code)
    warn(code, sentence)
  }

  proceed()

  return {
    /** A name that can lead to another file one day. */
    named: target.path !== undefined,

    write,
    writeBytes,

    /** Opens the file again by its name; where that fails, it is tried again. */
    reopen () {
      writeBatch()
      if (target.path === undefined) return
      moved = opened !== undefined
      proceed()
    },

    /** Gets rid of what waits; a slow reader is given a moment. */
    flush () {
      writeBatch()
      const start = now()
      let progress = start
      for (let before = -1; backlog.size() > 0; before = written) {
        proceed()
        if (written !== before) progress = now()
        if (!slow() || now() > Math.min(progress + FLUSH_MS.idle, start + FLUSH_MS.most)) return
        sleep(BUSY_MS.least)
      }
    },

    close () {
      writeBatch()
      proceed()
      drop(backlog.clear())
      over = true
      clearTimeout(timer)
      release()
    },

    stats () {
      writeBatch()
      return { to: name, written, dropped, fault }
    }
  }
}

/** Returns where the whole lines end that one write of a pipe takes, or the first line where that is longer. @param {Buffer} bytes @param {number} start */
function endOfPiece (bytes, start) {
  const end = start + PIPE_BUF >= bytes.length ? bytes.length : bytes.lastIndexOf(LINE_FEED, start + PIPE_BUF - 1) + 1
  return end > start ? end : bytes.indexOf(LINE_FEED, start) + 1
}

/** @param {Buffer} bytes */
function countLines (bytes) {
  let count = 0
  for (let i = bytes.indexOf(LINE_FEED); i !== -1; i = bytes.indexOf(LINE_FEED, i + 1)) count++
  return count
}

const nothing = new Int32Array(new SharedArrayBuffer(4))

/** @param {number} ms */
function sleep (ms) {
  Atomics.wait(nothing, 0, 0, ms)
}

module.exports = { createLineSink }
