'use strict'

// State of a resource, its side of a connection, and its byte counts. Facts that only code of the program
// could provide stay undefined.

const { Duplex, Readable, Writable } = require('node:stream')
const { Socket } = require('node:net')
const { settlerOf } = require('../core/context')
const { connectionTypes } = require('../core/kinds')
const registry = require('../core/registry')
const { callNative, handleOf, isAlive, isReferenced, numberOf, portState } = require('../node-objects')
const { className, findProperty, hidden, inherits, isObject, own } = require('../objects')
const { carrierOf, isServer, isSocket, standardDescriptor } = require('./subject')

/** @typedef {import('./subject').Subject} Subject */

const { ReadableState } = /** @type {any} */ (Readable)
const { WritableState } = /** @type {any} */ (Writable)

const WAITING = 'waiting for a connection'

/** Node's own getters, called on sockets unless the program replaced them. */
const socketGetters = {
  bytesWritten: findProperty(Socket.prototype, 'bytesWritten')?.get,
  _bytesDispatched: findProperty(Socket.prototype, '_bytesDispatched')?.get,
  writableBuffer: findProperty(Duplex.prototype, 'writableBuffer')?.get
}

/**
 * @param {Subject} subject
 * @returns {'client' | 'server' | undefined}
 */
function sideOf ({ object, type, context, entry }) {
  if (type === 'HTTP2SESSION' || type === 'HTTP2STREAM') {
    const name = object === undefined ? undefined : className(object)
    return name?.startsWith('Client') ? 'client' : name?.startsWith('Server') ? 'server' : undefined
  }
  if (type === 'REQUEST') return 'client'
  if (!connectionTypes.has(type)) return undefined
  if (isAccepted({ context })) return 'server'
  if (object !== undefined && isSocket(object)) {
    const tls = own(object, '_tlsOptions')
    if (isObject(tls)) return own(tls, 'isServer') === true ? 'server' : 'client'
    if (isServer(own(object, '_server'))) return 'server'
    if (type !== 'PIPEWRAP') return 'client'
    return entry?.remote !== undefined || own(object, 'connecting') === true ? 'client' : undefined
  }
  return entry?.remote !== undefined ? 'client' : undefined
}

/** Whether a server accepted the connection. @param {Pick<Subject, 'context'>} subject */
function isAccepted ({ context }) {
  const parent = context?.parent
  return parent?.type.endsWith('SERVERWRAP') === true && context?.triggerAsyncId === parent.asyncId
}

/**
 * Returns one of the states that `Why` lists.
 * @param {Subject} subject
 * @param {string | undefined} side
 * @returns {string | undefined}
 */
function stateOf (subject, side) {
  const { object, handle, type, context, entry } = subject
  const isTimer = type === 'Timeout' || type === 'Immediate'
  if (isTimer) return isPending(handle ?? object ?? {}) ? 'pending' : 'closed'
  if (type === 'PROMISE') return promiseState(object, context)
  if (type === 'REQUEST') return own(object ?? {}, 'destroyed') === true ? 'closed' : WAITING
  if (subject.descriptor !== undefined) return 'open'
  if (subject.isShared) return 'listening'
  if (object !== undefined && isServer(object)) return handleOf(object) === undefined ? 'closed' : 'listening'
  if (object !== undefined && isSocket(object)) return socketState(object, side)
  if (object !== undefined && type === 'HTTP2SESSION') return sessionState(object)
  if (handle === undefined && type === 'HTTP2STREAM') return entry === undefined ? WAITING : 'closed'
  const open = isOpen(subject)
  if (open === undefined) return undefined
  return !open ? 'closed' : type.endsWith('SERVERWRAP') ? 'listening' : 'open'
}

/** @param {object | undefined} promise @param {Subject['context']} context */
function promiseState (promise, context) {
  if (promise === undefined || context === undefined) return undefined
  if (settlerOf(promise) !== undefined) return 'settled'
  return context.done || !registry.sawSettledSince(context.time) ? undefined : 'pending'
}

/** @param {object} session of HTTP/2 */
function sessionState (session) {
  if (handleOf(session) !== undefined) return 'open'
  const socket = hidden(session, 'socket')
  return isObject(socket) && own(socket, 'connecting') === true ? 'connecting' : 'closed'
}

/** @param {object} socket @param {string | undefined} side */
function socketState (socket, side) {
  const readable = own(socket, '_readableState')
  const writable = own(socket, '_writableState')
  const isReadable = isObject(readable) && isObject(writable) &&
    inherits(readable, ReadableState.prototype) && inherits(writable, WritableState.prototype)
  if (isReadable && /** @type {any} */ (readable).destroyed) return 'closed'
  if (own(socket, 'connecting') === true) return 'connecting'
  if (handleOf(socket) === undefined) return 'closed'
  if (own(socket, 'secureConnecting') === true) return 'connecting'
  if (!isReadable || side === undefined) return 'open'
  return /** @type {any} */ (readable).ended || /** @type {any} */ (writable).ending ? 'half-open' : 'open'
}

/**
 * Whether a timer or an immediate will run. A timer in its last run is in no list.
 * @param {object} timer
 */
function isPending (timer) {
  if (own(timer, '_destroyed') !== false) return false
  if (own(timer, '_idleNext') !== null) return true
  return typeof own(timer, '_repeat') === 'number' || own(timer, '_onImmediate') !== undefined
}

/**
 * Checks whether a resource is open. Node detaches the handle from its owner on close; without an owner, the
 * handle itself is checked.
 * @param {Subject} subject
 * @returns {boolean | undefined} undefined if unknown
 */
function isOpen ({ object, handle, type }) {
  if (handle === undefined) return object !== undefined && type !== 'unknown' ? false : undefined
  if (type === 'Timeout' || type === 'Immediate') return isPending(handle)
  if (type === 'MESSAGEPORT') return portState(handle).active
  if (object !== undefined && object !== handle) {
    if (type === 'DIRHANDLE') return hidden(object, 'kDirClosed') !== true
    const present = handleOf(object)
    if (present !== handle) { // for a TLS socket, the handle may be the one below TLS
      return isSocket(object) && present !== undefined && own(present, '_parent') === handle
    }
    if (type !== 'FILEHANDLE') return true
  }
  const fd = callNative(handle, 'fd')
  if (typeof fd === 'number' && type !== 'UDPWRAP' && process.platform !== 'win32') return fd >= 0
  return callNative(handle, 'hasRef') === undefined ? undefined : isAlive(handle)
}

/** Whether a resource keeps the process alive. @param {Subject} subject */
function keepsProcessAlive (subject) {
  if (subject.descriptor !== undefined) return false
  const carrier = carrierOf(subject) ?? subject
  const { object, handle, type } = carrier
  if (handle === undefined) return undefined
  if (type === 'MESSAGEPORT') return portState(handle).refed
  if (standardDescriptor(carrier) !== undefined && !isActiveStream(carrier)) return false
  return isReferenced(type === 'Timeout' || type === 'Immediate' ? object ?? handle : handle)
}

/**
 * Whether a standard stream is reading, about to read, or writing. It is referenced from the start, but keeps
 * the process alive only then.
 * @param {Subject} subject
 */
function isActiveStream ({ object, handle }) {
  if (handle === undefined) return false
  if (own(handle, 'reading') === true || Number(numberOf(handle, 'writeQueueSize')) > 0) return true
  const state = object === undefined ? undefined : own(object, '_readableState')
  if (!isObject(state) || !inherits(state, ReadableState.prototype)) return false
  const { flowing, readableListening } = /** @type {any} */ (state)
  return flowing === true || readableListening === true
}

/**
 * Reads bytes in and out, as far as Node counts them.
 * @param {Subject} subject
 * @returns {{ bytesRead: number | undefined, bytesWritten: number | undefined }}
 */
function trafficOf (subject) {
  const carrier = subject.type === 'HTTP2SESSION' ? carrierOf(subject) : undefined
  const { object, handle, type } = carrier ?? subject
  if (/SERVERWRAP$|^UDPWRAP$|^FILEHANDLE$|^HTTP2STREAM$/.test(type)) {
    return { bytesRead: undefined, bytesWritten: undefined }
  }
  const isLive = object === undefined || object === handle || handleOf(object) !== undefined
  const live = isLive ? handle : undefined
  let bytesRead = live && numberOf(live, 'bytesRead')
  let bytesWritten = live && numberOf(live, 'bytesWritten')
  if (object === undefined || !isSocket(object)) return { bytesRead, bytesWritten }
  if (live !== undefined && handleOf(object) !== live) return { bytesRead, bytesWritten }
  bytesRead ??= asNumber(hidden(object, 'kBytesRead'))
  bytesWritten = bytesWithQueued(object) ?? bytesWritten ?? asNumber(hidden(object, 'kBytesWritten'))
  return { bytesRead, bytesWritten }
}

/**
 * Returns the bytes written as Node counts them, including those still buffered in the stream.
 * @param {any} socket
 * @returns {number | undefined} undefined if the program replaced a getter of Node
 */
function bytesWithQueued (socket) {
  const { bytesWritten } = socketGetters
  const areNodes = Object.entries(socketGetters)
    .every(([name, get]) => findProperty(socket, name)?.get === get)
  if (!areNodes || bytesWritten === undefined || !hasPlainProperties(socket)) return undefined
  return asNumber(Reflect.apply(bytesWritten, socket, []))
}

/**
 * Whether Node's getters find Node's own values, not an accessor or object of the program.
 * @param {object} socket
 */
function hasPlainProperties (socket) {
  const names = ['_handle', '_pendingData', '_pendingEncoding', '_writableState']
  const hasAccessor = names.some((name) => Object.getOwnPropertyDescriptor(socket, name)?.get !== undefined)
  const state = own(socket, '_writableState')
  return !hasAccessor && isObject(state) && inherits(state, WritableState.prototype) &&
    Object.getOwnPropertyDescriptor(state, 'getBuffer') === undefined
}

/** @param {unknown} value */
function asNumber (value) {
  return typeof value === 'number' ? value : undefined
}

module.exports = { isAccepted, isOpen, keepsProcessAlive, sideOf, stateOf, trafficOf }
