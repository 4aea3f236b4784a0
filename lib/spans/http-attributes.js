'use strict'

// What a request is about, in OpenTelemetry's names. Own data properties only: what the program has put in their way is
// not run. No header, body or query string is recorded.

const { hasNodePrototype, shortMethod } = require('../context/request-names')
const { member } = require('../encoding/json')
const { hidden, isObject, own } = require('../objects')

const LONGEST = 2048 // characters of a path
const NAME = 200 // characters of one in a name
const NAMES = 1000 // of requests, kept
const HEADS = 1000 // beginnings of attributes, kept
const HEAD_PATH = 256 // characters of a path
const HEAD_KEYS = 8 // attributes of a request of which all is known

/** @typedef {Record<string, unknown>} Attributes */

/** @param {unknown} value */
const word = (value) => typeof value === 'string' && value !== '' ? value : undefined

/** @param {unknown} value @returns {string | undefined} */
const methodOf = (value) => typeof value === 'string' && value !== '' ? shortMethod(value) : undefined

/** @param {Attributes} attributes @param {string} name @param {unknown} value left out where it is not known */
function add (attributes, name, value) {
  if (value !== undefined) attributes[name] = value
}

/** @param {unknown} url @returns {string | undefined} */
function pathOf (url) {
  const path = word(url)
  if (path === undefined || (path.startsWith('/') && path.length < LONGEST && !path.includes('?') && !path.includes('#'))) return path
  return path.replace(/^[a-z][\w+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '').slice(0, LONGEST)
}

/** A part of a path that stands for one of many: a number, a UUID, a hash, a token. */
const many = /^(?:\d+|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?=[^/]*\d)[0-9a-f]{12,}|(?=[^/]*\d)[\w-]{24,}|.{64,})$/i

/**
 * A path as a name: where no framework tells the route, what looks like one of many is left open, so that names stay few.
 * @param {string} path
 */
function nameOf (path) {
  if (path.length < 24 && !/\d/.test(path)) return path
  return path.split('/').map((part) => many.test(part) ? '*' : part).join('/').slice(0, NAME)
}

/** @typedef {{ address?: string, port?: number }} Host */

/** that was asked for last, and what it says */
let lastText = ''
/** @type {Host} */
let lastHost = {}

/** A host with its port. @param {string | undefined} text @returns {Host} */
function hostOf (text) {
  if (text === undefined) return {}
  if (text === lastText) return lastHost
  const parts = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(text)
  lastText = text
  lastHost = parts === null ? {} : { address: word(parts[1].replace(/^\[|\]$/g, '')), port: parts[2] === undefined ? undefined : Number(parts[2]) }
  return lastHost
}

/** Names that were made of a method and a path or route, so that equal ones are one text. @type {Map<string, Map<string, string>>} */
let named = new Map()
let namedCount = 0

/** @param {string} method @param {string} path or route @returns {string} */
function requestName (method, path) {
  let ofMethod = named.get(method)
  const known = ofMethod?.get(path)
  if (known !== undefined) return known
  if (namedCount++ >= NAMES) {
    named = new Map()
    namedCount = 0
  }
  if (!named.has(method)) named.set(method, ofMethod = new Map())
  const name = `${method} ${path}`
  named.get(method)?.set(path, name)
  return name
}

/**
 * The headers that are read of a message that came in, as they were sent; undefined where one came more than once.
 * @param {object} request
 */
function headersOf (request) {
  const raw = hasNodePrototype(request) ? /** @type {any} */ (request).rawHeaders : own(request, 'rawHeaders')
  /** @type {{ host?: string, traceparent?: string }} */
  const found = { host: undefined, traceparent: undefined }
  if (!Array.isArray(raw)) return found
  let [hosts, parents] = [0, 0]
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const key = raw[i]
    if (typeof key !== 'string') continue
    if (key.length === 4 && key.toLowerCase() === 'host') found.host = hosts++ === 0 ? word(raw[i + 1]) : undefined
    else if (key.length === 11 && key.toLowerCase() === 'traceparent') found.traceparent = parents++ === 0 ? word(raw[i + 1]) : undefined
  }
  return found
}

/** @param {any} socket a net.Socket, or what stands for one @returns {{ peer: string | undefined, peerPort: unknown }} */
function peerOf (socket) {
  try {
    return { peer: word(socket.remoteAddress), peerPort: socket.remotePort }
  } catch {
    return { peer: undefined, peerPort: undefined }
  }
}

/** @param {Attributes} attributes @param {any} socket */
function addPeer (attributes, socket) {
  const { peer, peerPort } = peerOf(socket)
  add(attributes, 'network.peer.address', peer)
  add(attributes, 'network.peer.port', peerPort)
}

/**
 * @typedef {object} Known what requests have in common
 * @property {string} scheme
 * @property {string} address
 * @property {number} port
 * @property {Uint8Array | undefined} bytes JSON of it, from the second such request on
 */

/**
 * by method and path, or the path alone for GET
 * @type {Map<string, Known>}
 */
let heads = new Map()

/**
 * Returns the JSON of the first five attributes of a request, with what comes before the sixth.
 * @param {string} method
 * @param {string} path
 * @param {string} scheme
 * @param {string} address
 * @param {number} port
 * @returns {Uint8Array | undefined}
 */
function headFor (method, path, scheme, address, port) {
  if (path.length > HEAD_PATH) return undefined
  const key = method === 'GET' ? path : `${method} ${path}`
  const known = heads.get(key)
  if (known === undefined || known.port !== port || known.address !== address || known.scheme !== scheme) {
    if (heads.size >= HEADS) heads = new Map()
    heads.set(key, { scheme, address, port, bytes: undefined })
    return undefined
  }
  known.bytes ??= headBytes(method, path, known)
  return known.bytes
}

/** @param {string} method @param {string} path @param {Known} known @returns {Uint8Array} */
function headBytes (method, path, { scheme, address, port }) {
  const members = [
    member('http.request.method', method),
    member('url.path', path),
    member('url.scheme', scheme),
    member('server.address', address),
    member('server.port', port)
  ]
  return Buffer.from(`${members.join()},"network.peer.address":`, 'latin1')
}

/**
 * A request that a server got.
 * @param {object} request
 * @param {any} socket
 * @returns {{ name: string, attributes: Attributes, traceparent: string | undefined, head?: Uint8Array }}
 */
function served (request, socket) {
  const { method = 'GET', path, version } = startLine(request)
  const { host, traceparent } = headersOf(request)
  const { address, port } = hostOf(host)
  const { peer, peerPort } = peerOf(socket)
  const scheme = socket?.encrypted === true ? 'https' : 'http'
  const name = requestName(method, nameOf(path))
  if (address !== undefined && port !== undefined && peer !== undefined && peerPort !== undefined && version !== undefined) {
    // all at once: an object that grows is moved again and again
    return {
      name,
      attributes: {
        'http.request.method': method,
        'url.path': path,
        'url.scheme': scheme,
        'server.address': address,
        'server.port': port,
        'network.peer.address': peer,
        'network.peer.port': peerPort,
        'network.protocol.version': version
      },
      traceparent,
      head: typeof peerPort === 'number' ? headFor(method, path, scheme, address, port) : undefined
    }
  }
  /** @type {Attributes} */
  const attributes = { 'http.request.method': method, 'url.path': path, 'url.scheme': scheme }
  add(attributes, 'server.address', address)
  add(attributes, 'server.port', port)
  add(attributes, 'network.peer.address', peer)
  add(attributes, 'network.peer.port', peerPort)
  add(attributes, 'network.protocol.version', version)
  return { name, attributes, traceparent }
}

/** @param {any} request @returns {{ method: string | undefined, path: string, version: string | undefined }} */
function startLine (request) {
  const { method, url, httpVersion } = hasNodePrototype(request)
    ? request
    : { method: own(request, 'method'), url: own(request, 'url'), httpVersion: own(request, 'httpVersion') }
  return { method: methodOf(method), path: pathOf(url) ?? '', version: word(httpVersion) }
}

/**
 * A request that is made, by http or by undici.
 * @param {object} request
 * @returns {{ name: string, attributes: Attributes }}
 */
function made (request) {
  const method = methodOf(own(request, 'method')) ?? 'GET'
  const origin = word(own(request, 'origin')) // undici's
  const scheme = (origin ?? word(own(request, 'protocol')) ?? 'http:').replace(/:.*$/s, '')
  const headers = hidden(request, 'kOutHeaders')
  const header = isObject(headers) ? own(headers, 'host') : undefined
  const host = hostOf(origin?.replace(/^[^/]*\/\/([^/@]*@)?/, '') ?? (Array.isArray(header) ? word(header[1]) : undefined) ?? word(own(request, 'host')))
  const path = pathOf(own(request, 'path') ?? hidden(request, 'kPath')) ?? ''
  /** @type {Attributes} */
  const attributes = { 'http.request.method': method, 'url.path': path, 'url.scheme': scheme }
  add(attributes, 'server.address', host.address)
  add(attributes, 'server.port', host.port ?? (scheme === 'https' ? 443 : 80))
  return { name: method === 'CONNECT' ? `${method} ${path}` : `${method} ${host.address ?? ''}${nameOf(path)}`, attributes }
}

/**
 * A request that came on a stream of HTTP/2.
 * @param {any} headers
 * @param {any} socket
 * @returns {{ name: string, attributes: Attributes }}
 */
function streamServed (headers, socket) {
  const { name, attributes } = streamed(headers, undefined)
  addPeer(attributes, socket)
  return { name, attributes }
}

/**
 * A request that is made on a stream of HTTP/2.
 * @param {any} headers
 * @param {string | undefined} origin of the session
 */
function streamMade (headers, origin) {
  const { name, attributes, path } = streamed(headers, origin)
  attributes['server.port'] ??= attributes['url.scheme'] === 'http' ? 80 : 443
  const method = attributes['http.request.method']
  return { name: path === undefined ? name : `${method} ${attributes['server.address'] ?? ''}${nameOf(path)}`, attributes }
}

/** @param {any} headers @param {string | undefined} origin @returns {{ name: string, attributes: Attributes, path: string | undefined }} */
function streamed (headers, origin) {
  const given = isObject(headers) ? headers : {}
  const method = methodOf(own(given, ':method')) ?? 'GET'
  const path = pathOf(own(given, ':path'))
  const url = /^(\w+):\/\/(?:[^/@]*@)?([^/]*)/.exec(origin ?? '')
  const host = hostOf(word(own(given, ':authority')) ?? word(own(given, 'host')) ?? url?.[2])
  /** @type {Attributes} */
  const attributes = { 'http.request.method': method }
  add(attributes, 'url.path', path)
  add(attributes, 'url.scheme', word(own(given, ':scheme')) ?? url?.[1])
  add(attributes, 'server.address', host.address)
  add(attributes, 'server.port', host.port)
  attributes['network.protocol.version'] = '2'
  return { name: `${method} ${nameOf(path ?? '')}`.trim(), attributes, path }
}

/** The error codes of HTTP/2, in order (RFC 9113, 7). */
const errors = ('NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR REFUSED_STREAM CANCEL ' +
  'COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED').split(' ')

/** @param {number} code of HTTP/2 @returns {string | undefined} its name, as Node has it */
function streamError (code) {
  return code === 0 || errors[code] === undefined ? undefined : `NGHTTP2_${errors[code]}`
}

/**
 * A connection that was to be made.
 * @param {import('../requests/connects').ConnectEnd} end
 * @returns {{ name: string, attributes: Attributes }}
 */
function connected ({ socket, to, pipe }) {
  const error = socket?.errored
  /** @type {Attributes} */
  const attributes = { 'network.transport': pipe ? 'unix' : 'tcp' }
  const tried = pipe ? { address: to } : hostOf(to)
  const address = word(isObject(socket) ? own(socket, '_host') : undefined) ?? tried.address ?? failedAt(error, pipe ? 'path' : 'hostname') ?? failedAt(error, 'address')
  const port = tried.port ?? (isObject(error) ? own(error, 'port') : undefined)
  add(attributes, 'server.address', address)
  if (typeof port === 'number') attributes['server.port'] = port
  if (!pipe && socket?.destroyed === false) addPeer(attributes, socket)
  const host = address?.includes(':') && !pipe ? `[${address}]` : address
  return { name: ['connect', host === undefined || typeof port !== 'number' ? host : `${host}:${port}`].filter(Boolean).join(' '), attributes }
}

/** @param {unknown} error @param {string} field */
function failedAt (error, field) {
  return isObject(error) ? word(own(error, field)) : undefined
}

/**
 * Has a request of undici's such a header? It keeps them in a list, or as text.
 * @param {unknown} headers
 * @param {string} name in lower case
 */
function hasHeader (headers, name) {
  if (typeof headers === 'string') return new RegExp(`^${name}:`, 'im').test(headers)
  return Array.isArray(headers) && headers.some((key, i) => i % 2 === 0 && typeof key === 'string' && key.toLowerCase() === name)
}

module.exports = {
  HEAD_KEYS,
  connected,
  served,
  made,
  hasHeader,
  requestName,
  streamError,
  streamMade,
  streamServed
}
