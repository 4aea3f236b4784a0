'use strict'

// What is recorded of each asynchronous step, as numbers: one record of sixteen words in a ring of typed arrays, found by
// the id of the resource, or by longstack's own number of the promise where Node gives promises no id. A record lives
// until the ring has gone round; what has not run by then moves to `older`, which is bounded. Handles have an entry of
// their own besides, see handles/registry.js.
//
// A reference tells a record: the id shifted left by one, the lowest bit set for a promise without an id. Records and
// references hold no object of the program.
//
// Node has one resource for all requests of an HTTP/1 connection, its parser, and one for all of an HTTP/2 session. Each
// request that a server got has a record besides, in a ring of its own, with its own time and words; its reference is
// negative and odd. It has the chain of the resource, which names it in DETAIL for as long as its requests come on it.
//
// Who may touch it: hooks/async-hooks.js writes; all others read through the functions below, or through Context.

const SIZE = 1 << 15 // records of each ring, a power of two; ids follow one another, so a slot is their lowest bits
const MASK = SIZE - 1
const SHIFT = 4 // sixteen words a record: a cache line
const REQUESTS = 1 << 13 // records of requests, a power of two
const REQUEST_NUMBERS = 0x3fffffff
const SIGN = 1 << 31

// The words of a record.
const REF = 0
const CHAIN = 1 // number of the chain, see stacks/capture.js
const CAUSE = 2 // reference: in whose callback it was made
const TRIGGER = 3 // reference: what caused it, of a promise that which is awaited
const SPAN = 4 // number of the span
const TIME = 5 // of its making, in TICKS a ms of the clock
const DETAIL = 6 // ms of a timer; reference of who settled a promise; number of the span that a resource was made for;
// of a request the number of its words, see requests.js; of a parser the reference of the request that came last
const FLAGS = 7

// Those that few records need.
const OUTER = 8 // reference: the parent of the chain, where the record's chain is one of its own ancestors; of a request the resource on which it came
const RUN = 9 // the run of its span in which it was made, see spans/critical-path.js
const SETTLED_RUN = 10 // that in which the promise was settled, and its span
const SETTLED_SPAN = 11
const REPEATS = 12 // repetitions of the loop that this record ends
const PRIOR = 13 // reference: what came before the first repetition of the loop
const PRIOR_TIME = 14 // TIME of that one, whose record may be gone
const INCOMING = 15 // of a parser: whether the request that came last is still coming in

// Flags.
const LIVE = 1 // it may run
const PASSED = 2 // the filter leaves it out: chain and cause are those of its maker
const AWAITED = 4 // a promise that `await` or `then` made
const ONE_SHOT = 8 // it runs once
const SPECIAL = 16 // a handle: that it runs is noted
const TICK = 32
const TIMER = 64
const ENTERED = 128 // its callback is to carry the context, in light mode
const SETTLED = 256 // a promise that is settled
const LOOPED = 512 // one more repetition of a loop, as many as REPEATS says
const CALLED = 1 << 14 // the event loop calls it
const DETAILED = 1 << 15 // what it is about shows when it runs
const PARSER = 1 << 16 // requests come on it, one after another
const DISTANCE = 10 // shift: of four bits, how many steps up the repetition before is

// Numbers of chains with a meaning of their own; the engines give none below FIRST_CHAIN.
const NO_CHAIN = 0
const ROOT_CHAIN = 1 // the start of the process
const OWN_WORK_CHAIN = 2 // longstack's own work, and what comes of it
const EARLY_CHAIN = 3 // made before longstack was enabled
const FIRST_CHAIN = 4

// What an engine answers to a step: the number of a chain and, above, how many ancestors up it was found, see
// stacks/capture.js.
const FOLD_SHIFT = 24
const CHAIN_BITS = (1 << FOLD_SHIFT) - 1

const TICKS = 4
const OLDER = 1 << 16 // records kept past the ring, some 8 MB
const FIRST_OLDER = 1 << 10
const ENDED = 1 << 12 // of those, that stay when they have run; a power of two

const resources = new Int32Array(SIZE << SHIFT)
const promises = new Int32Array(SIZE << SHIFT)

resources[REF] = promises[REF] = -1 // no record has the reference 0

/** from the first request on @type {Int32Array | undefined} */
let requests
let requestCount = 0

/**
 * Records kept past the ring: index of the first word in `olderWords` by reference
 * @type {Map<number, number>}
 */
const olderPlaces = new Map()
/**
 * References in the order in which they were kept, from `oldestAt` on; some are dropped since. To ask the map
 * for its first key takes longer with each key that was deleted before it (OrderedHashTable in V8's
 * src/objects/ordered-hash-table.cc).
 * @type {number[]}
 */
let olderRefs = []
let oldestAt = 0
let olderWords = new Int32Array(FIRST_OLDER << SHIFT)
/** those of them that have run: the newest */
const endedRefs = new Int32Array(ENDED)
let endedCount = 0
/** places that are free again @type {number[]} */
let freePlaces = []
let lost = 0

/** @param {number} ref @returns {Int32Array} the ring that it is in */
const ringOf = (ref) => (ref & 1) === 0 ? resources : promises

/** @param {number} ref @returns {number} the index of its record's first word */
const indexOf = (ref) => ((ref >> 1) & MASK) << SHIFT

/**
 * Keeps a record that may still run, whose place in the ring is needed.
 * @param {Int32Array} ring
 * @param {number} at index
 */
function keep (ring, at) {
  const ref = ring[at + REF]
  const known = olderPlaces.get(ref)
  const place = known ?? freePlaces.pop() ?? newPlace()
  if (known === undefined) noteOrder(ref)
  for (let i = 0; i < 1 << SHIFT; i++) olderWords[place + i] = ring[at + i]
  olderPlaces.set(ref, place)
}

/** @returns {number} index of words that no other record has */
function newPlace () {
  const place = olderPlaces.size << SHIFT
  if (place < olderWords.length) return place
  if (olderPlaces.size >= OLDER) return freeOldest()
  const words = olderWords
  olderWords = new Int32Array(words.length * 2)
  olderWords.set(words)
  return place
}

/** @param {number} ref of a record that is kept from now on */
function noteOrder (ref) {
  if (olderRefs.length > 4 * OLDER) {
    olderRefs = olderRefs.slice(oldestAt).filter((known) => olderPlaces.has(known))
    oldestAt = 0
  }
  olderRefs.push(ref)
}

/** Gives up the record that was kept first. @returns {number} its place */
function freeOldest () {
  let place
  let ref = 0
  do {
    ref = olderRefs[oldestAt++]
    place = olderPlaces.get(ref)
  } while (place === undefined)
  olderPlaces.delete(ref)
  lost++
  return place
}

/**
 * What runs once has run. What it made may still ask for it, so the newest of these stay.
 * @param {number} ref of a record that may have been kept
 */
function ended (ref) {
  const place = olderPlaces.get(ref)
  if (place === undefined || (olderWords[place + FLAGS] & (ONE_SHOT | LIVE)) !== (ONE_SHOT | LIVE)) return
  olderWords[place + FLAGS] &= ~LIVE
  const slot = endedCount++ & (ENDED - 1)
  if (endedRefs[slot] !== 0) drop(endedRefs[slot])
  endedRefs[slot] = ref
}

/** @param {number} ref of a record that is not needed any more */
function drop (ref) {
  const place = olderPlaces.get(ref)
  if (place === undefined) return
  olderPlaces.delete(ref)
  freePlaces.push(place)
}

/**
 * Finds a record: its words, and the index of the first.
 * @param {number} ref
 * @returns {{ words: Int32Array, offset: number } | undefined}
 */
function findRecord (ref) {
  if (isRequest(ref)) return findRequest(ref)
  const words = ringOf(ref)
  const offset = indexOf(ref)
  if (ref !== 0 && words[offset] === ref) return { words, offset }
  const place = olderPlaces.get(ref)
  return place === undefined ? undefined : { words: olderWords, offset: place }
}

/** @param {number} ref @returns {boolean} */
const isRequest = (ref) => ref < 0 && (ref & 1) !== 0

/** @param {number} ref of a request @returns {{ words: Int32Array, offset: number } | undefined} */
function findRequest (ref) {
  const offset = ((ref >> 1) & (REQUESTS - 1)) << SHIFT
  return requests !== undefined && requests[offset + REF] === ref ? { words: requests, offset } : undefined
}

/**
 * Adds the record of a request.
 * @param {{ words: Int32Array, offset: number }} from the record of the resource on which it came
 * @param {number} time in ticks
 * @param {number} detail number of its words
 * @returns {number} reference
 */
function addRequest ({ words, offset }, time, detail) {
  requests ??= new Int32Array(REQUESTS << SHIFT)
  requestCount = requestCount % REQUEST_NUMBERS + 1
  const ref = SIGN | requestCount << 1 | 1
  const place = (requestCount & (REQUESTS - 1)) << SHIFT
  requests[place + REF] = ref
  requests[place + CHAIN] = words[offset + CHAIN]
  requests[place + CAUSE] = words[offset + CAUSE]
  requests[place + TRIGGER] = words[offset + TRIGGER]
  requests[place + SPAN] = words[offset + SPAN]
  requests[place + TIME] = time
  requests[place + DETAIL] = detail
  requests[place + FLAGS] = 0
  requests[place + OUTER] = words[offset + REF]
  return ref
}

/** Nobody sees the requests that come from now on: those that came last are none of what comes next. */
function endRequests () {
  for (const words of [resources, olderWords]) {
    for (let at = 0; at < words.length; at += 1 << SHIFT) if ((words[at + FLAGS] & PARSER) !== 0) words[at + DETAIL] = words[at + INCOMING] = 0
  }
}

/** @param {number} ref @param {number} word @returns {number} 0 where there is no record any more */
function readWord (ref, word) {
  const found = findRecord(ref)
  return found === undefined ? 0 : found.words[found.offset + word]
}

/** @param {number} ref @param {number} word @param {number} value */
function writeWord (ref, word, value) {
  const found = findRecord(ref)
  if (found !== undefined) found.words[found.offset + word] = value
}

/** Delay of the timers of each chain, in ms and one more; 0: none is known, MIXED: they differ */
let delays = new Int32Array(1 << 10)
const MIXED = -1

/** @param {number} chain @param {number} delay of one of its timers, in ms */
function noteDelay (chain, delay) {
  if (chain >= delays.length) {
    const larger = new Int32Array(Math.max(chain + 1, delays.length * 2))
    larger.set(delays)
    delays = larger
  }
  const known = delays[chain]
  if (known === 0) delays[chain] = delay + 1
  else if (known !== delay + 1) delays[chain] = MIXED
}

/** @param {number} chain @returns {number | undefined} delay of all its timers, in ms */
const delayOf = (chain) => chain < delays.length && delays[chain] > 0 ? delays[chain] - 1 : undefined

/** Forgets all records: numbers in them stand for nothing any more. */
function clear () {
  for (const words of [resources, promises]) {
    words.fill(0)
    words[REF] = -1 // no record has the reference 0
  }
  requests?.fill(0)
  delays.fill(0)
  olderPlaces.clear()
  olderRefs = []
  oldestAt = 0
  endedRefs.fill(0)
  freePlaces = []
}

/** How many records there are of what may still run. */
function held () {
  let count = 0
  for (const place of olderPlaces.values()) if ((olderWords[place + FLAGS] & LIVE) !== 0) count++
  for (const words of [resources, promises]) for (let at = 0; at < words.length; at += 1 << SHIFT) if ((words[at + FLAGS] & LIVE) !== 0) count++
  return count
}

/** Bytes of memory. */
function bytes () {
  const arrays = 2 * resources.byteLength + (requests?.byteLength ?? 0) + olderWords.byteLength
  return arrays + olderPlaces.size * 40 + olderRefs.length * 8
}

/** Records that had to be given up though they had not run. */
const lostRecords = () => lost

module.exports = {
  SIZE,
  MASK,
  SHIFT,
  REF,
  CHAIN,
  CAUSE,
  TRIGGER,
  SPAN,
  TIME,
  DETAIL,
  FLAGS,
  OUTER,
  RUN,
  SETTLED_RUN,
  SETTLED_SPAN,
  REPEATS,
  PRIOR,
  PRIOR_TIME,
  INCOMING,
  LIVE,
  PASSED,
  AWAITED,
  ONE_SHOT,
  SPECIAL,
  TICK,
  TIMER,
  ENTERED,
  SETTLED,
  LOOPED,
  CALLED,
  DETAILED,
  PARSER,
  DISTANCE,
  NO_CHAIN,
  ROOT_CHAIN,
  OWN_WORK_CHAIN,
  EARLY_CHAIN,
  FIRST_CHAIN,
  FOLD_SHIFT,
  CHAIN_BITS,
  TICKS,
  resources,
  promises,
  addRequest,
  endRequests,
  isRequest,
  keep,
  noteDelay,
  delayOf,
  ended,
  findRecord,
  readWord,
  writeWord,
  clear,
  held,
  bytes,
  lostRecords
}
