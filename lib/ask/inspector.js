'use strict'

// Reaches a running process through Node's inspector, on the loopback interface. If it is closed, SIGUSR1
// opens it, and it is closed again afterwards; an attached debugger stays attached. SIGUSR1 ends a process
// that does not catch it. On Linux /proc shows whether it does, and why the inspector did not open.

const { once } = require('node:events')
const http = require('node:http')
const { constants } = require('node:os')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { lockPort } = require('./port-lock')
const { parseObject } = require('./protocol')
const { clean } = require('../text')
const {
  GoneError, RefusedError, ageOf, checkProcess, endedSentence, hasEnded, listeningAddresses, nodeDescendants,
  processesWith, read, readLink, stateOf, tcpSockets
} = require('./system')
const { BlockedError, Calls } = require('./threads')

const START_S = 5 // after which Node handles the signal
const OPEN_MS = 5_000 // for the inspector to open
const POLL_MS = 20
const CLOSE_MS = 500 // for the inspector to close
const PORT_MS = 2_000 // for another process to free the port
const REQUEST_MS = 2_000 // for a response of the inspector itself
const ANSWER_MS = 15_000 // for a response of the process
const MAX_LIST = 1 << 20 // characters of /json/list
const MAX_BYTES = 1 << 24 // of a response: a stack or an evaluated value

const DEFAULT_PORT = 9229

/** System calls that take a file descriptor as their first argument, as verbs. */
const ACTIONS = ['reads from', 'writes to', 'waits for a lock of', 'flushes', 'flushes']
/**
 * Their numbers: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h
 * @type {Record<string, number[]>}
 */
const descriptorCalls = { x64: [0, 1, 73, 74, 75], arm64: [63, 64, 32, 82, 83] }
/** @type {Record<string, number>} */
const openat = { x64: 257, arm64: 56 }
const LOOKS = 3
const LOOK_MS = 50

/** The file that the process loads, by path: longstack may not be installed for that process. */
const root = path.join(__dirname, '..', '..')
const inspected = path.join(__dirname, 'inspected.js')

/** Closes the inspector of a process that cannot load longstack, after the response. */
const CLOSE = 'void process.getBuiltinModule(\'timers\').setImmediate(() =>' +
  ' process.getBuiltinModule(\'inspector\').close()).unref()'

/** Errors while Node exits: its inspector still responds, but has no context to evaluate in. */
const nodeEnds = /Cannot find (?:default )?(?:execution )?context|context was destroyed|navigated or closed/

/** Error of V8 in Node 22 for a promise that has settled; a pending one is held by what will settle it. */
const wasCollected = /Promise was collected/

/** @typedef {import('./system').Address} Address */

/** The inspector of one thread. */
class InspectedThread {
  #calls
  /** by inspector session @type {Map<string, InspectedThread>} */
  #workers = new Map()
  /** the inspector was opened for this command */
  isOpened = false

  /**
   * @param {number} pid
   * @param {(message: string) => void} send
   * @param {string} [url] of a worker's script; undefined for the main thread
   */
  constructor (pid, send, url) {
    this.pid = pid
    this.#calls = new Calls(send)
    this.url = url
  }

  get isOpen () { return !this.#calls.isOver }

  /**
   * Calls a function of lib/ask/inspected.js in the process.
   * @param {keyof typeof import('./inspected')} name
   * @param {object} [argument]
   * @param {number} [ms] that the call may take
   * @returns {Promise<any>}
   * @throws {RefusedError} if the process does not respond, or the function throws
   */
  async call (name, argument = {}, ms = ANSWER_MS) {
    try {
      return await this.#call(name, argument, { awaitPromise: true }, ms)
    } catch (error) {
      if (wasCollected.test(/** @type {Error} */ (error).message)) return ''
      throw error
    }
  }

  /**
   * Calls a function that returns no promise, even while JavaScript keeps the event loop busy.
   * @param {keyof typeof import('./inspected')} name
   * @returns {Promise<any>}
   */
  callNow (name) {
    return this.#call(name, {}, {}, REQUEST_MS)
  }

  /** @param {string} name @param {object} argument @param {object} options @param {number} ms */
  async #call (name, argument, options, ms) {
    const file = JSON.stringify(inspected)
    const expression = `process.getBuiltinModule('module').createRequire(${file})(${file})` +
      `.${name}(${JSON.stringify(argument)})`
    const params = { expression, returnByValue: true, silent: true, ...options }
    const answer = await this.#post('Runtime.evaluate', params, ms)
    const { exceptionDetails } = answer
    if (exceptionDetails === undefined) return this.#textOf(answer)
    const text = String(exceptionDetails?.exception?.description ?? exceptionDetails?.text)
    if (text.includes(`Cannot find module '${inspected}'`)) {
      throw new RefusedError(`Process ${this.pid} does not see ${root}: it has ` +
        'another file system, as in a container. Run the longstack that is installed there.')
    }
    const [sentence] = text.replace(/^\w*Error: /, '').split('\n', 1)
    throw new RefusedError(`Process ${this.pid}: ${sentence}`)
  }

  /** Evaluates an expression. @param {string} expression @returns {Promise<any>} */
  async evaluate (expression) {
    return (await this.#post('Runtime.evaluate', { expression, returnByValue: true })).result?.value
  }

  /** Reads the result of a function of lib/ask/inspected.js. @param {any} answer @returns {string} */
  #textOf ({ result }) {
    const value = result?.value ?? ''
    if (typeof value === 'string') return value
    throw new RefusedError(`The debugger of process ${this.pid} does not respond like Node's.`)
  }

  /**
   * Lists the workers of this thread; a worker does not report its own.
   * @returns {Promise<InspectedThread[]>}
   */
  async workers () {
    await this.#post('NodeWorker.enable', { waitForDebuggerOnStart: false })
    return [...this.#workers.values()]
  }

  /** @param {string} method @param {object} params @param {number} [ms] @returns {Promise<any>} */
  async #post (method, params, ms = REQUEST_MS) {
    const answer = await this.#calls.ask({ method, params }, ms,
      `Process ${this.pid} does not respond: its event loop is blocked, or a debugger has paused it.`)
    return answer ?? {}
  }

  /** @param {string} text of a message */
  receive (text) {
    const { id, result, error, method, params } = parseObject(text) ?? {}
    if (error !== undefined && nodeEnds.test(error?.message)) this.end()
    const call = this.#calls.close(id)
    if (error === undefined) call?.resolve(result)
    else call?.reject(new RefusedError(`The debugger of process ${this.pid}: ${error?.message}`))
    if (method === 'NodeWorker.attachedToWorker') this.#addWorker(params ?? {})
    const worker = this.#workers.get(params?.sessionId)
    if (method === 'NodeWorker.receivedMessageFromWorker') worker?.receive(String(params.message))
    if (method === 'NodeWorker.detachedFromWorker') worker?.end()
  }

  /** @param {{ sessionId: string, workerInfo?: { url: string } }} attached */
  #addWorker ({ sessionId, workerInfo }) {
    const send = (/** @type {string} */ message) => {
      this.#post('NodeWorker.sendMessageToWorker', { sessionId, message }, ANSWER_MS).catch(() => {})
    }
    this.#workers.set(sessionId, new InspectedThread(this.pid, send, String(workerInfo?.url)))
  }

  /** Rejects all calls: the thread is gone. */
  end () {
    this.#calls.end(new GoneError(`Process ${this.pid} ended, or closed its inspector.`))
    for (const worker of this.#workers.values()) worker.end()
  }
}

/** The inspector of a process: that of its main thread. */
class InspectedProcess extends InspectedThread {
  #socket
  /** addresses of its descendants before the signal @type {Map<number, Address[] | undefined>} */
  childrenBefore = new Map()
  /** lets the next command use the port */
  unlock = () => {}

  /**
   * @param {number} pid
   * @param {import('ws').WebSocket} socket
   * @param {boolean} isOpened for this command
   * @param {Address} address that it listens on
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

  /** Closes the connection, which detaches workers, and the inspector if it was opened for this command. */
  async close () {
    try {
      await this.#close()
    } finally {
      this.unlock()
    }
  }

  async #close () {
    if (this.isOpened) {
      await this.callNow('closeInspector').catch(async (error) => {
        if (!(error instanceof BlockedError)) await this.evaluate(CLOSE).catch(() => {})
      })
    }
    this.disconnect()
    // Waits, or the next command would connect to an inspector that is closing
    const isListening = () => listeningAddresses(this.pid)?.some(({ port }) => port === this.address.port)
    for (const end = Date.now() + (this.isOpened ? CLOSE_MS : 0); Date.now() < end && isListening();) {
      await sleep(POLL_MS)
    }
    for (const [pid, before] of this.childrenBefore) await closeSince(pid, before)
  }
}

/**
 * Closes the inspector that a cluster member opened for no command: a primary forwards SIGUSR1 to all members
 * (lib/internal/cluster/primary.js).
 * @param {number} pid
 * @param {Address[] | undefined} before addresses that it listened on before
 */
async function closeSince (pid, before) {
  if (before === undefined) return
  const opened = await connectToOne(pid, addedSince(pid, before), true).catch(() => undefined)
  await opened?.evaluate(CLOSE).catch(() => {})
  opened?.disconnect()
}

/**
 * Connects to the inspector of a process, and opens it if necessary.
 * @param {number} pid
 * @returns {Promise<InspectedProcess>}
 * @throws {RefusedError}
 */
async function inspectProcess (pid) {
  checkProcess(pid)
  const port = portOf(pid)
  const unlock = await lockPort(port === 0 ? `any of process ${pid}` : String(port))
  try {
    return Object.assign(await reach(pid), { unlock })
  } catch (error) {
    unlock()
    throw error
  }
}

/** @param {number} pid @returns {Promise<InspectedProcess>} @throws {RefusedError} */
async function reach (pid) {
  const attached = await connectToOne(pid, inspectorAddresses(pid), false)
  if (attached !== undefined) return attached
  await checkSignal(pid)
  let before = listeningAddresses(pid)
  const childrenBefore = new Map(nodeDescendants(pid).map((child) => [child, listeningAddresses(child)]))
  signal(pid)
  for (const end = Date.now() + OPEN_MS; Date.now() < end;) {
    await sleep(POLL_MS)
    const present = listeningAddresses(pid)
    const opened = await connectToOne(pid, addedSince(pid, before, present), true)
    if (opened !== undefined) return Object.assign(opened, { childrenBefore })
    if (before === undefined || present === undefined || present.length >= before.length) continue
    before = present // the inspector was still open for another command, so the signal had no effect
    signal(pid)
  }
  // An inspector that a command opened stays open while the event loop is blocked.
  const isAnywhere = inspectorFlags(pid).some(({ port }) => port === 0)
  const open = await connectToOne(pid, isAnywhere ? listeningAddresses(pid) ?? [] : [], false)
  if (open !== undefined) return open
  throw new RefusedError(hasEnded(pid) ? endedSentence(pid) : takenReason(pid) ?? unopenedReason(pid))
}

/** Signals a process to open its inspector. @param {number} pid @throws {RefusedError} */
function signal (pid) {
  try {
    process.kill(pid, 'SIGUSR1')
  } catch (error) {
    throw hasEnded(pid) ? new RefusedError(endedSentence(pid)) : error
  }
}

/**
 * Lists the new addresses that the inspector of a process may listen on.
 * @param {number} pid
 * @param {Address[] | undefined} before addresses until then; undefined if unknown
 */
function addedSince (pid, before, present = listeningAddresses(pid) ?? []) {
  if (before === undefined) return inspectorAddresses(pid)
  return present.filter(({ port }) => !before.some((address) => address.port === port))
}

/**
 * Connects to the first of these addresses that belongs to the inspector of a process.
 * @param {number} pid
 * @param {Address[]} addresses
 * @param {boolean} isOpened
 * @returns {Promise<InspectedProcess | undefined>}
 */
async function connectToOne (pid, addresses, isOpened) {
  for (const address of addresses) {
    const socket = await openSocket(address)
    if (socket === undefined) continue
    const target = new InspectedProcess(pid, socket, isOpened, address)
    const found = await target.evaluate('process.pid').catch((error) => {
      target.disconnect() // it would keep the command alive
      throw error
    })
    if (found === pid) return target
    // Inside its own PID namespace it has another pid
    const own = process.platform === 'linux' ? listeningAddresses(pid) : undefined
    if (own?.some(({ port }) => port === address.port)) return target
    target.disconnect()
  }
  return undefined
}

/**
 * Connects to the debugger that listens at an address.
 * @param {Address} address
 * @returns {Promise<import('ws').WebSocket | undefined>} undefined if none does
 */
async function openSocket ({ host, port }) {
  const signal = AbortSignal.timeout(REQUEST_MS)
  try {
    const agent = /** @type {false} */ (false) // a connection of its own
    const request = http.get({ host, port, path: '/json/list', agent, signal }).on('error', () => {})
    const [response] = await once(request, 'response', { signal })
    let text = ''
    for await (const part of response.setEncoding('utf8')) {
      text += part
      if (text.length > MAX_LIST) return undefined
    }
    const { id } = JSON.parse(text).find((/** @type {any} */ { type }) => type === 'node')
    if (!/^[\w-]+$/.test(id)) return undefined
    const { WebSocket } = require('ws')
    const socket = new WebSocket(`ws://${host.includes(':') ? `[${host}]` : host}:${port}/${id}`, {
      perMessageDeflate: false, maxPayload: MAX_BYTES, handshakeTimeout: REQUEST_MS
    })
    await once(socket, 'open')
    return socket
  } catch {
    return undefined
  }
}

/**
 * Checks that SIGUSR1 will open the inspector of a process. The signal must not end the process, interrupt a
 * system call that is not restarted (libuv does not restart `read`: uv__fs_work in deps/uv/src/unix/fs.c), or
 * reach a process that cannot open its inspector now.
 * @param {number} pid
 * @throws {RefusedError}
 */
async function checkSignal (pid) {
  if (process.platform !== 'linux') return
  if (/^[Tt]$/.test(stateOf(pid))) {
    throw new RefusedError(`Process ${pid} is stopped (SIGSTOP). Resume it with kill -CONT ${pid}.`)
  }
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(read(`/proc/${pid}/status`))
  const bit = 1n << BigInt(constants.signals.SIGUSR1 - 1)
  if (caught !== null && (BigInt(`0x${caught[1]}`) & bit) === 0n) {
    throw new RefusedError(`Process ${pid} does not open its inspector on SIGUSR1: ${uncaughtReason(pid)}. ` +
      'LONGSTACK_SOCKET works without it.')
  }
  const wait = await lastingCall(pid)
  if (wait === undefined) return await checkPort(pid)
  throw new RefusedError(`Process ${pid} cannot be inspected now: its main thread ${wait}. ` +
    'SIGUSR1 would make that call fail with EINTR, so it is not sent.')
}

/**
 * Waits until no other process listens on the inspector port of this one: a command that was killed leaves an
 * inspector open for a moment.
 * @param {number} pid
 * @throws {RefusedError}
 */
async function checkPort (pid) {
  for (const end = Date.now() + PORT_MS; ;) {
    const reason = takenReason(pid)
    if (reason === undefined) return
    if (Date.now() > end) throw new RefusedError(reason)
    await sleep(LOOK_MS)
  }
}

/** @param {number} pid @returns {string | undefined} a sentence, if another process has its port */
function takenReason (pid) {
  const port = portOf(pid)
  const listener = listenerAt(port)
  if (listener === undefined || listener === pid) return undefined
  const who = listener === 0 ? 'another process' : `process ${listener}`
  return `Process ${pid} cannot open its inspector: ${who} listens on its port, ${port}.`
}

/** Returns the port on which the inspector of a process opens; 0 for any. @param {number} pid */
const portOf = (pid) => inspectorFlags(pid)[0]?.port ?? DEFAULT_PORT

/**
 * Returns which process listens on a port.
 * @param {number} port
 * @returns {number | undefined} 0 if that process cannot be seen; undefined if none listens
 */
function listenerAt (port) {
  const sockets = tcpSockets().filter(({ isListening, local }) => isListening && local.port === port)
  return sockets.length === 0 ? undefined : processesWith(sockets.map(({ inode }) => inode)).pids[0] ?? 0
}

/**
 * Lists the flags that name a port of the inspector: `--inspect=9300`, `--inspect-port=0.0.0.0:9300`.
 * @param {number} pid
 * @returns {Array<{ port: number, opens: boolean }>} opens: the inspector is open from the start
 */
function inspectorFlags (pid) {
  const flags = flagsOf(pid).matchAll(/--(inspect(?:-brk|-wait|-port)?|debug-port)[=\0](?:[^\s\0]*:)?(\d+)/g)
  return [...flags].map(([, flag, port]) => ({ port: Number(port), opens: !flag.endsWith('port') }))
}

/**
 * Lists the addresses that the inspector of a process may listen on now.
 * @param {number} pid
 * @returns {import('./system').Address[]}
 */
function inspectorAddresses (pid) {
  const addresses = listeningAddresses(pid)
  const flags = inspectorFlags(pid)
  const ports = [...flags.map(({ port }) => port), DEFAULT_PORT]
  if (addresses === undefined) return ports.map((port) => ({ host: '127.0.0.1', port }))
  const isChosenByNode = flags.some(({ port, opens }) => port === 0 && opens)
  return isChosenByNode ? addresses : addresses.filter(({ port }) => ports.includes(port))
}

/** Returns the arguments and environment of a process. @param {number} pid */
const flagsOf = (pid) => `${read(`/proc/${pid}/cmdline`)}\0${read(`/proc/${pid}/environ`)}`

/** Describes the system call on a file that a main thread stays in. @param {number} pid */
async function lastingCall (pid) {
  const first = callOf(pid)
  for (let i = 0; i < LOOKS; i++) {
    if (first === undefined || callOf(pid) !== first) return undefined
    await sleep(LOOK_MS)
  }
  return first
}

/** Returns why a process does not catch SIGUSR1, from its flags. @param {number} pid @returns {string} */
function uncaughtReason (pid) {
  const flags = flagsOf(pid)
  if (/--disable-sigusr1/.test(flags)) return 'it was started with --disable-sigusr1'
  if (!/--(experimental-)?permission\b/.test(flags)) {
    const isYoung = ageOf(pid) <= START_S
    return isYoung ? 'it has only just started' : 'it does not run Node, or has reset that signal'
  }
  return 'it was started with --permission; from Node 24 on, --allow-inspector permits it'
}

/**
 * Returns why a process has not opened its inspector on SIGUSR1.
 * @param {number} pid
 * @returns {string} one or more sentences
 */
function unopenedReason (pid) {
  const any = `Process ${pid} did not open its inspector on SIGUSR1:`
  const place = placeOf(pid)
  if (place !== undefined) {
    return `${any} its main thread ${callOf(pid) ?? `waits in the kernel (${place})`}. The signal stays ` +
      'pending: the inspector opens when the process continues.'
  }
  return `${any} it handles that signal itself, or its event loop is blocked in native code, for ` +
    'example by execSync; the inspector opens when that returns.'
}

/**
 * Describes the system call on a file that the main thread of a process waits in.
 * @param {number} pid
 * @returns {string | undefined} undefined if there is none or it is unknown
 */
function callOf (pid) {
  const place = placeOf(pid)
  if (place === undefined) return undefined
  const [call, descriptor] = read(`/proc/${pid}/syscall`).split(' ').map(Number)
  if (call === openat[process.arch]) return `opens a file, and waits in the kernel (${place})`
  const action = ACTIONS[descriptorCalls[process.arch]?.indexOf(call) ?? -1]
  if (action === undefined) return undefined
  return `${action} ${clean(readLink(`/proc/${pid}/fd/${descriptor}`))}, and waits in the kernel (${place})`
}

/** Returns the kernel function that a main thread waits in, if not for events. @param {number} pid */
function placeOf (pid) {
  const place = read(`/proc/${pid}/wchan`)
  return /^[SD]$/.test(stateOf(pid)) && !/^(|0|.*poll.*)$/.test(place) ? place : undefined
}

module.exports = { InspectedThread, inspectProcess }
