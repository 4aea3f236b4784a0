'use strict'

// A connection to a command, over a Unix socket: the command's own, to which the process connects when its
// inspector was asked to, or one that came to LONGSTACK_SOCKET. It keeps nothing alive.

const net = require('node:net')
const { StringDecoder } = require('node:string_decoder')
const { clearTimeout, setTimeout } = require('node:timers') // programs replace the global ones
const { startQuery } = require('../context/clock')
const guard = require('../context/guard')
const { OWN_WORK, contextTag } = require('../context/context')
const { handleOf } = require('../node-objects')
const { closeUnopened } = require('../standard-error')
const { Session } = require('./session')

const MAX_WAITING = 1 << 20 // bytes that the command has not read yet; past them answers pause
const HELD_MS = 10_000 // for a command to have the process connect: it was killed

/** @typedef {import('../tracer').Tracer} Tracer */

/**
 * Connects to a command.
 * @param {Tracer} tracer
 * @param {string} path of its socket
 * @param {string} token tells it who comes
 * @returns {Promise<string>} empty; rejects where it cannot be reached
 */
function connectToCommand (tracer, path, token) {
  return new Promise((resolve, reject) => guard.run(() => {
    const socket = new net.Socket()
    closeUnopened(socket)
    socket.once('error', reject)
    socket.connect(path, () => guard.run(() => {
      socket.off('error', reject)
      socket.write(`${JSON.stringify({ token })}\n`)
      serve(tracer, socket)
      resolve('')
    }))
    socket.unref()
  }))
}

/**
 * Answers what comes on a socket.
 * @param {Tracer} tracer
 * @param {net.Socket} socket
 */
function serve (tracer, socket) {
  const decoder = new StringDecoder('utf8')
  const isReady = () => socket.writableLength < MAX_WAITING
  const session = new Session(tracer, (line) => { socket.write(line) }, isReady)
  socket.unref()
  socket.on('data', (bytes) => guard.run(() => session.receive(decoder.write(bytes))))
  socket.on('end', () => guard.run(() => { socket.end() }))
  socket.on('error', () => {}) // `close` follows
  socket.on('close', () => session.end())
  const handle = handleOf(socket)
  if (handle !== undefined) contextTag.write(handle, OWN_WORK) // tracing may have been off
}

/**
 * Tells what a process that is busy does: called on top of it.
 * @param {Function} above frames of the busy code start below this function
 * @returns {string | undefined} a long stack; undefined: the event loop is free
 */
function busyStack (above) {
  if (guard.inOwnWork) return 'in longstack itself'
  return guard.run(() => {
    startQuery()
    const { presentFrames } = require('../stacks/present')
    const [, ...frames] = presentFrames(above) // the first is what the inspector evaluates
    if (frames.length === 0) return undefined
    return require('../handles/chain-of').stackOf(undefined, above)
  })
}

/** Closes the inspector that a command has opened and does not close. @type {NodeJS.Timeout | undefined} */
let holding

/** Awaits that a command, which has opened the inspector, closes it. */
function hold () {
  guard.run(() => {
    const inspector = require('node:inspector')
    const url = inspector.url()
    release()
    holding = setTimeout(() => { if (inspector.url() === url) inspector.close() }, HELD_MS).unref()
  })
}

/** The command closes the inspector. */
function release () {
  clearTimeout(holding)
  holding = undefined
}

module.exports = { busyStack, connectToCommand, hold, release, serve }
