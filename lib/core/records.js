'use strict'

// Records of asynchronous steps, as integers: one record of sixteen words (record-words.js) in a ring of
// typed arrays, indexed by the resource's id, or by longstack's own promise number if Node gives promises
// no id. A record lives until the ring wraps around. Records of steps that have not run by then move to
// older-records.js, unless their resource carries them. Handles also have an entry in core/registry.js, and
// requests a record in request-records.js.
//
// A reference identifies a record: the id shifted left by one, with the lowest bit set for a promise
// without an id. It has 32 bits, and ids outgrow that in a process that runs for hours. So the ring of
// resources also keeps full ids (`ids`), and callers that know the id find the record by it
// (`findResource`). Longstack's own promise numbers are not reused while their record is kept
// (`startRound`). Records and references hold no object of the program.
//
// The hooks write records; everything else reads through the functions below, or through Context.

const { AsyncResource } = require('node:async_hooks')
const older = require('./older-records')
const requestRecords = require('./request-records')
const { delayOf, noteDelay } = require('./chain-values')
const words = require('./record-words')
const { OnCarrier } = require('./tag')

const {
  SIZE, MASK, SHIFT, IDS, REF, CHAIN, CAUSE, TRIGGER, SPAN, TIME, DETAIL, FLAGS, OUTER, RUN, INCOMING, RUNS,
  NO_REF, DISTANCE_BITS, LIVE, PASSED, CARRIED, ONE_SHOT, PARSER, PARTS, PART_START, SPECIAL
} = words
const WORDS = 1 << SHIFT // per record
const PROMISES = 0x3fffffff // promises are numbered modulo this + 1
const PART_MASK = SIZE / PARTS - 1
const ROUND_SHIFT = 31 - Math.clz32(SIZE) // shift: from a promise's number to its round of the ring

const resources = new Int32Array(SIZE << SHIFT)
const promises = new Int32Array(SIZE << SHIFT)
/** asyncId and triggerAsyncId of each record in `resources` */
const ids = new Float64Array(SIZE << 1)
/** promise numbers have wrapped around */
let isWrapped = false

reserveFirst()

let oldestCopied = 0 // copies with a lower asyncId belong to forgotten records

/** Copy of a record on its resource. As small as possible: there is one for each pending timer. */
class Copy {
  /** @param {number} offset of the record in `resources` @param {number} asyncId @param {number} trigger */
  constructor (offset, asyncId, trigger) {
    this.asyncId = asyncId
    this.triggerAsyncId = trigger
    this.chain = resources[offset + CHAIN]
    this.cause = resources[offset + CAUSE]
    this.time = resources[offset + TIME]
    this.detail = resources[offset + DETAIL]
    this.flags = resources[offset + FLAGS]
    const span = resources[offset + SPAN]
    const isLooped = (this.flags & DISTANCE_BITS) !== 0
    /** @type {More | undefined} */
    this.more = undefined
    if (span === 0 && !isLooped) return
    this.more = new More(span, resources[offset + RUN])
    if (isLooped) this.more.loop = resources.slice(offset + OUTER, offset + WORDS)
  }
}

/** Rare parts of a copy: for resources in a span or a loop, and timers that have run and will run again. */
class More {
  /** @param {number} span @param {number} run */
  constructor (span, run) {
    this.span = span
    this.run = run
    /** words from OUTER on @type {Int32Array | undefined} */
    this.loop = undefined
    this.runs = 0
    /** last run, in ms of the clock @type {number | undefined} */
    this.ranAt = undefined
  }
}

/** scratch record for unpacking a copy */
const unpacked = new Int32Array(WORDS)

/**
 * @param {number} ref
 * @returns {{ words: Int32Array, offset: number } | undefined} offset: index of its first word
 */
function findRecord (ref) {
  if (ref === 0) return undefined
  if (requestRecords.isApart(ref)) return requestRecords.findApart(ref)
  const ring = (ref & 1) === 0 ? resources : promises
  const offset = ((ref >> 1) & MASK) << SHIFT
  return ring[offset] === ref ? { words: ring, offset } : older.findOlder(ref)
}

/** @param {number} asyncId 0: none @returns {ReturnType<typeof findRecord>} */
function findResource (asyncId) {
  if (asyncId === 0) return undefined
  const offset = (asyncId & MASK) << SHIFT
  return ids[offset >> IDS] === asyncId ? { words: resources, offset } : older.findOlderResource(asyncId)
}

/** @returns {number} the greatest asyncId with a record, 0: none */
function newestId () {
  let newest = 0
  for (let i = 0; i < ids.length; i += 2) if (ids[i] > newest) newest = ids[i]
  return newest
}

/**
 * Guards against a 31-bit reference collision before a resource runs: the record of a newer resource with the
 * same reference remains reachable by id only.
 * @param {number} asyncId
 */
function separate (asyncId) {
  const offset = (asyncId & MASK) << SHIFT
  const isReused = ids[offset >> IDS] !== asyncId && resources[offset + REF] === asyncId << 1
  if (isReused) resources[offset + REF] = NO_REF
}

/** @param {number} ref @param {number} word @returns {number} 0 if the record is gone */
function readWord (ref, word) {
  const record = findRecord(ref)
  return record === undefined ? 0 : record.words[record.offset + word]
}

/** @param {number} ref @param {number} word @param {number} value */
function writeWord (ref, word, value) {
  const record = findRecord(ref)
  if (record !== undefined) record.words[record.offset + word] = value
}

/**
 * Lets a resource carry a copy of its record, as a tag. Such a resource may run at any time, often, or never,
 * and nothing reports its end: a table would keep the record forever, but the copy is collected with it.
 * @param {any} resource
 * @param {number} offset of its record in `resources`
 * @param {number} asyncId
 * @param {number} trigger
 * @param {boolean} isEmbedded excludes Node's own: only AsyncResources are certain to be alive when they run
 */
function carry (resource, offset, asyncId, trigger, isEmbedded) {
  if (isEmbedded && !(resource instanceof AsyncResource)) return
  OnCarrier.write(resource, new Copy(offset, asyncId, trigger))
  resources[offset + FLAGS] |= CARRIED
}

/**
 * Returns the copy of its record that a resource carries.
 * @param {any} resource
 * @param {number} asyncId
 * @returns {Copy | undefined}
 */
function copyOn (resource, asyncId) {
  const copy = OnCarrier.read(resource)
  return copy !== undefined && copy.asyncId === asyncId && asyncId >= oldestCopied ? copy : undefined
}

/**
 * Counts a run of a timer that will run again.
 * @param {object} timer
 * @param {number} asyncId
 * @param {number} time ms of the clock
 * @returns {number} runs so far
 */
function countRun (timer, asyncId, time) {
  const copy = copyOn(timer, asyncId)
  if (copy === undefined) return 0
  copy.more ??= new More(0, 0)
  copy.more.ranAt = time
  return ++copy.more.runs
}

/**
 * Returns the record that a resource carries, and keeps it among those that have run.
 * @param {any} resource
 * @param {number} asyncId
 * @returns {ReturnType<typeof findRecord>}
 */
function findCarried (resource, asyncId) {
  const copy = copyOn(resource, asyncId)
  if (copy === undefined) return undefined
  unpack(copy)
  older.keep(unpacked, 0, asyncId, copy.triggerAsyncId)
  older.ended(asyncId << 1, asyncId)
  return older.findOlderResource(asyncId)
}

/** @param {Copy} copy */
function unpack (copy) {
  const { more } = copy
  unpacked.fill(0)
  if (more?.loop !== undefined) unpacked.set(more.loop, OUTER)
  unpacked[REF] = copy.asyncId << 1
  unpacked[CHAIN] = copy.chain
  unpacked[CAUSE] = copy.cause
  unpacked[TRIGGER] = copy.triggerAsyncId << 1
  unpacked[SPAN] = more?.span ?? 0
  unpacked[TIME] = copy.time
  unpacked[DETAIL] = copy.detail
  unpacked[FLAGS] = copy.flags | LIVE | ONE_SHOT // kept like a record that has run
  unpacked[RUN] = more?.run ?? 0
  unpacked[INCOMING] = 0
  unpacked[RUNS] = more?.runs ?? 0
}

/** Keeps a record that may still run: its slot is needed. @param {Int32Array} ring @param {number} offset */
function keep (ring, offset) {
  const index = offset >> IDS
  const isResource = ring === resources
  older.keep(ring, offset, isResource ? ids[index] : 0, isResource ? ids[index + 1] : 0)
}

/**
 * Makes room for the record of a promise. The first record of each part of the ring belongs to no promise:
 * its flag brings the caller here when the part is full.
 * @param {number} number of the promise
 * @returns {number} the same number, or a new one at the start of a part
 */
function makeRoom (number) {
  const free = (number & PART_MASK) === 0 ? startPart(number) : number
  const offset = (free & MASK) << SHIFT
  if ((promises[offset + FLAGS] & LIVE) !== 0) keep(promises, offset)
  return free
}

/** Returns the first promise number of a part of the ring. @param {number} number 0: all numbers were used */
function startPart (number) {
  const start = (number & MASK) === 0 ? startRound(number) : number
  promises[((start & MASK) << SHIFT) + REF] = start << 1 | 1
  // Steps that led to waiting ones are overwritten next, perhaps within one iteration of the event loop
  requestRecords.markWaits(false)
  return start + 1
}

/**
 * Returns the first number of the next round of the ring. Rounds with kept records are skipped.
 * @param {number} number 0: all numbers were used
 */
function startRound (number) {
  if (number === 0) isWrapped = true
  let start = number
  if (isWrapped) {
    /** @type {Set<number>} */
    const rounds = new Set()
    for (const ref of older.refs()) if ((ref & 1) !== 0) rounds.add(ref >>> (ROUND_SHIFT + 1))
    while (rounds.has(start >>> ROUND_SHIFT) && rounds.delete(start >>> ROUND_SHIFT)) {
      start = (start + SIZE) & PROMISES // no round is free: numbers are reused
    }
  }
  return start
}

/** Reserves the first record of both rings: no record has the reference 0. Promises have one per part. */
function reserveFirst () {
  resources[REF] = NO_REF
  for (let offset = 0; offset < promises.length; offset += promises.length / PARTS) {
    promises[offset + REF] = NO_REF
    promises[offset + FLAGS] = PART_START
  }
}

/** Marks a step as finished for good. @param {number} asyncId of a resource that is not carried */
function finish (asyncId) {
  const record = findResource(asyncId)
  if (record === undefined) return
  record.words[record.offset + FLAGS] |= ONE_SHOT
  if (record.words === resources) resources[record.offset + FLAGS] &= ~(LIVE | PASSED)
  else older.ended(asyncId << 1, asyncId)
}

/** Ends the requests of all parsers and the queries of connections: tracing cannot see what follows. */
function endRequests () {
  for (const ring of [resources, older.allWords()]) {
    for (let offset = 0; offset < ring.length; offset += 1 << SHIFT) {
      if ((ring[offset + FLAGS] & PARSER) !== 0) ring[offset + DETAIL] = ring[offset + INCOMING] = 0
      if ((ring[offset + FLAGS] & SPECIAL) !== 0) ring[offset + DETAIL] = 0
    }
  }
}

/** Forgets all records: their numbers have become meaningless. */
function clear () {
  oldestCopied = newestId() + 1
  resources.fill(0)
  promises.fill(0)
  ids.fill(0)
  reserveFirst()
  requestRecords.clear()
  older.clear()
}

/** @returns {number} records of steps that may still run */
function countLive () {
  let count = older.countLive()
  for (const ring of [resources, promises]) {
    for (let offset = 0; offset < ring.length; offset += 1 << SHIFT) {
      if ((ring[offset + FLAGS] & LIVE) !== 0) count++
    }
  }
  return count
}

module.exports = {
  ...words,
  PROMISES,
  resources,
  promises,
  ids,
  addAsk: requestRecords.addAsk,
  addRequest: requestRecords.addRequest,
  isApart: requestRecords.isApart,
  isAsk: requestRecords.isAsk,
  isRequest: requestRecords.isRequest,
  markWaits: requestRecords.markWaits,
  noteDelay,
  delayOf,
  carry,
  copyOn,
  countRun,
  findCarried,
  finish,
  keep,
  ended: older.ended,
  makeRoom,
  lostCount: older.lostCount,
  allOlder: older.allWords,
  usedOlder: older.usedWords,
  findRecord,
  findResource,
  newestId,
  separate,
  readWord,
  writeWord,
  endRequests,
  clear,
  countLive,
  bytes: () => 2 * resources.byteLength + ids.byteLength +
    requestRecords.bytes() + older.bytes()
}
