'use strict'

// When a failed write is tried again: at once with a reader that makes progress, ever later with one that
// does not.

const { performance } = require('node:perf_hooks')
const timers = require('node:timers')
const guard = require('../core/guard')

const RETRY_MS = 1000 // after a fault
const BUSY_MS = { min: 2, max: 100 } // with a slow reader

const now = performance.now.bind(performance)
const { setTimeout, clearTimeout } = timers

class RetryTimer {
  #retry
  #at = 0
  #busyPause = BUSY_MS.min
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /** @param {() => void} retry runs as longstack's own work; what it throws is dropped */
  constructor (retry) {
    this.#retry = retry
  }

  /** @param {number} time ms @returns {boolean} the pause is over */
  isDue (time) {
    return time >= this.#at
  }

  afterFault () {
    this.#schedule(RETRY_MS)
  }

  afterBusy () {
    this.#schedule(this.#busyPause)
    this.#busyPause = Math.min(2 * this.#busyPause, BUSY_MS.max)
  }

  /** Something was written: a slow reader reads. */
  noteProgress () {
    this.#busyPause = BUSY_MS.min
  }

  /** No retry is needed, the next write may be at once. */
  reset () {
    this.#at = 0
    this.stop()
  }

  stop () {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** @param {number} ms */
  #schedule (ms) {
    this.#at = now() + ms
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#run(), ms)
    this.#timer.unref()
  }

  #run () {
    guard.run(() => {
      this.#timer = undefined
      try {
        this.#retry()
      } catch {}
    })
  }
}

module.exports = { RetryTimer }
