'use strict'

// How a command reaches this process: it connects to the command, or the command asks by the inspector alone.

const { setTimeout } = require('node:timers') // programs replace the global ones
const guard = require('../context/guard')
const { connectToCommand } = require('./connection')
const { Session } = require('./session')

const CLOSE_MS = 10_000 // after which a command has closed the inspector
const { stringify } = JSON // programs replace it

/** @typedef {import('../tracer').Tracer} Tracer */

/** Of a command that asks by the inspector alone. @type {Session | undefined} */
let inspecting

/**
 * Answers one question: all parts of the answer at once.
 * @param {Tracer} tracer
 * @param {{ name: string, argument?: any }} question
 * @returns {Promise<string>} `{ parts, value }` or `{ error }` as JSON
 */
function answer (tracer, { name, argument }) {
  return new Promise((resolve) => {
    /** @type {any[]} */
    const parts = []
    inspecting ??= new Session(tracer, () => {})
    inspecting.answer(name, argument, {
      part: (part) => { parts.push(part) },
      value: (value) => resolve(stringify({ parts, value })),
      error: (error) => resolve(stringify({ error }))
    })
  })
}

/** The command is gone. */
function leave () {
  inspecting?.end()
  inspecting = undefined
}

/**
 * Tells what a process that is busy does: called on top of it.
 * @param {Tracer} tracer
 * @param {Function} above frames of the busy code start below this function
 * @returns {string | undefined} a long stack; undefined: the event loop is free
 */
function busyStack (tracer, above) {
  if (guard.inOwnWork) return 'in longstack itself'
  return guard.run(() => {
    const queries = tracer.wiring.queries()
    const [, ...frames] = queries.presentFrames(above) // the first is what the inspector evaluates
    return frames.length === 0 ? undefined : queries.stackText(undefined, above)
  })
}

/** Closes the inspector later, if the command that has opened it has not: it was killed. */
function closeInspectorLater () {
  guard.run(() => {
    const inspector = require('node:inspector')
    const url = inspector.url()
    const close = () => { if (url !== undefined && inspector.url() === url) inspector.close() }
    setTimeout(close, CLOSE_MS).unref()
  })
}

module.exports = { answer, busyStack, closeInspectorLater, connectToCommand, leave }
