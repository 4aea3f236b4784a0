'use strict'

// What a resource is, in words, and what state it is in. Facts that cannot be known without running code of the
// program stay undefined.

const net = require('node:net')
const { Duplex, Readable, Writable } = require('node:stream')
const path = require('node:path')
const { types } = require('node:util')
const { clean } = require('../text')
const { requestLabel } = require('./request-label')
const { ask, numberOf, endName, endOf, handleOf, isAlive, isReferenced, ownerOf, portState } = require('../node-objects')
const { className, hidden, inherits, isObject, own } = require('../objects')

/** @typedef {import('../context/context').Context} Context */

/**
 * What is known of one resource before it is described.
 * @typedef {object} Subject
 * @property {object | undefined} object what the program holds
 * @property {object | undefined} handle Node's own object behind it, or the resource itself
 * @property {string} type Node's provider name, or "unknown"
 * @property {Context | undefined} context
 * @property {import('./registry').Entry | undefined} entry
 */

/** @type {Record<string, [string, string | undefined]>} what a type is, and how to close it */
const words = {
  __proto__: /** @type {any} */ (null),
  TCPWRAP: ['TCP connection', 'socket.end() or socket.destroy()'],
  TCPSERVERWRAP: ['TCP server', 'server.close()'],
  PIPEWRAP: ['pipe', 'socket.end() or socket.destroy()'],
  PIPESERVERWRAP: ['pipe server', 'server.close()'],
  TLSWRAP: ['TLS connection', 'socket.end() or socket.destroy()'],
  UDPWRAP: ['UDP socket', 'socket.close()'],
  TTYWRAP: ['terminal', undefined],
  PROCESSWRAP: ['child process', 'child.kill(), or child.unref() to let it go on'],
  WORKER: ['worker thread', 'worker.terminate(), or worker.unref() to let it go on'],
  MESSAGEPORT: ['message port', 'port.close() or port.unref()'],
  FSEVENTWRAP: ['file watcher', 'watcher.close()'],
  STATWATCHER: ['file watcher', 'fs.unwatchFile()'],
  SIGNALWRAP: ['signal listener', 'process.off(signal, listener)'],
  HTTP2SESSION: ['HTTP/2 session', 'session.close()'],
  HTTP2STREAM: ['HTTP/2 stream', 'stream.close()'],
  FILEHANDLE: ['file', 'filehandle.close()'],
  DIRHANDLE: ['directory', 'dir.close()'],
  ZLIB: ['zlib stream', 'stream.end() or stream.close()'],
  Timeout: ['timer', undefined],
  Immediate: ['immediate', 'clearImmediate()'],
  PROMISE: ['promise', undefined],
  REQUEST: ['HTTP request', 'request.destroy()'],
  HTTPINCOMINGMESSAGE: ['HTTP parser', undefined],
  FSREQCALLBACK: ['file system call', undefined],
  FSREQPROMISE: ['file system call', undefined],
  GETADDRINFOREQWRAP: ['name lookup', undefined],
  GETNAMEINFOREQWRAP: ['name lookup', undefined],
  QUERYWRAP: ['DNS query', undefined]
}

const standard = ['standard input', 'standard output', 'standard error']
const { ReadableState } = /** @type {any} */ (Readable)
const { WritableState } = /** @type {any} */ (Writable)

/** Node's own getters, called on sockets that do not have others in their place. */
const netBytesWritten = getterOf(net.Socket.prototype, 'bytesWritten')
const netDispatched = getterOf(net.Socket.prototype, '_bytesDispatched')
const streamBuffer = getterOf(Duplex.prototype, 'writableBuffer')

/** @param {object} prototype @param {string} name */
function getterOf (prototype, name) {
  return Object.getOwnPropertyDescriptor(prototype, name)?.get
}

/** The getter that an object has under a name. @param {object} object @param {string} name */
function getterIn (object, name) {
  for (let at = /** @type {object | null} */ (object); at !== null && !types.isProxy(at); at = Reflect.getPrototypeOf(at)) {
    const found = Object.getOwnPropertyDescriptor(at, name)
    if (found !== undefined) return found.get
  }
  return undefined
}

/** @param {object | undefined} object */
function isSocket (object) {
  return object !== undefined && inherits(object, net.Socket.prototype)
}

/** @param {object | undefined} object */
function isServer (object) {
  return object !== undefined && inherits(object, net.Server.prototype)
}

/** A handle that is a connection's, between two programs. @param {string} type */
function isConnection (type) {
  return type === 'TCPWRAP' || type === 'PIPEWRAP' || type === 'TLSWRAP'
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
  if (!isConnection(type)) return undefined
  if (context?.parent !== undefined && /SERVERWRAP$/.test(context.parent.type) && context.triggerAsyncId === context.parent.asyncId) return 'server'
  if (object !== undefined && isSocket(object)) {
    const tls = own(object, '_tlsOptions')
    if (isObject(tls)) return own(tls, 'isServer') === true ? 'server' : 'client'
    if (isServer(own(object, '_server') ?? undefined)) return 'server'
    if (type === 'PIPEWRAP') return entry?.remote !== undefined || own(object, 'connecting') === true ? 'client' : undefined
    return 'client'
  }
  return entry?.remote !== undefined ? 'client' : undefined
}

/**
 * @param {Subject} subject
 * @param {string | undefined} side
 * @returns {string | undefined}
 */
function stateOf (subject, side) {
  const { object, handle, type, entry } = subject
  if (type === 'Timeout' || type === 'Immediate') return isPending(handle ?? object ?? {}) ? 'pending' : 'closed'
  if (type === 'PROMISE') return undefined
  if (type === 'REQUEST') return own(object ?? {}, 'destroyed') === true ? 'closed' : 'waiting for a connection'
  if (object !== undefined && isServer(object)) return handleOf(object) === undefined ? 'closed' : 'listening'
  if (object !== undefined && isSocket(object)) return socketState(object, side)
  if (object !== undefined && type === 'HTTP2SESSION') {
    if (handleOf(object) !== undefined) return 'open'
    const socket = hidden(object, 'socket')
    return isObject(socket) && own(socket, 'connecting') === true ? 'connecting' : 'closed'
  }
  if (handle === undefined && type === 'HTTP2STREAM') return entry === undefined ? 'waiting for a connection' : 'closed'
  const open = isOpen(subject)
  if (open === undefined) return undefined
  return !open ? 'closed' : /SERVERWRAP$/.test(type) ? 'listening' : 'open'
}

/** @param {object} socket @param {string | undefined} side */
function socketState (socket, side) {
  const readable = own(socket, '_readableState')
  const writable = own(socket, '_writableState')
  const known = isObject(readable) && isObject(writable) &&
    inherits(readable, ReadableState.prototype) && inherits(writable, WritableState.prototype)
  if (known && /** @type {any} */ (readable).destroyed) return 'closed'
  if (own(socket, 'connecting') === true) return 'connecting'
  if (handleOf(socket) === undefined) return 'closed'
  if (own(socket, 'secureConnecting') === true) return 'connecting'
  if (!known || side === undefined) return 'open'
  return /** @type {any} */ (readable).ended || /** @type {any} */ (writable).ending ? 'half-open' : 'open'
}

/** A timer that runs for the last time is in no list any more. @param {object} timer */
function isPending (timer) {
  if (own(timer, '_destroyed') !== false) return false
  return own(timer, '_idleNext') !== null || typeof own(timer, '_repeat') === 'number' || own(timer, '_onImmediate') !== undefined
}

/**
 * Is it open? Node takes the handle from its owner at once when it is closed; where there is no owner, the handle
 * itself is asked.
 * @param {Subject} subject
 * @returns {boolean | undefined} undefined where it cannot be known
 */
function isOpen ({ object, handle, type }) {
  if (handle === undefined) return object !== undefined && type !== 'unknown' ? false : undefined
  if (type === 'Timeout' || type === 'Immediate') return isPending(handle)
  if (type === 'MESSAGEPORT') return portState(handle).active
  if (object !== undefined && object !== handle) {
    if (type === 'DIRHANDLE') return hidden(object, 'kDirClosed') !== true
    if (handleOf(object) !== handle) return isSocket(object) && below(handleOf(object)) === handle
    if (type !== 'FILEHANDLE') return true
  }
  const fd = ask(handle, 'fd')
  if (typeof fd === 'number' && type !== 'UDPWRAP' && process.platform !== 'win32') return fd >= 0
  return ask(handle, 'hasRef') === undefined ? undefined : isAlive(handle)
}

/** @param {object | undefined} handle */
function below (handle) {
  return handle === undefined ? undefined : own(handle, '_parent')
}

/**
 * The socket that carries an HTTP/2 session or stream.
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

/**
 * The two ends, as far as they can be asked.
 * @param {Subject} subject
 * @returns {{ local: string | undefined, remote: string | undefined }}
 */
function endsOf (subject) {
  const { object, handle, type, entry } = carrierOf(subject) ?? subject
  let local = (handle && endOf(handle, 'getsockname')) ?? entry?.local
  let remote = (handle && endOf(handle, 'getpeername')) ?? entry?.remote
  if (object === undefined) return { local, remote }
  local ??= endName(own(object, '_sockname')) // what the program has asked for stays there after close
  remote ??= endName(own(object, '_peername'))
  if (type === 'PIPESERVERWRAP') local ??= text(own(object, '_pipeName'))
  if (type === 'PIPEWRAP') {
    const server = own(object, '_server')
    if (isObject(server)) local ??= text(own(server, '_pipeName'))
  }
  return { local, remote }
}

/** @param {unknown} value */
function text (value) {
  return typeof value === 'string' ? value : undefined
}

/**
 * The thing itself, without what tells it from others of its kind.
 * @param {Subject} subject
 * @param {string | undefined} side
 */
function nounOf ({ object, handle, type }, side) {
  const noun = type === 'unknown' ? stranger(object) : words[type]?.[0] ?? `${type} resource`
  if (type === 'PIPEWRAP' && side !== undefined) return 'pipe connection'
  if (type === 'TCPSERVERWRAP' && object !== undefined && own(object, '_sharedCreds') !== undefined) return 'TLS server'
  if (type === 'TCPWRAP' && object !== undefined && own(object, '_tlsOptions') !== undefined) return `${noun} under TLS`
  const fd = side === undefined && isConnection(type) && handle !== undefined ? ask(handle, 'fd') : undefined
  return standard[fd] === undefined ? clean(noun) : `${standard[fd]}, a ${noun}`
}

/**
 * @param {Subject} subject
 * @param {string | undefined} side
 * @param {{ local: string | undefined, remote: string | undefined }} ends
 */
function whatOf (subject, side, { local, remote }) {
  let what = nounOf(subject, side) + detailOf(subject)
  if (side !== undefined) what += `, ${side}`
  if (side === 'server') what += (remote === undefined ? '' : ` of ${remote}`) + (local === undefined ? '' : `, at ${local}`)
  else if (remote !== undefined) what += ` to ${remote}` + (local === undefined ? '' : `, from ${local}`)
  else if (local !== undefined) what += ` at ${local}`
  return clean(what)
}

/** An object behind which there is no resource. @param {object | undefined} object */
function stranger (object) {
  if (object === undefined) return 'object that cannot be looked into'
  if (types.isNativeError(object)) return 'error'
  return className(object) ?? 'object'
}

/** What makes one of many the one that is meant. @param {Subject} subject */
function detailOf ({ object, handle, type, context }) {
  const at = handle ?? object ?? {}
  if (type === 'Timeout') return timerDetail(at, context)
  if (type === 'Immediate') return callback(own(at, '_onImmediate'))
  if (type === 'PROCESSWRAP') {
    const pid = own(at, 'pid') ?? own(object ?? {}, 'pid')
    const file = object === undefined ? undefined : own(object, 'spawnfile')
    return (typeof pid === 'number' ? ` ${pid}` : '') + (typeof file === 'string' ? `, ${path.basename(file)}` : '')
  }
  if (type === 'WORKER') {
    const thread = own(at, 'threadId')
    return typeof thread === 'number' ? ` ${thread}` : ''
  }
  if (type === 'FILEHANDLE') {
    const fd = ask(at, 'fd')
    return typeof fd === 'number' && fd >= 0 ? `, descriptor ${fd}` : ''
  }
  if (type === 'ZLIB' && object !== undefined) return `, ${className(object)}`
  if (type === 'HTTP2STREAM' && object !== undefined) return streamDetail(object)
  if (type === 'REQUEST' && object !== undefined) return ` ${requestLabel(object)}`
  return ''
}

/** @param {object} timer @param {Context | undefined} context */
function timerDetail (timer, context) {
  const repeat = own(timer, '_repeat')
  const delay = typeof repeat === 'number' ? repeat : context?.detail ?? own(timer, '_idleTimeout')
  const time = delay === undefined || delay === -1 ? '' : typeof repeat === 'number' ? `, every ${delay} ms` : `, after ${delay} ms`
  return time + callback(own(timer, '_onTimeout'))
}

/** @param {unknown} fn */
function callback (fn) {
  const name = typeof fn === 'function' && !types.isProxy(fn) ? own(fn, 'name') : undefined
  return typeof name === 'string' && name !== '' ? `, calls ${name}()` : ''
}

/** @param {object} stream */
function streamDetail (stream) {
  const id = hidden(stream, 'id')
  const headers = hidden(stream, 'sent-headers')
  const words = isObject(headers) ? [own(headers, ':method'), own(headers, ':path')].filter((word) => typeof word === 'string') : []
  return (typeof id === 'number' ? ` ${id}` : '') + (words.length === 2 ? `, ${words.join(' ').replace(/[?#].*$/s, '')}` : '')
}

/**
 * Bytes in and out, as far as Node counts them.
 * @param {Subject} subject
 * @returns {{ bytesRead: number | undefined, bytesWritten: number | undefined }}
 */
function trafficOf (subject) {
  const { object, handle, type } = (subject.type === 'HTTP2SESSION' ? carrierOf(subject) : undefined) ?? subject
  if (/SERVERWRAP$|^UDPWRAP$|^FILEHANDLE$|^HTTP2STREAM$/.test(type)) return { bytesRead: undefined, bytesWritten: undefined }
  const live = object === undefined || object === handle || handleOf(object) !== undefined ? handle : undefined
  let bytesRead = live && numberOf(live, 'bytesRead')
  let bytesWritten = live && numberOf(live, 'bytesWritten')
  if (object === undefined || !isSocket(object) || (live !== undefined && handleOf(object) !== live)) return { bytesRead, bytesWritten }
  bytesRead ??= number(hidden(object, 'kBytesRead'))
  bytesWritten = queuedToo(object) ?? bytesWritten ?? number(hidden(object, 'kBytesWritten'))
  return { bytesRead, bytesWritten }
}

/** What Node itself says was written: it counts what still waits in the stream. @param {any} socket @returns {number | undefined} */
function queuedToo (socket) {
  const same = netBytesWritten !== undefined && getterIn(socket, 'bytesWritten') === netBytesWritten &&
    getterIn(socket, '_bytesDispatched') === netDispatched && getterIn(socket, 'writableBuffer') === streamBuffer
  return same ? number(Reflect.apply(/** @type {Function} */ (netBytesWritten), socket, [])) : undefined
}

/** @param {unknown} value */
function number (value) {
  return typeof value === 'number' ? value : undefined
}

/** Keeps the process alive. @param {Subject} subject */
function referencedOf (subject) {
  const { object, handle, type } = carrierOf(subject) ?? subject
  if (handle === undefined) return undefined
  if (type === 'MESSAGEPORT') return portState(handle).refed
  return isReferenced(type === 'Timeout' || type === 'Immediate' ? object ?? handle : handle)
}

/** @param {Subject} subject @param {string | undefined} state */
function hintOf ({ object, handle, type }, state) {
  if (state === 'closed') return undefined
  if (type === 'Timeout') {
    const repeats = typeof own(handle ?? object ?? {}, '_repeat') === 'number'
    return `${repeats ? 'clearInterval' : 'clearTimeout'}(timer) or timer.unref()`
  }
  if (type === 'PIPEWRAP' || type === 'TTYWRAP') {
    const fd = handle === undefined ? undefined : ask(handle, 'fd')
    if (fd === 0) return 'process.stdin.unref() or process.stdin.destroy()'
    if (fd === 1 || fd === 2) return undefined
  }
  if (handle !== undefined && object === handle && /^(TCP|PIPE|UDP)(SERVER)?WRAP$/.test(type) && ownerOf(handle) === undefined) return 'handle.close()'
  return words[type]?.[1]
}

module.exports = { carrierOf, endsOf, hintOf, isConnection, isOpen, isServer, nounOf, referencedOf, sideOf, stateOf, trafficOf, whatOf }
