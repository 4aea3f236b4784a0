'use strict'

// Resource as the input of trace.why and trace.handles: the program's object, Node's handle behind it, and
// its type. Nothing here runs code of the program.

const net = require('node:net')
const { types } = require('node:util')
const { contextTag } = require('../core/context')
const { connectionTypes } = require('../core/kinds')
const registry = require('../core/registry')
const { callNative, handleOf, portState, providerOf } = require('../node-objects')
const { className, hidden, inherits, isObject, own } = require('../objects')

/**
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} Subject facts about one resource before it is described
 * @property {object | undefined} object the program's object
 * @property {object | undefined} handle Node's object behind it, or the resource itself
 * @property {string} type Node's provider name, or "unknown"
 * @property {Context | undefined} context
 * @property {import('../core/entry').Entry | undefined} entry
 * @property {import('./descriptors').Descriptor} [descriptor] descriptor without a Node resource
 * @property {boolean} [isShared] server that listens for the workers of a cluster, see below
 */

/** @param {unknown} object */
function isSocket (object) {
  return isObject(object) && inherits(object, net.Socket.prototype)
}

/** @param {unknown} object */
function isServer (object) {
  return isObject(object) && inherits(object, net.Server.prototype)
}

/**
 * Whether a server that Node lists as active has given up its handle: the primary of a cluster takes it and
 * distributes connections to its workers (RoundRobinHandle in lib/internal/cluster).
 * @param {unknown} object
 */
function isShared (object) {
  return isServer(object) && handleOf(/** @type {object} */ (object)) === undefined
}

/**
 * Whether a server listens through the primary of its cluster: on a handle received in a message and not
 * passed by the program, or on an object in place of a handle (lib/internal/cluster/child.js).
 * @param {Subject} subject
 */
function isOfPrimary ({ object, handle, type }) {
  if (object === undefined || handle === undefined || !type.endsWith('SERVERWRAP')) return false
  return providerOf(handle) !== type && own(object, '_connectionKey') !== '-1:null:-1'
}

/**
 * Corrects the type of a server's handle: one received in a message has the type of a connection.
 * @param {string} type
 * @param {object | undefined} object
 */
function typeOfRole (type, object) {
  const isConnected = type === 'TCPWRAP' || type === 'PIPEWRAP'
  return isConnected && isServer(object) ? type.replace('WRAP', 'SERVERWRAP') : type
}

/**
 * Returns the descriptor of a standard stream of this process. libuv reopens a terminal under another
 * descriptor (uv_tty_init in deps/uv/src/unix/tty.c); Node stores the original one on the stream.
 * @param {Subject} subject
 * @returns {0 | 1 | 2 | undefined}
 */
function standardDescriptor ({ object, handle, type }) {
  if (handle === undefined || !(type === 'TTYWRAP' || connectionTypes.has(type))) return undefined
  const noted = object === undefined || type !== 'TTYWRAP' ? undefined : own(object, 'fd')
  const fd = noted ?? callNative(handle, 'fd')
  return fd === 0 || fd === 1 || fd === 2 ? fd : undefined
}

/**
 * Whether an object is its own resource: a timer, a promise, a port, an AsyncResource.
 * @param {object} object
 */
function isResource (object) {
  return contextTag.isTagged(object) || types.isPromise(object) || providerOf(object) !== undefined ||
    hidden(object, 'asyncId', 'trigger_async_id_symbol') !== undefined
}

/** Returns the handles of a type in the registry. @param {string} type @returns {object[]} */
function handlesOfType (type) {
  const entries = registry.list().filter(({ context }) => context.type === type)
  return entries.map(({ resource }) => resource.deref()).filter((handle) => handle !== undefined)
}

/**
 * Derives the provider name from the objects.
 * @param {object | undefined} handle
 * @param {object | undefined} object
 */
function typeOf (handle, object) {
  const subject = handle ?? object
  if (subject === undefined || types.isProxy(subject)) return 'unknown'
  if (types.isPromise(subject)) return 'PROMISE'
  const provider = handle === undefined ? undefined : providerOf(handle)
  if (provider !== undefined) return provider
  if (hidden(subject, 'asyncId') !== undefined) {
    if (own(subject, '_onTimeout') !== undefined) return 'Timeout'
    if (own(subject, '_onImmediate') !== undefined) return 'Immediate'
  }
  if (object !== undefined && isServer(object)) {
    return typeof own(object, '_pipeName') === 'string' ? 'PIPESERVERWRAP' : 'TCPSERVERWRAP'
  }
  if (own(subject, '_tlsOptions') !== undefined) return 'TLSWRAP'
  const name = className(subject)
  if (name === 'MessagePort') return portState(subject).active === undefined ? 'unknown' : 'MESSAGEPORT'
  const isHttp2 = /^(Client|Server)Http2(Session|Stream)$/.test(String(name))
  if (isHttp2 && hidden(subject, 'kSession', 'session', 'socket') !== undefined) {
    return name?.endsWith('Session') ? 'HTTP2SESSION' : 'HTTP2STREAM'
  }
  const isRequest = hidden(subject, 'kOutHeaders') !== undefined && own(subject, 'agent') !== undefined
  return isRequest ? 'REQUEST' : 'unknown'
}

/**
 * Returns the socket that carries an HTTP/2 session or stream.
 * @param {Subject} subject
 * @returns {Subject | undefined}
 */
function carrierOf ({ object, type }) {
  if (object === undefined || !/^HTTP2(SESSION|STREAM)$/.test(type)) return undefined
  const session = type === 'HTTP2STREAM' ? hidden(object, 'session', 'kSession') : object
  const socket = isObject(session) ? hidden(session, 'socket') : undefined
  if (!isObject(socket) || !isSocket(socket)) return undefined
  return { object: socket, handle: handleOf(socket), type: 'TCPWRAP', context: undefined, entry: undefined }
}

module.exports = {
  carrierOf,
  handlesOfType,
  isOfPrimary,
  isResource,
  isServer,
  isShared,
  isSocket,
  standardDescriptor,
  typeOf,
  typeOfRole
}
