'use strict'

// Requests over HTTP/1 that servers get.

const { isAnyObject, own } = require('../objects')

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {ReturnType<InstanceType<typeof import('./connections').Connections>['of']>} Connection
 */

/**
 * @param {object} deps
 * @param {import('./layer').RequestListener} deps.listener
 * @param {import('./layer').SpanTag} deps.spanTag
 * @param {import('./connections').Connections} deps.connections
 */
function createServerRequests ({ listener, spanTag, connections }) {
  /**
   * Begins the span of a message that asks for another protocol: where a server accepts it, no channel
   * reports it.
   * @param {object} request
   */
  function upgradeRequested (request) {
    const socket = own(request, 'socket')
    if (own(request, 'upgrade') !== true || !isAnyObject(socket)) return
    if (!isAnyObject(own(socket, 'server'))) return
    if (spanTag.read(request) !== undefined) return
    const span = listener.requestServed(request, socket)
    if (span === undefined) return
    spanTag.write(request, span)
    followUpgrade(request, socket, span)
  }

  /** @param {object} request @param {object} socket @param {Span} span */
  function followUpgrade (request, socket, span) {
    const weakRequest = new WeakRef(request)
    const connection = connections.of(socket)
    let isTaken = false
    let isRefused = false
    connection.addPresentResource()
    connection.add(span, () => {
      const present = weakRequest.deref()
      const presentSocket = connection.socket.deref()
      if (!isTaken && present !== undefined && presentSocket !== undefined) take(present, presentSocket)
      if (connection.isClosed) close()
    })

    /** @param {object} request @param {object} socket */
    function take (request, socket) {
      isTaken = true
      listener.requestDescribed(span, request, socket)
      isRefused = own(request, 'method') === 'CONNECT' && !hasListener(own(socket, 'server'), 'connect')
      if (!connection.isClosed) listener.takeSocket(socket, span)
    }

    function close () {
      connection.remove(span)
      const present = connection.socket.deref()
      if (!isRefused) listener.upgraded(span, undefined)
      else listener.connectionLost(span, weakRequest.deref() ?? {}, {}, { socket: present, timedOut: false })
    }
  }

  /** @param {{ request: object, response: object, socket: object, server: object }} message */
  function requestStarted ({ request, response, socket, server }) {
    connections.checkWithoutHandle()
    const begun = spanTag.read(request) // it asked for another protocol, and the server answers as any other
    const span = begun ?? listener.requestServed(request, socket)
    if (span === undefined) return
    if (begun !== undefined) listener.requestDescribed(span, request, socket)
    listener.serverUsed(server)
    const connection = connections.of(socket)
    connection.addPresentResource()
    // The connection knows whose they are: a tag would make them objects of another shape.
    if (connection.add(span, checkLost, request, response)) return
    spanTag.write(request, span)
    spanTag.write(response, span)
  }

  /** Returns the span of a request that a server got. @param {any} request */
  function spanOfRequest (request) {
    const socket = request.socket
    const connection = isAnyObject(socket) ? connections.get(socket) : undefined
    const isHeld = connection !== undefined && connection.request === request
    return isHeld ? connection.span : spanTag.read(request)
  }

  /**
   * Ends an open request whose connection is lost.
   * @param {Connection} connection
   * @param {Span} span
   * @param {object | undefined} request
   * @param {object | undefined} response
   */
  function checkLost (connection, span, request, response) {
    if (!connection.isClosed) return
    connection.remove(span)
    const close = { socket: connection.socket.deref(), timedOut: connection.timedOut }
    listener.connectionLost(span, request ?? {}, response ?? {}, close)
  }

  /** @param {{ request: object, response: object, socket: object }} message */
  function responseFinished ({ request, response, socket }) {
    const connection = connections.get(socket)
    const isHeld = connection !== undefined && connection.response === response
    const span = isHeld ? connection.span : spanTag.read(response)
    if (span === undefined) return
    connection?.remove(span)
    listener.responseFinished(span, request, response)
  }

  return {
    upgradeRequested,

    /** @type {Array<[string, (message: any) => void]>} */
    subscriptions: [
      ['http.server.request.start', requestStarted],
      ['http.server.response.finish', responseFinished],
      ['tracing:fastify.request.handler:start', ({ request, route }) => {
        const span = spanOfRequest(request.raw)
        if (span !== undefined) listener.routeFound(span, route?.url)
      }],
      ['tracing:fastify.request.handler:error', ({ request, error }) => {
        const span = spanOfRequest(request.raw)
        if (span !== undefined) listener.errorCaught(span, error)
      }]
    ]
  }
}

/** @param {object} emitter @param {string} event */
function hasListener (emitter, event) {
  const events = own(emitter, '_events')
  return isAnyObject(events) && own(events, event) !== undefined
}

module.exports = { createServerRequests }
