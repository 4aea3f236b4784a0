'use strict'

// Which request uses which connection: the opener of a pooled connection and its present user are two facts.
// Requests are held weakly.

const { adopt, contextTag } = require('../context/context')
const { kindOf } = require('../context/kinds')
const { endUse } = require('../context/asks')
const { formatAddress, handleOf, idOf, providerOf } = require('../node-objects')
const { isObject, own } = require('../objects')
const { entryTag } = require('./entry')
const { requestLabel } = require('./request-label')
const { typeOf } = require('./subject')

/**
 * @param {object} deps
 * @param {import('./registry').Registry} deps.registry
 * @param {() => number} deps.now
 * @param {(type: string) => boolean} deps.isSelected the filter
 * @param {(entry: import('./entry').Entry) => void} deps.noteTraffic data passed on a connection that no
 *   server accepted
 * @param {() => import('../hooks/asks').Asks} deps.asks
 * @param {(above: Function) => import('../context/context').Context} deps.contextOfRequest makes a context
 *   for a request; frames start below that function
 * @returns {import('../requests/channels').ConnectionUses}
 */
function createConnectionUses ({ registry, now, isSelected, noteTraffic, asks, contextOfRequest }) {
  /** @type {WeakMap<object, import('./entry').Entry>} */
  const connections = new WeakMap()
  /** @type {WeakMap<object, import('../context/context').Context>} */
  const listens = new WeakMap()

  /**
   * A worker of a cluster listens: the primary has the handle, the worker an object in its place (`rr` in
   * lib/internal/cluster/child.js), which tells its address by a function of Node's.
   * @param {object} server
   * @param {object} handle
   * @param {import('../context/context').Context} call of listen()
   */
  function openedInPrimary (server, handle, call) {
    call.asyncId = idOf(server) ?? 0
    call.kind = kindOf(typeOf(undefined, server), true)
    contextTag.write(handle, call)
    registry.opened(call, handle)
    registry.setOwner(handle, server)
    const entry = registry.ofObject(server)
    const getsockname = own(handle, 'getsockname')
    const end = {}
    if (typeof getsockname === 'function') getsockname(end)
    if (entry !== undefined) entry.local = formatAddress(end)
  }

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
      if (isSelected('TCPSERVERWRAP')) listens.set(server, contextOfRequest(contextOfRequest))
    },

    // Node often makes the handle in a later tick, or it comes by a message of another process. Where these
    // have no stack, the call of listen() has one.
    listening (server) {
      const call = listens.get(server)
      const handle = handleOf(server)
      const isOfPrimary = handle !== undefined && providerOf(handle) === undefined
      if (isOfPrimary && call !== undefined) return openedInPrimary(server, handle, call)
      const entry = registry.ofObject(server)
      registry.connected(entry)
      if (call === undefined || entry === undefined) return
      if (!isSelected('TickObject') || !entry.context.type.endsWith('SERVERWRAP')) adopt(entry.context, call)
    },

    accepted (socket) {
      const entry = registry.ofObject(socket)
      if (entry !== undefined) entry.isAccepted = true
      registry.connected(entry)
      const server = own(socket, '_server') // whose handle, in the worker of a cluster, has no events
      const listening = isObject(server) ? entryTag.read(server) : undefined
      if (listening !== undefined) listening.activeAt = now()
    },

    worker (worker) {
      const handle = handleOf(worker)
      if (handle !== undefined) registry.setOwner(handle, worker)
    },

    traffic (socket, isWrite) {
      try {
        const entry = registry.noteTraffic(socket, now())
        if (entry === undefined || entry.isAccepted) return false
        if (isWrite) {
          asks().noteWrite(entry, socket)
          entry.activeAt = now() // of the capture, which has read the clock
        }
        noteTraffic(entry)
        const isFirst = !entry.hasTraffic
        entry.hasTraffic = true
        return isFirst
      } catch {
        return false
      }
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
