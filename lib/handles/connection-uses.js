'use strict'

// Which request uses which connection: the opener of a pooled connection and its present user are two facts.
// Requests are held weakly.

const { adopt, contextTag } = require('../context/context')
const { endUse } = require('../hooks/asks')
const { handleOf } = require('../node-objects')
const { requestLabel } = require('./request-label')

/**
 * @param {object} deps
 * @param {import('./registry').Registry} deps.registry
 * @param {() => number} deps.now
 * @param {(type: string) => boolean} deps.isSelected the filter
 * @param {(entry: import('./entry').Entry) => void} deps.noteTraffic data passed on a connection that no
 *   server accepted
 * @param {() => ReturnType<typeof import('../hooks/asks').createAsks>} deps.asks
 * @param {(above: Function) => import('../context/context').Context} deps.contextOfRequest makes a context
 *   for a request; frames start below that function
 * @returns {import('../requests/channels').ConnectionUses}
 */
function createConnectionUses ({ registry, now, isSelected, noteTraffic, asks, contextOfRequest }) {
  /** @type {WeakMap<object, import('./entry').Entry>} */
  const connections = new WeakMap()
  /** @type {WeakMap<object, import('../context/context').Context>} */
  const listens = new WeakMap()

  return {
    requested (request) {
      if (!isSelected('HTTPCLIENTREQUEST') || contextTag.read(request) !== undefined) return
      contextTag.write(request, contextOfRequest(contextOfRequest))
    },

    uses (socket, request) {
      const entry = registry.ofObject(socket)
      if (entry === undefined) return
      entry.activeAt = now()
      const context = contextTag.read(request)
      entry.use = { request: new WeakRef(request), label: requestLabel(request), context, isOver: false }
      if (context !== undefined) asks().noteUse(entry, context)
      connections.set(request, entry)
    },

    finished (request) {
      const entry = connections.get(request)
      if (entry?.use?.request.deref() !== request) return
      entry.activeAt = now()
      entry.use.isOver = true
      endUse(entry)
    },

    listens (server) {
      if (!isSelected('TCPSERVERWRAP') || isSelected('TickObject')) return
      listens.set(server, contextOfRequest(contextOfRequest))
    },

    // Node often makes the handle in a later tick. Where ticks have no stack, the call of listen() has one.
    listening (server) {
      const entry = registry.ofObject(server)
      registry.connected(entry)
      const call = listens.get(server)
      if (call === undefined || entry === undefined) return
      adopt(entry.context, call)
    },

    accepted (socket) {
      const entry = registry.ofObject(socket)
      if (entry !== undefined) entry.isAccepted = true
      registry.connected(entry)
    },

    worker (worker) {
      const handle = handleOf(worker)
      if (handle !== undefined) registry.setOwner(handle, worker)
    },

    traffic (socket) {
      try {
        const entry = registry.noteTraffic(socket, now())
        if (entry !== undefined && !entry.isAccepted) noteTraffic(entry)
      } catch {}
    },

    writes (socket) {
      try {
        const entry = registry.noteTraffic(socket, now())
        if (entry !== undefined) asks().noteWrite(entry, socket)
      } catch {}
    }
  }
}

module.exports = { createConnectionUses }
