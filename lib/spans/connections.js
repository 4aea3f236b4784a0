'use strict'

// Connections that carry requests. No channel reports that one broke, timed out or was upgraded, and the
// program would see a listener on its objects. But every event of a connection runs on its handle, parser or
// timer, so its spans are checked whenever one of those has run.
//
// Sockets are held weakly.

const { executionAsyncId } = require('node:async_hooks')
const { createTag } = require('../core/tag')
const { handleOf, idOf, underlyingHandle } = require('../node-objects')
const { hiddenProperty } = require('../objects')
const { listen, unlisten } = require('./run-listeners')

const FIRST_SWEEP = 256 // connections

/**
 * @typedef {import('./span').Span} Span
 * @typedef {(connection: Connection, span: Span, request: object | undefined, response: object | undefined)
 *   => void} Check checks the request of a span after a callback of the connection
 */

/**
 * Span of a request, response, stream or socket.
 * @type {ReturnType<typeof createTag<Span>>}
 */
const spanTag = createTag()

const noCheck = () => {}

/** @type {WeakMap<object, Connection>} */
let bySocket = new WeakMap()
/** connections that are checked @type {Set<Connection>} */
const watched = new Set()
/** watched connections without a handle: no hook reports their callbacks @type {Set<Connection>} */
const withoutHandle = new Set()
let sweepAt = FIRST_SWEEP

const timerOf = hiddenProperty('timeout')
const timerId = hiddenProperty('asyncId')
const socketId = hiddenProperty('async_id_symbol')

/** A socket and the spans open on it (several with pipelining). */
class Connection {
  /** @param {object} socket */
  constructor (socket) {
    this.socket = new WeakRef(socket)
    this.ids = asyncIdsOf(socket)
    /** id of the socket when `ids` was read; an agent assigns a new one on reuse */
    this.socketId = socketId(socket)
    /** no resource is known to run for the socket */
    this.hasNoHandle = handleOf(socket) === undefined
    /** span open on it @type {Span | undefined} */
    this.span = undefined
    /** @type {Check} */
    this.check = noCheck
    /** the socket, while a span is open: deref() is expensive @type {object | undefined} */
    this.heldSocket = undefined
    /** remote end, once read @type {import('./http-attributes').Peer | undefined} */
    this.peer = undefined
    /** @type {object | undefined} */
    this.request = undefined
    /** @type {object | undefined} */
    this.response = undefined
    /** checks of additional spans @type {Map<Span, () => void> | undefined} */
    this.others = undefined
    /** it is in `watched` */
    this.isWatched = false
    this.timerId = 0
    /** its timer closed it */
    this.timedOut = false
    this.onRun = (/** @type {boolean} */ isOver) => this.runChecks(isOver)
    this.onTimer = () => this.noteTimeout()
  }

  /** The socket, undefined once collected. @returns {object | undefined} */
  get present () { return this.heldSocket ?? this.socket.deref() }

  /** Whether the program or Node closed it, or its socket was collected. */
  get isClosed () {
    const socket = /** @type {{ destroyed?: unknown } | undefined} */ (this.present)
    return socket === undefined || socket.destroyed === true
  }

  get hasSpans () {
    return this.span !== undefined || (this.others !== undefined && this.others.size > 0)
  }

  /**
   * Adds a span. While the connection has a handle, Node holds its requests, so this may hold them as well.
   * A WeakRef would make V8 promote its target to the old generation.
   * @param {object} socket
   * @param {Span} span
   * @param {Check} check
   * @param {object} [request]
   * @param {object} [response]
   * @returns {boolean} whether the request is held here while the span is open
   */
  add (socket, span, check, request, response) {
    if (!this.hasSpans) this.refreshIds(socket)
    if (!this.isWatched) this.watch()
    this.others?.delete(span)
    if ((this.span === undefined || this.span === span) && (request === undefined || !this.hasNoHandle)) {
      this.span = span
      this.check = check
      this.request = request
      this.response = response
      this.heldSocket = socket
      this.watchTimer()
      return true
    }
    this.others ??= new Map()
    const weakRequest = request && new WeakRef(request)
    const weakResponse = response && new WeakRef(response)
    this.others.set(span, () => check(this, span, weakRequest?.deref(), weakResponse?.deref()))
    this.watchTimer()
    return false
  }

  /** Adds the current resource (its parser) to those that run for it. */
  addPresentResource () {
    this.addResource(executionAsyncId())
  }

  /** @param {number} id async id of a resource that runs for it */
  addResource (id) {
    if (id <= 1 || this.ids.includes(id)) return
    this.ids.push(id)
    if (this.isWatched) listen(id, this.onRun)
  }

  /**
   * Rereads its async ids if the socket was reused under a new id.
   * @param {object} socket
   */
  refreshIds (socket) {
    if (socketId(socket) === this.socketId) return
    if (this.isWatched) this.unwatch()
    this.ids = asyncIdsOf(socket)
    this.socketId = socketId(socket)
  }

  /** Checks it from now on until it closes. Requests come and go, the connection stays. */
  watch () {
    if (watched.size >= sweepAt) sweep()
    watched.add(this)
    this.isWatched = true
    if (this.hasNoHandle) withoutHandle.add(this)
    for (const id of this.ids) listen(id, this.onRun)
  }

  unwatch () {
    watched.delete(this)
    this.isWatched = false
    withoutHandle.delete(this)
    for (const id of this.ids) unlisten(id, this.onRun)
    this.forgetTimer()
  }

  /**
   * Watches the timer. With each timeout, a socket gets a new timer or the same one under a new id.
   */
  watchTimer () {
    const socket = this.present
    const timer = socket === undefined ? undefined : timerOf(socket)
    const isActive = typeof timer === 'object' && timer !== null && timer._destroyed !== true
    const id = isActive ? Number(timerId(timer)) || 0 : 0
    if (id === this.timerId) return
    this.forgetTimer()
    this.timerId = id
    if (id > 0) listen(id, this.onTimer)
  }

  forgetTimer () {
    if (this.timerId === 0) return
    unlisten(this.timerId, this.onTimer)
    this.timerId = 0
  }

  /** @param {Span} span */
  remove (span) {
    if (this.span === span) {
      this.span = this.request = this.response = this.heldSocket = undefined
      this.check = noCheck
    } else {
      this.others?.delete(span)
    }
    if (this.hasSpans) return
    this.forgetTimer()
    if (this.hasNoHandle || this.isClosed) this.unwatch()
  }

  noteTimeout () {
    this.timedOut ||= this.isClosed
    this.runChecks()
  }

  /** @param {boolean} [isOver] a callback has run and may have set another timer */
  runChecks (isOver = true) {
    if (!isOver && !this.hasSpans) return
    if (this.span !== undefined) this.check(this, this.span, this.request, this.response)
    if (this.others !== undefined) for (const check of this.others.values()) check()
    if (!this.hasSpans) {
      if (this.isClosed) this.unwatch()
    } else if (isOver) this.watchTimer()
  }
}

/** Returns the connection of a socket, created on its first request. @param {object} socket */
function of (socket) {
  let connection = bySocket.get(socket)
  if (connection === undefined || (connection.hasNoHandle && !connection.hasSpans)) {
    connection = new Connection(socket)
    bySocket.set(socket, connection)
  }
  return connection
}

/** @param {any} socket @returns {Connection | undefined} */
const get = (socket) => bySocket.get(socket)

/** Removes connections that closed while they had no span, since nothing reports that. */
function sweep () {
  for (const connection of watched) if (!connection.hasSpans && connection.isClosed) connection.unwatch()
  sweepAt = Math.max(FIRST_SWEEP, 2 * watched.size)
}

/** Checks connections without a handle. */
function checkWithoutHandle () {
  for (const connection of withoutHandle) connection.runChecks()
}

/** Forgets all connections: spans are disabled, and no listener is called any more. */
function forget () {
  bySocket = new WeakMap()
  watched.clear()
  withoutHandle.clear()
  sweepAt = FIRST_SWEEP
}

/** Returns the async ids of a socket and its handles. @param {object} socket */
function asyncIdsOf (socket) {
  const handle = handleOf(socket)
  const underlying = handle && underlyingHandle(handle)
  /** @type {number[]} */
  const ids = []
  for (const object of [socket, handle, underlying === handle ? undefined : underlying]) {
    const id = object && idOf(object)
    if (id !== undefined && !ids.includes(id)) ids.push(id)
  }
  return ids
}

module.exports = { asyncIdsOf, checkWithoutHandle, forget, get, of, spanTag }
