'use strict'

// Connections that carry requests. No channel tells that one broke, timed out or serves another protocol now, and a
// listener on the program's objects would be seen; but whatever happens to it runs on its handle, its parser or its
// timer, so who has a span on it is asked to look whenever one of those has run.
//
// Sockets are held weakly, by what is looked at.

const { executionAsyncId } = require('node:async_hooks')
const { handleOf, hiddenProperty } = require('../handles/inside')

/** @typedef {import('../spans/span').Span} Span */

const timerOf = hiddenProperty('timeout')
const timerId = hiddenProperty('asyncId')

/**
 * @param {object} deps
 * @param {(socket: object) => number[]} deps.idsOf the async ids on which a socket runs
 * @param {Map<number, () => void>} deps.watched what is asked when a resource has run, by id
 */
function createLines ({ idsOf, watched }) {
  /** @type {WeakMap<object, Line>} */
  const lines = new WeakMap()
  /** those of streams that have no handle: nothing says when they run @type {Set<Line>} */
  const blind = new Set()

  /** A socket, and the spans that are open on it: with pipelining there are several. */
  class Line {
    /** @param {object} socket */
    constructor (socket) {
      this.socket = new WeakRef(socket)
      this.ids = idsOf(socket)
      this.blind = handleOf(socket) === undefined
      /** what looks for a span @type {Map<Span, () => void>} */
      this.spans = new Map()
      this.timerId = 0
      /** its timer ended it */
      this.timedOut = false
      this.look = () => this.ran()
      this.timerRan = () => this.fired()
    }

    /** The program, or Node, has closed it, or it is gone altogether. */
    get gone () {
      const socket = /** @type {{ destroyed?: unknown } | undefined} */ (this.socket.deref())
      return socket === undefined || socket.destroyed === true
    }

    /**
     * Keeps an object for a span. As long as the connection has a handle, Node keeps its requests as well; a WeakRef has
     * the collector carry each of them into the old generation.
     * @template {object} T
     * @param {T} object
     * @returns {{ deref: () => T | undefined }}
     */
    keep (object) {
      return this.blind ? new WeakRef(object) : { deref: () => object }
    }

    /** @param {Span} span @param {() => void} look */
    add (span, look) {
      if (this.spans.size === 0) this.watch()
      this.spans.set(span, look)
    }

    /** The present resource runs for it as well: its parser. */
    also () {
      this.runs(executionAsyncId())
    }

    /** @param {number} id of a resource that runs for it */
    runs (id) {
      if (id <= 1 || this.ids.includes(id)) return
      this.ids.push(id)
      if (this.spans.size > 0) watched.set(id, this.look)
    }

    watch () {
      for (const id of this.ids) watched.set(id, this.look)
      if (this.blind) blind.add(this)
      this.watchTimer()
    }

    /** A socket gets a new timer with every timeout that is set, or the same under another id. */
    watchTimer () {
      const socket = this.socket.deref()
      const timer = socket === undefined ? undefined : timerOf(socket)
      const id = typeof timer === 'object' && timer !== null ? Number(timerId(timer)) || 0 : 0
      if (id === this.timerId) return
      watched.delete(this.timerId)
      this.timerId = id
      if (id > 0) watched.set(id, this.timerRan)
    }

    /** @param {Span} span */
    remove (span) {
      if (!this.spans.delete(span) || this.spans.size > 0) return
      for (const id of this.ids) watched.delete(id)
      watched.delete(this.timerId)
      this.timerId = 0
      blind.delete(this)
    }

    fired () {
      this.timedOut ||= this.gone
      this.ran()
    }

    ran () {
      for (const look of this.spans.values()) look()
      if (this.spans.size > 0) this.watchTimer()
    }
  }

  return {
    /** @param {object} socket */
    of (socket) {
      let line = lines.get(socket)
      if (line === undefined || (line.blind && line.spans.size === 0)) lines.set(socket, line = new Line(socket))
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

module.exports = { createLines }
