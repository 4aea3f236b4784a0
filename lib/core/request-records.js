'use strict'

// Records of requests and queries that share a resource, one after another, in rings of their own. Their
// references are negative and odd, and the resource holds the current one in DETAIL.
//
// Requests of servers: Node has one resource for all requests of an HTTP/1 connection, its parser, and one
// for all requests of an HTTP/2 session. Each request also has a record, with its own time and name and the
// chain of the resource.
//
// Asks: queries that a step of the program writes on a connection it opened or took from a pool. The data
// that comes back runs as part of that step (asks.js).

const { PRESENT_ERA, current } = require('./current')
const {
  ANSWERED_AT, CAUSE, CHAIN, DETAIL, FLAGS, OUTER, OUTER_WRAPS, REF, RESPONDED, SETTLED_FOR, SHIFT,
  SPAN, TIME, TRIGGER, WRAP
} = require('./record-words')
const { RESPONSES, keepWeak, weakAt } = require('./weak-slots')

const SIZE = RESPONSES // request records, a power of two
const ASKS = 1 << 12 // ask records, likewise
const NUMBERS = 0x1ffffffe // modulus for numbers of both; none has the reference NO_REF
const SIGN = 1 << 31
const ASK = 1 << 30 // bit of a reference to an ask

/** from the first request on @type {Int32Array | undefined} */
let ring
let lastNumber = 0
/** from the first ask on @type {Int32Array | undefined} */
let asks
let lastAsk = 0
/** from the first request on @type {typeof import('./request-of') | undefined} */
let waits

/** Returns whether a reference leads to one of these rings. @param {number} ref @returns {boolean} */
const isApart = (ref) => ref < 0 && (ref & 1) !== 0

/** @param {number} ref @returns {boolean} */
const isRequest = (ref) => ref < 0 && (ref & 1) !== 0 && (ref & ASK) === 0

/** @param {number} ref @returns {boolean} */
const isAsk = (ref) => ref < 0 && (ref & 1) !== 0 && (ref & ASK) !== 0

/**
 * @param {number} ref of a request or an ask
 * @returns {{ words: Int32Array, offset: number } | undefined}
 */
function findApart (ref) {
  const isOfAsk = (ref & ASK) !== 0
  const words = isOfAsk ? asks : ring
  const offset = ((ref >> 1) & ((isOfAsk ? ASKS : SIZE) - 1)) << SHIFT
  if (words !== undefined && words[offset + REF] === ref) return { words, offset }
  return waits?.findKept(ref)
}

/**
 * Adds the record of a request.
 * @param {{ words: Int32Array, offset: number }} resource record of the resource on which it came
 * @param {number} time in ticks
 * @param {number} name number of its name
 * @returns {number} reference
 */
function addRequest ({ words, offset }, time, name) {
  if (ring === undefined) {
    ring = new Int32Array(SIZE << SHIFT)
    waits ??= require('./request-of')
  }
  lastNumber = lastNumber % NUMBERS + 1
  const ref = SIGN | lastNumber << 1 | 1
  const place = (lastNumber & (SIZE - 1)) << SHIFT
  ring[place + REF] = ref
  ring[place + CHAIN] = words[offset + CHAIN]
  ring[place + CAUSE] = words[offset + CAUSE]
  ring[place + TRIGGER] = words[offset + TRIGGER]
  ring[place + SPAN] = words[offset + SPAN]
  ring[place + TIME] = time
  ring[place + DETAIL] = name
  ring[place + FLAGS] = current[PRESENT_ERA]
  ring[place + OUTER] = words[offset + REF]
  ring[place + ANSWERED_AT] = ring[place + SETTLED_FOR] = 0
  ring[place + RESPONDED] = 0
  return ref
}

/**
 * Adds the record of an ask; the caller sets its other words.
 * @param {{ ref: number, asyncId: number }} connection of its handle
 * @param {number} time in ticks
 * @returns {{ ref: number, words: Int32Array, offset: number }}
 */
function addAsk (connection, time) {
  if (asks === undefined) {
    asks = new Int32Array(ASKS << SHIFT)
    waits ??= require('./request-of')
    waits.watchAsks(asks)
  }
  lastAsk = lastAsk % NUMBERS + 1
  const ref = SIGN | ASK | lastAsk << 1 | 1
  const offset = (lastAsk & (ASKS - 1)) << SHIFT
  asks.fill(0, offset, offset + (1 << SHIFT))
  asks[offset + REF] = ref
  asks[offset + OUTER] = connection.ref
  asks[offset + OUTER_WRAPS] = connection.asyncId / WRAP
  asks[offset + TIME] = time
  return { ref, words: asks, offset }
}

/**
 * Notes the response to a request.
 * @param {number} ref
 * @param {object} response
 * @returns {boolean} whether the request still has a record
 */
function setResponse (ref, response) {
  const slot = slotOf(ref)
  if (ring === undefined || slot === -1) return false
  ring[(slot << SHIFT) + RESPONDED] = 1
  keepWeak(slot, response)
  return true
}

/** @param {number} ref of a request @returns {object | undefined} its response, once headers were sent */
function responseOf (ref) {
  const slot = slotOf(ref)
  return slot === -1 || ring?.[(slot << SHIFT) + RESPONDED] !== 1 ? undefined : weakAt(slot)
}

/** @param {number} ref @returns {number} slot of this request in the ring, -1: none */
function slotOf (ref) {
  const slot = (ref >> 1) & (SIZE - 1)
  return isRequest(ref) && ring?.[slot << SHIFT] === ref ? slot : -1
}

module.exports = {
  addAsk,
  addRequest,
  findApart,
  isApart,
  isAsk,
  isRequest,
  responseOf,
  setResponse,
  all: () => ring,

  /** Marks the requests of waiting steps. @param {boolean} isWithin see request-of.js */
  markWaits: (isWithin) => waits?.markWaits(isWithin),

  clear () {
    ring?.fill(0)
    asks?.fill(0)
    waits?.clear()
  },

  bytes: () => (ring?.byteLength ?? 0) + (asks?.byteLength ?? 0) + (waits?.bytes() ?? 0)
}
