'use strict'

// What is recorded of each asynchronous step, as integers: one record of sixteen words (record-words.js) in a
// ring of typed arrays, found by the id of the resource, or by longstack's own number of the promise where
// Node gives promises no id. A record lives until the ring has gone round; what has not run by then moves to
// older-records.js, unless its resource carries it. Handles have an entry of their own besides, see
// handles/registry.js; requests a record, see request-records.js.
//
// A reference identifies a record: the id shifted left by one, the lowest bit set for a promise without an
// id. Records and references hold no object of the program.
//
// Written by lib/hooks; all others read through the functions below, or through Context.

const { AsyncResource } = require('node:async_hooks')
const older = require('./older-records')
const requestRecords = require('./request-records')
const delays = require('./timer-delays')
const words = require('./record-words')
const { createTag } = require('./tag')

const {
  SIZE, MASK, SHIFT, REF, DETAIL, FLAGS, INCOMING, EPOCH, LIVE, PASSED, CARRIED, ONE_SHOT, PARSER
} = words

const resources = new Int32Array(SIZE << SHIFT)
const promises = new Int32Array(SIZE << SHIFT)

resources[REF] = promises[REF] = -1 // no record has the reference 0

/** @type {ReturnType<typeof createTag<Int32Array>>} */
const copyTag = createTag()
let epoch = 1 // of the copies that resources carry

/**
 * @param {number} ref
 * @returns {{ words: Int32Array, offset: number } | undefined} offset: index of its first word
 */
function findRecord (ref) {
  if (requestRecords.isRequest(ref)) return requestRecords.findRequest(ref)
  const ring = (ref & 1) === 0 ? resources : promises
  const offset = ((ref >> 1) & MASK) << SHIFT
  return ref !== 0 && ring[offset] === ref ? { words: ring, offset } : older.findOlder(ref)
}

/** @param {number} ref @param {number} word @returns {number} 0 where there is no record any more */
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
 * Lets a resource carry a copy of its record, as a tag. It may run at any time, often, or never, and nothing
 * reports that it is gone: a table would keep its record for good, a copy is collected with it.
 * @param {any} resource
 * @param {number} offset of its record in `resources`
 * @param {boolean} isEmbedded it is none of Node's own: others than AsyncResource may be gone when they run
 */
function carry (resource, offset, isEmbedded) {
  if (isEmbedded && !(resource instanceof AsyncResource)) return
  const copy = resources.slice(offset, offset + (1 << SHIFT)) // of 64 bytes, which V8 has on its heap
  copy[FLAGS] |= LIVE | ONE_SHOT // found by its copy, it is kept like one that has run
  copy[EPOCH] = epoch
  copyTag.write(resource, copy)
  resources[offset + FLAGS] |= CARRIED
}

/**
 * Returns the record that a resource carries, and keeps it with those that have run.
 * @param {any} resource
 * @param {number} ref
 * @returns {ReturnType<typeof findRecord>}
 */
function findCarried (resource, ref) {
  const copy = copyTag.read(resource)
  if (copy === undefined || copy[REF] !== ref || copy[EPOCH] !== epoch) return undefined
  older.keep(copy, 0)
  older.ended(ref)
  return older.findOlder(ref)
}

/** Keeps a record until `finish`, whatever becomes of its resource. @param {number} ref */
function hold (ref) {
  writeWord(ref, FLAGS, readWord(ref, FLAGS) & ~CARRIED)
}

/** Notes that nothing begins in a step any more. @param {number} ref of a record that was held */
function finish (ref) {
  const record = findRecord(ref)
  if (record === undefined) return
  record.words[record.offset + FLAGS] |= ONE_SHOT
  if (record.words === resources) resources[record.offset + FLAGS] &= ~(LIVE | PASSED)
  else older.ended(ref)
}

/** Ends the requests of all parsers: tracing does not see what comes from now on. */
function endRequests () {
  for (const ring of [resources, older.allWords()]) {
    for (let offset = 0; offset < ring.length; offset += 1 << SHIFT) {
      if ((ring[offset + FLAGS] & PARSER) !== 0) ring[offset + DETAIL] = ring[offset + INCOMING] = 0
    }
  }
}

/** Forgets all records: numbers in them stand for nothing any more. */
function clear () {
  for (const ring of [resources, promises]) {
    ring.fill(0)
    ring[REF] = -1 // no record has the reference 0
  }
  requestRecords.clear()
  epoch++
  older.clear()
}

/** @returns {number} records of what may still run */
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
  resources,
  promises,
  addRequest: requestRecords.addRequest,
  isRequest: requestRecords.isRequest,
  markWaits: requestRecords.markWaits,
  noteDelay: delays.noteDelay,
  delayOf: delays.delayOf,
  carry,
  findCarried,
  hold,
  finish,
  keep: older.keep,
  ended: older.ended,
  lostCount: older.lostCount,
  allOlder: older.allWords,
  usedOlder: older.usedWords,
  findRecord,
  readWord,
  writeWord,
  endRequests,
  clear,
  countLive,
  bytes: () => 2 * resources.byteLength + requestRecords.bytes() + older.bytes()
}
