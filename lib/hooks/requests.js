'use strict'

// Requests, as Node tells of them through diagnostics_channel: when one begins and how it ends. That a connection broke
// or that the last byte of an answer is there is told by no channel, and a listener on the program's objects would be
// seen; but whatever ends a request runs on its socket or its parser, so those are looked at whenever they have run.
//
// Requests, responses and sockets are held weakly, by what is looked at; a span holds none of them.

const { executionAsyncId } = require('node:async_hooks')
const { createStamp } = require('../context/stamp')

/**
 * @typedef {import('../spans/span').Span} Span
 *
 * @typedef {object} RequestRooms
 * @property {(request: object, socket: object) => Span | undefined} served a server got a request; the rest of the run is part of it
 * @property {(span: Span, request: object, response: object) => void} answered the last byte of the answer is with the system
 * @property {(span: Span, request: object, response: object) => void} broken the connection is gone before
 * @property {(request: object) => Span | undefined} requested a request is made
 * @property {(span: Span, status: number | undefined) => void} responded the head of the answer is there
 * @property {(span: Span) => void} received the last byte of the answer is there
 * @property {(span: Span, error: unknown) => void} failed
 * @property {(socket: object) => void} carries a connection carries a request that was made
 * @property {(socket: object) => number[]} idsOf the async ids on which a socket runs
 */

/** @type {ReturnType<typeof createStamp<Span>>} the span of a request that is made, or of an answer */
const mark = createStamp()

/**
 * @param {object} deps
 * @param {RequestRooms} deps.rooms
 * @param {Map<number, () => void>} deps.watched what is asked when a resource has run, by id
 */
function createRequestLayer ({ rooms, watched }) {
  /** the async ids of sockets, and who is looked at on them @type {WeakMap<object, Line>} */
  const lines = new WeakMap()

  /** A socket, and the spans that are open on it: with pipelining there are several. */
  class Line {
    /** @param {object} socket */
    constructor (socket) {
      this.socket = new WeakRef(socket)
      this.ids = rooms.idsOf(socket)
      /** @type {Map<Span, () => void>} what is to be done when it breaks */
      this.spans = new Map()
      this.look = () => this.ran()
    }

    /** @param {Span} span @param {() => void} broken */
    add (span, broken) {
      if (this.spans.size === 0) for (const id of this.ids) watched.set(id, this.look)
      this.spans.set(span, broken)
    }

    /** @param {Span} span */
    remove (span) {
      if (this.spans.delete(span) && this.spans.size === 0) for (const id of this.ids) watched.delete(id)
    }

    ran () {
      const socket = /** @type {{ destroyed?: unknown } | undefined} */ (this.socket.deref())
      if (socket !== undefined && socket.destroyed !== true) return
      const all = [...this.spans]
      for (const [span] of all) this.remove(span)
      for (const [, broken] of all) broken()
    }
  }

  /** @param {object} socket */
  function lineOf (socket) {
    let line = lines.get(socket)
    if (line === undefined || line.ids.length === 0) lines.set(socket, line = new Line(socket))
    return line
  }

  /** @param {{ request: object, response: object, socket: object }} message */
  function served ({ request, response, socket }) {
    const span = rooms.served(request, socket)
    if (span === undefined) return
    mark.write(response, span)
    const [req, res] = [new WeakRef(request), new WeakRef(response)]
    lineOf(socket).add(span, () => rooms.broken(span, req.deref() ?? {}, res.deref() ?? {}))
  }

  /** @param {{ request: object, response: object, socket: object }} message */
  function answered ({ request, response, socket }) {
    const span = mark.read(response)
    if (span === undefined) return
    lines.get(socket)?.remove(span)
    rooms.answered(span, request, response)
  }

  /** @param {{ request: object }} message */
  function requested ({ request }) {
    if (mark.read(request) !== undefined) return // told of when it is made, and when it is sent
    const span = rooms.requested(request)
    if (span !== undefined) mark.write(request, span)
  }

  /** The head of an answer came: the present resource is the parser, on which the rest will come. @param {{ request: any, response: any }} message */
  function responded ({ request, response }) {
    const span = mark.read(request)
    if (span === undefined || span.ended) return
    rooms.responded(span, response.statusCode)
    const id = executionAsyncId()
    const weak = new WeakRef(response)
    const line = isObject(request.socket) ? lineOf(request.socket) : undefined
    const over = () => {
      watched.delete(id)
      line?.remove(span)
    }
    watched.set(id, () => {
      const answer = weak.deref()
      if (answer !== undefined && answer.complete !== true) return
      over()
      rooms.received(span)
    })
    line?.add(span, () => {
      over()
      rooms.failed(span, undefined)
    })
  }

  /** @param {{ request: object, error: unknown }} message */
  function failed ({ request, error }) {
    const span = mark.read(request)
    if (span !== undefined) rooms.failed(span, error)
  }

  /** @type {Array<[string, (message: any) => void]>} */
  const wires = [
    ['http.server.request.start', served],
    ['http.server.response.finish', answered],
    ['http.client.request.created', requested],
    ['http.client.request.start', (message) => {
      requested(message)
      if (isObject(message.request.socket)) rooms.carries(message.request.socket)
    }],
    ['http.client.response.finish', responded],
    ['http.client.request.error', failed],
    ['undici:request:create', requested],
    ['undici:client:sendHeaders', ({ socket }) => rooms.carries(socket)],
    ['undici:request:headers', ({ request, response }) => {
      const span = mark.read(request)
      if (span !== undefined) rooms.responded(span, response.statusCode)
    }],
    ['undici:request:trailers', ({ request }) => {
      const span = mark.read(request)
      if (span !== undefined) rooms.received(span)
    }],
    ['undici:request:error', failed]
  ]
  return { wires }
}

/** @param {unknown} value @returns {value is object} */
const isObject = (value) => typeof value === 'object' && value !== null

module.exports = { createRequestLayer }
