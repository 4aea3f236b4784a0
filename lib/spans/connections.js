'use strict'

// Connections that carry requests. No channel reports that one broke, timed out or serves another protocol
// now, and the program would see a listener on its objects; but whatever happens to a connection runs on its
// handle, its parser or its timer, so the spans on it are checked whenever one of those has run.
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
 *   => void} Check what became of a span's request, after something has run for the connection
 */

/**
 * The span of a request, a response, a stream or a socket.
 * @type {ReturnType<typeof createTag<Span>>}
 */
const spanTag = createTag()

const noCheck = () => {}

/** @type {WeakMap<object, Connection>} */
let bySocket = new WeakMap()
/** those that are checked @type {Set<Connection>} */
const watched = new Set()
/** those of them that have no handle: no hook reports when something runs for them @type {Set<Connection>} */
const withoutHandle = new Set()
let sweepAt = FIRST_SWEEP

const timerOf = hiddenProperty('timeout')
const timerId = hiddenProperty('asyncId')
const socketId = hiddenProperty('async_id_symbol')

/** A socket, and the spans that are open on it: with pipelining there are several. */
class Connection {
  /** @param {object} socket */
  constructor (socket) {
    this.socket = new WeakRef(socket)
    this.ids = asyncIdsOf(socket)
    /** that of the socket when they were read: an agent that hands it out again gives it another */
    this.socketId = socketId(socket)
    /** no resource is known to run for it */
    this.hasNoHandle = handleOf(socket) === undefined
    /** the span that is open on it @type {Span | undefined} */
    this.span = undefined
    /** @type {Check} */
    this.check = noCheck
    /** the socket, while there is a span: deref() is expensive @type {object | undefined} */
    this.heldSocket = undefined
    /** its other end, where that was read @type {import('./http-attributes').Peer | undefined} */
    this.peer = undefined
    /** @type {object | undefined} */
    this.request = undefined
    /** @type {object | undefined} */
    this.response = undefined
    /** checks of further spans @type {Map<Span, () => void> | undefined} */
    this.others = undefined
    /** it is among those that are checked */
    this.isWatched = false
    this.timerId = 0
    /** its timer ended it */
    this.timedOut = false
    this.onRun = (/** @type {boolean} */ isOver) => this.runChecks(isOver)
    this.onTimer = () => this.noteTimeout()
  }

  /** The socket, undefined where it is collected. @returns {object | undefined} */
  get present () { return this.heldSocket ?? this.socket.deref() }

  /** Whether the program or Node has closed it, or its socket is collected. */
  get isClosed () {
    const socket = /** @type {{ destroyed?: unknown } | undefined} */ (this.present)
    return socket === undefined || socket.destroyed === true
  }

  get hasSpans () {
    return this.span !== undefined || (this.others !== undefined && this.others.size > 0)
  }

  /**
   * Adds a span. While the connection has a handle, Node holds its requests as well, and so may this; each
   * WeakRef would have V8 promote its target to the old generation.
   * @param {object} socket
   * @param {Span} span
   * @param {Check} check
   * @param {object} [request]
   * @param {object} [response]
   * @returns {boolean} the request is held here, for as long as the span is open
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

  /** Adds the present resource, its parser, to those that run for it. */
  addPresentResource () {
    this.addResource(executionAsyncId())
  }

  /** @param {number} id of a resource that runs for it */
  addResource (id) {
    if (id <= 1 || this.ids.includes(id)) return
    this.ids.push(id)
    if (this.isWatched) listen(id, this.onRun)
  }

  /**
   * Reads the ids on which it runs anew, where its socket was handed out again under another one.
   * @param {object} socket
   */
  refreshIds (socket) {
    if (socketId(socket) === this.socketId) return
    if (this.isWatched) this.unwatch()
    this.ids = asyncIdsOf(socket)
    this.socketId = socketId(socket)
  }

  /** Checks from now on until it is closed: requests come and go, the connection stays. */
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
   * Watches the timer; a socket gets another with every timeout that is set, or the same under another id.
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

  /** @param {boolean} [isOver] code has run that may have set another timer */
  runChecks (isOver = true) {
    if (!isOver && !this.hasSpans) return
    if (this.span !== undefined) this.check(this, this.span, this.request, this.response)
    if (this.others !== undefined) for (const check of this.others.values()) check()
    if (!this.hasSpans) {
      if (this.isClosed) this.unwatch()
    } else if (isOver) this.watchTimer()
  }
}

/** Returns the connection of a socket, created with its first request. @param {object} socket */
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

/** Removes connections that were closed while they had no span, which nothing reports. */
function sweep () {
  for (const connection of watched) if (!connection.hasSpans && connection.isClosed) connection.unwatch()
  sweepAt = Math.max(FIRST_SWEEP, 2 * watched.size)
}

/** Checks those for which nothing is known to run. */
function checkWithoutHandle () {
  for (const connection of withoutHandle) connection.runChecks()
}

/** Spans are disabled: nobody is told any more when something has run. */
function forget () {
  bySocket = new WeakMap()
  watched.clear()
  withoutHandle.clear()
  sweepAt = FIRST_SWEEP
}

/** Returns the async ids on which a socket runs: its own, and those of its handles. @param {object} socket */
function asyncIdsOf (socket) {
  const handle = handleOf(socket)
  const ids = [idOf(socket), handle && idOf(handle), handle && idOf(underlyingHandle(handle))]
  return [...new Set(ids.filter((id) => id !== undefined))]
}

module.exports = { asyncIdsOf, checkWithoutHandle, forget, get, of, spanTag }
