'use strict'

// Subscriber of Node's diagnostics_channel: which request uses which connection. An undici request on a
// pooled connection runs in the context of the connection's first request. So requests are identified by
// their objects, never by the current context.

const channels = require('node:diagnostics_channel')
const guard = require('../core/guard')
const registry = require('../core/registry')
const { on } = require('../core/on')
const served = require('../core/served-requests')
const { settings } = require('../settings')
const capture = require('../stacks/capture')
const changedStates = require('./changed-states')
const { ensureHeadroomToLoad } = require('../stacks/stack-headroom')

/** @type {typeof import('./connection-uses') | undefined} */
let connectionUses

/** Returns the tracker of connection users, loaded with its first message. */
function uses () {
  if (connectionUses === undefined) {
    ensureHeadroomToLoad()
    connectionUses = require('./connection-uses')
  }
  return connectionUses
}

/** notes traffic; loaded for the first socket @type {typeof import('./socket-activity') | undefined} */
let traffic
/** @type {Array<[string, (message: any) => void]>} */
const handlers = [
  ['tracing:net.server.listen:asyncStart', changedStates.enableHttp],
  ['tracing:net.server.listen:asyncStart', changedStates.wrapPackages],
  ['net.client.socket', changedStates.enableHttp],
  ['tracing:net.server.listen:asyncStart', ({ server }) => uses().listens(server)],
  ['tracing:net.server.listen:asyncEnd', ({ server }) => uses().listening(server)],
  ['net.server.socket', ({ socket }) => uses().accepted(socket)],
  ['worker_threads', ({ worker }) => uses().worker(worker)],
  ['http.client.request.created', ({ request }) => uses().requested(request)],
  ['http.client.request.start', ({ request }) => uses().requested(request)],
  ['undici:request:create', ({ request }) => uses().undiciRequested(request)],
  ['undici:client:sendHeaders', ({ request, socket }) => uses().uses(socket, request)],
  ['undici:request:trailers', ({ request }) => uses().finished(request)],
  ['undici:request:error', ({ request, error }) => {
    changedStates.undiciFailed(request, error)
    uses().finished(request)
  }],
  ['http.server.request.start', (message) => served.started(message)],
  ['http.server.response.finish', (message) => served.finished(message)],
  ['tracing:fastify.request.handler:start', (message) => served.routed(message)]
]
on('served', (server) => require('./frameworks').observeServer(server))

/** includes the subscriptions of other modules */
let subscriptions = handlers.map(subscriptionFor)
let enabled = false

/** @param {[string, (message: any) => void]} entry */
function subscriptionFor ([name, handler]) {
  return { name, listener: guarded(handler) }
}

function enable () {
  if (enabled) return
  enabled = true
  for (const { name, listener } of subscriptions) channels.subscribe(name, listener)
  if (settings.options.errors !== false) changedStates.enable()
  registry.watch(capture.clock[0], () => (traffic ??= require('./socket-activity')).enable())
  const open = /** @type {any} */ (process)._getActiveHandles()
  if (open.length > 0) require('./early-connections').adopt(open)
}

function disable () {
  if (!enabled) return
  enabled = false
  for (const { name, listener } of subscriptions) channels.unsubscribe(name, listener)
  traffic?.disable()
  changedStates.disable()
  registry.unwatch()
}

/**
 * Subscribes the handlers of another module while this layer is enabled.
 * @param {Array<[string, (message: any) => void]>} entries channels and their handlers
 * @returns {() => void} unsubscribes them
 */
function subscribe (entries) {
  const added = entries.map(subscriptionFor)
  subscriptions = [...subscriptions, ...added]
  if (enabled) for (const { name, listener } of added) channels.subscribe(name, listener)
  return () => {
    subscriptions = subscriptions.filter((other) => !added.includes(other))
    if (enabled) for (const { name, listener } of added) channels.unsubscribe(name, listener)
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

module.exports = { disable, enable, subscribe }
