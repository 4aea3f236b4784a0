'use strict'

// Requests, as Node reports them through diagnostics_channel: when one begins and how it ends. Joins HTTP/1
// in both directions, HTTP/2, connections, and the few methods that have to be wrapped.
//
// Sockets are held weakly, and requests as long as Node holds them (see connections.js); a span holds none of
// them.

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

/** end what is listened to @type {Array<() => void>} */
let removals = []

/**
 * A connect request runs for the first time.
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

/** Also called when options change: with them, other methods are wrapped. */
function enable () {
  methods.enable()
  if (removals.length > 0) return
  removals = [
    channels.subscribe(subscriptions), on('opened', connects.handleMade), on('connecting', connecting)
  ]
  const { ticked } = http2 // on Node 20 alone
  if (ticked !== undefined) {
    removals.push(on('ticked', (context, tick) => { if (!client.ticked(tick)) ticked(context, tick) }))
  }
}

/** All spans have ended; connections may stay open, and tracing may go on without spans. */
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
