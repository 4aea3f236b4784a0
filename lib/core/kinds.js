'use strict'

// What longstack knows of a resource type beyond its name.

const { address, own } = require('../objects')
const { connectionTypes } = require('../subsystems')
const { cutCredentials } = require('../text')

/** Types that run at most once; a context of these is done after its run. */
const oneShot = new Set((
  'PROMISE TickObject Microtask Immediate FSREQCALLBACK FSREQPROMISE GETADDRINFOREQWRAP ' +
  'GETNAMEINFOREQWRAP QUERYWRAP TCPCONNECTWRAP PIPECONNECTWRAP WRITEWRAP SHUTDOWNWRAP UDPSENDWRAP ' +
  'RANDOMBYTESREQUEST PBKDF2REQUEST SCRYPTREQUEST FILEHANDLECLOSEREQ HTTP2PING HTTP2SETTINGS').split(' '))

/** Types that stay open and can be asked why, but for timers; see handles/. */
const handles = new Set((
  'TCPWRAP TCPSERVERWRAP PIPEWRAP PIPESERVERWRAP UDPWRAP TLSWRAP TTYWRAP PROCESSWRAP WORKER MESSAGEPORT ' +
  'FSEVENTWRAP STATWATCHER SIGNALWRAP HTTP2SESSION HTTP2STREAM FILEHANDLE DIRHANDLE ZLIB ' +
  'QUIC_ENDPOINT QUIC_SESSION QUIC_STREAM DTLS_ENDPOINT DTLS_SESSION').split(' '))

/**
 * Which fields of a resource say what it is about, by type; they are set when it first runs.
 * @type {Record<string, (resource: any) => string | undefined>}
 */
const details = {
  __proto__: /** @type {any} */ (null),
  TCPCONNECTWRAP: (resource) => address(own(resource, 'address'), own(resource, 'port')),
  TCPSERVERWRAP: (resource) => listening(resource),
  PIPECONNECTWRAP: (resource) => text(own(resource, 'address')),
  GETADDRINFOREQWRAP: (resource) => host(own(resource, 'hostname')),
  GETNAMEINFOREQWRAP: (resource) => address(own(resource, 'hostname'), own(resource, 'port')),
  QUERYWRAP: (resource) => host(own(resource, 'hostname'))
}

/**
 * @typedef {object} Kind
 * @property {number} number by which chains know it
 * @property {string} type Node's provider name or that of an AsyncResource
 * @property {boolean} tick it runs before the event loop goes on
 * @property {boolean} brief a handle that is over soon, mostly
 * @property {boolean} isSelected the filter selects it
 * @property {boolean} oneShot
 * @property {boolean} handle
 * @property {boolean} promise
 * @property {boolean} awaited a promise that an await or a then made
 * @property {boolean} asked what was asked on a connection
 * @property {boolean} timer
 * @property {boolean} embedded it is none of Node's own: an AsyncResource, mostly
 * @property {boolean} carried its resource carries its record, see carry in records.js
 * @property {number} flags of its records, see records.js
 * @property {boolean} special core/index.js has more to do for it than to record it
 * @property {((resource: any) => string | undefined) | undefined} detail
 */

/** In place of a type: PROMISE, of those that an await or a then made. */
const AWAIT = 'PROMISE awaited'
/** After the type of a connection: an ask on it, see asks.js. */
const ASKED = ' asked'

/** by number @type {Kind[]} */
const kinds = []
/** the same for the same type, until resetKinds() @type {Map<string, number>} */
const numbers = new Map()

/**
 * @param {string} type
 * @param {boolean} isSelected
 * @returns {Kind}
 */
function kindOf (type, isSelected) {
  const asked = type.endsWith(ASKED)
  const handle = handles.has(type)
  const detail = details[type]
  const number = numbers.get(type) ?? numbers.size
  numbers.set(type, number)
  /** @type {Kind} */
  const kind = {
    number,
    flags: 0,
    type: type === AWAIT ? 'PROMISE' : asked ? type.slice(0, -ASKED.length) : type,
    isSelected,
    tick: type === 'TickObject' || type === 'Microtask',
    brief: type === 'FILEHANDLE',
    oneShot: oneShot.has(type) || type === AWAIT || type.endsWith('REQUEST'),
    handle,
    promise: type === 'PROMISE' || type === AWAIT,
    awaited: type === AWAIT,
    asked,
    timer: type === 'Timeout',
    embedded: false,
    carried: false,
    special: handle || detail !== undefined || type === 'TickObject',
    detail
  }
  kinds[number] = kind
  return kind
}

/** @param {number} number @returns {Kind} */
const kindAt = (number) => kinds[number]

/** Types of the tasks of pools of threads, made where the program runs one. */
const poolTasks = new Set(['Piscina.Task', 'Tinypool.Task'])

/** Types with which a request begins: what is further up, or out, is the server's. */
const requestTypes = new Set([
  'HTTPINCOMINGMESSAGE', 'HTTP2SESSION', 'HTTP2STREAM', 'TCPSERVERWRAP', 'PIPESERVERWRAP'
])

/**
 * Returns whether resources of a type stay open and serve whoever uses them, one after another.
 * @param {string} type
 */
function isHandleType (type) {
  return handles.has(type)
}

/** How many types are known: programs may make them up. */
const kindCount = () => numbers.size

/** Chains that were made before are not known any more. */
function resetKinds () {
  kinds.length = 0
  numbers.clear()
}

/** @param {unknown} value */
function text (value) {
  return typeof value === 'string' ? value : undefined
}

/** @param {unknown} name which may be part of a URL by mistake */
function host (name) {
  return typeof name === 'string' ? cutCredentials(name) : undefined
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

module.exports = {
  ASKED, AWAIT, connectionTypes, isHandleType, kindAt, kindCount, kindOf, poolTasks, requestTypes, resetKinds
}
