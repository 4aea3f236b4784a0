'use strict'

// LONGSTACK_SOCKET: a Unix socket of mode 0600 on which commands ask. The main thread of the first process
// has the name that was given; where a living process has that already, as in a cluster, the pid follows
// after a dot, and for workers the pid and the number of the thread.

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { isMainThread, threadId } = require('node:worker_threads')
const guard = require('../context/guard')
const { OWN_WORK, contextTag } = require('../context/context')
const { handleOf } = require('../node-objects')
const { messageOf } = require('../warnings')
const { BusyNote } = require('./busy-note')
const { serve } = require('./connection')

/** @typedef {import('../tracer').Tracer} Tracer */

class LiveServer {
  #tracer
  #server
  #name
  /** name in the file system, while it listens @type {string | undefined} */
  #file
  /** of the file @type {number | undefined} */
  #inode
  /** @type {Set<net.Socket>} */
  #sockets = new Set()
  #isClosed = false
  #busyNote

  /** @param {Tracer} tracer @param {string} file */
  constructor (tracer, file) {
    this.#tracer = tracer
    this.path = file
    this.#server = net.createServer((socket) => guard.run(() => this.#receive(socket)))
    this.#busyNote = new BusyNote(tracer.wiring.blockedObservers, () => this.#file)
    const name = this.#name = path.resolve(file)
    const own = `${name}.${process.pid}`
    guard.run(() => this.#open(isMainThread ? [name, own] : [`${own}.${threadId}`]))
  }

  /** @param {string[]} names the first that no living process has is taken */
  #open ([name, ...others]) {
    if (others.length === 0) return this.#listen(name)
    const probe = net.connect(name)
    const next = (/** @type {string[]} */ names) => guard.run(() => {
      probe.destroy()
      if (!this.#isClosed) this.#open(names)
    })
    probe.on('connect', () => next(others)).on('error', () => next([name])).unref()
  }

  /**
   * Listens in a directory that only this user may enter, and moves the socket to its name when it has its
   * mode: at no moment another user may connect.
   * @param {string} name
   */
  #listen (name) {
    let directory = ''
    try {
      const present = fs.lstatSync(name, { throwIfNoEntry: false })
      if (present?.isSocket() === false) throw new Error('a file has that name')
      directory = fs.mkdtempSync(`${name}.`)
      const first = `${directory}/s`
      const server = this.#server
      server.on('error', (error) => guard.run(() => this.#failed(error)))
      server.listen({ path: first, exclusive: true }) // opens it at once; in a cluster, here
      server.unref()
      const handle = handleOf(server)
      if (handle !== undefined) contextTag.write(handle, OWN_WORK)
      fs.chmodSync(first, 0o600)
      this.#inode = fs.statSync(first).ino
      fs.renameSync(first, name)
      this.#file = name
      process.on('exit', this.#remove)
    } catch (error) {
      this.#failed(error)
    } finally {
      if (directory !== '') fs.rmSync(directory, { recursive: true, force: true })
    }
  }

  /** @param {net.Socket} socket of a command */
  #receive (socket) {
    this.#sockets.add(socket)
    serve(this.#tracer, socket)
    socket.on('close', () => { this.#sockets.delete(socket) })
  }

  /** @param {unknown} error */
  #failed (error) {
    this.#tracer.wiring.warnings.warn('SOCKET', `cannot listen on ${this.path}: ${messageOf(error)}`)
  }

  /** Removes the name, if it still is this server's. */
  #remove = () => guard.run(() => {
    const file = this.#file
    this.#file = undefined
    this.#busyNote.remove()
    try {
      if (file !== undefined && fs.lstatSync(file).ino === this.#inode) fs.unlinkSync(file)
      if (isMainThread) this.#removeOfWorkers()
    } catch {}
  })

  /** Removes those of workers, of which Node calls nothing when they are terminated. */
  #removeOfWorkers () {
    const [directory, prefix] = [path.dirname(this.#name), `${path.basename(this.#name)}.${process.pid}.`]
    for (const name of fs.readdirSync(directory)) {
      if (name.startsWith(prefix)) fs.unlinkSync(path.join(directory, name))
    }
  }

  /** Stops listening, and leaves nothing behind. */
  close () {
    this.#isClosed = true
    process.off('exit', this.#remove)
    this.#busyNote.close()
    this.#remove()
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}

module.exports = { LiveServer }
