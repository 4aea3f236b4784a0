'use strict'

// A connection to a command, over a Unix socket: the command's own, to which the process connects when its
// inspector was asked to, or one that came to LONGSTACK_SOCKET. It keeps nothing alive.

const net = require('node:net')
const { StringDecoder } = require('node:string_decoder')
const guard = require('../context/guard')
const { OWN_WORK, contextTag } = require('../context/context')
const { handleOf } = require('../node-objects')
const { closeUnopened } = require('../standard-error')
const { Session } = require('./session')

const MAX_WAITING = 1 << 20 // bytes that the command has not read yet; past them answers pause

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
  return session
}

module.exports = { connectToCommand, serve }
