'use strict'

// Asks a running process by Node's inspector, on the loopback interface. Where it is closed, SIGUSR1 opens
// it, and it is closed again afterwards; a debugger that is attached stays.

const { debuggerUrl, openSocket } = require('./debugger-socket')
const { InspectedThread, SilentError } = require('./inspected-thread')
const { inspectorAddresses, listeningAddresses, possibleAddresses } = require('./ports')
const { checkSignal, unopenedReason } = require('./signal')
const { RefusedError, checkProcess, endedSentence, hasEnded, nodeDescendants } = require('./system')

const OPEN_MS = 5_000 // for the inspector to open
const POLL_MS = 20
const CLOSE_MS = 500 // for the inspector to close

/** Closes the inspector of a process that cannot load longstack, once this is answered. */
const CLOSE = 'void process.getBuiltinModule(\'timers\').setImmediate(() =>' +
  ' process.getBuiltinModule(\'inspector\').close()).unref()'

/**
 * @typedef {import('./ports').Address} Address
 */

/** The inspector of a process, which is the one of its main thread. */
class InspectedProcess extends InspectedThread {
  #socket
  /** where its child processes listened before it got a signal @type {Listening} */
  childrenBefore = new Map()

  /** where it listens @type {Address | undefined} */
  address

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
    if (this.isOpened) await this.#closed()
    for (const [pid, before] of this.childrenBefore) await closeSince(pid, before)
  }

  /** Waits until the inspector is closed: the next command would connect to one that closes. */
  async #closed () {
    const { pid, address } = this
    const isListening = () => listeningAddresses(pid)?.some(({ port }) => port === address?.port) === true
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
  const added = addedSince(pid, before, listeningAddresses(pid))
  const opened = await connectToOne(pid, added, true).catch(() => undefined)
  const close = "setImmediate(() => process.getBuiltinModule('node:inspector').close()).unref()"
  await opened?.evaluate(close).catch(() => {})
  await opened?.disconnect()
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
  const childrenBefore = listeningOf(nodeDescendants(pid))
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
  const open = await connectToOne(pid, possibleAddresses(pid), false)
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
    const target = new InspectedProcess(pid, socket, isOpened)
    const isTarget = await target.evaluate('process.pid') === pid || isListenedBy(address, pid)
    if (isTarget) return Object.assign(target, { address })
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
