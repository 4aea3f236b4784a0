'use strict'

// Connections that carry requests. No channel tells that one broke, timed out or serves another protocol now, and a
// listener on the program's objects would be seen; but whatever happens to it runs on its handle, its parser or its
// timer, so who has a span on it is asked to look whenever one of those has run.
//
// Sockets are held weakly, by what is looked at.

const { executionAsyncId } = require('node:async_hooks')
const { handleOf } = require('../node-objects')
const { hiddenProperty } = require('../objects')

const FIRST_SWEEP = 256 // connections

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {(line: any, span: Span, request: object | undefined, response: object | undefined) => void} Look
 */

const nothing = () => {}

const timerOf = hiddenProperty('timeout')
const timerId = hiddenProperty('asyncId')

/**
 * @param {object} deps
 * @param {(socket: object) => number[]} deps.idsOf the async ids on which a socket runs
 * @param {Map<number, () => void>} deps.callbackListeners what is asked when a resource has run, by id
 */
function createConnections ({ idsOf, callbackListeners }) {
  /** @type {WeakMap<object, Line>} */
  const lines = new WeakMap()
  /** those of streams that have no handle: nothing says when they run @type {Set<Line>} */
  const blind = new Set()

  /** those that are asked to look @type {Set<Line>} */
  const asked = new Set()
  let sweepAt = FIRST_SWEEP

  /** Nothing says that a connection without a span is over. */
  function sweep () {
    for (const line of asked) if (!line.carries && line.gone) line.rest()
    sweepAt = Math.max(FIRST_SWEEP, 2 * asked.size)
  }

  /** A socket, and the spans that are open on it: with pipelining there are several. */
  class Line {
    /** @param {object} socket */
    constructor (socket) {
      this.socket = new WeakRef(socket)
      this.ids = idsOf(socket)
      this.blind = handleOf(socket) === undefined
      /** the span that is open on it, and what looks for it @type {Span | undefined} */
      this.span = undefined
      /** @type {Look} */
      this.looks = nothing
      /** the socket, while there is one: to deref() costs @type {object | undefined} */
      this.held = undefined
      /** @type {object | undefined} */
      this.request = undefined
      /** @type {object | undefined} */
      this.response = undefined
      /** others, where there are several @type {Map<Span, () => void> | undefined} */
      this.others = undefined
      this.timerId = 0
      /** its timer ended it */
      this.timedOut = false
      this.look = () => this.ran()
      this.timerRan = () => this.fired()
    }

    /** The program, or Node, has closed it, or it is gone altogether. */
    get gone () {
      const socket = /** @type {{ destroyed?: unknown } | undefined} */ (this.held ?? this.socket.deref())
      return socket === undefined || socket.destroyed === true
    }

    /** There is a span on it. */
    get carries () {
      return this.span !== undefined || (this.others !== undefined && this.others.size > 0)
    }

    /**
     * As long as the connection has a handle, Node keeps its requests as well, and so may this; a WeakRef has the collector
     * carry each of them into the old generation.
     * @param {Span} span
     * @param {Look} look
     * @param {object} [request]
     * @param {object} [response]
     * @returns {boolean} they are held here, for as long as it is open
     */
    add (span, look, request, response) {
      if (!asked.has(this)) this.ask()
      this.others?.delete(span)
      if ((this.span === undefined || this.span === span) && (request === undefined || !this.blind)) {
        this.span = span
        this.looks = look
        this.request = request
        this.response = response
        this.held = this.socket.deref()
        this.watchTimer()
        return true
      }

      this.others ??= new Map()
      const [one, other] = [request && new WeakRef(request), response && new WeakRef(response)]
      this.others.set(span, () => look(this, span, one?.deref(), other?.deref()))
      this.watchTimer()
      return false
    }

    /** The present resource runs for it as well: its parser. */
    also () {
      this.runs(executionAsyncId())
    }

    /** @param {number} id of a resource that runs for it */
    runs (id) {
      if (id <= 1 || this.ids.includes(id)) return
      this.ids.push(id)
      if (asked.has(this)) callbackListeners.set(id, this.look)
    }

    /** From now on it is asked to look, until it is gone: requests come and go, the connection stays. */
    ask () {
      if (asked.size >= sweepAt) sweep()
      asked.add(this)
      for (const id of this.ids) callbackListeners.set(id, this.look)
      if (this.blind) blind.add(this)
    }

    rest () {
      asked.delete(this)
      for (const id of this.ids) callbackListeners.delete(id)
      this.forgetTimer()
      blind.delete(this)
    }

    /** A socket gets a new timer with every timeout that is set, or the same under another id. */
    watchTimer () {
      const socket = this.held ?? this.socket.deref()
      const timer = socket === undefined ? undefined : timerOf(socket)
      const id = typeof timer === 'object' && timer !== null && timer._destroyed !== true ? Number(timerId(timer)) || 0 : 0
      if (id === this.timerId) return
      this.forgetTimer()
      this.timerId = id
      if (id > 0) callbackListeners.set(id, this.timerRan)
    }

    forgetTimer () {
      if (this.timerId === 0) return
      callbackListeners.delete(this.timerId)
      this.timerId = 0
    }

    /** @param {Span} span */
    remove (span) {
      if (this.span === span) {
        this.span = this.request = this.response = this.held = undefined
        this.looks = nothing
      } else {
        this.others?.delete(span)
      }
      if (this.carries) return
      this.forgetTimer()
      if (this.blind || this.gone) this.rest()
    }

    fired () {
      this.timedOut ||= this.gone
      this.ran()
    }

    ran () {
      if (this.span !== undefined) this.looks(this, this.span, this.request, this.response)
      if (this.others !== undefined) for (const look of this.others.values()) look()
      if (this.carries) this.watchTimer()
      else if (this.gone) this.rest()
    }
  }

  return {
    /** @param {object} socket */
    of (socket) {
      let line = lines.get(socket)
      if (line === undefined || (line.blind && !line.carries)) lines.set(socket, line = new Line(socket))
      return line
    },

    /** @param {object} socket @returns {Line | undefined} */
    known: (socket) => lines.get(socket),

    /** A look at those of which nothing is told. */
    look () {
      for (const line of blind) line.ran()
    }
  }
}

module.exports = { createConnections }
