'use strict'

// One thread of a process that a command asks: questions and answers are JSON, one a line (see session.js).

const { GoneError, RefusedError } = require('./system')

const ANSWER_MS = 15_000 // without a sign of life

/** A sentence for the user: its event loop is blocked, or a debugger has paused it. */
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
 * @typedef {{ parts: any[], resolve: (value: any) => void, reject: (error: Error) => void,
 *   timer: NodeJS.Timeout }} Call
 */

/** Questions that are sent and not answered, by number. */
class Calls {
  /** @type {Map<number, Call>} */
  #calls = new Map()
  #lastId = 0

  /**
   * @param {number} ms for which it may be silent
   * @param {string} silence a sentence: it was
   * @returns {{ id: number, answer: Promise<any> }}
   */
  open (ms, silence) {
    const id = ++this.#lastId
    const answer = new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.close(id)?.reject(new BlockedError(silence)), ms)
      this.#calls.set(id, { parts: [], resolve, reject, timer })
    })
    return { id, answer }
  }

  /** @param {number} id */
  get (id) { return this.#calls.get(id) }

  /** Forgets a question, which is to be settled now. @param {number} id */
  close (id) {
    const call = this.#calls.get(id)
    clearTimeout(call?.timer)
    this.#calls.delete(id)
    return call
  }

  /** Nobody answers any more. @param {Error} error */
  end (error) {
    for (const id of this.#calls.keys()) this.close(id)?.reject(error)
  }
}

class AskedThread {
  #socket
  #calls = new Calls()
  /** @type {Facts} */
  facts = /** @type {any} */ (undefined)
  isClosed = false
  /** called when the thread is gone, or this command has left it @type {() => void} */
  onClose = () => {}
  /** called with what comes unasked @type {(event: string, value: any) => void} */
  onEvent = () => {}

  /**
   * @param {number} pid as this command sees it
   * @param {import('node:net').Socket} socket
   * @param {string} [file] of a LONGSTACK_SOCKET
   */
  constructor (pid, socket, file) {
    this.pid = pid
    this.file = file
    this.#socket = socket
    socket.on('close', () => this.#end())
  }

  /** Leaves the thread, which takes back what was set for this command. */
  close () {
    this.#socket.destroy()
  }

  /** Has the thread tell what it is. @param {number} [ms] for which it may be silent */
  async introduce (ms) {
    this.facts = await this.call('facts', {}, ms)
  }

  /**
   * Asks a question of lib/ask/questions.js.
   * @param {string} name
   * @param {object} [argument]
   * @param {number} [ms] for which the thread may be silent
   * @returns {Promise<any>} the answer: what the question returns; where that is nothing, its parts joined
   * @throws {RefusedError}
   */
  async call (name, argument, ms = ANSWER_MS) {
    if (this.isClosed) throw this.#gone()
    const { id, answer } = this.#calls.open(ms, `${this.name} does not answer: its event loop is blocked.`)
    this.#socket.write(`${JSON.stringify({ id, name, argument })}\n`)
    return await answer
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
    if (part !== undefined) return call.parts.push(part)
    this.#calls.close(id)
    if (error !== undefined) {
      return call.reject(new RefusedError(`${this.name}: ${String(error).replace(/\.$/, '')}.`))
    }
    call.resolve(value === undefined && call.parts.length > 0 ? call.parts.flat() : value)
  }

  #end () {
    this.isClosed = true
    this.#calls.end(this.#gone())
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

module.exports = { AskedThread, BlockedError, Calls, nameOfThread }
