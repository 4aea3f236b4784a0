'use strict'

// The watchdog of the native engine: a thread inside the addon, see native/watchdog.cc.

const { now } = require('../core/clock')
const { share: shareWarnings, warnOnce } = require('../warnings')
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
 * @param {import('./shared-memory').WatchTarget} target
 * @returns {import('./shared-memory').Watch | undefined} undefined: it cannot start, and has warned
 */
function startNativeWatchdog (binding, { threshold, sample, callbackEnded, share }) {
  const memory = new ArrayBuffer(NATIVE_BYTES)
  const out = new Float64Array(2)
  share(memory)
  shareWarnings()
  if (!binding.start(threshold, now(), memory, sample, callbackEnded)) {
    warnOnce('BLOCKED', 'blocking callbacks cannot be detected: no thread for that, or no memory.')
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

module.exports = { startNativeWatchdog }
