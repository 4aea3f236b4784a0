'use strict'

// The watchdog of the native engine: a thread inside the addon, see native/watchdog.cc.

const { now } = require('../core/clock')
const { warn } = require('../warnings')
const { isFirstWarning, shareWithWorkers } = require('./process-warnings')
const { NATIVE_BYTES } = require('./shared-memory')

/**
 * @typedef {object} WatchBinding
 * @property {(threshold: number, now: number, memory: ArrayBuffer, sample: () => void,
 *   callbackEnded: () => void) => boolean} start false: no thread, or no memory
 * @property {() => void} stop
 * @property {() => void} wake
 * @property {(out: Float64Array) => void} lost
 */

/**
 * @param {WatchBinding} binding
 * @returns {import('./shared-memory').Watchdog}
 */
function createNativeWatchdog (binding) {
  const memory = new ArrayBuffer(NATIVE_BYTES)
  const out = new Float64Array(2)
  return {
    memory,

    start ({ threshold, sample, callbackEnded }) {
      shareWithWorkers()
      if (!binding.start(threshold, now(), memory, sample, callbackEnded)) {
        if (isFirstWarning()) {
          warn('BLOCKED', 'blocking callbacks cannot be detected: no thread for that, or no memory.')
        }
        return undefined
      }
      return {
        ownFrames: 0,
        wake: binding.wake,
        stop: binding.stop,
        discount () {
          binding.lost(out)
          return { lostMs: out[0], stillMs: out[1], isIdle: false }
        }
      }
    }
  }
}

module.exports = { createNativeWatchdog }
