'use strict'

// LONGSTACK_SOCKET: a Unix socket of mode 0600 on which commands ask. Each thread has one, see
// socket-files.js; the first process that is alive has the name that was given.

const fs = require('node:fs')
const net = require('node:net')
const { isMainThread, threadId } = require('node:worker_threads')
const { observers } = require('../blocked/wanted')
const guard = require('../context/guard')
const { OWN_WORK, contextTag } = require('../context/context')
const { handleOf } = require('../node-objects')
const { closeUnopened } = require('../standard-error')
const { messageOf, warn } = require('../warnings')
const { serve } = require('./connection')
const { SocketFiles } = require('./socket-files')

// Programs replace them
const { stringify } = JSON
const { now } = Date

/** @typedef {import('../tracer').Tracer} Tracer */

class LiveServer {
  #tracer
  #server
  #files
  /** @type {Set<net.Socket>} */
  #sockets = new Set()
  #busyNote

  /** @param {Tracer} tracer @param {string} path */
  constructor (tracer, path) {
    this.#tracer = tracer
    this.path = path
    this.#server = net.createServer((socket) => guard.run(() => this.#receive(socket)))
    this.#files = new SocketFiles(path)
    this.#busyNote = new BusyNote(observers, this.#files)
    guard.run(() => this.#listen())
  }

  #listen () {
    try {
      this.#files.open((file) => {
        const server = this.#server
        server.on('error', (error) => guard.run(() => this.#failed(error)))
        server.listen({ path: file, exclusive: true }) // opens it at once; in a cluster, here
        server.unref()
        const handle = handleOf(server)
        if (handle !== undefined) contextTag.write(handle, OWN_WORK)
      })
      process.on('exit', this.#remove)
      if (!isMainThread) return
      this.#files.link((sentence) => this.#failed(sentence))
      this.#files.sweep()
    } catch (error) {
      this.#failed(error)
    }
  }

  /** @param {net.Socket} socket of a command */
  #receive (socket) {
    closeUnopened(socket)
    this.#sockets.add(socket)
    serve(this.#tracer, socket)
    socket.on('close', () => { this.#sockets.delete(socket) })
  }

  /** @param {unknown} reason */
  #failed (reason) {
    const sentence = typeof reason === 'string' ? reason : messageOf(reason)
    warn('SOCKET', `cannot listen on ${this.path}: ${sentence}`)
  }

  #remove = () => guard.run(() => {
    try {
      this.#files.remove()
    } catch {} // others are there, or somebody has removed it
  })

  /** Stops listening, and leaves nothing behind. */
  close () {
    process.off('exit', this.#remove)
    this.#busyNote.close()
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    this.#remove()
  }
}

/**
 * What a blocked event loop runs, in a file beside the socket of its thread: on the socket nobody answers
 * then. Written inside of what blocks, once the option `blocked` reports it, and removed when that has ended.
 */
class BusyNote {
  #observers
  #files
  #isWritten = false

  /** @param {import('../blocked/wanted').Observers} observers @param {SocketFiles} files */
  constructor (observers, files) {
    this.#observers = observers
    this.#files = files
    observers.listeners.add(this.#note)
  }

  /** @param {import('../blocked/blocking-callback').BlockedEvent} event */
  #note = ({ ms, stack, stillRunning }) => guard.run(() => {
    if (!stillRunning) return this.#remove()
    const text = stringify({ pid: process.pid, threadId, since: now() - ms, stack })
    this.#onNote((file) => {
      if (this.#isWritten) fs.unlinkSync(file)
      fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
      this.#isWritten = true
    })
  })

  #remove () {
    if (!this.#isWritten) return
    this.#isWritten = false
    this.#onNote((file) => fs.unlinkSync(file))
  }

  /** @param {(file: string) => void} work */
  #onNote (work) {
    try {
      this.#files.withNote(work)
    } catch {} // it does not listen
  }

  close () {
    this.#observers.listeners.delete(this.#note)
    this.#remove()
  }
}

module.exports = { LiveServer }
