'use strict'

// Checks the options of single calls. Those of trace.enable: lib/options.js.

const { mistake, nearest } = require('./errors')

const MAX_PROFILE_SECONDS = 1800

/** @typedef {import('./errors').LongstackError} LongstackError */

/**
 * @param {unknown} options
 * @returns {{ seconds: number, samples: boolean }}
 * @throws {LongstackError}
 */
function checkProfile (options = {}) {
  if (typeof options !== 'object' || options === null) {
    throw mistake('INVALID_PROFILE', 'options', options, 'an object')
  }
  const names = ['seconds', 'samples']
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined) throw mistake('UNKNOWN_PROFILE_OPTION', unknown, nearest(unknown, names))
  const { seconds = 5, samples = true } = /** @type {any} */ (options)
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= MAX_PROFILE_SECONDS)) {
    throw mistake('INVALID_PROFILE', 'seconds', seconds, `a number above 0, at most ${MAX_PROFILE_SECONDS}`)
  }
  if (typeof samples !== 'boolean') throw mistake('INVALID_PROFILE', 'samples', samples, 'true or false')
  return { seconds, samples }
}

/**
 * @param {unknown} options
 * @returns {{ olderThanMs: number }}
 * @throws {LongstackError}
 */
function checkPending (options = {}) {
  if (typeof options !== 'object' || options === null) {
    throw mistake('INVALID_PENDING', 'options', options, 'an object')
  }
  const names = ['olderThanMs']
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined) throw mistake('UNKNOWN_PENDING_OPTION', unknown, nearest(unknown, names))
  const { olderThanMs = 0 } = /** @type {any} */ (options)
  if (typeof olderThanMs !== 'number' || !(olderThanMs >= 0)) {
    throw mistake('INVALID_PENDING', 'olderThanMs', olderThanMs, 'a number of ms, at least 0')
  }
  return { olderThanMs }
}

module.exports = { checkPending, checkProfile }
