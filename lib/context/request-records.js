'use strict'

// Records of the requests that servers get. Node has one resource for all requests of an HTTP/1 connection,
// its parser, and one for all of an HTTP/2 session. Each request has a record besides, in a ring of its own,
// with its own time and name; its reference is negative and odd. It has the chain of the resource, which
// holds the reference of the request in DETAIL for as long as its requests come on it.

const { PRESENT_ERA, current } = require('./current')
const { CAUSE, CHAIN, DETAIL, FLAGS, OUTER, REF, SHIFT, SPAN, TIME, TRIGGER } = require('./record-words')

const SIZE = 1 << 13 // records, a power of two
const NUMBERS = 0x3ffffffe // requests are numbered modulo this: none has the reference NO_REF
const SIGN = 1 << 31

/** from the first request on @type {Int32Array | undefined} */
let ring
let lastNumber = 0
/** from the first request on @type {typeof import('./request-of') | undefined} */
let waits

/** @param {number} ref @returns {boolean} */
const isRequest = (ref) => ref < 0 && (ref & 1) !== 0

/** @param {number} ref of a request @returns {{ words: Int32Array, offset: number } | undefined} */
function findRequest (ref) {
  const offset = ((ref >> 1) & (SIZE - 1)) << SHIFT
  if (ring !== undefined && ring[offset + REF] === ref) return { words: ring, offset }
  return waits?.findKept(ref)
}

/**
 * Adds the record of a request.
 * @param {{ words: Int32Array, offset: number }} resource the record of the resource on which it came
 * @param {number} time in ticks
 * @param {number} name number of its name
 * @returns {number} reference
 */
function addRequest ({ words, offset }, time, name) {
  if (ring === undefined) {
    ring = new Int32Array(SIZE << SHIFT)
    waits = require('./request-of')
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
  return ref
}

module.exports = {
  addRequest,
  findRequest,
  isRequest,
  all: () => ring,

  /** Notes the requests of what waits: an iteration of the event loop begins. */
  markWaits: () => waits?.markWaits(),

  clear () {
    ring?.fill(0)
    waits?.clear()
  },

  bytes: () => (ring?.byteLength ?? 0) + (waits?.bytes() ?? 0)
}
