'use strict'

// Properties of resource types, beyond their names.

const { address, own } = require('../objects')
const { connectionTypes } = require('../subsystems')
const { cutCredentials } = require('../text')

/** Types that run at most once; their contexts are done after that run. */
const oneShot = new Set((
  'PROMISE TickObject Microtask Immediate FSREQCALLBACK FSREQPROMISE GETADDRINFOREQWRAP ' +
  'GETNAMEINFOREQWRAP QUERYWRAP TCPCONNECTWRAP PIPECONNECTWRAP WRITEWRAP SHUTDOWNWRAP UDPSENDWRAP ' +
  'RANDOMBYTESREQUEST PBKDF2REQUEST SCRYPTREQUEST FILEHANDLECLOSEREQ HTTP2PING HTTP2SETTINGS').split(' '))

/** Types that stay open and can be inspected, except timers; see handles/. */
const handles = new Set((
  'TCPWRAP TCPSERVERWRAP PIPEWRAP PIPESERVERWRAP UDPWRAP TLSWRAP TTYWRAP PROCESSWRAP WORKER MESSAGEPORT ' +
  'FSEVENTWRAP STATWATCHER SIGNALWRAP HTTP2SESSION HTTP2STREAM FILEHANDLE DIRHANDLE ZLIB ' +
  'QUIC_ENDPOINT QUIC_SESSION QUIC_STREAM DTLS_ENDPOINT DTLS_SESSION').split(' '))

/**
 * Readers of a resource's detail, by type; the fields are set when it first runs.
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
 * @property {number} number by which chains refer to it
 * @property {string} type Node's provider name, or the type of an AsyncResource
 * @property {boolean} tick runs before the event loop continues
 * @property {boolean} brief a handle that is mostly short-lived
 * @property {boolean} isSelected by the filter
 * @property {boolean} oneShot
 * @property {boolean} handle
 * @property {boolean} promise
 * @property {boolean} awaited a promise made by `await` or `then`
 * @property {boolean} asked a query on a connection
 * @property {boolean} timer
 * @property {boolean} embedded not Node's own: mostly an AsyncResource
 * @property {boolean} carried its resource carries its record, see carry in records.js
 * @property {number} flags of its records, see records.js
 * @property {boolean} special needs more than a record, see handleInit in kind-handlers.js
 * @property {((resource: any) => string | undefined) | undefined} detail
 */

/** Pseudo-type for promises made by `await` or `then`. */
const AWAIT = 'PROMISE awaited'
/** Suffix on a connection's type: a query on it, see asks.js. */
const ASKED = ' asked'

/** by number @type {Kind[]} */
const kinds = []
/** stable per type until resetKinds() @type {Map<string, number>} */
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

/** Task types of thread pools, made where the program runs a task. */
const poolTasks = new Set(['Piscina.Task', 'Tinypool.Task'])

/** Types that begin a request: everything above or outside them belongs to the server. */
const requestTypes = new Set([
  'HTTPINCOMINGMESSAGE', 'HTTP2SESSION', 'HTTP2STREAM', 'TCPSERVERWRAP', 'PIPESERVERWRAP'
])

/**
 * Returns whether resources of a type stay open and serve several users, one after another.
 * @param {string} type
 */
function isHandleType (type) {
  return handles.has(type)
}

/** Returns the number of known types: programs may make them up. */
const kindCount = () => numbers.size

/** Forgets all kinds: earlier chains become unknown. */
function resetKinds () {
  kinds.length = 0
  numbers.clear()
}

/** @param {unknown} value */
function text (value) {
  return typeof value === 'string' ? value : undefined
}

/** @param {unknown} name may be part of a URL by mistake */
function host (name) {
  return typeof name === 'string' ? cutCredentials(name) : undefined
}

/**
 * Returns the address on which a server listens.
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
