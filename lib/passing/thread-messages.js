'use strict'

// Messages between a worker and the thread that made it (worker.postMessage, parentPort.postMessage): a
// message has the chain of the place that sent it. The message itself stays as it is. Both ends count: what
// the sender posts and what the receiver gets are the same messages in the same order, so a number and a
// direction name one (message-table.js). Counting begins when the worker is made, before the program can use
// either end, and what could make it wrong ends it: then nothing is known of later messages.
//
// Node calls JavaScript once for each message that arrives (MessagePort::OnMessage in src/node_messaging.cc),
// also for one that cannot be read, and once when the port is closed; only receiveMessageOnPort takes one
// otherwise.

const { contextTag } = require('../core/context')
const { COUNTED, FLAGS, readWord, writeWord } = require('../core/records')
const { counterTag } = require('../core/tag')
const { hidden } = require('../objects')
const { wrap } = require('../wrap')
const { chainFor, inheritedTable, received, tableOf } = require('./passed-chains')

const { apply, getPrototypeOf } = Reflect
const MAX_COUNT = 2 ** 31 - 1
const MIN_WATCHED = 64 // ports, before those that are gone are dropped

/** @typedef {import('./message-table').MessageTable} MessageTable */

/** One end of a worker's channel: counts what it sends and what it gets. */
class CountedPort {
  #table
  #sendKey
  #receiveKey
  #sent = 0
  #received = 0
  #isSending = false
  #isCounting = true
  /** puts the port back; held here, since the port holds this @type {(() => void) | undefined} */
  restore

  /**
   * @param {MessageTable} table
   * @param {number} threadId of the worker
   * @param {boolean} isWorker whether this is the worker's own end
   */
  constructor (table, threadId, isWorker) {
    this.#table = table
    this.#sendKey = threadId << 1 | (isWorker ? 1 : 0)
    this.#receiveKey = this.#sendKey ^ 1
  }

  /** Counts no more: of later messages nothing is known. */
  stop () {
    this.#isCounting = false
  }

  /**
   * Posts a message.
   * @param {Function} method
   * @param {object} port
   * @param {ArrayLike<any>} args
   * @param {Function} above stacks begin below this function
   */
  send (method, port, args, above) {
    if (!this.#isCounting) return apply(method, port, args)
    const count = this.#sent
    // A getter of a message posts another one, which goes first
    if (this.#isSending || count === MAX_COUNT) {
      this.#table.note(this.#sendKey, count, 0)
      this.stop()
      return apply(method, port, args)
    }
    this.#isSending = true
    try {
      this.#table.note(this.#sendKey, count, chainFor(above))
      const result = apply(method, port, args)
      this.#sent = count + 1
      return result
    } finally {
      this.#isSending = false
    }
  }

  /** A message was taken, and no callback begins with it. */
  skip () {
    this.#received++
  }

  /** A callback of the port begins: with a message, or the last of all. */
  receive () {
    if (!this.#isCounting) return
    const text = this.#table.find(this.#receiveKey, this.#received++)
    if (text !== 0) received(text)
  }
}

/** what puts all back, of ports that are still there @type {Set<WeakRef<() => void>>} */
let watched = new Set()
let limit = MIN_WATCHED

/**
 * @param {CountedPort} counted
 * @param {Array<(() => boolean) | undefined>} unwraps
 * @returns {() => void} to be held by the port
 */
function keep (counted, unwraps) {
  const restore = () => {
    counted.stop()
    for (const unwrap of unwraps) unwrap?.()
  }
  if (watched.size >= limit) {
    watched = new Set([...watched].filter((ref) => ref.deref() !== undefined))
    limit = Math.max(MIN_WATCHED, watched.size * 2)
  }
  watched.add(new WeakRef(restore))
  return restore
}

/**
 * A worker was made: its messages have chains, if it was told so.
 * @param {any} worker
 * @param {object | undefined} handle
 */
function watchWorker (worker, handle) {
  const table = handle && tableOf(handle)
  const port = table && hidden(worker, 'kPublicPort')
  const ref = port === undefined ? 0 : contextTag.read(port)?.ref ?? 0
  if (table === undefined || ref === 0 || typeof port.postMessage !== 'function') return
  const counted = new CountedPort(table, worker.threadId, false)
  const { postMessage } = {
    postMessage () {
      const { postMessage: method } = /** @type {any} */ (getPrototypeOf(port))
      return counted.send(method, port, arguments, postMessage)
    }
  }
  counterTag.write(port, counted)
  writeWord(ref, FLAGS, readWord(ref, FLAGS) | COUNTED)
  counted.restore = keep(counted, [wrap(port, 'postMessage', () => postMessage)])
}

/** This thread is a worker whose program did not begin: messages of its maker have chains. */
function watchParent () {
  const threads = /** @type {any} */ (require('node:worker_threads'))
  const { parentPort, MessagePort, receiveMessageOnPort } = threads
  const given = inheritedTable()
  if (given === undefined || parentPort === null) return
  const counted = new CountedPort(given.table, given.threadId, true)
  const method = MessagePort.prototype.postMessage
  const { postMessage } = {
    /** @this {any} */
    postMessage () {
      if (this !== parentPort) return apply(method, this, arguments)
      return counted.send(method, this, arguments, postMessage)
    }
  }
  /** @param {unknown} port */
  function receive (port) {
    if (port !== parentPort) return apply(receiveMessageOnPort, threads, arguments)
    try {
      const result = receiveMessageOnPort(port)
      if (result !== undefined) counted.skip()
      return result
    } catch (error) {
      counted.stop()
      throw error
    }
  }
  counterTag.write(parentPort, counted)
  counted.restore = keep(counted, [
    wrap(MessagePort.prototype, 'postMessage', () => postMessage),
    wrap(threads, 'receiveMessageOnPort', () => receive)
  ])
}

/** Puts all back: messages have no chains any more. */
function stop () {
  for (const ref of watched) ref.deref()?.()
  watched.clear()
}

module.exports = { stop, watchParent, watchWorker }
