'use strict'

// Requests over HTTP/1 that the program makes by http.

const { executionAsyncId } = require('node:async_hooks')
const { className, isAnyObject, own } = require('../objects')
const { spanTag } = require('./connections')
const { createMadeLook, socketOf } = require('./ends')
const { listen, unlisten } = require('./run-listeners')

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {{ remove(span: Span): void }} Connection
 */

/**
 * @param {object} deps
 * @param {import('./layer').RequestListener} deps.listener
 * @param {import('./connections').Connections} deps.connections
 * @param {ReturnType<typeof import('./connects').createConnects>} deps.connects
 */
function createClientRequests ({ listener, connections, connects }) {
  /** Node's own function, on Node 20 @type {Function | undefined} */
  let onSocket

  const look = createMadeLook({ connections, listener, upgraded, requestFailed })

  /** @param {{ request: object }} message of http, or of undici */
  function requestMade ({ request }) {
    if (spanTag.read(request) !== undefined) return // reported when it is made, and when it is sent
    const span = listener.requestMade(request)
    if (span === undefined) return
    spanTag.write(request, span)
    listener.endsBy(span, request, look)
  }

  /** @param {{ request: object }} message */
  function requestSent (message) {
    requestMade(message)
    const { request } = message
    const socket = socketOf(request)
    if (!isAnyObject(socket)) return
    connects.leaveToHttp(socket)
    const span = spanTag.read(request)
    if (span === undefined || span.ended) return
    const connection = connections.of(socket)
    connection.add(span, () => {
      const present = span.subject
      if (span.ended || present === undefined) return connection.remove(span)
      if (own(present, 'upgradeOrConnect') === true) upgraded(connection, span, present)
      // An error is reported before.
      else if (own(present, '_closed') === true) requestFailed({ request: present, error: undefined })
    })
  }

  /** @param {Connection | undefined} connection @param {Span} span @param {object} request */
  function upgraded (connection, span, request) {
    const response = own(request, 'res')
    connection?.remove(span)
    listener.upgraded(span, isAnyObject(response) ? own(response, 'statusCode') : undefined)
  }

  /**
   * Notes the head of a response: the present resource is the parser, on which the rest will come.
   * @param {{ request: any, response: any }} message
   */
  function responseStarted ({ request, response }) {
    const span = spanTag.read(request)
    if (span === undefined || span.ended) return
    listener.responseStarted(span, response.statusCode)
    const parserId = executionAsyncId()
    const weakResponse = new WeakRef(response)
    const socket = socketOf(request)
    const connection = isAnyObject(socket) ? connections.of(socket) : undefined
    const stop = () => {
      unlisten(parserId, parsed)
      connection?.remove(span)
    }
    const parsed = () => {
      if (!span.ended && weakResponse.deref()?.complete === false) return
      stop()
      listener.responseReceived(span)
    }
    listen(parserId, parsed)
    connection?.add(span, () => {
      if (!span.ended && !connection.isClosed) return
      const isComplete = weakResponse.deref()?.complete === true // the last byte came before
      stop()
      if (isComplete) listener.responseReceived(span)
      else listener.requestFailed(span, undefined, connection.timedOut)
    })
  }

  /** @param {{ request: object, error: unknown }} message of http, or of undici */
  function requestFailed ({ request, error }) {
    const span = spanTag.read(request)
    if (span === undefined) return
    const socket = socketOf(request)
    const connection = isAnyObject(socket) ? connections.get(socket) : undefined
    connection?.remove(span)
    listener.requestFailed(span, error, connection?.timedOut === true)
  }

  return {
    requestMade,
    requestFailed,

    /** @type {Array<[string, (message: any) => void]>} */
    subscriptions: [
      ['http.client.request.created', requestMade],
      ['http.client.request.start', requestSent],
      ['http.client.response.finish', responseStarted],
      ['http.client.request.error', requestFailed]
    ],

    /**
     * Notes a request on Node 20, where http reports it once it is sent: its socket comes to it in a tick
     * before.
     * @param {any} tick
     * @returns {boolean} whether the tick is such a one
     */
    ticked ({ args, callback }) {
      if (callback !== onSocket && (onSocket !== undefined || callback.name !== 'onSocketNT')) return false
      if (!Array.isArray(args) || !isAnyObject(args[0]) || className(args[0]) !== 'ClientRequest') return true
      onSocket = callback
      if (own(args[0], 'destroyed') !== true) requestMade({ request: args[0] })
      return true
    },

    /** Returns the header of a request of http's that is about to be written. @param {object} request */
    traceparentOf (request) {
      requestMade({ request })
      const span = spanTag.read(request)
      return span === undefined || span.ended ? undefined : listener.traceparentFor(span)
    }
  }
}

module.exports = { createClientRequests }
