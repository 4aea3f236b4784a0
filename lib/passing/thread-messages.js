'use strict'

// Messages between threads (worker.postMessage, parentPort.postMessage, and postMessage of a MessagePort that
// was transferred to another thread): a message has the chain of the place that sent it. The message itself
// stays as it is. Both ends count: what the sender posts and what the receiver gets are the same messages in
// the same order, so a number and a direction name one (message-table.js). Counting begins when the port is
// made, before the program can use either end, and what could make it wrong ends it: then nothing is known of
// later messages.
//
// Node calls JavaScript once for each message that arrives (MessagePort::OnMessage in src/node_messaging.cc),
// also for one that cannot be read, and once when the port is closed; only receiveMessageOnPort takes one
// otherwise. That is wrapped, and since programs keep references to it from before, an accessor sees the
// calls that go past the wrapper: receiveMessageOnPort reads a property of Node's own of each port
// (lib/internal/worker/io.js). Such a port counts no more what it gets.
//
// A port that arrives in another thread is a new object. Node makes it right before the callback of the port
// on which it comes, and the table says which port it is. Two ports that are made one after the other, with
// nothing in between, are those of one channel.

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
const MAX_TRANSFERRED = 64 // objects of a list that is looked through

/**
 * @typedef {import('./message-table').MessageTable} MessageTable
 * @typedef {import('../core/context').Context} Context
 */

const NEVER = -1
let era = 0 // ports count in the one in which they began
/** this thread is a worker whose program began with everything in place */
let isWorker = false

/** One end of a channel: counts what it sends and what it gets. */
class CountedPort {
  /** none as long as both ends are in one thread @type {MessageTable | undefined} */
  #table
  #sendKey = 0
  #type
  #sent = 0
  #received = 0
  #isSending = false
  #era = era
  #seesAll = true // messages that come
  /** the other end, while it is in this thread @type {WeakRef<CountedPort> | undefined} */
  peer

  /** @param {typeof MESSAGE | typeof PORT_MESSAGE} type of its messages */
  constructor (type) {
    this.#type = type
  }

  /**
   * The other end is in another thread.
   * @param {MessageTable} table
   * @param {number} key channel and direction
   */
  join (table, key) {
    this.#table = table
    this.#sendKey = key
    return this
  }

  get #isCounting () { return this.#era === era }

  /** Counts no more: of later messages nothing is known. */
  stop () {
    this.#era = NEVER
  }

  /** A message may have been taken unseen: of those that come later nothing is known. */
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
    // A getter of a message posts another one, which goes first
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
   * Returns the key of this end, which is about to go to another thread. Only if neither end has sent
   * anything do both begin to count with the same message.
   * @param {MessageTable} table
   * @returns {number} 0: its messages have no chains
   */
  keyFor (table) {
    if (!this.#isCounting || this.#sent > 0) return 0
    // The other end has gone: nothing may have come from there yet
    if (this.#sendKey !== 0) return this.#received === 0 && this.peer !== undefined ? this.#sendKey : 0
    const peer = this.peer?.deref()
    const channel = peer === undefined || peer.#sent > 0 ? 0 : table.addChannel()
    if (peer === undefined || channel === 0) return 0
    peer.join(table, channel << 1)
    return channel << 1 | 1
  }

  /**
   * A message is taken, or a callback of the port begins: with a message, or the last of all.
   * @returns {number} place of the text of its chain, 0: not known
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

  /** A callback of the port begins. */
  receive () {
    const text = this.next()
    if (text !== 0) received(text)
  }
}

/** Has a port count. @param {object} port @param {CountedPort} counted */
function watch (port, counted) {
  const ref = contextTag.read(port)?.ref ?? 0
  if (ref === 0) return
  wrapPorts()
  counterTag.write(port, counted)
  writeWord(ref, FLAGS, readWord(ref, FLAGS) | COUNTED)
}

/**
 * Returns the one port of a transfer list. Runs no code of the program.
 * @param {unknown} argument the list, or options with one
 * @returns {CountedPort | undefined} undefined: none that counts, or not only that
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
 * Ports that came with messages of which no callback has begun. One that came by a port that does not count
 * stays until the next message: two are not told apart.
 * @type {Array<WeakRef<object>>}
 */
let arrived = []
/** made last, by code that may make another one @type {{ id: number, port: WeakRef<object> } | undefined} */
let first
let isTaking = false

/** A port was made, or came with a message. @param {Context} context @param {object} port */
function portMade (context, port) {
  const [frame] = context.stack?.frames ?? []
  if (isTaking || frame === undefined) { // the event loop makes it
    if (arrived.length < 2) arrived.push(new WeakRef(port))
    return
  }
  const other = first?.id === context.asyncId - 1 ? first.port.deref() : undefined
  first = undefined
  // Node's own, and those that structuredClone and receiveMessageOnPort make, have a frame of Node's first
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
 * A worker was made: its messages have chains, if it was told so.
 * @param {any} worker
 * @param {object | undefined} handle
 */
function watchWorker (worker, handle) {
  const table = handle && tableOf(handle)
  const port = table && hidden(worker, 'kPublicPort')
  if (table === undefined || port === undefined) return
  watch(port, new CountedPort(MESSAGE).join(table, worker.threadId << 1))
}

/** This thread is a worker whose program did not begin: messages of its maker have chains. */
function watchParent () {
  const { parentPort } = require('node:worker_threads')
  const given = inheritedTable()
  if (given === undefined || parentPort === null) return
  isWorker = true
  counterTag.write(parentPort, new CountedPort(MESSAGE).join(given.table, given.threadId << 1 | 1))
  wrapPorts()
}

/** put the functions of Node back @type {Map<string, () => boolean>} */
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
 * The program has taken a message. A worker goes on with it. In the main thread it is an answer that the
 * running step waits for.
 * @param {object} port
 * @param {number} text place of that of its chain, 0: not known
 */
function taken (port, text) {
  if (isWorker && (text === 0 || !received(text))) continueIn(contextTag.read(port))
}

/** Notices calls of receiveMessageOnPort past the wrapper. @param {any} threads */
function watchCalls ({ MessagePort, receiveMessageOnPort }) {
  /** @type {symbol | undefined} */
  let key
  try {
    receiveMessageOnPort(new Proxy({}, { get (_, name) { if (typeof name === 'symbol') key = name } }))
  } catch {} // it is no port
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

/** Puts all back: messages have no chains any more. */
function stop () {
  era++
  for (const [name, unwrap] of unwraps) if (unwrap()) unwraps.delete(name)
}

module.exports = { portMade, stop, watchParent, watchWorker }
