'use strict'

// What commands call in another process, by its inspector. Loaded there: answers are strings, since they
// travel as JSON. Uses the tracer that the process has, of whichever copy of longstack, or one of this copy.
//
// The inspector interrupts what the process does, which may be anywhere: in Node's list of timers, in a hook,
// in longstack itself. What sets or opens something first awaits nothing: it goes on as a microtask, once the
// interrupted callback is over, as any promise of the program does.

const { setImmediate } = require('node:timers') // programs replace the global ones
const { shared } = require('../start')

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
 * Ends when the event loop is free.
 * @param {{ isOpened: boolean }} inspector isOpened: a command has opened it, and may be killed
 */
async function idle ({ isOpened }) {
  await undefined
  if (isOpened) live().hold(true)
}

/**
 * Connects to a command, when the event loop is free.
 * @param {{ path: string, token: string }} socket of the command
 */
async function join ({ path, token }) {
  await undefined
  return live().connectToCommand(shared.tracer, path, token)
}

/**
 * Answers a question of a command that cannot be connected to, when the event loop is free.
 * @param {{ name: string, argument?: any }} question
 */
async function answer (question) {
  await undefined
  return live().answer(shared.tracer, question)
}

/** The command that asked by `answer` is gone. */
async function leave () {
  await undefined
  live().leave()
}

/**
 * Records a profile.
 * @param {{ seconds: number, samples: boolean }} options
 * @returns {Promise<string>} a Profile as JSON
 */
async function profile (options) {
  await undefined
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
async function finishProfile () {
  await undefined
  shared.tracer.wiring.profiles?.finish()
}

/** Closes the inspector, once this call is answered. */
async function closeInspector () {
  await undefined
  if (typeof shared.live === 'function') shared.live().release()
  setImmediate(() => require('node:inspector').close()).unref()
}

module.exports = { busy, idle, join, answer, leave, profile, finishProfile, closeInspector }
