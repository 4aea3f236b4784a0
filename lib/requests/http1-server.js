'use strict'

// Requests over HTTP/1 that servers get.

const { isAnyObject } = require('../objects')
const { spanTag } = require('./connections')
const { createAnswerLook } = require('./ends')
const { createUpgrades } = require('./http1-upgrades')

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {ReturnType<InstanceType<typeof import('./connections').Connections>['of']>} Connection
 */

/**
 * @param {object} deps
 * @param {import('./layer').RequestListener} deps.listener
 * @param {import('./connections').Connections} deps.connections
 */
function createServerRequests ({ listener, connections }) {
  const lookAtAnswer = createAnswerLook({ connections, finish })
  const upgradeRequested = createUpgrades({ listener, connections })

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
    listener.endsBy(span, response, lookAtAnswer)
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
    if (span !== undefined) finish(connection, span, request, response)
  }

  /**
   * @param {Connection | undefined} connection
   * @param {Span} span
   * @param {object} request
   * @param {object} response
   */
  function finish (connection, span, request, response) {
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

module.exports = { createServerRequests }
