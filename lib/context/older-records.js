'use strict'

// Records that may still run, kept when their place in the ring is needed. Bounded: the one that was kept
// first is given up for the newest.

const { CARRIED, DETAIL, FLAGS, LIVE, ONE_SHOT, PARSER, PASSED, REF, SHIFT } = require('./record-words')

const MAX_RECORDS = 1 << 16 // some 8 MB
const INITIAL_RECORDS = 1 << 10
const ENDED = 1 << 12 // of those, that stay when they have run; a power of two

/** index of the first word in `words`, by reference @type {Map<number, number>} */
const places = new Map()
/**
 * References in the order in which they were kept, from `oldestIndex` on; some are dropped since. To ask the
 * map for its first key takes longer with each key that was deleted before it (OrderedHashTable in V8's
 * src/objects/ordered-hash-table.cc).
 * @type {number[]}
 */
let order = []
let oldestIndex = 0
let words = new Int32Array(INITIAL_RECORDS << SHIFT)
/** references of the newest that have run */
const endedRefs = new Int32Array(ENDED)
let endedCount = 0
/** places that are free again @type {number[]} */
let freePlaces = []
let lost = 0

/**
 * Keeps a record of a ring, unless its resource does. Of a parser that had a request, the resource's copy
 * does not know that: the newest of these stay.
 * @param {Int32Array} ring
 * @param {number} offset
 */
function keep (ring, offset) {
  const flags = ring[offset + FLAGS]
  if ((flags & CARRIED) === 0) return store(ring, offset)
  if ((flags & PARSER) === 0 || ring[offset + DETAIL] === 0) return
  ring[offset + FLAGS] |= ONE_SHOT
  store(ring, offset)
  ended(ring[offset + REF])
}

/** @param {Int32Array} ring @param {number} offset */
function store (ring, offset) {
  const ref = ring[offset + REF]
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
  places.set(ref, place)
  if (keptPlace === undefined && freePlaces.length > 0) freePlaces.pop()
}

/** @returns {number} index of words that no other record has */
function newPlace () {
  const place = places.size << SHIFT
  if (place < words.length) return place
  if (places.size >= MAX_RECORDS) return freeOldest()
  const larger = new Int32Array(words.length * 2)
  larger.set(words)
  words = larger
  return place
}

/** @param {number} ref of a record that is kept from now on */
function noteOrder (ref) {
  if (order.length > 2 * places.size + INITIAL_RECORDS) {
    order = order.slice(oldestIndex).filter((keptRef) => places.has(keptRef))
    oldestIndex = 0
  }
  order.push(ref)
}

/** Gives up the record that was kept first. @returns {number} its place */
function freeOldest () {
  let place
  let ref = 0
  do {
    ref = order[oldestIndex++]
    place = places.get(ref)
  } while (place === undefined)
  places.delete(ref)
  lost++
  return place
}

/**
 * Notes that a resource has run. What it made may still ask for the record of one that runs once, so the
 * newest of these stay.
 * @param {number} ref of a record that may have been kept
 */
function ended (ref) {
  const place = places.get(ref)
  if (place === undefined) return
  const flags = words[place + FLAGS]
  if ((flags & ONE_SHOT) === 0 || (flags & (LIVE | PASSED)) === 0) return
  words[place + FLAGS] = flags & ~(LIVE | ONE_SHOT) // once
  const slot = endedCount++ & (ENDED - 1)
  if (endedRefs[slot] !== 0) drop(endedRefs[slot])
  endedRefs[slot] = ref
}

/** @param {number} ref of a record that is not needed any more */
function drop (ref) {
  const place = places.get(ref)
  if (place === undefined) return
  places.delete(ref)
  freePlaces.push(place)
}

/** @param {number} ref @returns {{ words: Int32Array, offset: number } | undefined} */
function findOlder (ref) {
  const place = places.get(ref)
  return place === undefined ? undefined : { words, offset: place }
}

/** @returns {number} records of what may still run */
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
  endedRefs.fill(0)
  freePlaces = []
}

module.exports = {
  clear,
  countLive,
  ended,
  findOlder,
  keep,

  allWords: () => words,

  /** Returns the number of words up to the last record in `allWords`. */
  usedWords: () => (places.size + freePlaces.length) << SHIFT,

  /** Returns how many are kept, of those that ran too. */
  countKept: () => places.size,

  /** Returns how many were given up though they had not run. */
  lostCount: () => lost,

  bytes: () => words.byteLength + places.size * 40 + order.length * 8
}
