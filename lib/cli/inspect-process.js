'use strict'

// Asks a running process by Node's inspector, on the loopback interface. Where it is closed, SIGUSR1 opens
// it, and it is closed again afterwards; a debugger that is attached stays.

const path = require('node:path')
const { debuggerUrl, openSocket } = require('./debugger-socket')
const { checkSignal, unopenedReason } = require('./inspector-signal')
const {
  RefusedError, checkProcess, inspectorAddresses, listeningAddresses, nodeDescendants, possibleAddresses
} = require('./process-facts')

const OPEN_MS = 5_000 // for the inspector to open
const POLL_MS = 20
const REQUEST_MS = 2_000 // for an answer about the inspector
const ANSWER_MS = 15_000 // for an answer of the process, beyond what it is asked to wait

/** What the process loads; by its path, since longstack may not be installed where the process is. */
const root = path.join(__dirname, '..', '..')
const inspected = path.join(root, 'lib', 'inspected.js')

/** Closes the inspector of a process that cannot load longstack, once this is answered. */
const CLOSE = 'void process.getBuiltinModule(\'timers\').setImmediate(() =>' +
  ' process.getBuiltinModule(\'inspector\').close()).unref()'

/**
 * @typedef {import('./process-facts').Address} Address
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
   * Calls a function of lib/inspected.js in the process.
   * @param {keyof typeof import('../inspected')} name
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
   * @param {keyof typeof import('../inspected')} name
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
    if (error !== undefined) call?.reject(new RefusedError(String(error.message)))
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

/** The inspector of a process, which is the one of its main thread. */
class InspectedProcess extends InspectedThread {
  #socket
  /** where its child processes listened before it got a signal @type {Listening} */
  childrenBefore = new Map()

  /** @param {number} pid @param {import('ws').WebSocket} socket @param {boolean} isOpened for this command */
  constructor (pid, socket, isOpened) {
    super(pid, (message) => socket.send(message))
    this.isOpened = isOpened
    this.#socket = socket
    socket.on('message', (data) => this.receive(String(data)))
    socket.on('error', () => {}) // `close` follows
    socket.on('close', () => this.end())
  }

  /** Closes the connection. */
  disconnect () {
    this.#socket.terminate()
  }

  /** Closes the connection, and the inspector if it was opened for this command. */
  async close () {
    await this.leaveWorkers()
    if (this.isOpened) await this.#closeInspector()
    this.disconnect()
    for (const [pid, before] of this.childrenBefore) await closeSince(pid, before)
  }

  async #closeInspector () {
    try {
      await this.callNow('closeInspector')
    } catch (error) {
      if (!(error instanceof SilentError)) await this.evaluate(CLOSE).catch(() => {})
    }
  }
}

/** @typedef {Map<number, Address[] | undefined>} Listening where processes listen */

/** @param {number[]} pids @returns {Listening} */
function listeningOf (pids) {
  return new Map(pids.map((pid) => [pid, listeningAddresses(pid)]))
}

/**
 * Closes the inspector that a process has opened for no command: the primary of a cluster that gets SIGUSR1
 * sends it to all members (lib/internal/cluster/primary.js).
 * @param {number} pid
 * @param {Address[] | undefined} before where it listened before that
 */
async function closeSince (pid, before) {
  if (before === undefined) return
  const opened = await connectToOne(pid, openedSince(pid, before), true).catch(() => undefined)
  const close = "setImmediate(() => process.getBuiltinModule('node:inspector').close()).unref()"
  await opened?.evaluate(close).catch(() => {})
  await opened?.disconnect()
}

/** A sentence for the user: the process does not answer. */
class SilentError extends RefusedError {}

/** @param {number} pid */
function ended (pid) {
  return new RefusedError(`Process ${pid} ended, or closed its inspector.`)
}

/**
 * Connects to the inspector of a process, which is opened for it if need be.
 * @param {number} pid
 * @returns {Promise<InspectedProcess>}
 * @throws {RefusedError}
 */
async function inspectProcess (pid) {
  checkProcess(pid)
  const attached = await connectToOne(pid, inspectorAddresses(pid), false)
  if (attached !== undefined) return attached
  await checkSignal(pid)
  const before = listeningAddresses(pid)
  const childrenBefore = listeningOf(nodeDescendants(pid))
  process.kill(pid, 'SIGUSR1')
  const end = Date.now() + OPEN_MS
  while (Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    const opened = await connectToOne(pid, openedSince(pid, before), true)
    if (opened !== undefined) return Object.assign(opened, { childrenBefore })
  }
  // One that a command has opened stays open while the event loop is blocked.
  const open = await connectToOne(pid, possibleAddresses(pid), false)
  if (open !== undefined) return open
  throw new RefusedError(unopenedReason(pid))
}

/**
 * Lists where the inspector of a process may have come to listen.
 * @param {number} pid
 * @param {Address[] | undefined} before undefined: the system does not tell
 */
function openedSince (pid, before) {
  if (before === undefined) return inspectorAddresses(pid)
  const isOld = (/** @type {Address} */ { port }) => before.some((address) => address.port === port)
  return (listeningAddresses(pid) ?? []).filter((address) => !isOld(address))
}

/**
 * Connects to the first of these addresses that is the inspector of a process.
 * @param {number} pid
 * @param {Address[]} addresses
 * @param {boolean} isOpened
 * @returns {Promise<InspectedProcess | undefined>}
 */
async function connectToOne (pid, addresses, isOpened) {
  for (const address of addresses) {
    const url = await debuggerUrl(address)
    const socket = url === undefined ? undefined : await openSocket(url)
    if (socket === undefined) continue
    const target = new InspectedProcess(pid, socket, isOpened)
    const isTarget = await target.evaluate('process.pid') === pid || isListenedBy(address, pid)
    if (isTarget) return target
    socket.terminate()
  }
  return undefined
}

/**
 * Returns whether the process itself listens there: its pid differs where it is seen from a namespace of its
 * own.
 * @param {Address} address
 * @param {number} pid
 */
function isListenedBy ({ port }, pid) {
  const addresses = process.platform === 'linux' ? listeningAddresses(pid) ?? [] : []
  return addresses.some((address) => address.port === port)
}

module.exports = { InspectedThread, RefusedError, SilentError, inspectProcess }
