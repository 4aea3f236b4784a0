'use strict'

// Requests, as Node tells of them through diagnostics_channel: when one begins and how it ends. This file is about
// HTTP/1 and joins it with its neighbours: undici, HTTP/2, connections, and the few methods that have to be listened to.
//
// Sockets are held weakly, by what is looked at, and requests as long as Node holds them (see requests-lines.js); a span
// holds none of them.

const { executionAsyncId } = require('node:async_hooks')
const { createTag } = require('../context/tag')
const { ownerOf } = require('../node-objects')
const { createConnects } = require('./connects')
const { createHttp2Layer } = require('./http2')
const { createConnections } = require('./connections')
const { createMethods } = require('./patched-methods')
const { undiciSubscriptions } = require('./undici')
const { className, hidden, isAnyObject, own } = require('../objects')

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {import('../context/context').Context} Context
 * @typedef {ReturnType<typeof createTag<Span>>} Mark the span of a request, an answer, a stream or a socket
 *
 * @typedef {object} Close how a connection ended
 * @property {object | undefined} socket
 * @property {boolean} timedOut
 *
 * @typedef {object} RequestRooms
 * @property {(request: object, socket: object) => Span | undefined} served a server got a request; the rest of the run is part of it
 * @property {(span: Span, request: object, socket: object) => void} met what is known of it only later
 * @property {(span: Span, request: object, response: object) => void} answered the last byte of the answer is with the system
 * @property {(span: Span, request: object, response: object, close: Close) => void} broken the connection is gone before
 * @property {(span: Span, status: number | undefined) => void} switched the connection serves another protocol now; or did, and is closed
 * @property {(socket: object, span: Span) => void} takes all that runs on this socket is part of the span
 * @property {(span: Span, handle: object) => void} takesHandle all that runs on this handle is part of the span
 * @property {(request: object) => Span | undefined} requested a request is made
 * @property {(span: Span, status: number | undefined) => void} responded the head of the answer is there
 * @property {(span: Span) => void} received the last byte of the answer is there
 * @property {(span: Span, error: unknown, timedOut: boolean) => void} failed
 * @property {(stream: object, headers: any, context?: Context) => Span | undefined} streamServed a request came on a stream of HTTP/2
 * @property {(headers: any, origin: string | undefined) => Span | undefined} streamRequested one is made
 * @property {(span: Span, headers: any, origin: string | undefined) => void} streamMet what is known of it only later
 * @property {(span: Span, end: import('./http2').StreamEnd) => void} streamEnded
 * @property {(span: Span, route: unknown) => void} routed a framework tells the route of a request that came
 * @property {(span: Span, error: unknown) => void} caught a framework tells an error
 * @property {(server: object) => void} serves a server is seen at work
 * @property {(since?: Context) => Span | undefined} connecting a connection is being made; where its context is given, since then
 * @property {(span: Span, end: import('./connects').ConnectEnd) => void} connected
 * @property {(span: Span) => void} dropped it is to be as if there had been no span
 * @property {(span: Span) => string | undefined} header the traceparent to be sent, where one is
 * @property {(socket: object) => number[]} idsOf the async ids on which a socket runs
 */

/** @type {Mark} */
const mark = createTag()

/**
 * @param {object} deps
 * @param {RequestRooms} deps.rooms
 * @param {Map<number, () => void>} deps.callbackListeners what is asked when a resource has run, by id
 * @param {(type: string) => boolean} deps.isSelected the filter
 * @param {() => boolean} deps.propagates is traceparent sent?
 * @param {(asyncId: number) => number} deps.spanOf number of the span that a resource is part of
 * @param {(asyncId: number, span: number) => void} deps.setSpan
 */
function createRequestLayer ({ rooms, callbackListeners, isSelected, propagates, spanOf, setSpan }) {
  const lines = createConnections({ idsOf: rooms.idsOf, callbackListeners })
  const connects = createConnects({ rooms, mark, callbackListeners, isSelected })
  const http2 = createHttp2Layer({ rooms, mark, callbackListeners, spanOf, setSpan })
  /** Node's own function, on Node 20 @type {Function | undefined} */
  let onSocket
  const methods = createMethods({ propagates, incoming, header: headerFor, http2: http2.requests })

  /** A message that asks for another protocol begins here: where a server takes it, nothing else tells. @param {object} request */
  function incoming (request) {
    const socket = own(request, 'socket')
    if (own(request, 'upgrade') !== true || !isAnyObject(socket) || !isAnyObject(own(socket, 'server')) || mark.read(request) !== undefined) return
    const span = rooms.served(request, socket)
    if (span === undefined) return
    mark.write(request, span)
    follow(request, socket, span)
  }

  /** @param {object} request @param {object} connection @param {Span} span */
  function follow (request, connection, span) {
    const weak = new WeakRef(request)
    const line = lines.of(connection)
    let [taken, refused] = [false, false]
    line.also()
    line.add(span, () => {
      const [present, socket] = [weak.deref(), line.socket.deref()]
      if (!taken && present !== undefined && socket !== undefined) take(present, socket)
      if (line.gone) close()
    })

    /** @param {object} request @param {object} socket */
    function take (request, socket) {
      taken = true
      rooms.met(span, request, socket)
      refused = own(request, 'method') === 'CONNECT' && !listensTo(own(socket, 'server'), 'connect')
      if (!line.gone) rooms.takes(socket, span)
    }

    function close () {
      line.remove(span)
      if (refused) rooms.broken(span, weak.deref() ?? {}, {}, { socket: line.socket.deref(), timedOut: false })
      else rooms.switched(span, undefined)
    }
  }

  /** @param {{ request: object, response: object, socket: object, server: object }} message */
  function served ({ request, response, socket, server }) {
    lines.look()
    const begun = mark.read(request) // it asked for another protocol, and the server takes it as any other
    const span = begun ?? rooms.served(request, socket)
    if (span === undefined) return
    if (begun !== undefined) rooms.met(span, request, socket)
    rooms.serves(server)
    const line = lines.of(socket)
    line.also()
    if (line.add(span, brokenOff, request, response)) return // the line knows whose they are: a stamp would make them objects of another shape
    mark.write(request, span)
    mark.write(response, span)
  }

  /** The span of a request that a server got. @param {any} request */
  function servedBy (request) {
    const socket = request.socket
    const line = isAnyObject(socket) ? lines.known(socket) : undefined
    return line !== undefined && line.request === request ? line.span : mark.read(request)
  }

  /**
   * The connection of an open request has run.
   * @param {any} line
   * @param {Span} span
   * @param {object | undefined} request
   * @param {object | undefined} response
   */
  function brokenOff (line, span, request, response) {
    if (!line.gone) return
    line.remove(span)
    rooms.broken(span, request ?? {}, response ?? {}, { socket: line.socket.deref(), timedOut: line.timedOut })
  }

  /** @param {{ request: object, response: object, socket: object }} message */
  function answered ({ request, response, socket }) {
    const line = lines.known(socket)
    const span = line !== undefined && line.response === response ? line.span : mark.read(response)
    if (span === undefined) return
    line?.remove(span)
    rooms.answered(span, request, response)
  }

  /** @param {{ request: object }} message */
  function requested ({ request }) {
    if (mark.read(request) !== undefined) return // told of when it is made, and when it is sent
    const span = rooms.requested(request)
    if (span !== undefined) mark.write(request, span)
  }

  /** @param {{ request: object }} message */
  function sent (message) {
    requested(message)
    const { request } = message
    const socket = socketOf(request)
    if (!isAnyObject(socket)) return
    connects.drop(socket)
    const span = mark.read(request)
    if (span === undefined || span.ended) return
    const weak = new WeakRef(request)
    const line = lines.of(socket)
    line.add(span, () => {
      const present = weak.deref()
      if (span.ended || present === undefined) return line.remove(span)
      if (own(present, 'upgradeOrConnect') === true) switched(line, span, present)
      else if (own(present, '_closed') === true) failed({ request: present, error: undefined }) // an error is told before
    })
  }

  /** @param {{ remove(span: Span): void }} line @param {Span} span @param {object} request */
  function switched (line, span, request) {
    const response = own(request, 'res')
    line.remove(span)
    rooms.switched(span, isAnyObject(response) ? own(response, 'statusCode') : undefined)
  }

  /** The head of an answer came: the present resource is the parser, on which the rest will come. @param {{ request: any, response: any }} message */
  function responded ({ request, response }) {
    const span = mark.read(request)
    if (span === undefined || span.ended) return
    rooms.responded(span, response.statusCode)
    const id = executionAsyncId()
    const weak = new WeakRef(response)
    const socket = socketOf(request)
    const line = isAnyObject(socket) ? lines.of(socket) : undefined
    const over = () => {
      callbackListeners.delete(id)
      line?.remove(span)
    }
    callbackListeners.set(id, () => {
      const answer = weak.deref()
      if (answer !== undefined && answer.complete !== true) return
      over()
      rooms.received(span)
    })
    line?.add(span, () => {
      if (!line.gone) return
      const complete = weak.deref()?.complete === true // the last byte was there before
      over()
      if (complete) rooms.received(span)
      else rooms.failed(span, undefined, line.timedOut)
    })
  }

  /** @param {{ request: object, error: unknown }} message */
  function failed ({ request, error }) {
    const span = mark.read(request)
    if (span === undefined) return
    const socket = socketOf(request)
    const line = isAnyObject(socket) ? lines.known(socket) : undefined
    line?.remove(span)
    rooms.failed(span, error, line?.timedOut === true)
  }

  /** http tells of a request once it is sent; its socket comes to it in a tick before. @param {Context} context @param {any} tick */
  function ticked (context, tick) {
    const { args, callback } = tick
    if (callback === onSocket || (onSocket === undefined && callback.name === 'onSocketNT')) {
      if (!Array.isArray(args) || !isAnyObject(args[0]) || className(args[0]) !== 'ClientRequest') return
      onSocket = callback
      if (own(args[0], 'destroyed') !== true) requested({ request: args[0] })
    } else {
      http2.ticked?.(context, tick)
    }
  }

  /** The header of a request of http's that is about to be written. @param {object} request */
  function headerFor (request) {
    requested({ request })
    const span = mark.read(request)
    return span === undefined || span.ended ? undefined : rooms.header(span)
  }

  /** @type {Array<[string, (message: any) => void]>} */
  const subscriptions = [
    ['tracing:net.server.listen:asyncStart', methods.enable],
    ['net.client.socket', connects.made],
    ['http.server.request.start', served],
    ['http.server.response.finish', answered],
    ['http.client.request.created', requested],
    ['http.client.request.start', sent],
    ['http.client.response.finish', responded],
    ['http.client.request.error', failed],
    ['tracing:fastify.request.handler:start', ({ request, route }) => {
      const span = servedBy(request.raw)
      if (span !== undefined) rooms.routed(span, route?.url)
    }],
    ['tracing:fastify.request.handler:error', ({ request, error }) => {
      const span = servedBy(request.raw)
      if (span !== undefined) rooms.caught(span, error)
    }],
    ...undiciSubscriptions({ rooms, mark, lines, connects, requested, failed }),
    ...http2.subscriptions
  ]

  return {
    subscriptions,

    /** A resource that stays open was made. @type {(context: Context) => void} */
    opened: connects.opened,

    /** A connect request runs for the first time. @param {Context} context @param {object | undefined} handle */
    connecting (context, handle) {
      const socket = handle === undefined ? undefined : ownerOf(handle)
      if (socket === undefined) return
      const line = lines.known(socket)
      if (line === undefined) connects.connecting(context, socket)
      else line.runs(context.asyncId)
    },

    /** What a tick was given: asked for on Node 20 alone. */
    ticked: http2.ticked === undefined ? undefined : ticked,

    enable: methods.enable,
    disable: methods.disable
  }
}

/** @param {object} emitter @param {string} event */
function listensTo (emitter, event) {
  const events = own(emitter, '_events')
  return isAnyObject(events) && own(events, event) !== undefined
}

/** That of a request that is made: since Node 22 behind a symbol. @param {object} request @returns {unknown} */
const socketOf = (request) => own(request, 'socket') ?? hidden(request, 'kSocket')

module.exports = { createRequestLayer }
