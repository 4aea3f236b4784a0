'use strict'

// Messages between threads (worker.postMessage, parentPort.postMessage, and postMessage of a MessagePort that
// was transferred to another thread): a message has the chain of the place that sent it. The message itself
// is unchanged. Both ends count: sender and receiver see the same messages in the same order, so a number and
// a direction identify a message (message-table.js). Counting begins when the port is created, before the
// program can use either end. It stops at any event that could make it wrong: later messages then have no
// known chain.
//
// Node calls JavaScript once for each message that arrives (MessagePort::OnMessage in src/node_messaging.cc),
// also for an unreadable one, and once when the port is closed. Only receiveMessageOnPort bypasses this, so
// it is wrapped. Programs may hold earlier references to it. An accessor detects calls through these:
// receiveMessageOnPort reads an internal property of each port (lib/internal/worker/io.js). Such a port stops
// counting received messages.
//
// A port that arrives in another thread is a new object. Node creates it right before the callback of the
// port that received it, and the table identifies it. Two ports created in direct succession are the ends of
// one channel.

const { isProxy } = require('node:util').types
const { contextTag } = require('../core/context')
const { CURRENT_REF, current } = require('../core/current')
const { COUNTED, FLAGS, readWord, writeWord } = require('../core/records')
const { counterTag } = require('../core/tag')
const { hidden, inherits, isObject, own } = require('../objects')
const { MESSAGE, PORT_MESSAGE } = require('../stacks/passed-chain')
const { wrap } = require('../wrap')
const { chainFor, continueIn, inheritedTable, received, tableOf } = require('./passed-chains')
const { chainOfTask } = require('./pool-tasks')

const { apply } = Reflect
const MAX_COUNT = 2 ** 31 - 1
const MAX_TRANSFERRED = 64 // objects of a list that is searched

/**
 * @typedef {import('./message-table').MessageTable} MessageTable
 * @typedef {import('../core/context').Context} Context
 */

const NEVER = -1
let era = 0 // a port counts only in the era in which it began
/** this thread is a worker, and its program began after longstack's setup */
let isWorker = false

/** One end of a channel: counts sent and received messages. */
class CountedPort {
  /** undefined while both ends are in one thread @type {MessageTable | undefined} */
  #table
  #sendKey = 0
  #type
  #sent = 0
  #received = 0
  #isSending = false
  #era = era
  #seesAll = true // no received message is missed
  /** the other end, while it is in this thread @type {WeakRef<CountedPort> | undefined} */
  peer

  /** @param {typeof MESSAGE | typeof PORT_MESSAGE} type of its messages */
  constructor (type) {
    this.#type = type
  }

  /**
   * Notes that the other end is in another thread.
   * @param {MessageTable} table
   * @param {number} key channel and direction
   */
  join (table, key) {
    this.#table = table
    this.#sendKey = key
    return this
  }

  get #isCounting () { return this.#era === era }

  /** Stops counting: later messages have no known chain. */
  stop () {
    this.#era = NEVER
  }

  /** Notes that a message may have been taken unobserved: later received ones have no known chain. */
  missTaken () {
    this.#seesAll = false
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
    const table = this.#table
    // A getter of a message posts another one, which is sent first
    if (this.#isSending || count === MAX_COUNT) {
      table?.note(this.#sendKey, count, 0, 0)
      this.stop()
      return apply(method, port, args)
    }
    this.#isSending = true
    try {
      const moved = table === undefined ? undefined : movedPort(args[1])
      if (table !== undefined) {
        const isMaker = (this.#sendKey & 1) === 0
        const isAnswer = isMaker && contextTag.read(port)?.ref === current[CURRENT_REF]
        const text = chainFor(this.#type, above, { task: chainOfTask(args[0]), isAnswer })
        table.note(this.#sendKey, count, text, moved?.keyFor(table) ?? 0)
      }
      const result = apply(method, port, args)
      this.#sent = count + 1
      moved?.stop()
      return result
    } finally {
      this.#isSending = false
    }
  }

  /**
   * Returns the key of this end, which is about to be transferred to another thread. Both ends count from the
   * same message only if neither has sent one.
   * @param {MessageTable} table
   * @returns {number} 0 if its messages have no chains
   */
  keyFor (table) {
    if (!this.#isCounting || this.#sent > 0) return 0
    // The other end was transferred: valid only if nothing has come from there yet
    if (this.#sendKey !== 0) return this.#received === 0 && this.peer !== undefined ? this.#sendKey : 0
    const peer = this.peer?.deref()
    const channel = peer === undefined || peer.#sent > 0 ? 0 : table.addChannel()
    if (peer === undefined || channel === 0) return 0
    peer.join(table, channel << 1)
    return channel << 1 | 1
  }

  /**
   * Counts a message that is taken, or the start of a port's callback: with a message, or the last one.
   * @returns {number} place of its chain text, 0 if unknown
   */
  next () {
    const table = this.#table
    if (!this.#isCounting || !this.#seesAll || table === undefined) return 0
    const key = this.#sendKey ^ 1
    const count = this.#received++
    const port = arrived.length === 1 ? arrived[0].deref() : undefined
    arrived = []
    const portKey = port === undefined ? 0 : table.findPort(key, count)
    if (port !== undefined && portKey !== 0) watch(port, new CountedPort(PORT_MESSAGE).join(table, portKey))
    return table.find(key, count)
  }

  /** Called when a callback of the port begins. */
  receive () {
    const text = this.next()
    if (text !== 0) received(text)
  }
}

/** Makes a port count messages. @param {object} port @param {CountedPort} counted */
function watch (port, counted) {
  const ref = contextTag.read(port)?.ref ?? 0
  if (ref === 0) return
  wrapPorts()
  counterTag.write(port, counted)
  writeWord(ref, FLAGS, readWord(ref, FLAGS) | COUNTED)
}

/**
 * Returns the only port of a transfer list. Runs no code of the program.
 * @param {unknown} argument the list, or options with one
 * @returns {CountedPort | undefined} undefined if it does not count, or there are several
 */
function movedPort (argument) {
  const list = isObject(argument) && !Array.isArray(argument) ? own(argument, 'transfer') : argument
  if (!Array.isArray(list) || isProxy(list) || list.length > MAX_TRANSFERRED) return undefined
  const { MessagePort } = require('node:worker_threads')
  let moved
  for (let i = 0; i < list.length; i++) {
    const value = own(list, String(i))
    if (!isObject(value) || isProxy(value) || !inherits(value, MessagePort.prototype)) continue
    if (moved !== undefined) return undefined
    moved = value
  }
  return moved && /** @type {CountedPort | undefined} */ (counterTag.read(moved))
}

/**
 * Ports that came with messages whose callbacks have not begun. If the receiving port does not count, such a
 * port stays until the next message; two cannot be distinguished.
 * @type {Array<WeakRef<object>>}
 */
let arrived = []
/** last port, if its other end may follow @type {{ id: number, port: WeakRef<object> } | undefined} */
let first
let isTaking = false

/** Notes a port that was created, or came with a message. @param {Context} context @param {object} port */
function portMade (context, port) {
  const [frame] = context.stack?.frames ?? []
  if (isTaking || frame === undefined) { // created by the event loop
    if (arrived.length < 2) arrived.push(new WeakRef(port))
    return
  }
  const other = first?.id === context.asyncId - 1 ? first.port.deref() : undefined
  first = undefined
  // Ports created by Node itself, structuredClone or receiveMessageOnPort have a frame of Node first
  if (frame.fileName?.startsWith('node:') !== false) return
  if (other === undefined) {
    first = { id: context.asyncId, port: new WeakRef(port) }
    return
  }
  const ends = [new CountedPort(PORT_MESSAGE), new CountedPort(PORT_MESSAGE)]
  ends[0].peer = new WeakRef(ends[1])
  ends[1].peer = new WeakRef(ends[0])
  watch(other, ends[0])
  watch(port, ends[1])
}

/**
 * Counts messages of a new worker, if it received the table.
 * @param {any} worker
 * @param {object | undefined} handle
 */
function watchWorker (worker, handle) {
  const table = handle && tableOf(handle)
  const port = table && hidden(worker, 'kPublicPort')
  if (table === undefined || port === undefined) return
  watch(port, new CountedPort(MESSAGE).join(table, worker.threadId << 1))
}

/** Counts messages of the parent thread, in a worker before its program begins. */
function watchParent () {
  const { parentPort } = require('node:worker_threads')
  const given = inheritedTable()
  if (given === undefined || parentPort === null) return
  isWorker = true
  counterTag.write(parentPort, new CountedPort(MESSAGE).join(given.table, given.threadId << 1 | 1))
  wrapPorts()
}

/** restore the functions of Node @type {Map<string, () => boolean>} */
const unwraps = new Map()

function wrapPorts () {
  const threads = /** @type {any} */ (require('node:worker_threads'))
  if (!unwraps.has('calls')) watchCalls(threads)
  wrapOnce(threads.MessagePort.prototype, 'postMessage', (method) => {
    const { postMessage } = {
      /** @this {any} */
      postMessage () {
        const counted = isObject(this) ? counterTag.read(this) : undefined
        if (counted === undefined) return apply(method, this, arguments)
        return /** @type {CountedPort} */ (counted).send(method, this, arguments, postMessage)
      }
    }
    return postMessage
  })
  wrapOnce(threads, 'receiveMessageOnPort', (method) => {
    /** @this {any} @param {unknown} port */
    return function receiveMessageOnPort (port) {
      const counted = isObject(port) ? /** @type {CountedPort} */ (counterTag.read(port)) : undefined
      isTaking = true
      try {
        const result = apply(method, this, arguments)
        if (result !== undefined) taken(/** @type {object} */ (port), counted?.next() ?? 0)
        return result
      } catch (error) {
        counted?.missTaken()
        throw error
      } finally {
        isTaking = false
      }
    }
  })
}

/**
 * Handles a message that the program has taken. A worker continues its chain. In the main thread it is a
 * response that the running step waits for.
 * @param {object} port
 * @param {number} text place of its chain text, 0 if unknown
 */
function taken (port, text) {
  if (isWorker && (text === 0 || !received(text))) continueIn(contextTag.read(port))
}

/** Detects calls of receiveMessageOnPort that bypass the wrapper. @param {any} threads */
function watchCalls ({ MessagePort, receiveMessageOnPort }) {
  /** @type {symbol | undefined} */
  let key
  try {
    receiveMessageOnPort(new Proxy({}, { get (_, name) { if (typeof name === 'symbol') key = name } }))
  } catch {} // it is not a port
  if (key === undefined || Object.hasOwn(MessagePort.prototype, key)) return
  const name = key
  Object.defineProperty(MessagePort.prototype, name, {
    get () {
      const counted = isTaking || !isObject(this) ? undefined : counterTag.read(this)
      if (counted !== undefined) /** @type {CountedPort} */ (counted).missTaken()
      return undefined
    },
    configurable: true
  })
  unwraps.set('calls', () => Reflect.deleteProperty(MessagePort.prototype, name))
}

/** @param {object} owner @param {string} name @param {(method: Function) => Function} make */
function wrapOnce (owner, name, make) {
  const unwrap = unwraps.has(name) ? undefined : wrap(owner, name, make)
  if (unwrap !== undefined) unwraps.set(name, unwrap)
}

/** Restores Node's functions: messages have no chains any more. */
function stop () {
  era++
  for (const [name, unwrap] of unwraps) if (unwrap()) unwraps.delete(name)
}

module.exports = { portMade, stop, watchParent, watchWorker }
