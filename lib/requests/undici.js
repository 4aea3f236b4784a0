'use strict'

// Requests by fetch and undici, as they report them through diagnostics_channel: Node's own copy and those
// from npm. On a pooled connection they run in the context of its first request, so they are known by their
// objects.

const { hidden, own } = require('../objects')
const { spanTag } = require('./connections')
const { createUndiciLook } = require('./ends')

/**
 * @param {object} deps
 * @param {import('./layer').RequestListener} deps.listener
 * @param {import('./connections').Connections} deps.connections
 * @param {ReturnType<typeof import('./connects').createConnects>} deps.connects
 * @param {ReturnType<typeof import('./http1-client').createClientRequests>} deps.client
 * @returns {Array<[string, (message: any) => void]>}
 */
function undiciSubscriptions ({ listener, connections, connects, client }) {
  /**
   * Watches a connection that may be handed over to the program, which nothing reports.
   * @param {{ request: object, socket: object }} message
   */
  function requestSent ({ request, socket }) {
    const span = spanTag.read(request)
    if (span === undefined || span.ended) return
    if (!own(request, 'upgrade') && own(request, 'method') !== 'CONNECT') return
    const connection = connections.of(socket)
    const weakSocket = new WeakRef(socket)
    connection.add(span, () => {
      const present = weakSocket.deref()
      if (span.ended) return connection.remove(span)
      // What failed is reported.
      if (present === undefined || connection.isClosed || hidden(present, 'parser') !== null) return
      connection.remove(span)
      listener.upgraded(span, undefined)
    })
  }

  const look = createUndiciLook(listener)

  /** @param {{ request: object }} message */
  function requestMade (message) {
    client.requestMade(message)
    const span = spanTag.read(message.request)
    if (span !== undefined) listener.endsBy(span, message.request, look)
  }

  return [
    ['undici:request:create', requestMade],
    ['undici:client:beforeConnect', connects.undiciConnects],
    ['undici:client:sendHeaders', requestSent],
    ['undici:request:headers', ({ request, response }) => {
      const span = spanTag.read(request)
      if (span !== undefined) listener.responseStarted(span, response.statusCode)
    }],
    ['undici:request:trailers', ({ request }) => {
      const span = spanTag.read(request)
      if (span !== undefined) listener.responseReceived(span)
    }],
    ['undici:request:error', client.requestFailed]
  ]
}

module.exports = { undiciSubscriptions }
