'use strict'

// Names and attributes of request and connection spans, in OpenTelemetry's terms. Reads only own data
// properties, so no getter or proxy of the program runs. Headers, bodies and query strings are not recorded.

const requests = require('../core/request-names')
const { endOf, handleOf, hostHeaderOf } = require('../node-objects')
const { hidden, hiddenProperty, isObject, own, textOf } = require('../objects')
const { nameOfMethod, nameOfPath } = require('../path-names')
const { cutCredentials } = require('../text')

const MAX_PATH = 2048 // characters of a path
const MAX_HOST = 300 // characters of a kept one
const MAX_SHARED = 256 // hosts, and methods on servers; a client may name new ones with each request

/**
 * @typedef {Record<string, unknown>} Attributes
 * @typedef {{ address?: string, port?: number, last?: Shared }} Host last: attributes of its last span
 *
 * @typedef {object} Shared attributes and their values
 * @property {string} method
 * @property {string | undefined} scheme
 * @property {unknown} port
 * @property {string | undefined} version
 * @property {Attributes} attributes
 *
 * @typedef {object} Described
 * @property {string} name
 * @property {string} [path]
 * @property {Peer} [peer] the other end
 * @property {Attributes} [attributes] other attributes
 * @property {Attributes} [shared] attributes common to all spans of a method on a server; equal ones are
 *   the same object while there are few
 */

const { hasNodePrototype, requestName } = requests

/** @param {unknown} value @returns {string | undefined} */
function methodOf (value) {
  const method = textOf(value)
  return method === undefined ? undefined : requests.shortMethod(method)
}

/** @param {unknown} url @returns {string | undefined} */
function pathOf (url) {
  const text = textOf(url)
  return text === undefined ? undefined : requests.pathOf(text).slice(0, MAX_PATH)
}

/** by text: a service has few hosts, and calls few @type {Map<string, Host>} */
const hosts = new Map()

/** Parses a host with its port. @param {string | undefined} text @returns {Host} */
function hostOf (text) {
  if (text === undefined) return {}
  let host = hosts.get(text)
  if (host === undefined) {
    host = parseHost(text)
    if (hosts.size >= MAX_SHARED) hosts.clear()
    if (text.length <= MAX_HOST) hosts.set(text, host)
  }
  return host
}

/** @param {string} text @returns {Host} */
function parseHost (text) {
  const parts = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(cutCredentials(text))
  if (parts === null) return {}
  const port = parts[2] === undefined ? undefined : Number(parts[2])
  return { address: textOf(parts[1].replace(/^\[|\]$/g, '')), port }
}

/** by their values @type {Map<string, Attributes>} */
const sharedByKey = new Map()

/**
 * @param {string} method
 * @param {string | undefined} scheme
 * @param {Host} host
 * @param {unknown} port
 * @param {string | undefined} version
 * @returns {Attributes}
 */
function sharedOf (method, scheme, host, port, version) {
  const { address, last } = host
  if (last?.method === method && last.scheme === scheme && last.port === port && last.version === version) {
    return last.attributes
  }
  const key = `${method} ${scheme} ${address} ${port} ${version}`
  let shared = sharedByKey.get(key)
  if (shared === undefined) {
    shared = { 'http.request.method': method }
    add(shared, 'url.scheme', scheme)
    add(shared, 'server.address', address)
    add(shared, 'server.port', port)
    add(shared, 'network.protocol.version', version)
    if (sharedByKey.size >= MAX_SHARED) sharedByKey.clear()
    sharedByKey.set(key, shared)
  }
  host.last = { method, scheme, port, version, attributes: shared }
  return shared
}

/** @param {Attributes} attributes @param {string} name @param {unknown} value undefined: left out */
function add (attributes, name, value) {
  if (value !== undefined) attributes[name] = value
}

/**
 * Reads the needed headers of an incoming message; a repeated one is undefined.
 * @param {object} request
 */
function headersOf (request) {
  const raw = hasNodePrototype(request) ? /** @type {any} */ (request).rawHeaders : own(request, 'rawHeaders')
  /** @type {{ host?: string, traceparent?: string }} */
  const headers = { host: undefined, traceparent: undefined }
  if (!Array.isArray(raw)) return headers
  let [hosts, traceparents] = [0, 0]
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const key = raw[i]
    if (typeof key !== 'string') continue
    if (key.length === 4 && key.toLowerCase() === 'host') {
      headers.host = hosts++ === 0 ? textOf(raw[i + 1]) : undefined
    } else if (key.length === 11 && key.toLowerCase() === 'traceparent') {
      headers.traceparent = traceparents++ === 0 ? textOf(raw[i + 1]) : undefined
    }
  }
  return headers
}

/**
 * @typedef {object} Peer
 * @property {number | undefined} id of the socket's handle; a reconnected socket has another one
 * @property {boolean} isNew first read of this peer
 * @property {string | undefined} peer
 * @property {unknown} peerPort
 * @property {import('../record/texts').Definition} [definition] its definition in a recording
 */

const socketId = hiddenProperty('async_id_symbol')

/**
 * @param {any} socket a net.Socket, or a replacement for one
 * @param {{ peer?: Peer }} connection caches it, since it may carry many requests
 * @returns {Peer}
 */
function peerOf (socket, connection) {
  const known = connection.peer
  if (known !== undefined && known.id !== undefined && known.id === socketId(socket)) {
    known.isNew = false
    return known
  }
  connection.peer = findPeer(socket)
  return connection.peer
}

/** @param {unknown} socket @returns {Peer} */
function findPeer (socket) {
  if (!isObject(socket)) return { id: undefined, isNew: true, peer: undefined, peerPort: undefined }
  const handle = handleOf(socket)
  const end = handle && endOf(handle, 'getpeername')
  if (end === undefined) {
    const peer = textOf(own(socket, 'remoteAddress'))
    return { id: undefined, isNew: true, peer, peerPort: own(socket, 'remotePort') }
  }
  return { id: socketId(socket), isNew: true, peer: textOf(end.address), peerPort: end.port }
}

/**
 * Describes a request that a server received.
 * @param {object} request
 * @param {any} socket
 * @param {{ peer?: Peer }} connection
 * @returns {Described & { peer: Peer, traceparent: string | undefined }}
 */
function describeServed (request, socket, connection) {
  const { method = 'GET', path, version } = startLine(request)
  const { host, traceparent } = headersOf(request)
  const server = hostOf(host)
  const scheme = socket?.encrypted === true ? 'https' : 'http'
  const name = requestName(method, nameOfPath(path))
  const shared = sharedOf(method, scheme, server, server.port, version)
  return { name, path, peer: peerOf(socket, connection), shared, traceparent }
}

/**
 * @param {any} request
 * @returns {{ method: string | undefined, path: string, version: string | undefined }}
 */
function startLine (request) {
  const { method, url, httpVersion } = hasNodePrototype(request)
    ? request
    : { method: own(request, 'method'), url: own(request, 'url'), httpVersion: own(request, 'httpVersion') }
  return { method: methodOf(method), path: pathOf(url) ?? '', version: textOf(httpVersion) }
}

/**
 * Describes an outgoing request of http or undici.
 * @param {object} request
 * @returns {Described}
 */
function describeRequested (request) {
  const method = methodOf(own(request, 'method')) ?? 'GET'
  const origin = textOf(own(request, 'origin')) // undici's
  const scheme = (origin ?? textOf(own(request, 'protocol')) ?? 'http:').replace(/:.*$/s, '')
  const host = hostOf(origin?.replace(/^[^/]*\/\//, '') ?? hostHeaderOf(request))
  const path = pathOf(own(request, 'path') ?? hidden(request, 'kPath')) ?? ''
  const port = host.port ?? (scheme === 'https' ? 443 : 80)
  const shared = sharedOf(method, scheme, host, port, undefined)
  const target = method === 'CONNECT' ? ` ${path}` : ` ${host.address ?? ''}${nameOfPath(path)}`
  return { name: `${nameOfMethod(method)}${target}`, path, shared }
}

/**
 * Describes a request that arrived on an HTTP/2 stream.
 * @param {any} headers
 * @param {any} socket
 * @param {{ peer?: Peer }} connection
 * @returns {Described}
 */
function describeServedStream (headers, socket, connection) {
  const { method, path, scheme, host } = streamOf(headers, undefined)
  const name = `${nameOfMethod(method)} ${nameOfPath(path ?? '')}`.trim()
  const shared = sharedOf(method, scheme, host, host.port, '2')
  return { name, path, peer: peerOf(socket, connection), shared }
}

/**
 * Describes an outgoing request on an HTTP/2 stream.
 * @param {any} headers
 * @param {string | undefined} origin of the session
 * @returns {Described}
 */
function describeRequestedStream (headers, origin) {
  const { method, path, scheme, host } = streamOf(headers, origin)
  const { address, port = scheme === 'http' ? 80 : 443 } = host
  const target = path === undefined ? '' : `${address ?? ''}${nameOfPath(path)}`
  const name = `${nameOfMethod(method)} ${target}`.trim()
  return { name, path, shared: sharedOf(method, scheme, host, port, '2') }
}

/**
 * @param {any} headers
 * @param {string | undefined} origin
 */
function streamOf (headers, origin) {
  const present = isObject(headers) ? headers : {}
  const method = methodOf(own(present, ':method')) ?? 'GET'
  const path = pathOf(own(present, ':path'))
  const url = /^(\w+):\/\/([^/]*)/.exec(origin ?? '')
  const host = hostOf(textOf(own(present, ':authority')) ?? textOf(own(present, 'host')) ?? url?.[2])
  return { method, path, scheme: textOf(own(present, ':scheme')) ?? url?.[1], host }
}

/** HTTP/2 error codes, in order (RFC 9113, section 7). */
const streamErrors = ('NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT ' +
  'STREAM_CLOSED FRAME_SIZE_ERROR REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM ' +
  'INADEQUATE_SECURITY HTTP_1_1_REQUIRED').split(' ')

/** @param {number} code HTTP/2 error code @returns {string | undefined} its name in Node */
function streamErrorName (code) {
  return code === 0 || streamErrors[code] === undefined ? undefined : `NGHTTP2_${streamErrors[code]}`
}

/**
 * Describes a connection that was made or failed.
 * @param {import('./connects').ConnectEnd} end
 * @returns {Described}
 */
function describeConnect ({ socket, to, pipe }) {
  const error = socket?.errored
  /** @type {Attributes} */
  const attributes = { 'network.transport': pipe ? 'unix' : 'tcp' }
  const tried = pipe ? { address: to } : hostOf(to)
  const end = textOf(isObject(socket) ? own(socket, '_host') : undefined) ?? tried.address ??
    fieldOf(error, pipe ? 'path' : 'hostname') ?? fieldOf(error, 'address')
  const address = pipe ? end : end && cutCredentials(end)
  const port = tried.port ?? (isObject(error) ? own(error, 'port') : undefined)
  add(attributes, 'server.address', address)
  if (typeof port === 'number') attributes['server.port'] = port
  const peer = !pipe && socket?.destroyed === false ? findPeer(socket) : undefined
  if (address === undefined) return { name: 'connect', peer, attributes }
  const host = address.includes(':') && !pipe ? `[${address}]` : address
  return { name: typeof port === 'number' ? `connect ${host}:${port}` : `connect ${host}`, peer, attributes }
}

/** @param {unknown} error @param {string} field */
function fieldOf (error, field) {
  return isObject(error) ? textOf(own(error, field)) : undefined
}

module.exports = {
  describeConnect,
  describeRequested,
  describeRequestedStream,
  describeServed,
  describeServedStream,
  streamErrorName
}
