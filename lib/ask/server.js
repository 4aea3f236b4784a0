'use strict'

// LONGSTACK_SOCKET: a Unix socket of mode 0600 on which commands ask. Each thread has one, see
// socket-files.js; the first process that is alive has the name that was given. What a blocked event loop
// runs is noted in a file beside the socket of its thread, where nobody answers then: inside of what blocks,
// once the option `blocked` reports it, until that has ended.

const fs = require('node:fs')
const net = require('node:net')
const { isMainThread, threadId } = require('node:worker_threads')
const { observers } = require('../blocked/wanted')
const guard = require('../core/guard')
const { closeUnopened } = require('../standard-error')
const { messageOf, warn } = require('../warnings')
const { markOwn, serve } = require('./session')
const { SocketFiles } = require('./socket-files')

// Programs replace them
const { stringify } = JSON
const { now } = Date

class LiveServer {
  #files
  /** @type {Set<net.Socket>} */
  #sockets = new Set()
  #server = net.createServer((socket) => guard.run(() => this.#receive(socket)))
  #isNoted = false

  /** @param {string} path */
  constructor (path) {
    this.path = path
    this.#files = new SocketFiles(path)
    observers.listeners.add(this.#note)
    guard.run(() => this.#listen())
  }

  #listen () {
    try {
      this.#files.open((file) => {
        this.#server.on('error', (error) => guard.run(() => this.#failed(messageOf(error))))
        this.#server.listen({ path: file, exclusive: true }) // opens it at once; in a cluster, here
        markOwn(this.#server.unref())
      })
      process.on('exit', this.#remove)
      if (!isMainThread) return
      this.#files.link((sentence) => this.#failed(sentence))
      this.#files.sweep()
    } catch (error) {
      this.#failed(messageOf(error))
    }
  }

  /** @param {net.Socket} socket of a command */
  #receive (socket) {
    closeUnopened(socket)
    this.#sockets.add(socket)
    serve(socket)
    socket.on('close', () => { this.#sockets.delete(socket) })
  }

  /** @param {string} sentence */
  #failed (sentence) {
    warn('SOCKET', `cannot listen on ${this.path}: ${sentence}`)
  }

  /** @param {import('../blocked/blocking-callback').BlockedEvent} event */
  #note = ({ ms, stack, stillRunning }) => guard.run(() => {
    if (!stillRunning && !this.#isNoted) return
    const text = stringify({ pid: process.pid, threadId, since: now() - ms, stack })
    try {
      this.#files.withNote((file) => {
        if (this.#isNoted) fs.unlinkSync(file)
        this.#isNoted = false
        if (!stillRunning) return
        fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
        this.#isNoted = true
      })
    } catch {} // it does not listen
  })

  #remove = () => guard.run(() => {
    try {
      this.#files.remove()
    } catch {} // others are there, or somebody has removed it
  })

  /** Stops listening, and leaves nothing behind. */
  close () {
    process.off('exit', this.#remove)
    observers.listeners.delete(this.#note)
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    this.#remove()
  }
}

module.exports = { LiveServer }
