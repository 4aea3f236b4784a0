'use strict'

// What a request is about, in OpenTelemetry's names. Own data properties only: what the program has put in their way is
// not run. No header, body or query string is recorded.

const { own } = require('../context/kinds')
const { hidden, isObject } = require('../handles/inside')

const LONGEST = 2048 // characters of a path
const NAME = 200 // characters of one in a name

/** @typedef {Record<string, unknown>} Attributes */

/** @param {unknown} value */
const word = (value) => typeof value === 'string' && value !== '' ? value : undefined

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

/** A host with its port. @param {string | undefined} text @returns {{ address?: string, port?: number }} */
function hostOf (text) {
  const parts = text === undefined ? null : /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(text)
  if (parts === null) return {}
  return { address: word(parts[1].replace(/^\[|\]$/g, '')), port: parts[2] === undefined ? undefined : Number(parts[2]) }
}

/**
 * A header of a message that came in, as it was sent; undefined where it came more than once.
 * @param {object} request
 * @param {string} name in lower case
 */
function headerOf (request, name) {
  const raw = own(request, 'rawHeaders')
  if (!Array.isArray(raw)) return undefined
  let found
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const key = raw[i]
    if (typeof key !== 'string' || key.length !== name.length || key.toLowerCase() !== name) continue
    if (found !== undefined) return undefined
    found = word(raw[i + 1])
  }
  return found
}

/** @param {Attributes} attributes @param {any} socket a net.Socket, or what stands for one */
function addPeer (attributes, socket) {
  try {
    add(attributes, 'network.peer.address', word(socket.remoteAddress))
    add(attributes, 'network.peer.port', socket.remotePort)
  } catch {}
}

/**
 * A request that a server got.
 * @param {object} request
 * @param {any} socket
 * @returns {{ name: string, attributes: Attributes }}
 */
function served (request, socket) {
  const method = word(own(request, 'method')) ?? 'GET'
  const { address, port } = hostOf(headerOf(request, 'host'))
  const path = pathOf(own(request, 'url')) ?? ''
  /** @type {Attributes} */
  const attributes = {
    'http.request.method': method,
    'url.path': path,
    'url.scheme': socket?.encrypted === true ? 'https' : 'http'
  }
  add(attributes, 'server.address', address)
  add(attributes, 'server.port', port)
  addPeer(attributes, socket)
  add(attributes, 'network.protocol.version', word(own(request, 'httpVersion')))
  return { name: `${method} ${nameOf(path)}`, attributes }
}

/**
 * A request that is made, by http or by undici.
 * @param {object} request
 * @returns {{ name: string, attributes: Attributes }}
 */
function made (request) {
  const method = word(own(request, 'method')) ?? 'GET'
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
  return { name: `${method} ${host.address ?? ''}${nameOf(path)}`, attributes }
}

/**
 * The template of the route that answered, where the framework says it on the request or the answer.
 * @param {object} request
 * @returns {string | undefined}
 */
function routeOf (request) {
  const route = own(request, 'route') // Express
  const path = isObject(route) ? own(route, 'path') : undefined
  if (typeof path !== 'string') return undefined
  const base = word(own(request, 'baseUrl')) ?? ''
  return `${base}${path}`.slice(0, LONGEST)
}

module.exports = { served, made, headerOf, routeOf }
