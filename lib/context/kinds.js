'use strict'

// What longstack knows of a resource type beyond its name.

const { subsystemOf } = require('./subsystems')

/** Types that run at most once; a context of these is done after its run. */
const oneShot = new Set(('PROMISE TickObject Microtask Immediate FSREQCALLBACK FSREQPROMISE GETADDRINFOREQWRAP ' +
  'GETNAMEINFOREQWRAP QUERYWRAP TCPCONNECTWRAP PIPECONNECTWRAP WRITEWRAP SHUTDOWNWRAP UDPSENDWRAP ' +
  'RANDOMBYTESREQUEST PBKDF2REQUEST SCRYPTREQUEST FILEHANDLECLOSEREQ').split(' '))

/** Types that stay open and can be asked why; see handles/. */
const handles = new Set(('TCPWRAP TCPSERVERWRAP PIPEWRAP PIPESERVERWRAP UDPWRAP TLSWRAP TTYWRAP PROCESSWRAP WORKER ' +
  'MESSAGEPORT FSEVENTWRAP STATWATCHER SIGNALWRAP HTTP2SESSION HTTP2STREAM FILEHANDLE DIRHANDLE ZLIB Timeout ' +
  'QUIC_ENDPOINT QUIC_SESSION QUIC_STREAM DTLS_ENDPOINT DTLS_SESSION').split(' '))

/**
 * Types of which there is something as long as nobody closes it: that it is there is not to wait for it. What HTTP waits
 * for is a span of its own, and a tick or an immediate waits for nothing: with one of them the loop does not wait.
 */
const standing = new Set(('TCPSERVERWRAP PIPESERVERWRAP FILEHANDLE DIRHANDLE FSEVENTWRAP STATWATCHER SIGNALWRAP TTYWRAP TickObject Microtask PROMISE ' +
  'HTTPINCOMINGMESSAGE HTTPCLIENTREQUEST DNSCHANNEL HTTP2SESSION JSSTREAM STREAMPIPE ELDHISTOGRAM INSPECTORJSBINDING Immediate').split(' '))

/**
 * Which fields of a resource say what it is about, by type; they are set when it first runs.
 * @type {Record<string, (resource: any) => string | undefined>}
 */
const details = {
  __proto__: /** @type {any} */ (null),
  TCPCONNECTWRAP: (resource) => address(own(resource, 'address'), own(resource, 'port')),
  TCPSERVERWRAP: (resource) => listening(resource),
  PIPECONNECTWRAP: (resource) => text(own(resource, 'address')),
  GETADDRINFOREQWRAP: (resource) => text(own(resource, 'hostname')),
  GETNAMEINFOREQWRAP: (resource) => address(own(resource, 'hostname'), own(resource, 'port')),
  QUERYWRAP: (resource) => text(own(resource, 'hostname'))
}

/**
 * @typedef {object} Kind
 * @property {string} type Node's provider name or that of an AsyncResource
 * @property {boolean} tick it runs before the event loop goes on
 * @property {boolean} entered hooks/async.js carries its context while it runs, where promise hooks are off
 * @property {boolean} brief a handle that is over soon, mostly
 * @property {boolean} wanted the filter selects it
 * @property {boolean} oneShot
 * @property {boolean} handle
 * @property {boolean} promise
 * @property {boolean} server whose connections come while nothing executes
 * @property {((resource: any) => string | undefined) | undefined} detail
 * @property {string | undefined} waits the subsystem that a span waits for while one of these is pending
 * @property {boolean} once it is pending up to the end of its first run
 */

/**
 * @param {string} type
 * @param {boolean} wanted
 * @returns {Kind}
 */
function kindOf (type, wanted) {
  return {
    type,
    wanted,
    waits: standing.has(type) ? undefined : subsystemOf(type),
    once: oneShot.has(type) || type.endsWith('REQUEST'),
    tick: type === 'TickObject' || type === 'Microtask',
    entered: false,
    brief: type === 'Timeout' || type === 'FILEHANDLE',
    oneShot: oneShot.has(type),
    handle: handles.has(type),
    promise: type === 'PROMISE',
    server: type === 'TCPSERVERWRAP' || type === 'PIPESERVERWRAP',
    detail: details[type]
  }
}

/**
 * Reads an own data property: never a getter, never a proxy's trap of the program's.
 * @param {object} object
 * @param {PropertyKey} name
 */
function own (object, name) {
  return Object.getOwnPropertyDescriptor(object, name)?.value
}

/** @param {unknown} value */
function text (value) {
  return typeof value === 'string' ? value : undefined
}

/**
 * host:port, with brackets around IPv6.
 * @param {unknown} host
 * @param {unknown} port
 */
function address (host, port) {
  if (typeof host !== 'string') return undefined
  const name = host.includes(':') ? `[${host}]` : host
  return port === undefined ? name : `${name}:${port}`
}

/**
 * Where a server listens.
 * @param {any} handle
 * @returns {string | undefined}
 */
function listening (handle) {
  /** @type {{ address?: string, port?: number }} */
  const out = {}
  const failed = typeof handle?.getsockname !== 'function' || handle.getsockname(out)
  return failed ? undefined : address(out.address, out.port)
}

module.exports = { address, kindOf, own }
