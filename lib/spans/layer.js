'use strict'

// Begin and end of requests, as Node reports them through diagnostics_channel. Combines HTTP/1 in both
// directions, HTTP/2, connections, and the few methods that must be wrapped.
//
// Sockets are held weakly, and requests as long as Node holds them (see connections.js). Spans hold neither.

const { callbackListeners, on } = require('../core/on')
const { ownerOf } = require('../node-objects')
const channels = require('../requests/channels')
const connections = require('./connections')
const connects = require('./connects')
const client = require('./http1-client')
const server = require('./http1-server')
const http2 = require('./http2')
const methods = require('./patched-methods')

/** @type {Array<[string, (message: any) => void]>} */
const subscriptions = [
  ['tracing:net.server.listen:asyncStart', methods.enable],
  ['net.client.socket', connects.socketMade],
  ...server.subscriptions,
  ...client.subscriptions,
  ...http2.subscriptions
]

/** undo the subscriptions @type {Array<() => void>} */
let removals = []

/**
 * Handles the first run of a connect request.
 * @param {import('../core/context').Context} context
 * @param {import('../core/entry').Entry} entry
 */
function connecting (context, { resource }) {
  const handle = resource.deref()
  const socket = handle === undefined ? undefined : ownerOf(handle)
  if (socket === undefined) return
  const connection = connections.get(socket)
  if (connection === undefined) connects.connecting(context, socket)
  else connection.addResource(context.asyncId)
}

/** Also called when options change, since they decide which methods are wrapped. */
function enable () {
  methods.enable()
  if (removals.length > 0) return
  removals = [
    channels.subscribe(subscriptions), on('opened', connects.handleMade), on('connecting', connecting)
  ]
  const { ticked } = http2 // defined on Node 20 only
  if (ticked !== undefined) {
    removals.push(on('ticked', (context, tick) => { if (!client.ticked(tick)) ticked(context, tick) }))
  }
}

/** Called after all spans have ended. Connections may stay open, and tracing may continue without spans. */
function disable () {
  for (const remove of removals) remove()
  removals = []
  methods.disable()
  callbackListeners.clear()
  connections.forget()
  connects.forget()
  http2.forget()
}

module.exports = { disable, enable }
