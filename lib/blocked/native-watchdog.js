'use strict'

// The watchdog of the native engine: a thread inside the addon, see native/watchdog.cc.

const { NATIVE_BYTES } = require('./shared-memory')

/**
 * @typedef {object} Doors
 * @property {(threshold: number, now: number, memory: ArrayBuffer, sample: () => void, turned: () => void) => boolean} start
 * @property {() => void} stop
 * @property {() => void} wake
 * @property {(out: Float64Array) => void} lost
 */

/**
 * @param {object} deps
 * @param {Doors} deps.doors
 * @param {() => number} deps.now
 * @param {(code: string, sentence: string) => void} deps.warn
 * @returns {import('./detector').Watchdog}
 */
function createNativeWatchdog ({ doors, now, warn }) {
  const memory = new ArrayBuffer(NATIVE_BYTES)
  const out = new Float64Array(2)
  return {
    memory,

    start ({ threshold, sample, turned }) {
      if (!doors.start(threshold, now(), memory, sample, turned)) {
        warn('BLOCKED', 'long runs of the event loop cannot be watched: there is no memory for a thread.')
        return undefined
      }
      return {
        above: 0,
        wake: doors.wake,
        stop: doors.stop,
        lost () {
          doors.lost(out)
          return { lost: out[0], still: out[1], idle: false }
        }
      }
    }
  }
}

module.exports = { createNativeWatchdog }
