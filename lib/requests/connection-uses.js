'use strict'

// Tracks which request uses which connection: a pooled connection's opener and its current user are separate
// facts. Requests are held weakly.

const { adopt, contextTag } = require('../core/context')
const { kindOf } = require('../core/kinds')
const { setAsk } = require('../core/asks')
const guard = require('../core/guard')
const { formatAddress, handleOf, idOf, providerOf } = require('../node-objects')
const { isObject, own } = require('../objects')
const { contextOfRequest } = require('../core/current-step')
const { settings } = require('../settings')
const capture = require('../stacks/capture')
const { entryTag } = require('../core/entry')
const { emit } = require('../core/on')
const registry = require('../core/registry')
const { noteUse, noteWrite } = require('./asks')
const { contextOfUndici } = require('./undici-calls')
const { requestLabel } = require('../handles/request-label')
const { typeOf } = require('../handles/subject')

/** @type {WeakMap<object, import('../core/entry').Entry>} */
const connections = new WeakMap()
/** @type {WeakMap<object, import('../core/context').Context>} */
const listenCalls = new WeakMap()
/** sockets examined that have no entry @type {WeakSet<object>} */
const looked = new WeakSet()

/**
 * Records a listening server in a cluster worker. The primary has the handle; the worker has an object in its
 * place (`rr` in lib/internal/cluster/child.js) with a getsockname() function of Node.
 * @param {object} server
 * @param {object} handle
 * @param {import('../core/context').Context} call of listen()
 */
function openedInPrimary (server, handle, call) {
  call.asyncId = idOf(server) ?? 0
  call.kind = kindOf(typeOf(undefined, server), true)
  call.type = call.kind.type
  contextTag.write(handle, call)
  registry.opened(call, handle)
  registry.setOwner(handle, server)
  const entry = registry.ofObject(server)
  const getsockname = own(handle, 'getsockname')
  const end = {}
  if (typeof getsockname === 'function') getsockname(end)
  if (entry !== undefined) entry.local = formatAddress(end)
}

/**
 * Notes a new request.
 * @param {object} request
 * @param {(request: object, above: Function) => import('../core/context').Context} [contextOf]
 */
function requested (request, contextOf = contextOfPresent) {
  if (!settings.isSelected('HTTPCLIENTREQUEST') || contextTag.isTagged(request)) return
  contextTag.write(request, contextOf(request, requested))
}

/** Returns the context of a request made in the current step. @type {typeof contextOfUndici} */
const contextOfPresent = (_request, above) => contextOfRequest(above)

/** Notes a new undici request. @param {object} request */
const undiciRequested = (request) => requested(request, contextOfUndici)

/**
 * Makes an entry for a connection that was idle when tracing was enabled, once something is sent on it: pools
 * unref idle connections, and Node lists only those that keep the process alive.
 * @param {object} socket without an entry
 */
function adoptIdle (socket) {
  if (looked.has(socket) || own(socket, 'connecting') === true) return undefined
  looked.add(socket)
  guard.run(() => require('./early-connections').adopt([socket]))
  return registry.ofObject(socket)
}

/** Notes that a request is sent on a connection. @param {object} socket @param {object} request */
function uses (socket, request) {
  const entry = registry.ofObject(socket) ?? adoptIdle(socket)
  if (entry === undefined) return
  entry.activeAt = capture.clock[0]
  const context = contextTag.read(request)
  entry.use = { request: new WeakRef(request), label: requestLabel(request), context, isOver: false }
  if (context !== undefined) noteUse(entry, context)
  connections.set(request, entry)
}

/** Notes that a request has finished. @param {object} request */
function finished (request) {
  const entry = connections.get(request)
  if (entry?.use?.request.deref() !== request) return
  entry.activeAt = capture.clock[0]
  entry.use.isOver = true
  setAsk(entry, 0) // no more data is due
}

/** Notes a call of server.listen(). @param {object} server */
function listens (server) {
  if (settings.isSelected('TCPSERVERWRAP')) listenCalls.set(server, contextOfRequest(contextOfRequest))
}

/**
 * Records a listening server once it has its handle. Node often creates the handle in a later tick, or it
 * comes in a message from another process. If these steps have no stack, the call of listen() provides it.
 * @param {object} server
 */
function listening (server) {
  const call = listenCalls.get(server)
  const handle = handleOf(server)
  const isOfPrimary = handle !== undefined && providerOf(handle) === undefined
  if (isOfPrimary && call !== undefined) return openedInPrimary(server, handle, call)
  const entry = registry.ofObject(server)
  registry.connected(entry)
  if (call === undefined || entry === undefined) return
  if (settings.isSelected('TickObject') && entry.context.type.endsWith('SERVERWRAP')) return
  if (entry.context.stack?.program === true) return // created in listen()
  adopt(entry.context, call)
}

/** Notes that a server accepted a connection. @param {object} socket */
function accepted (socket) {
  const entry = registry.ofObject(socket)
  if (entry !== undefined) entry.isAccepted = true
  registry.connected(entry)
  const server = own(socket, '_server') // a cluster worker's handle has no events
  const listening = isObject(server) ? entryTag.read(server) : undefined
  if (listening !== undefined) listening.activeAt = capture.clock[0]
}

/** Notes a new worker. @param {object} made */
function worker (made) {
  const handle = handleOf(made)
  if (handle !== undefined) registry.setOwner(handle, made)
}

/**
 * Notes data sent or received on a socket. Runs unguarded: creates no async resources.
 * @param {object} socket
 * @param {boolean} isWrite
 * @returns {boolean} whether the socket is about to connect
 */
function traffic (socket, isWrite) {
  const known = registry.noteTraffic(socket, capture.clock[0])
  const entry = known ?? (isWrite ? adoptIdle(socket) : undefined)
  if (entry === undefined || entry.isAccepted) return false
  let isAsked = false
  if (isWrite) {
    isAsked = noteWrite(entry, socket, false)
    entry.activeAt = capture.clock[0] // time as read by the capture
  }
  emit('traffic', entry, isWrite && !isAsked)
  const isFirst = !entry.hasTraffic
  entry.hasTraffic = true
  return isFirst
}

/** Notes data buffered on a connecting socket. Also runs unguarded. @param {object} socket */
function writes (socket) {
  const entry = registry.noteTraffic(socket, capture.clock[0])
  if (entry !== undefined) noteWrite(entry, socket, true)
}

module.exports = {
  accepted, finished, listening, listens, requested, traffic, undiciRequested, uses, worker, writes
}
