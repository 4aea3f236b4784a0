'use strict'

// Reaches a running process by Node's inspector, on the loopback interface. Where it is closed, SIGUSR1 opens
// it, and it is closed again afterwards; a debugger that is attached stays.

const http = require('node:http')
const { InspectedThread, SilentError } = require('./inspected-thread')
const { DEFAULT_PORT, checkSignal, inspectorFlags, unopenedReason } = require('./signal')
const {
  RefusedError, checkProcess, endedSentence, hasEnded, listeningAddresses, nodeDescendants
} = require('./system')

const OPEN_MS = 5_000 // for the inspector to open
const POLL_MS = 20
const CLOSE_MS = 500 // for the inspector to close
const REQUEST_MS = 2_000 // for an answer about the inspector
const MAX_LIST = 1 << 20 // characters of it
const MAX_BYTES = 1 << 29 // of an answer

/** Closes the inspector of a process that cannot load longstack, once this is answered. */
const CLOSE = 'void process.getBuiltinModule(\'timers\').setImmediate(() =>' +
  ' process.getBuiltinModule(\'inspector\').close()).unref()'

/**
 * @typedef {import('./system').Address} Address
 * @typedef {Map<number, Address[] | undefined>} Listening where processes listen
 */

/** The inspector of a process, which is the one of its main thread. */
class InspectedProcess extends InspectedThread {
  #socket
  /** where its child processes listened before it got a signal @type {Listening} */
  childrenBefore = new Map()

  /**
   * @param {number} pid
   * @param {import('ws').WebSocket} socket
   * @param {boolean} isOpened for this command
   * @param {Address} address where it listens
   */
  constructor (pid, socket, isOpened, address) {
    super(pid, (message) => socket.send(message))
    this.isOpened = isOpened
    this.address = address
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
    if (this.isOpened) await this.#closed()
    for (const [pid, before] of this.childrenBefore) await closeSince(pid, before)
  }

  /** Waits until the inspector is closed: the next command would connect to one that closes. */
  async #closed () {
    const { pid, address } = this
    const isListening = () => listeningAddresses(pid)?.some(({ port }) => port === address.port) === true
    for (const end = Date.now() + CLOSE_MS; Date.now() < end && isListening();) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }

  async #closeInspector () {
    try {
      await this.callNow('closeInspector')
    } catch (error) {
      if (!(error instanceof SilentError)) await this.evaluate(CLOSE).catch(() => {})
    }
  }
}

/**
 * Closes the inspector that a process has opened for no command: the primary of a cluster that gets SIGUSR1
 * sends it to all members (lib/internal/cluster/primary.js).
 * @param {number} pid
 * @param {Address[] | undefined} before where it listened before that
 */
async function closeSince (pid, before) {
  if (before === undefined) return
  const added = addedSince(pid, before, listeningAddresses(pid))
  const opened = await connectToOne(pid, added, true).catch(() => undefined)
  await opened?.evaluate(CLOSE).catch(() => {})
  opened?.disconnect()
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
  let before = listeningAddresses(pid)
  const childrenBefore = new Map(nodeDescendants(pid).map((child) => [child, listeningAddresses(child)]))
  signal(pid)
  const end = Date.now() + OPEN_MS
  while (Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    const present = listeningAddresses(pid)
    const opened = await connectToOne(pid, addedSince(pid, before, present), true)
    if (opened !== undefined) return Object.assign(opened, { childrenBefore })
    if (before === undefined || present === undefined || present.length >= before.length) continue
    before = present // the inspector was open for another command, and closes: the signal had no effect
    signal(pid)
  }
  // One that a command has opened stays open while the event loop is blocked.
  const isAnywhere = inspectorFlags(pid).some(({ port }) => port === 0)
  const open = await connectToOne(pid, isAnywhere ? listeningAddresses(pid) ?? [] : [], false)
  if (open !== undefined) return open
  throw new RefusedError(hasEnded(pid) ? endedSentence(pid) : unopenedReason(pid))
}

/** Has a process open its inspector. @param {number} pid @throws {RefusedError} */
function signal (pid) {
  try {
    process.kill(pid, 'SIGUSR1')
  } catch (error) {
    throw hasEnded(pid) ? new RefusedError(endedSentence(pid)) : error
  }
}

/**
 * Lists where the inspector of a process may listen now, most likely first.
 * @param {number} pid
 * @returns {Address[]}
 */
function inspectorAddresses (pid) {
  const addresses = listeningAddresses(pid)
  const flags = inspectorFlags(pid)
  const ports = [...flags.map(({ port }) => port), DEFAULT_PORT]
  if (addresses === undefined) return ports.map((port) => ({ host: '127.0.0.1', port }))
  const isChosenByNode = flags.some(({ port, opens }) => port === 0 && opens)
  return isChosenByNode ? addresses : addresses.filter(({ port }) => ports.includes(port))
}

/**
 * Lists where the inspector of a process may have come to listen.
 * @param {number} pid
 * @param {Address[] | undefined} before where it listened; undefined: the system does not tell
 * @param {Address[] | undefined} present where it listens now
 */
function addedSince (pid, before, present = []) {
  if (before === undefined) return inspectorAddresses(pid)
  const isOld = (/** @type {Address} */ { port }) => before.some((address) => address.port === port)
  return present.filter((address) => !isOld(address))
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
    const target = new InspectedProcess(pid, socket, isOpened, address)
    if (await target.evaluate('process.pid') === pid || isListenedBy(address, pid)) return target
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

/**
 * Returns the URL of the debugger that listens at an address.
 * @param {Address} address
 * @returns {Promise<string | undefined>} undefined: none does
 */
function debuggerUrl ({ host, port }) {
  return new Promise((resolve) => {
    const agent = /** @type {false} */ (false) // a connection of its own
    const options = { host, port, path: '/json/list', timeout: REQUEST_MS, agent }
    const request = http.get(options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        text += part
        if (text.length > MAX_LIST) response.destroy()
      })
      response.on('error', () => resolve(undefined)).on('close', () => resolve(urlIn(text, host, port)))
    })
    request.on('timeout', () => request.destroy()).on('error', () => resolve(undefined))
  })
}

/** @param {string} text JSON @param {string} host @param {number} port @returns {string | undefined} */
function urlIn (text, host, port) {
  try {
    const { id } = JSON.parse(text).find((/** @type {any} */ { type }) => type === 'node')
    return /^[\w-]+$/.test(id) ? `ws://${host.includes(':') ? `[${host}]` : host}:${port}/${id}` : undefined
  } catch {
    return undefined
  }
}

/** @param {string} url @returns {Promise<import('ws').WebSocket | undefined>} undefined: refused */
function openSocket (url) {
  const { WebSocket } = require('ws')
  return new Promise((resolve) => {
    const socket = new WebSocket(url, {
      perMessageDeflate: false,
      maxPayload: MAX_BYTES,
      handshakeTimeout: REQUEST_MS
    })
    socket.on('open', () => resolve(socket)).on('error', () => resolve(undefined))
  })
}

module.exports = { inspectProcess }
