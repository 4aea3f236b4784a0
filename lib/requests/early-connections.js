'use strict'

// Connections that the program opened before tracing was enabled. They get entries like later ones, so that
// queries on them are attributed from now on.

const { Context, contextTag } = require('../core/context')
const { kindOf } = require('../core/kinds')
const { EARLY_CHAIN } = require('../core/records')
const registry = require('../core/registry')
const { handleOf, idOf, providerOf } = require('../node-objects')
const { isAnyObject, own } = require('../objects')
const { settings } = require('../settings')
const capture = require('../stacks/capture')

/** Pipes are left out: standard output may be one, so their opener is unknown. */
const types = new Set(['TCPWRAP', 'TLSWRAP'])

// Adopting connections blocks the event loop. Pools open early, and Node lists the oldest handles first.
const MAX_LOOKED = 5000 // some 2 µs each
const MAX_ADOPTED = 500 // some 20 µs each

/** @param {object[]} sockets open handles, as listed by Node */
function adopt (sockets) {
  let adopted = 0
  for (let i = 0; i < Math.min(sockets.length, MAX_LOOKED) && adopted < MAX_ADOPTED; i++) {
    const socket = sockets[i]
    const handle = isClient(socket) ? handleOf(socket) : undefined
    const type = handle && providerOf(handle)
    const id = handle && idOf(handle)
    if (handle === undefined || id === undefined || type === undefined || !types.has(type)) continue
    if (registry.get(id) !== undefined || !settings.isSelected(type)) continue
    if (contextTag.read(handle) !== undefined) continue
    open(socket, handle, type, id)
    adopted++
  }
}

/** Whether the program opened a connection, rather than a server accepted it. @param {any} socket */
function isClient (socket) {
  if (own(socket, 'connecting') !== false || isAnyObject(own(socket, '_server'))) return false
  const tls = own(socket, '_tlsOptions')
  return tls === undefined || (isAnyObject(tls) && own(tls, 'isServer') !== true)
}

/** @param {object} socket @param {object} handle @param {string} type @param {number} id */
function open (socket, handle, type, id) {
  const time = capture.clock[0]
  const context = new Context(id, 0, kindOf(type, true), null, time)
  context.chain = EARLY_CHAIN
  context.ref = id << 1
  context.origin = 'early'
  contextTag.write(handle, context)
  const entry = registry.opened(context, handle)
  registry.setOwner(handle, socket)
  registry.connected(entry)
  entry.isClient = entry.hasTraffic = entry.isWritten = entry.isAsked = entry.hadGap = true
  entry.activeAt = 0 // unknown
  entry.unseenUntil = time
}

module.exports = { adopt }
