'use strict'

// What a blocked event loop runs, in a file beside LONGSTACK_SOCKET: on the socket nobody answers then.
// Written inside of what blocks, once the option `blocked` reports it, and removed when that has ended.

const fs = require('node:fs')
const { threadId } = require('node:worker_threads')
const guard = require('../context/guard')

// Programs replace them
const { stringify } = JSON
const { now } = Date

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
    const text = stringify({ pid: process.pid, threadId, since: now() - ms, stack })
    if (write(file, text) || (unlink(file) && write(file, text))) this.#file = file
  })

  remove () {
    const file = this.#file
    if (file === undefined) return
    this.#file = undefined
    unlink(file)
  }

  close () {
    this.#observers.listeners.delete(this.#note)
    this.remove()
  }
}

// Neither asks for the state of a file: Node has one array for the answers, which the program may be reading.

/** @param {string} file @param {string} text @returns {boolean} whether it is written: not where a file is */
function write (file, text) {
  try {
    fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 }) // follows no link
    return true
  } catch {
    return false
  }
}

/** @param {string} file @returns {boolean} whether it was there */
function unlink (file) {
  try {
    fs.unlinkSync(file)
    return true
  } catch {
    return false
  }
}

module.exports = { BusyNote }
