'use strict'

// How a command reaches this process: it connects to the command, or the command asks by the inspector alone.

const { clearTimeout, setTimeout } = require('node:timers') // programs replace the global ones
const guard = require('../context/guard')
const { connectToCommand } = require('./connection')
const { Session } = require('./session')

const HELD_MS = 10_000 // without a sign of the command: it was killed
const MAX_EVENTS = 100 // lines that wait for the next question
const { stringify } = JSON // programs replace it

/** @typedef {import('../tracer').Tracer} Tracer */

/** Of a command that asks by the inspector alone. @type {Session | undefined} */
let inspecting
/** what came unasked since its last question @type {string[]} */
let events = []

/** Ends what a command holds that shows no sign any more. @type {NodeJS.Timeout | undefined} */
let holding

/**
 * Answers one question: all parts of the answer at once.
 * @param {Tracer} tracer
 * @param {{ name: string, argument?: any }} question
 * @returns {Promise<string>} `{ parts, value, events }` or `{ error }` as JSON
 */
function answer (tracer, { name, argument }) {
  if (holding === undefined) hold(false)
  else holding.refresh()
  return new Promise((resolve) => {
    /** @type {any[]} */
    const parts = []
    inspecting ??= new Session(tracer, (line) => { if (events.push(line) > MAX_EVENTS) events.shift() })
    inspecting.answer(name, argument, {
      part: (part) => { parts.push(part) },
      value: (value) => resolve(stringify({ parts, value, events: events.splice(0) })),
      error: (error) => resolve(stringify({ error }))
    })
  })
}

/** The command is gone. */
function leave () {
  inspecting?.end()
  inspecting = undefined
  events = []
  release()
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

/**
 * Awaits signs of a command: without any its session ends, and the inspector closes if it was opened for it.
 * @param {boolean} isOpened
 */
function hold (isOpened) {
  guard.run(() => {
    const inspector = require('node:inspector')
    const url = isOpened ? inspector.url() : undefined
    release()
    holding = setTimeout(() => {
      leave()
      if (url !== undefined && inspector.url() === url) inspector.close()
    }, HELD_MS).unref()
  })
}

/** The command needs the inspector no more. */
function release () {
  clearTimeout(holding)
  holding = undefined
}

module.exports = { answer, busyStack, connectToCommand, hold, leave, release }
