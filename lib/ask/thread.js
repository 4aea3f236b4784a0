'use strict'

// One thread of a process that a command asks: questions and answers are JSON, one a line (see
// lib/ask/session.js).

const { GoneError, RefusedError } = require('./system')

const ANSWER_MS = 15_000 // without a sign of life

/** Its event loop is blocked: the sentence says so. */
class BlockedError extends RefusedError {}

/**
 * @typedef {object} Facts see `facts` in lib/ask/questions.js
 * @property {number} pid as the process itself sees it
 * @property {number} threadId
 * @property {boolean} isMainThread
 * @property {string} node
 * @property {string} longstack
 * @property {string} title
 * @property {string | undefined} script
 * @property {number} uptimeMs
 * @property {number | undefined} rss
 * @property {'full' | 'off'} tracing
 * @property {boolean} spans
 * @property {number | undefined} blocked
 *
 * @typedef {{ parts: any[], onPart: ((part: any) => void) | undefined, resolve: (value: any) => void,
 *   reject: (error: Error) => void, timer: NodeJS.Timeout }} Call
 */

class AskedThread {
  #socket
  #lastId = 0
  /** by id @type {Map<number, Call>} */
  #calls = new Map()
  #isClosed = false
  /** @type {Facts} */
  facts = /** @type {any} */ (undefined)
  /** called when the thread is gone, or this command has left it @type {() => void} */
  onClose = () => {}
  /** called with what comes unasked @type {(event: string, value: any) => void} */
  onEvent = () => {}

  /**
   * @param {number} pid as this command sees it
   * @param {import('node:net').Socket} socket
   */
  constructor (pid, socket) {
    this.pid = pid
    this.#socket = socket
    socket.on('close', () => this.#end())
  }

  /** Leaves the thread, which takes back what was set for this command. */
  close () {
    this.#socket.destroy()
  }

  get threadId () { return this.facts.threadId }

  get isClosed () { return this.#isClosed }

  /** Has the thread tell what it is. @param {number} [ms] for which it may be silent */
  async introduce (ms) {
    this.facts = (await this.ask('facts', {}, { ms })).value
  }

  /**
   * Asks a question of lib/ask/questions.js.
   * @param {string} name
   * @param {object} [argument]
   * @returns {Promise<any>} the answer: what the question returns; where that is nothing, its parts joined
   * @throws {RefusedError}
   */
  async call (name, argument) {
    const { value, parts } = await this.ask(name, argument)
    return value === undefined && parts.length > 0 ? parts.flat() : value
  }

  /**
   * Asks a question.
   * @param {string} name
   * @param {object} [argument]
   * @param {{ ms?: number, onPart?: (part: any) => void }} [options] ms: for which the thread may be silent
   * @returns {Promise<{ value: any, parts: any[] }>} parts: empty where `onPart` gets them
   * @throws {RefusedError}
   */
  ask (name, argument, { ms = ANSWER_MS, onPart } = {}) {
    if (this.#isClosed) return Promise.reject(this.#gone())
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#calls.delete(id)
        reject(new BlockedError(`${this.name} does not answer: its event loop is blocked.`))
      }, ms)
      this.#calls.set(id, { parts: [], onPart, resolve, reject, timer })
      this.#socket.write(`${JSON.stringify({ id, name, argument })}\n`)
    })
  }

  /** What it is called in a sentence. */
  get name () {
    return nameOfThread(this.pid, this.facts?.threadId)
  }

  /** @param {any} message */
  receive ({ id, part, value, error, event }) {
    if (event !== undefined) return this.onEvent(event, value)
    const call = this.#calls.get(id)
    if (call === undefined) return
    call.timer.refresh()
    if (part !== undefined) {
      if (call.onPart === undefined) call.parts.push(part)
      else call.onPart(part)
      return
    }
    this.#calls.delete(id)
    clearTimeout(call.timer)
    if (error === undefined) return call.resolve({ value, parts: call.parts })
    call.reject(new RefusedError(`${this.name}: ${String(error).replace(/\.$/, '')}.`))
  }

  #end () {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const { reject, timer } of this.#calls.values()) {
      clearTimeout(timer)
      reject(this.#gone())
    }
    this.#calls.clear()
    this.onClose()
  }

  #gone () {
    return new GoneError(`${this.name} ended, or closed its connection.`)
  }
}

/** What a thread is called in a sentence. @param {number} pid @param {number} [threadId] */
function nameOfThread (pid, threadId = 0) {
  return threadId === 0 ? `Process ${pid}` : `Thread ${threadId} of process ${pid}`
}

module.exports = { AskedThread, BlockedError, nameOfThread }
