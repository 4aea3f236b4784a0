'use strict'

// What commands call in another process, by its inspector. Loaded there: answers are strings, since they
// travel as JSON. Uses the tracer that the process has, of whichever copy of longstack, or one of this copy.

const { shared } = require('./start')

/** tracing is on only for a command */
let isOwnTracing = false

/**
 * Records a profile.
 * @param {{ seconds: number, samples: boolean }} options
 * @returns {Promise<string>} a Profile as JSON
 */
async function profile (options) {
  const { trace } = shared
  if (typeof trace.profile !== 'function') {
    throw new Error('the longstack of this process is of an older version, without trace.profile')
  }
  isOwnTracing = !trace.enabled
  if (isOwnTracing) trace.enable()
  try {
    return JSON.stringify(await trace.profile(options))
  } finally {
    if (isOwnTracing) trace.disable()
    isOwnTracing = false
  }
}

/** Ends the profile that is being recorded: `profile` answers. */
function finishProfile () {
  shared.tracer.wiring.profiles?.finish()
}

/** Closes the inspector, once this call is answered. */
function closeInspector () {
  setImmediate(() => require('node:inspector').close()).unref()
}

module.exports = { profile, finishProfile, closeInspector }
