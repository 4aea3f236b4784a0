'use strict'

// Description of a resource in words: its kind, its ends, and how to close it. Facts that only code of the
// program could provide stay undefined.

const path = require('node:path')
const { types } = require('node:util')
const { callNative, formatAddress, addressOf, ownerOf } = require('../node-objects')
const { className, hidden, isObject, own, textOf } = require('../objects')
const { clean, cutCredentials } = require('../text')
const { requestLabel } = require('./request-label')
const { carrierOf, handlesOfType, isOfPrimary, standardDescriptor } = require('./subject')

/**
 * @typedef {import('./subject').Subject} Subject
 * @typedef {{ local: string | undefined, remote: string | undefined }} Ends address:port, or the path of a
 *   pipe or descriptor
 */

/** @type {Record<string, [string, string | undefined]>} name of a type, and how to close it */
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
  DESCRIPTOR: ['file', 'fs.close(fd)'],
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

const streamNames = ['standard input', 'standard output', 'standard error']

/** Types that, without an object of the program, leave only a bare handle to close. */
const bareHandle = /^(TCP|PIPE|UDP)(SERVER)?WRAP$/

/**
 * Reads the two ends of a connection, as far as available.
 * @param {Subject} subject
 * @returns {Ends}
 */
function endsOf (subject) {
  const { object, handle, type, entry, descriptor } = carrierOf(subject) ?? subject
  if (descriptor !== undefined) return { local: descriptor.path, remote: undefined }
  let local = (handle && addressOf(handle, 'getsockname')) ?? entry?.local
  let remote = (handle && addressOf(handle, 'getpeername')) ?? entry?.remote
  if (object === undefined) return { local, remote }
  local ??= formatAddress(own(object, '_sockname')) // Node keeps these after close if the program read them
  remote ??= formatAddress(own(object, '_peername'))
  if (subject.isShared) local ??= addressInKey(textOf(own(object, '_connectionKey')))
  if (type === 'PIPESERVERWRAP') local ??= textOf(own(object, '_pipeName'))
  if (type === 'PIPEWRAP') {
    const server = own(object, '_server')
    if (isObject(server)) local ??= textOf(own(server, '_pipeName'))
  }
  return { local, remote }
}

/** @param {string | undefined} key of a server: type, address and port passed to listen() */
function addressInKey (key) {
  const [, address, port] = /^[46]:(.+):(\d+)$/.exec(key ?? '') ?? []
  return Number(port) > 0 ? formatAddress({ address, port: Number(port) }) : undefined
}

/**
 * Names the kind of a resource, the same for all of a kind.
 * @param {Subject} subject
 * @param {string | undefined} side
 */
function nounOf (subject, side) {
  const { object, type, descriptor } = subject
  if (descriptor?.isRest) return 'descriptors'
  if (descriptor?.isDirectory) return 'directory'
  const noun = type === 'unknown' ? nounOfObject(object) : words[type]?.[0] ?? `${type} resource`
  if (type === 'PIPEWRAP' && side !== undefined) return 'pipe connection'
  if (type === 'TCPSERVERWRAP' && own(object ?? {}, '_sharedCreds') !== undefined) return 'TLS server'
  if (type === 'TCPWRAP' && own(object ?? {}, '_tlsOptions') !== undefined) return `${noun} under TLS`
  const fd = side === undefined ? standardDescriptor(subject) : undefined
  return fd === undefined ? clean(noun) : `${streamNames[fd]}, a ${noun}`
}

/** Names an object without a resource. @param {object | undefined} object */
function nounOfObject (object) {
  if (object === undefined) return 'object that cannot be looked into'
  if (types.isNativeError(object)) return 'error'
  return className(object) ?? 'object'
}

/**
 * Describes one resource: its kind, its details and its ends.
 * @param {Subject} subject
 * @param {string | undefined} side
 * @param {Ends} ends
 */
function describe (subject, side, { local, remote }) {
  let text = nounOf(subject, side) + detailOf(subject)
  if (subject.type === 'PIPEWRAP' && side === undefined) text += pipeDetail(subject)
  if (side !== undefined) text += `, ${side}`
  if (side === 'server') {
    text += (remote === undefined ? '' : ` of ${remote}`) + (local === undefined ? '' : `, at ${local}`)
  } else if (remote !== undefined) {
    text += ` to ${remote}` + (local === undefined ? '' : `, from ${local}`)
  } else if (local !== undefined) {
    text += ` at ${local}`
  }
  if (subject.isShared) text += ', for the workers of a cluster'
  if (isOfPrimary(subject)) text += ', listens through the primary'
  return clean(text)
}

/** Returns the details that distinguish a resource from others of its kind. @param {Subject} subject */
function detailOf ({ object, handle, type, context, descriptor }) {
  if (descriptor?.isRest) return ` from ${descriptor.fd} on, not looked at`
  if (descriptor !== undefined) return `, descriptor ${descriptor.fd}`
  const resource = handle ?? object ?? {}
  if (type === 'Timeout') return timerDetail(resource, context)
  if (type === 'Immediate') return callbackDetail(own(resource, '_onImmediate'))
  if (type === 'PROCESSWRAP') {
    const pid = own(resource, 'pid') ?? own(object ?? {}, 'pid')
    const file = object === undefined ? undefined : own(object, 'spawnfile')
    const name = typeof file === 'string' ? `, ${path.basename(file)}` : ''
    return numberText(pid) + name
  }
  if (type === 'WORKER') return numberText(own(resource, 'threadId'))
  if (type === 'FILEHANDLE') {
    const fd = callNative(resource, 'fd')
    return typeof fd === 'number' && fd >= 0 ? `, descriptor ${fd}` : ''
  }
  if (type === 'SIGNALWRAP') return signalDetail()
  if (type === 'ZLIB' && object !== undefined) return `, ${className(object)}`
  if (type === 'HTTP2STREAM' && object !== undefined) return streamDetail(object)
  if (type === 'REQUEST' && object !== undefined) return ` ${requestLabel(object)}`
  return ''
}

/**
 * Describes a pipe between this process and a child or the parent.
 * @param {Subject} subject
 * @returns {string} with a leading comma; empty if it is none
 */
function pipeDetail ({ object, handle }) {
  const ownChannel = hidden(process, 'kChannelHandle')
  if (handle !== undefined && ownChannel === handle) return ', channel to the parent process'
  for (const processHandle of handlesOfType('PROCESSWRAP')) {
    const child = ownerOf(processHandle)
    if (child === undefined) continue
    const stdio = own(child, 'stdio')
    const index = object !== undefined && Array.isArray(stdio) ? stdio.indexOf(object) : -1
    const isChannel = handle !== undefined && hidden(child, 'kChannelHandle') === handle
    if (index === -1 && !isChannel) continue
    const part = isChannel ? 'channel to' : `${streamNames[index] ?? `descriptor ${index}`} of`
    return `, ${part} child process${numberText(own(child, 'pid'))}`
  }
  return ''
}

/**
 * Names all signals that have listeners, since Node does not store a handle's signal on it.
 * @returns {string} with a leading comma; empty if there are none
 */
function signalDetail () {
  const events = own(process, '_events')
  const signals = isObject(events) ? Object.keys(events).filter((name) => /^SIG[A-Z0-9]+$/.test(name)) : []
  return signals.length === 0 ? '' : `, ${signals.join(' or ')}`
}

/** @param {unknown} value */
const numberText = (value) => typeof value === 'number' ? ` ${value}` : ''

/** @param {object} timer @param {Subject['context']} context */
function timerDetail (timer, context) {
  const callback = callbackDetail(own(timer, '_onTimeout'))
  const repeat = own(timer, '_repeat')
  if (typeof repeat === 'number') return `, every ${repeat} ms${callback}`
  const delay = context?.detail ?? own(timer, '_idleTimeout')
  return delay === undefined || delay === -1 ? callback : `, after ${delay} ms${callback}`
}

/** @param {unknown} callback */
function callbackDetail (callback) {
  const name = typeof callback === 'function' && !types.isProxy(callback) ? own(callback, 'name') : undefined
  return typeof name === 'string' && name !== '' ? `, calls ${name}()` : ''
}

/** @param {object} stream HTTP/2 stream */
function streamDetail (stream) {
  const id = hidden(stream, 'id')
  const headers = hidden(stream, 'sent-headers')
  const [method, target] = isObject(headers) ? [own(headers, ':method'), own(headers, ':path')] : []
  const hasRequest = typeof method === 'string' && typeof target === 'string'
  const request = hasRequest ? `, ${method} ${cutCredentials(target.replace(/[?#].*$/s, ''))}` : ''
  return numberText(id) + request
}

/** Returns how to close a resource. @param {Subject} subject @param {string | undefined} state */
function hintOf (subject, state) {
  const { object, handle, type } = subject
  if (state === 'closed') return undefined
  if (subject.isShared) return 'cluster.disconnect()'
  if (type === 'Timeout') {
    const repeats = typeof own(handle ?? object ?? {}, '_repeat') === 'number'
    return `${repeats ? 'clearInterval' : 'clearTimeout'}(timer) or timer.unref()`
  }
  if (type === 'PIPEWRAP' || type === 'TTYWRAP') {
    const fd = standardDescriptor(subject)
    if (fd === 0) return 'process.stdin.unref() or process.stdin.destroy()'
    if (fd === 1 || fd === 2) return undefined
  }
  if (handle === undefined || object !== handle || !bareHandle.test(type)) return words[type]?.[1]
  return ownerOf(handle) === undefined ? 'handle.close()' : words[type]?.[1]
}

module.exports = { describe, endsOf, hintOf, nounOf }
