'use strict'

// What Node reports through diagnostics_channel: which request uses which connection. An undici request of a
// pooled connection runs in the context of the connection's first request, so requests are known by their
// objects, never by the running context.

const channels = require('node:diagnostics_channel')
const guard = require('../context/guard')

/**
 * @typedef {object} ConnectionUses
 * @property {(request: object) => void} requested a request was made in the running context
 * @property {(socket: object, request: object) => void} uses a request goes out on a connection
 * @property {(request: object) => void} finished a request is over
 * @property {(socket: object) => void} accepted a server accepted a connection
 * @property {(server: object) => void} listens server.listen() is called
 * @property {(server: object) => void} listening it has its handle
 * @property {(worker: object) => void} worker a worker was made
 * @property {(socket: object, isWrite: boolean) => boolean} traffic data goes out on a socket, or came in;
 *   returns whether the socket is about to connect; runs unguarded, and must not throw or create async
 *   resources
 * @property {(socket: object) => void} writes data waits on a socket that connects;
 *   likewise
 */

/**
 * @param {object} deps
 * @param {() => ConnectionUses} deps.uses made with the first message
 * @param {(enable: () => void) => void} deps.watch traffic is noted from now on; the first socket enables it
 * @param {() => void} deps.unwatch traffic is noted no longer
 */
function createChannelLayer ({ uses, watch, unwatch }) {
  /** @type {ReturnType<typeof import('./socket-activity').createTrafficLayer> | undefined} */
  let traffic
  /** @type {Array<[string, (message: any) => void]>} */
  const handlers = [
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
  const subscriptions = handlers.map(subscriptionFor)
  /** those of other parts @type {typeof subscriptions} */
  let others = []
  let enabled = false

  /** @param {[string, (message: any) => void]} entry */
  function subscriptionFor ([name, handler]) {
    return { name, listener: guarded(handler) }
  }

  return {
    enable () {
      if (enabled) return
      enabled = true
      for (const { name, listener } of [...subscriptions, ...others]) channels.subscribe(name, listener)
      watch(() => (traffic ??= require('./socket-activity').createTrafficLayer(uses())).enable())
    },

    disable () {
      if (!enabled) return
      enabled = false
      for (const { name, listener } of [...subscriptions, ...others]) channels.unsubscribe(name, listener)
      traffic?.disable()
      unwatch()
    },

    /**
     * Subscribes another part, while this layer is enabled.
     * @param {Array<[string, (message: any) => void]>} entries channels, and the handler of each
     * @returns {() => void} unsubscribes it
     */
    subscribe (entries) {
      const added = entries.map(subscriptionFor)
      others = [...others, ...added]
      if (enabled) for (const { name, listener } of added) channels.subscribe(name, listener)
      return () => {
        others = others.filter((other) => !added.includes(other))
        if (enabled) for (const { name, listener } of added) channels.unsubscribe(name, listener)
      }
    }
  }
}

/**
 * Returns a handler that runs as longstack's own work, and never throws.
 * @param {(message: any) => void} handler
 */
function guarded (handler) {
  return (/** @type {unknown} */ message) => {
    if (guard.inOwnWork) return
    guard.inOwnWork = true
    try {
      handler(message)
    } catch {
    } finally {
      guard.inOwnWork = false
    }
  }
}

module.exports = { createChannelLayer }
