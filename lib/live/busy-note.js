'use strict'

// What a blocked event loop runs, in a file beside LONGSTACK_SOCKET: on the socket nobody answers then.
// Written inside of what blocks, once the option `blocked` reports it, and removed when that has ended.

const fs = require('node:fs')
const { threadId } = require('node:worker_threads')
const guard = require('../context/guard')

class BusyNote {
  #observers
  #fileOf
  /** that was written @type {string | undefined} */
  #file

  /**
   * @param {import('../blocked/setup').Observers} observers
   * @param {() => string | undefined} fileOf the socket's file, while it listens
   */
  constructor (observers, fileOf) {
    this.#observers = observers
    this.#fileOf = fileOf
    observers.listeners.add(this.#note)
  }

  /** @param {import('../blocked/blocking-callback').BlockedEvent} event */
  #note = ({ ms, stack, stillRunning }) => guard.run(() => {
    if (!stillRunning) return this.remove()
    const socket = this.#fileOf()
    if (socket === undefined) return
    const file = `${socket}.busy`
    const text = JSON.stringify({ pid: process.pid, threadId, since: Date.now() - ms, stack })
    try {
      fs.rmSync(file, { force: true }) // of a process that has died
      fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 }) // follows no link
      this.#file = file
    } catch {} // it is a convenience
  })

  remove () {
    const file = this.#file
    if (file === undefined) return
    this.#file = undefined
    try {
      fs.unlinkSync(file)
    } catch {}
  }

  close () {
    this.#observers.listeners.delete(this.#note)
    this.remove()
  }
}

module.exports = { BusyNote }
