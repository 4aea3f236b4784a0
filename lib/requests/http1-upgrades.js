'use strict'

// Requests over HTTP/1 that ask a server for another protocol (WebSocket, CONNECT): their span lasts until
// the connection is closed.

const { isAnyObject, own } = require('../objects')
const { spanTag } = require('./connections')
const { createUpgradeLook } = require('./ends')

/** @typedef {import('../spans/span').Span} Span */

/**
 * @param {object} deps
 * @param {import('./layer').RequestListener} deps.listener
 * @param {import('./connections').Connections} deps.connections
 * @returns {(request: object) => void} called with a message that asks for another protocol
 */
function createUpgrades ({ listener, connections }) {
  const lookAtUpgraded = createUpgradeLook(connections)

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
    listener.endsBy(span, socket, lookAtUpgraded)
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

  return upgradeRequested
}

/** @param {object} emitter @param {string} event */
function hasListener (emitter, event) {
  const events = own(emitter, '_events')
  return isAnyObject(events) && own(events, event) !== undefined
}

module.exports = { createUpgrades }
