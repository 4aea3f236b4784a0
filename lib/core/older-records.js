'use strict'

// Records of steps that may still run, kept when their slot in the ring is needed. Bounded: the oldest is
// evicted for the newest.

const { CARRIED, DETAIL, FLAGS, IDS, LIVE, ONE_SHOT, PARSER, PASSED, REF, SHIFT } = require('./record-words')

const MAX_RECORDS = 1 << 16 // some 8 MB
const INITIAL_RECORDS = 1 << 10
const ENDED = 1 << 12 // records that stay after they have run; a power of two

// Added to the asyncId of a resource whose reference now belongs to a newer one; no reference is that large.
const OUTDATED = 2 ** 32

/** index of the first word in `words`, by reference or as OUTDATED says @type {Map<number, number>} */
const places = new Map()
/**
 * Keys in insertion order, from `oldestIndex` on; some have been dropped since. Reading a map's first key
 * gets slower with each key deleted before it (OrderedHashTable in V8's src/objects/ordered-hash-table.cc).
 * @type {number[]}
 */
let order = []
let oldestIndex = 0
let words = new Int32Array(INITIAL_RECORDS << SHIFT)
/** asyncId and triggerAsyncId of each, as in records.js; 0: a promise with longstack's own number */
let ids = new Float64Array(INITIAL_RECORDS << 1)
/** keys in `places` of the newest records that have run */
const endedKeys = new Float64Array(ENDED)
let endedCount = 0
/** free places @type {number[]} */
let freePlaces = []
let lost = 0
let isAnyOutdated = false // counted from the start; few processes run that long

/**
 * Keeps a record of a ring, unless its resource carries it. The copy on a parser does not know about
 * requests, so the newest of these records are kept.
 * @param {Int32Array} ring
 * @param {number} offset
 * @param {number} asyncId
 * @param {number} triggerAsyncId
 * @returns {void}
 */
function keep (ring, offset, asyncId, triggerAsyncId) {
  const flags = ring[offset + FLAGS]
  if ((flags & CARRIED) === 0) return store(ring, offset, asyncId, triggerAsyncId)
  if ((flags & PARSER) === 0 || ring[offset + DETAIL] === 0) return
  ring[offset + FLAGS] |= ONE_SHOT
  store(ring, offset, asyncId, triggerAsyncId)
  ended(ring[offset + REF], asyncId)
}

/** Copies a record from a ring. @type {typeof keep} */
function store (ring, offset, asyncId, triggerAsyncId) {
  const ref = ring[offset + REF]
  outdate(ref, asyncId)
  const keptPlace = places.get(ref)
  if (keptPlace === undefined) noteOrder(ref)
  const place = keptPlace ?? freePlaces.at(-1) ?? newPlace()
  // No loop: V8 may terminate it in the middle (guard.js)
  words[place] = ring[offset]
  words[place + 1] = ring[offset + 1]
  words[place + 2] = ring[offset + 2]
  words[place + 3] = ring[offset + 3]
  words[place + 4] = ring[offset + 4]
  words[place + 5] = ring[offset + 5]
  words[place + 6] = ring[offset + 6]
  words[place + 7] = ring[offset + 7]
  words[place + 8] = ring[offset + 8]
  words[place + 9] = ring[offset + 9]
  words[place + 10] = ring[offset + 10]
  words[place + 11] = ring[offset + 11]
  words[place + 12] = ring[offset + 12]
  words[place + 13] = ring[offset + 13]
  words[place + 14] = ring[offset + 14]
  words[place + 15] = ring[offset + 15]
  ids[place >> IDS] = asyncId
  ids[(place >> IDS) + 1] = triggerAsyncId
  places.set(ref, place)
  if (keptPlace === undefined && freePlaces.length > 0) freePlaces.pop()
}

/**
 * Returns the place of a kept record.
 * @param {number} ref
 * @param {number} asyncId of a resource; 0: a promise with longstack's own number
 * @returns {number | undefined} undefined: not kept
 */
function placeOf (ref, asyncId) {
  const place = places.get(ref)
  if (place !== undefined && ids[place >> IDS] === asyncId) return place
  return isAnyOutdated ? places.get(asyncId + OUTDATED) : undefined
}

/**
 * Frees a reference for a newer resource; an older one had it 2 ** 31 ids ago.
 * @param {number} ref
 * @param {number} asyncId
 */
function outdate (ref, asyncId) {
  const place = places.get(ref)
  if (place === undefined || ids[place >> IDS] === asyncId) return
  const key = ids[place >> IDS] + OUTDATED
  isAnyOutdated = true
  places.delete(ref)
  places.set(key, place)
  noteOrder(key)
}

/** @returns {number} index of unused words */
function newPlace () {
  const place = places.size << SHIFT
  if (place < words.length) return place
  if (places.size >= MAX_RECORDS) return freeOldest()
  const larger = new Int32Array(words.length * 2)
  const largerIds = new Float64Array(ids.length * 2)
  larger.set(words)
  largerIds.set(ids)
  words = larger
  ids = largerIds
  return place
}

/** @param {number} key of a record kept from now on */
function noteOrder (key) {
  if (order.length > 2 * places.size + INITIAL_RECORDS) {
    order = order.slice(oldestIndex).filter((keptKey) => places.has(keptKey))
    oldestIndex = 0
  }
  order.push(key)
}

/** Evicts the oldest record. @returns {number} its place */
function freeOldest () {
  let place
  let key = 0
  do {
    key = order[oldestIndex++]
    place = places.get(key)
  } while (place === undefined)
  places.delete(key)
  lost++
  return place
}

/**
 * Notes that a resource has run. The steps it made may still need its record if it runs only once, so the
 * newest of these stay.
 * @param {number} ref of a record that may have been kept
 * @param {number} [asyncId] of a resource; 0: a promise with longstack's own number
 * @returns {number | undefined} its flags, undefined: not kept
 */
function ended (ref, asyncId = 0) {
  const place = placeOf(ref, asyncId)
  if (place === undefined) return undefined
  const flags = words[place + FLAGS]
  if ((flags & ONE_SHOT) === 0 || (flags & (LIVE | PASSED)) === 0) return flags
  words[place + FLAGS] = flags & ~(LIVE | ONE_SHOT) // once
  const slot = endedCount++ & (ENDED - 1)
  if (endedKeys[slot] !== 0) drop(endedKeys[slot])
  endedKeys[slot] = places.get(ref) === place ? ref : asyncId + OUTDATED
  return flags
}

/** @param {number} key of a record that is no longer needed */
function drop (key) {
  const place = places.get(key)
  if (place === undefined) return
  places.delete(key)
  freePlaces.push(place)
}

/** @param {number} key a reference @returns {{ words: Int32Array, offset: number } | undefined} */
function findOlder (key) {
  const place = places.get(key)
  return place === undefined ? undefined : { words, offset: place }
}

/** @param {number} asyncId @returns {ReturnType<typeof findOlder>} */
function findOlderResource (asyncId) {
  const place = placeOf(asyncId << 1, asyncId)
  return place === undefined ? undefined : { words, offset: place }
}

/** @returns {number} records of steps that may still run */
function countLive () {
  let count = 0
  for (const place of places.values()) if ((words[place + FLAGS] & LIVE) !== 0) count++
  return count
}

function clear () {
  places.clear()
  order = []
  oldestIndex = 0
  words = new Int32Array(INITIAL_RECORDS << SHIFT)
  ids = new Float64Array(INITIAL_RECORDS << 1)
  endedKeys.fill(0)
  freePlaces = []
}

module.exports = {
  clear,
  countLive,
  ended,
  findOlder,
  findOlderResource,
  keep,

  allWords: () => words,
  allIds: () => ids,

  /** Returns the references of all kept records, and outdated keys, which are larger. */
  refs: () => places.keys(),

  /** Returns the number of words in `allWords` up to the last record. */
  usedWords: () => (places.size + freePlaces.length) << SHIFT,

  /** Returns the number of kept records, including those that have run. */
  countKept: () => places.size,

  /** Returns the number of records evicted before they ran. */
  lostCount: () => lost,

  bytes: () => words.byteLength + ids.byteLength + places.size * 40 + order.length * 8
}
