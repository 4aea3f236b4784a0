'use strict'

// Lines to a file, a pipe, a terminal or a device, with sonic-boom, by one synchronous write a line: what is written is
// in the kernel, so that no end of the process loses it, and several threads and processes can write to one file. No
// write blocks (see open.js). What cannot be written waits here in a bounded backlog until the disk or reader recovers.
//
// sonic-boom holds at most one line that failed, and goes on with the rest of it when it is given another text, be it
// empty. Its own reopen() is not used: it closes a descriptor twice when the first try to open fails.

const { performance } = require('node:perf_hooks')
const timers = require('node:timers')
const { SonicBoom } = require('sonic-boom')
const guard = require('../context/guard')
const { createBacklog } = require('./backlog')
const { faultOf } = require('./faults')
const { open, close, isDeleted, isNamed, isOurs } = require('./open')

const BACKLOG = 1 << 20 // bytes
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
 * @param {{ fd?: number, path?: string }} target
 * @param {string} name as it is said
 * @param {{ warn: (code: string, sentence: string) => void }} rooms
 */
function createLineSink (target, name, { warn }) {
  const backlog = createBacklog(BACKLOG)
  /** @type {import('./open').Opened | undefined} */
  let opened
  /** @type {SonicBoom | undefined} */
  let stream
  /** what the last write said @type {unknown} */
  let failure
  /** a part of the backlog's first line is with sonic-boom */
  let begun = false
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

  /** @param {string} line */
  function write (line) {
    if (over) return drop(1)
    const time = now()
    if (time >= look) watch(time)
    const due = time >= again
    if (backlog.size() === 0 && stream !== undefined && !(moved && due)) return begin(line)
    if (!backlog.add(line)) drop(1)
    if (due) proceed()
  }

  /** The usual way: nothing waits. @param {string} line */
  function begin (line) {
    if (send(line)) return
    begun = backlog.add(line)
    stalled(failure)
  }

  /** @param {string} text @returns {boolean} all of it is written */
  function send (text) {
    failure = undefined
    stream?.write(text)
    if (failure !== undefined) return false
    written++
    return true
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
      const held = begun
      begun = true
      if (!send(held ? '' : backlog.first())) return stalled(failure)
      begun = false
      backlog.shift()
      pause = BUSY_MS.least
    }
    recovered()
  }

  /** @returns {boolean} there is something to write to */
  function prepare () {
    try {
      if (stream === undefined) use(open(target))
      else if (moved) change()
      return true
    } catch (error) {
      if (stream === undefined) stalled(error)
      else trouble(error)
      return stream !== undefined
    }
  }

  /** @param {import('./open').Opened} next */
  function use (next) {
    opened = next
    moved = false
    begun = false
    look = now() + LOOK_MS
    // `dest` is for a descriptor of 0, which it takes for none.
    stream = new SonicBoom({ fd: next.fd, dest: next.fd, sync: true, retryEAGAIN: () => false })
    stream.on('error', (error) => { failure = error })
  }

  /** The name may lead to another file now. Until that can be opened, the old one is as good as any, unless it is deleted. */
  function change () {
    const old = /** @type {import('./open').Opened} */ (opened)
    const next = openOr(old)
    moved = false
    if (next.identity === old.identity) return close(next)
    release()
    use(next)
  }

  /** @param {import('./open').Opened} old */
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
    opened = stream = undefined
    begun = false
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
    if (moved && stream !== undefined) return 'They go to the file that had this name, until it can be opened again.'
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

    /** Opens the file again by its name; where that fails, it is tried again. */
    reopen () {
      if (target.path === undefined) return
      moved = stream !== undefined
      proceed()
    },

    /** Gets rid of what waits; a slow reader is given a moment. */
    flush () {
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
      proceed()
      drop(backlog.clear())
      over = true
      clearTimeout(timer)
      release()
    },

    stats: () => ({ to: name, written, dropped, fault })
  }
}

const nothing = new Int32Array(new SharedArrayBuffer(4))

/** @param {number} ms */
function sleep (ms) {
  Atomics.wait(nothing, 0, 0, ms)
}

module.exports = { createLineSink }
