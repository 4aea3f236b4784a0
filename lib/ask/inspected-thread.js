'use strict'

// The inspector of one thread of another process: what a command calls there.

const path = require('node:path')
const { GoneError, RefusedError } = require('./system')

const REQUEST_MS = 2_000 // for an answer about the inspector
const ANSWER_MS = 15_000 // for an answer of the process, beyond what it is asked to wait

/** What the process loads; by its path, since longstack may not be installed where the process is. */
const root = path.join(__dirname, '..', '..')
const inspected = path.join(__dirname, 'inspected.js')

/** While Node ends, its inspector still answers, and has nothing to evaluate in. */
const nodeEnds = /Cannot find (?:default )?(?:execution )?context|context was destroyed|navigated or closed/

/**
 * @typedef {{ resolve: (value: any) => void, reject: (error: Error) => void }} Call
 */

/** The inspector of one thread. */
class InspectedThread {
  #lastId = 0
  /** by id of the call @type {Map<number, Call>} */
  #calls = new Map()
  /** by session of their inspectors @type {Map<string, InspectedThread>} */
  #workers = new Map()
  #hasWorkers = false // the inspector reports them

  /**
   * @param {number} pid
   * @param {(message: string) => void} send
   * @param {{ title: string, url: string }} [worker] undefined: the main thread
   */
  constructor (pid, send, worker) {
    this.pid = pid
    this.worker = worker
    this.isOpen = true
    /** the inspector was opened for this command */
    this.isOpened = false
    this.send = send
  }

  /**
   * Calls a function of lib/ask/inspected.js in the process.
   * @param {keyof typeof import('./inspected')} name
   * @param {object} [argument]
   * @param {number} [ms] that the process takes to answer
   * @returns {Promise<any>}
   * @throws {RefusedError} where it does not answer, or throws
   */
  call (name, argument = {}, ms = 0) {
    return this.#call(name, argument, true, ms + ANSWER_MS)
  }

  /**
   * Calls one that returns no promise, also while the event loop of the process is busy with JavaScript.
   * @param {keyof typeof import('./inspected')} name
   * @returns {Promise<any>}
   */
  callNow (name) {
    return this.#call(name, {}, false, REQUEST_MS)
  }

  /** @param {string} name @param {object} argument @param {boolean} awaitPromise @param {number} ms */
  async #call (name, argument, awaitPromise, ms) {
    const file = JSON.stringify(inspected)
    const { result, exceptionDetails } = await this.#post('Runtime.evaluate', {
      expression: `process.getBuiltinModule('module').createRequire(${file})(${file})` +
        `.${name}(${JSON.stringify(argument)})`,
      awaitPromise,
      returnByValue: true,
      silent: true
    }, ms)
    if (exceptionDetails === undefined) return result.value
    const text = exceptionDetails.exception?.description ?? exceptionDetails.text
    if (String(text).includes(`Cannot find module '${inspected}'`)) {
      throw new RefusedError(`Process ${this.pid} does not see ${root}, of which it is to load a file: it ` +
        'has other files, as in a container. Run the longstack that is installed there.')
    }
    const [sentence] = String(text).replace(/^\w*Error: /, '').split('\n', 1)
    throw new RefusedError(`Process ${this.pid}: ${sentence}`)
  }

  /** Evaluates an expression. @param {string} expression @returns {Promise<any>} */
  async evaluate (expression) {
    const { result } = await this.#post('Runtime.evaluate', { expression, returnByValue: true }, REQUEST_MS)
    return result.value
  }

  /**
   * Lists the workers of this thread; a worker does not tell its own.
   * @returns {Promise<InspectedThread[]>}
   */
  async workers () {
    this.#hasWorkers = true
    await this.#post('NodeWorker.enable', { waitForDebuggerOnStart: false }, REQUEST_MS)
    return [...this.#workers.values()]
  }

  /** Leaves the workers alone again. */
  async leaveWorkers () {
    if (!this.#hasWorkers) return
    this.#hasWorkers = false
    await this.#post('NodeWorker.disable', {}, REQUEST_MS).catch(() => {})
    for (const worker of this.#workers.values()) worker.end()
    this.#workers.clear()
  }

  /** @param {string} method @param {object} params @param {number} ms @returns {Promise<any>} */
  #post (method, params, ms) {
    const id = ++this.#lastId
    if (!this.isOpen) return Promise.reject(ended(this.pid))
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#calls.delete(id)
        reject(new SilentError(`Process ${this.pid} does not answer: its event loop is blocked, or a ` +
          'debugger has paused it.'))
      }, ms)
      const settle = (/** @type {Function} */ settler) => (/** @type {any} */ value) => {
        clearTimeout(timer)
        this.#calls.delete(id)
        settler(value)
      }
      this.#calls.set(id, { resolve: settle(resolve), reject: settle(reject) })
      this.send(JSON.stringify({ id, method, params }))
    })
  }

  /** @param {string} text of a message */
  receive (text) {
    const { id, result, error, method, params } = JSON.parse(text)
    const call = this.#calls.get(id)
    if (error !== undefined && nodeEnds.test(error.message)) this.end()
    else if (error !== undefined) call?.reject(new RefusedError(String(error.message)))
    else call?.resolve(result)
    if (method === 'NodeWorker.attachedToWorker') this.#addWorker(params)
    if (method === 'NodeWorker.receivedMessageFromWorker') {
      this.#workers.get(params.sessionId)?.receive(params.message)
    }
    if (method === 'NodeWorker.detachedFromWorker') this.#workers.get(params.sessionId)?.end()
  }

  /** @param {{ sessionId: string, workerInfo: { title: string, url: string } }} attached */
  #addWorker ({ sessionId, workerInfo }) {
    const send = (/** @type {string} */ message) => {
      this.#post('NodeWorker.sendMessageToWorker', { sessionId, message }, ANSWER_MS).catch(() => {})
    }
    this.#workers.set(sessionId, new InspectedThread(this.pid, send, workerInfo))
  }

  /** It is gone. */
  end () {
    this.isOpen = false
    for (const { reject } of [...this.#calls.values()]) reject(ended(this.pid))
    for (const worker of this.#workers.values()) worker.end()
  }
}

/** A sentence for the user: the process does not answer. */
class SilentError extends RefusedError {}

/** @param {number} pid */
function ended (pid) {
  return new GoneError(`Process ${pid} ended, or closed its inspector.`)
}

module.exports = { InspectedThread, SilentError }
