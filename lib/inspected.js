'use strict'

// What commands call in another process, by its inspector. Loaded there: answers are strings, since they
// travel as JSON. Uses the tracer that the process has, of whichever copy of longstack, or one of this copy.
//
// The inspector interrupts what the process does: nothing is set or opened on top of the program's code.

const { shared } = require('./start')

/** tracing is on only for a command */
let isOwnTracing = false

/** What this copy needs of the one that the process has. */
function live () {
  if (typeof shared.live !== 'function') {
    throw new Error('the longstack of this process is of an older version, which cannot be asked')
  }
  return shared.live()
}

/**
 * Tells what the event loop is busy with: the inspector has interrupted it.
 * @returns {string} a long stack; empty: it is free
 */
function busy () {
  return live().busyStack(shared.tracer, busy) ?? ''
}

/**
 * Connects to a command, unless the event loop is busy.
 * @param {{ path: string, token: string, isOpened: boolean }} socket of the command; isOpened: it has opened
 *   the inspector
 * @returns {Promise<string>} as `busy`
 */
function join ({ path, token, isOpened }) {
  const { busyStack, closeInspectorLater, connectToCommand } = live()
  const stack = busyStack(shared.tracer, join)
  if (stack !== undefined) return Promise.resolve(stack)
  if (isOpened) closeInspectorLater()
  return connectToCommand(shared.tracer, path, token)
}

/**
 * Answers a question of a command that cannot be connected to.
 * @param {{ name: string, argument?: any }} question
 */
function answer (question) {
  return live().answer(shared.tracer, question)
}

/** The command that asked by `answer` is gone. */
function leave () {
  live().leave()
}

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

module.exports = { busy, join, answer, leave, profile, finishProfile, closeInspector }
