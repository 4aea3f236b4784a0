'use strict'

// The threads that a command queries, and the sockets between them: those of LONGSTACK_SOCKET, and one of the
// command, to which threads connect when their inspector makes them. Queries and responses are JSON, one per
// line (see session.js).

const { randomBytes } = require('node:crypto')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { createLineReader, noteOf, parseName } = require('./protocol')
const { attempt } = require('../files')
const { isAnswer, isEvent } = require('./shapes')
const { GoneError, RefusedError, pidInside } = require('./system')
const { formatDuration } = require('../text')

const ANSWER_MS = 15_000 // of silence
const INTRODUCE_MS = 2_000 // of silence before the first response
const WHOLE_MS = 300_000 // for all parts of a response, beyond the time that the query may take
const MAX_LINE = 1 << 26 // characters
const MAX_ANSWER = 1 << 28 // characters of all parts
const MAX_TOKEN = 1 << 10 // characters of the first line of a thread that connects

// The whole of sun_path (unix(7)): libuv of Node 20 pads a shorter name with zeros, libuv of Node 22 does not
// (uv_pipe_connect2 in deps/uv/src/unix/pipe.c), so neither would find a socket of the other by its name.
const ABSTRACT_BYTES = 108

/**
 * @typedef {{ pid: number, sentence: string, stack?: string, waits?: true, busyThread?: number }} Refusal
 *   stack: what it runs; waits: it is a worker that waits for work, as expected, or that does it: busyThread
 * @typedef {Refusal & { threadId: number, busyMs: number }} Silent a thread that listens but is silent;
 *   stack: undefined if it left no note
 */

/** A sentence for the user: its event loop is blocked, or a debugger has paused it. */
class BlockedError extends RefusedError {}

/**
 * @typedef {object} Facts see `facts` in lib/ask/session.js
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
 * @typedef {object} Call
 * @property {string} [question] see lib/ask/session.js
 * @property {any[]} parts
 * @property {number} length characters of them
 * @property {number} until ms, deadline for all of them
 * @property {(value: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {NodeJS.Timeout} timer
 */

/** Queries in flight, by id. */
class Calls {
  /** @type {Map<number, Call>} */
  #calls = new Map()
  #lastId = 0
  #send
  /** why nobody responds any longer @type {Error | undefined} */
  #end

  /** @param {(text: string) => void} send */
  constructor (send) {
    this.#send = send
  }

  /**
   * Sends a query.
   * @param {{ name?: string, [property: string]: any }} question
   * @param {number} ms of silence that are allowed
   * @param {string} silence message of the error after that
   * @returns {Promise<any>} the response
   */
  ask (question, ms, silence) {
    return new Promise((resolve, reject) => {
      if (this.#end !== undefined) throw this.#end
      const id = ++this.#lastId
      const timer = setTimeout(() => this.close(id)?.reject(new BlockedError(silence)), ms)
      const until = performance.now() + ms + WHOLE_MS
      this.#calls.set(id, { question: question.name, parts: [], length: 0, until, resolve, reject, timer })
      this.#send(JSON.stringify({ id, ...question }))
    })
  }

  get isOver () { return this.#end !== undefined }

  /** @param {number} id */
  get (id) { return this.#calls.get(id) }

  /** Removes a query, for the caller to settle. @param {number} id */
  close (id) {
    const call = this.#calls.get(id)
    clearTimeout(call?.timer)
    this.#calls.delete(id)
    return call
  }

  /** Rejects all queries: nobody responds any longer. @param {Error} error */
  end (error) {
    this.#end ??= error
    for (const id of this.#calls.keys()) this.close(id)?.reject(error)
  }
}

const OTHER_SHAPE = 'sends data in an unknown format: it may be another version of longstack, or ' +
  'another program.'

class AskedThread {
  #socket
  #calls
  /** @type {Facts} */
  facts = /** @type {any} */ (undefined)
  /** called when the thread is gone, or this command has disconnected @type {() => void} */
  onClose = () => {}
  /** called with events, which are sent unprompted @type {(event: string, value: any) => void} */
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
    this.#calls = new Calls((text) => socket.write(`${text}\n`))
    socket.on('close', () => {
      this.#calls.end(new GoneError(`${this.name} ended, or closed its connection.`))
      this.onClose()
    })
  }

  get isClosed () { return this.#calls.isOver }

  /** Disconnects from the thread, which then undoes this command's settings. */
  close () {
    this.#socket.destroy()
  }

  /** Queries the facts of the thread. @param {number} [ms] of silence that are allowed */
  async introduce (ms) {
    this.facts = await this.call('facts', {}, ms)
  }

  /**
   * Sends a query of lib/ask/session.js.
   * @param {string} name
   * @param {object} [argument]
   * @param {number} [ms] of silence that are allowed
   * @returns {Promise<any>} the result of the query, or its joined parts if it returns nothing
   * @throws {RefusedError}
   */
  call (name, argument, ms = ANSWER_MS) {
    const silence = `${this.name} does not respond: its event loop is blocked.`
    return this.#calls.ask({ name, argument }, ms, silence)
  }

  /** Name of the thread in messages. */
  get name () {
    return this.pid === 0 ? `What listens on ${this.file}` : nameOfThread(this.pid, this.facts?.threadId)
  }

  /** @param {any} message @param {number} length characters of its line */
  receive ({ id, part, value, error, event }, length) {
    if (event !== undefined) return this.#receiveEvent(event, value)
    const call = this.#calls.get(id)
    if (call === undefined) return
    call.timer.refresh()
    call.length += length
    if (call.length > MAX_ANSWER) return this.refuse('sends a response that is too long')
    if (performance.now() > call.until) return this.refuse('does not finish its response')
    if (part !== undefined) return call.parts.push(part)
    this.#calls.close(id)
    if (error !== undefined) {
      const sentence = typeof error === 'string' ? error.replace(/\.$/, '') : 'no reason given'
      return call.reject(new RefusedError(`${this.name}: ${sentence}.`))
    }
    const answer = value === undefined && call.parts.length > 0 ? call.parts.flat() : value
    if (isAnswer(String(call.question), answer)) return call.resolve(answer)
    call.reject(new RefusedError(`${this.name} ${OTHER_SHAPE}`))
  }

  /** @param {unknown} event @param {any} value */
  #receiveEvent (event, value) {
    if (!isEvent(event, value)) return this.refuse(OTHER_SHAPE)
    this.onEvent(String(event), value)
  }

  /** Creates a reader for data from its socket. */
  get reader () {
    return createLineReader((message, length) => this.receive(message, length),
      { maxLine: MAX_LINE, onTooLong: () => this.refuse('sends a line that is too long') })
  }

  /** Disconnects from a thread that violates the protocol. @param {string} reason as a predicate */
  refuse (reason) {
    const end = reason.endsWith('.') ? '' : ': it may not be longstack.'
    this.#calls.end(new RefusedError(`${this.name} ${reason}${end}`))
    this.close()
  }
}

/** Returns the name of a thread in messages. @param {number} pid @param {number} [threadId] */
function nameOfThread (pid, threadId = 0) {
  return threadId === 0 ? `Process ${pid}` : `Thread ${threadId} of process ${pid}`
}

/**
 * Connects to sockets of LONGSTACK_SOCKET.
 * @param {string[]} files
 * @param {number} [pid] as this command sees it; undefined if unknown
 * @returns {Promise<{ threads: AskedThread[], silent: Silent[], refused: Refusal[],
 *   codes: Array<string | undefined> }>} threads: those that respond, the main one first; codes: of errors
 */
async function connectTo (files, pid) {
  const own = pid && pidInside(pid)
  /** @type {Awaited<ReturnType<typeof connectTo>>} */
  const result = { threads: [], silent: [], refused: [], codes: [] }
  await Promise.all(files.map(async (file) => {
    try {
      const thread = await connect(file, pid)
      if (own === undefined || thread.facts.pid === own) result.threads.push(thread)
      else thread.close()
    } catch (error) {
      const isOdd = error instanceof RefusedError && !(error instanceof GoneError)
      if (error instanceof BlockedError) result.silent.push(silentThread(file, pid))
      else if (isOdd) result.refused.push({ pid: pid ?? 0, sentence: error.message })
      else result.codes.push(/** @type {NodeJS.ErrnoException} */ (error).code)
    }
  }))
  result.threads.sort((a, b) => a.facts.threadId - b.facts.threadId)
  return result
}

/** @param {string} file @param {number | undefined} pid @returns {Promise<AskedThread>} */
async function connect (file, pid) {
  const socket = net.connect(file)
  await once(socket, 'connect')
  const thread = new AskedThread(pid ?? 0, socket, file)
  socket.on('error', () => {}) // `close` follows
  socket.setEncoding('utf8').on('data', thread.reader)
  try {
    await thread.introduce(INTRODUCE_MS)
  } catch (error) {
    socket.destroy()
    throw error
  }
  thread.pid = pid ?? thread.facts.pid
  return thread
}

/** @param {string} file of its socket @param {number} [processId], as this command sees it */
function silentThread (file, processId) {
  const name = parseName(path.basename(file))
  const note = readNote(file)
  const pid = processId ?? note?.pid ?? (name?.namespace === undefined ? name?.pid : undefined)
  const threadId = note?.threadId ?? name?.threadId ?? 0
  const subject = pid === undefined ? 'A process' : nameOfThread(pid, threadId)
  const busyMs = Math.max(0, Date.now() - (note?.since ?? Date.now()))
  const sentence = note === undefined
    ? `${subject} listens on ${file} and does not respond: its event loop is blocked. longstack why ` +
      `${pid ?? 'PID'} uses the inspector, which works even then; with LONGSTACK_BLOCKED the process ` +
      'itself reports the blocking callback.'
    : `${subject} has been blocked for at least ${formatDuration(busyMs)}. It is running`
  return { pid: pid ?? 0, threadId, sentence, stack: note?.stack, busyMs }
}

/**
 * Reads the note that lib/ask/server.js left.
 * @param {string} socket
 * @returns {{ pid: number, threadId: number, since: number, stack: string } | undefined}
 */
function readNote (socket) {
  const { pid, threadId, since, stack } =
    attempt(() => JSON.parse(fs.readFileSync(noteOf(socket), 'utf8'))) ?? {}
  const isNote = [pid, threadId, since].every(Number.isFinite) && typeof stack === 'string'
  return isNote ? { pid, threadId, since, stack } : undefined
}

/** Returns the address of a socket without a file, on Linux (unix(7), abstract). @param {string} name */
const abstractAddress = (name) => `\0longstack-${name}`.padEnd(ABSTRACT_BYTES, '-')

/**
 * The socket of this command. Each thread sends a token that only it was given, so others that connect learn
 * nothing. On Linux the socket has an abstract name (unix(7)): there is no file to remove, and a process that
 * sees other files finds it.
 */
class Meeting {
  /** by token @type {Map<string, { pid: number, resolve: (thread: AskedThread) => void }>} */
  #expected = new Map()
  /** connections without a token so far @type {Set<net.Socket>} */
  #unknown = new Set()
  #server = net.createServer((socket) => this.#receive(socket))
  /** @type {string | undefined} */
  #directory
  /** @type {string} */
  address

  constructor () {
    if (process.platform === 'linux') {
      this.address = abstractAddress(randomBytes(16).toString('hex'))
    } else {
      this.#directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-')) // of mode 0700
      this.address = path.join(this.#directory, 's')
    }
    this.isListening = new Promise((resolve, reject) => {
      this.#server.on('error', reject).listen(this.address, () => resolve(undefined))
    })
  }

  /** @param {number} pid @returns {{ token: string, thread: Promise<AskedThread> }} that will connect */
  expect (pid) {
    const token = randomBytes(16).toString('hex')
    /** @type {Promise<AskedThread>} */
    const thread = new Promise((resolve) => { this.#expected.set(token, { pid, resolve }) })
    return { token, thread }
  }

  /** @param {net.Socket} socket */
  #receive (socket) {
    this.#unknown.add(socket)
    const leave = () => { socket.destroy() }
    const readToken = createLineReader(({ token }) => {
      const expected = this.#expected.get(token)
      if (expected === undefined) return leave()
      this.#expected.delete(token)
      this.#unknown.delete(socket)
      const thread = new AskedThread(expected.pid, socket)
      socket.off('data', readToken).on('data', thread.reader) // no other data precedes the first query
      expected.resolve(thread)
    }, { maxLine: MAX_TOKEN, onTooLong: leave })
    socket.setEncoding('utf8').on('data', readToken)
    socket.on('error', () => {}) // `close` follows
    socket.on('close', () => { this.#unknown.delete(socket) })
  }

  /**
   * Stops listening. A thread that connected but has been busy since then sends no token; it disconnects as
   * soon as it is free.
   */
  close () {
    this.#server.close() // libuv removes its file
    for (const socket of this.#unknown) socket.destroy()
    if (this.#directory !== undefined) fs.rmdirSync(this.#directory)
  }
}

module.exports = { AskedThread, BlockedError, Calls, Meeting, abstractAddress, connectTo, nameOfThread }
