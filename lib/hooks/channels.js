'use strict'

// What Node tells us through diagnostics_channel: which request uses which connection. An undici request of a
// pooled connection runs in the context of the connection's first request, so requests are told apart by their
// objects, never by the running context.

const channels = require('node:diagnostics_channel')
const guard = require('../context/guard')

/**
 * @param {object} rooms
 * @param {(request: object) => void} rooms.requested a request was made in the running context
 * @param {(socket: object, request: object) => void} rooms.uses a request goes out on a connection
 * @param {(request: object) => void} rooms.finished a request is over
 * @param {(socket: object) => void} rooms.accepted a server got a connection
 * @param {(server: object) => void} rooms.listens server.listen() is called
 * @param {(server: object) => void} rooms.listening it has its handle
 */
function createChannelLayer (rooms) {
  /** @type {Array<[string, (message: any) => void]>} */
  const wires = [
    ['tracing:net.server.listen:asyncStart', ({ server }) => rooms.listens(server)],
    ['tracing:net.server.listen:asyncEnd', ({ server }) => rooms.listening(server)],
    ['net.server.socket', ({ socket }) => rooms.accepted(socket)],
    ['http.client.request.start', ({ request }) => rooms.requested(request)],
    ['undici:request:create', ({ request }) => rooms.requested(request)],
    ['undici:client:sendHeaders', ({ request, socket }) => rooms.uses(socket, request)],
    ['undici:request:trailers', ({ request }) => rooms.finished(request)],
    ['undici:request:error', ({ request }) => rooms.finished(request)]
  ]
  const subscriptions = wires.map(([name, wire]) => ({
    name,
    listener (/** @type {unknown} */ message) {
      if (guard.busy) return
      guard.busy = true
      try {
        wire(message)
      } catch {
      } finally {
        guard.busy = false
      }
    }
  }))
  let enabled = false

  return {
    enable () {
      if (enabled) return
      enabled = true
      for (const { name, listener } of subscriptions) channels.subscribe(name, listener)
    },

    disable () {
      if (!enabled) return
      enabled = false
      for (const { name, listener } of subscriptions) channels.unsubscribe(name, listener)
    }
  }
}

module.exports = { createChannelLayer }
