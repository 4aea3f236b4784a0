'use strict'

// What Node tells us through diagnostics_channel: which request uses which connection. An undici request of a
// pooled connection runs in the context of the connection's first request, so requests are told apart by their
// objects, never by the running context.

const channels = require('node:diagnostics_channel')
const guard = require('../context/guard')

/**
 * @typedef {object} ConnectionUses
 * @property {(request: object) => void} requested a request was made in the running context
 * @property {(socket: object, request: object) => void} uses a request goes out on a connection
 * @property {(request: object) => void} finished a request is over
 * @property {(socket: object) => void} accepted a server got a connection
 * @property {(server: object) => void} listens server.listen() is called
 * @property {(server: object) => void} listening it has its handle
 * @property {(worker: object) => void} worker a worker was made
 * @property {(socket: object) => void} traffic data goes out on a socket, or came in; runs unguarded, makes nothing
 */

/**
 * @param {object} deps
 * @param {() => ConnectionUses} deps.uses made with the first message
 * @param {(enable: () => void) => void} deps.watch traffic is seen from now on; the first socket enables it
 * @param {() => void} deps.unwatch it is no longer
 */
function createChannelLayer ({ uses, watch, unwatch }) {
  /** @type {ReturnType<typeof import('./socket-activity').createTrafficLayer> | undefined} */
  let traffic
  /** @type {Array<[string, (message: any) => void]>} */
  const wires = [
    ['tracing:net.server.listen:asyncStart', ({ server }) => uses().listens(server)],
    ['tracing:net.server.listen:asyncEnd', ({ server }) => uses().listening(server)],
    ['net.server.socket', ({ socket }) => uses().accepted(socket)],
    ['worker_threads', ({ worker }) => uses().worker(worker)],
    ['http.client.request.created', ({ request }) => uses().requested(request)],
    ['http.client.request.start', ({ request }) => uses().requested(request)],
    ['undici:request:create', ({ request }) => uses().requested(request)],
    ['undici:client:sendHeaders', ({ request, socket }) => uses().uses(socket, request)],
    ['undici:request:trailers', ({ request }) => uses().finished(request)],
    ['undici:request:error', ({ request }) => uses().finished(request)]
  ]
  const subscriptions = wires.map(subscription)
  /** those of other rooms @type {typeof subscriptions} */
  let more = []
  let enabled = false

  /** @param {[string, (message: any) => void]} wire */
  function subscription ([name, wire]) {
    return { name, listener: guarded(wire) }
  }

  return {
    enable () {
      if (enabled) return
      enabled = true
      for (const { name, listener } of [...subscriptions, ...more]) channels.subscribe(name, listener)
      watch(() => (traffic ??= require('./socket-activity').createTrafficLayer(uses().traffic)).enable())
    },

    disable () {
      if (!enabled) return
      enabled = false
      for (const { name, listener } of [...subscriptions, ...more]) channels.unsubscribe(name, listener)
      traffic?.disable()
      unwatch()
    },

    /**
     * Another room listens as well, while this layer is on.
     * @param {Array<[string, (message: any) => void]>} others channels, and what is told of each message
     * @returns {() => void} ends that
     */
    subscribe (others) {
      const added = others.map(subscription)
      more = [...more, ...added]
      if (enabled) for (const { name, listener } of added) channels.subscribe(name, listener)
      return () => {
        more = more.filter((one) => !added.includes(one))
        if (enabled) for (const { name, listener } of added) channels.unsubscribe(name, listener)
      }
    }
  }
}

/** Runs as longstack's own work, and never throws. @param {(message: any) => void} wire */
function guarded (wire) {
  return (/** @type {unknown} */ message) => {
    if (guard.inOwnWork) return
    guard.inOwnWork = true
    try {
      wire(message)
    } catch {
    } finally {
      guard.inOwnWork = false
    }
  }
}

module.exports = { createChannelLayer }
