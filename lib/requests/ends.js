'use strict'

// By what requests end, as Node's objects show it when they are looked at: where no event has reported an
// end, the sweep of spans asks here. Each look returns what ends the span, or undefined while its object is
// alive.

const { hidden, isAnyObject, own } = require('../objects')

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {import('./layer').Look} Look
 * @typedef {import('./connections').Connections} Connections
 * @typedef {ReturnType<Connections['of']>} Connection
 */

/**
 * Returns the look at requests that are made by http.
 * @param {object} deps
 * @param {Connections} deps.connections
 * @param {import('./layer').RequestListener} deps.listener
 * @param {(connection: Connection | undefined, span: Span, request: object) => void} deps.upgraded
 * @param {(message: { request: object, error: unknown }) => void} deps.requestFailed
 * @returns {Look}
 */
function createMadeLook ({ connections, listener, upgraded, requestFailed }) {
  /** @param {Connection | undefined} connection @param {Span} span @param {object} response */
  function answered (connection, span, response) {
    connection?.remove(span)
    listener.responseStarted(span, own(response, 'statusCode'))
    listener.responseReceived(span)
  }

  return (span, request) => {
    const socket = socketOf(request)
    const connection = isAnyObject(socket) ? connections.of(socket) : undefined
    const response = own(request, 'res')
    const isAnswered = isAnyObject(response) && own(response, 'complete') === true
    if (own(request, 'upgradeOrConnect') === true) return () => upgraded(connection, span, request)
    if (isAnswered) return () => answered(connection, span, response)
    const isDestroyed = own(request, 'destroyed') === true || own(request, '_closed') === true
    if (!isDestroyed && connection?.isClosed !== true) return undefined
    return () => requestFailed({ request, error: hidden(request, 'kError') ?? undefined })
  }
}

/**
 * Returns the look at responses of servers.
 * @param {object} deps
 * @param {Connections} deps.connections
 * @param {(connection: Connection | undefined, span: Span, request: object, response: object) => void}
 *   deps.finish
 * @returns {Look}
 */
function createAnswerLook ({ connections, finish }) {
  return (span, response) => {
    const request = own(response, 'req')
    const socket = isAnyObject(request) ? own(request, 'socket') : undefined
    const connection = isAnyObject(socket) ? connections.get(socket) : undefined
    if (connection?.isClosed) return () => connection.runChecks()
    if (!isWritten(response)) return undefined
    return () => finish(connection, span, isAnyObject(request) ? request : {}, response)
  }
}

/** Returns whether all of a response was handed to the kernel. @param {object} response */
function isWritten (response) {
  const socket = own(response, 'socket')
  const hasBytes = isAnyObject(socket) && /** @type {any} */ (socket).writableLength > 0
  return own(response, 'finished') === true && own(response, 'outputSize') === 0 && !hasBytes
}

/**
 * Returns the look at the sockets of connections that a server handed over to another protocol.
 * @param {Connections} connections
 * @returns {Look}
 */
function createUpgradeLook (connections) {
  return (span, socket) => {
    const connection = connections.get(socket)
    return connection?.isClosed ? () => connection.runChecks() : undefined
  }
}

/**
 * Returns the look at requests of undici's.
 * @param {import('./layer').RequestListener} listener
 * @returns {Look}
 */
function createUndiciLook (listener) {
  return (span, request) => {
    if (own(request, 'completed') === true) return () => listener.responseReceived(span)
    return own(request, 'aborted') === true ? () => listener.requestFailed(span, undefined, false) : undefined
  }
}

/**
 * Returns the socket of a request that is made, since Node 22 behind a symbol.
 * @param {object} request
 * @returns {unknown}
 */
const socketOf = (request) => own(request, 'socket') ?? hidden(request, 'kSocket')

module.exports = { createAnswerLook, createMadeLook, createUndiciLook, createUpgradeLook, socketOf }
