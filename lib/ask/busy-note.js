'use strict'

// What a blocked event loop runs, in a file beside the socket of its thread (socket-files.js): on the socket
// nobody answers then. Written inside of what blocks, once the option `blocked` reports it, and removed when
// that has ended.

const fs = require('node:fs')
const { threadId } = require('node:worker_threads')
const guard = require('../context/guard')

// Programs replace them
const { stringify } = JSON
const { now } = Date

class BusyNote {
  #observers
  #files
  #isWritten = false

  /**
   * @param {import('../blocked/setup').Observers} observers
   * @param {import('./socket-files').SocketFiles} files
   */
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

module.exports = { BusyNote }
