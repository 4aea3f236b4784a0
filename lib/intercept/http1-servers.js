'use strict'

// Reads Node's servers without running code of the program: whether they speak HTTP/1, and their connections.

const { callNative } = require('../node-objects')
const { className, hidden, inherits, isObject, own } = require('../objects')

const { getPrototypeOf } = Reflect

/** @param {unknown} server @returns {server is object} */
function speaksHttp1 (server) {
  if (!isObject(server)) return false
  if (inherits(server, require('node:http').Server.prototype)) return true
  const events = own(server, '_events')
  if (!isObject(events) || own(events, 'secureConnection') === undefined) return false // no TLS
  if (inherits(server, require('node:https').Server.prototype)) return true
  for (let object = /** @type {object | null} */ (server); object !== null; object = getPrototypeOf(object)) {
    if (className(object) !== 'Http2SecureServer') continue
    const options = hidden(server, 'options')
    return isObject(options) && own(options, 'allowHTTP1') === true
  }
  return false
}

/**
 * Lists the connections of HTTP/1 that a server has.
 * @param {object} server
 * @returns {Set<object>} sockets
 */
function connectionsOf (server) {
  const list = hidden(server, 'http.server.connections')
  const parsers = /** @type {object[]} */ (isObject(list) ? callNative(list, 'all') ?? [] : [])
  const handles = /** @type {object[]} */ (/** @type {any} */ (process)._getActiveHandles())
  const sockets = [
    ...parsers.map((parser) => own(parser, 'socket')),
    ...handles.filter((handle) => isObject(handle) && own(handle, 'server') === server)
  ]
  return new Set(sockets.filter((socket) => isObject(socket) && isObject(own(socket, 'parser'))))
}

module.exports = { connectionsOf, speaksHttp1 }
