'use strict'

// Whose data it is that comes on a connection of the program. Node's causality ends at the handle: what its
// data causes has the context in which the connection was made, on a pool that of whichever request came
// first. So each write has a record, an ask (request-records.js, written by requests/asks.js), and while one
// is outstanding the handle's callbacks run as a step of who wrote (`beginAnswer` in enter.js).
//
// What is known of the present ask is in its record's STATE:
//
//   ONE      one step has asked since the last answer, or several of one flow
//   SHARED   several flows have: nothing says whose the next data is. Once that was seen of a connection, or
//            of another that was made at the same place, order proves nothing: answers may come in parts
//   UNKNOWN  the question was written in the connection's own callback, and no code of the program lies
//            between that and the write: a queue of the driver's sends what is next in line. Or from the
//            buffer of the stream, when an earlier write was done
//
// A step may ask several questions on a connection. Data that comes answers one of them, and DUE counts the
// rest: another flow that asks then shares the connection.
//
// No ask: nobody has written, or who has was answered, and is over.
//
// On a connection that a server accepted, the request that came first stands in place of an ask. While the
// last one is the only one in flight, callbacks of the handle are part of that: its client went away
// (`resumeServed` in callback-handlers.js).

const { CURRENT_CAUSE, current } = require('./current')
const records = require('./records')
const { findRecordOf } = require('./record-ids')
const { source } = require('./source')

const {
  ANSWERED, ANSWERED_AT, CAUSE, DETAIL, DUE, FLAGS, LAST_ASK, OUTER, SETTLED_FOR, SPAN, findRecord
} = records

const ONE = 0
const SHARED = 1
const UNKNOWN = 2

const MAX_STEPS = 256 // up the causes of a step
const QUIET_MS = 1000 // without data: what comes then was not asked for by who was answered before
const DUE_MS = 30_000 // for the answers to several questions that were asked at once

/**
 * @typedef {NonNullable<ReturnType<typeof findRecord>>} Record
 * @typedef {Pick<import('./entry').Entry, 'ask' | 'context'>} Connection
 */

/**
 * Sets the ask of a connection, or the request on it. Its handle's record has it as well, for as long as
 * there is one.
 * @param {Connection} entry
 * @param {number} ref
 */
function setAsk (entry, ref) {
  const handle = findRecordOf(entry.context)
  entry.ask = ref
  if (handle !== undefined) handle.words[handle.offset + DETAIL] = ref
}

/**
 * Returns how many steps up the current one was caused by a callback of a connection.
 * @param {number} connection reference of its handle
 * @returns {number} 0: it is that callback; -1: none of the connection's is among its causes
 */
function distanceToAnswer (connection) {
  let step = current[CURRENT_CAUSE]
  for (let i = 0; i < MAX_STEPS; i++) {
    if (step === 0 || records.isRequest(step)) return -1
    if (isOfConnection(step, connection)) return i
    step = records.readWord(step, CAUSE)
  }
  return -1
}

/**
 * Whether a step is a callback of a connection.
 * @param {number} step reference
 * @param {number} connection reference of its handle
 */
function isOfConnection (step, connection) {
  return step === connection || (records.isAsk(step) && records.readWord(step, OUTER) === connection)
}

/**
 * Whether a step was caused by another, however indirectly.
 * @param {number} ref
 * @param {number} ancestor
 */
function descends (ref, ancestor) {
  if (ancestor === 0) return false
  let step = ref
  for (let i = 0; i < MAX_STEPS && step !== 0; i++) {
    if (step === ancestor) return true
    step = records.readWord(step, CAUSE)
  }
  return false
}

/**
 * Whether two steps are of one request, or one has caused the other.
 * @param {number} ref
 * @param {number} earlier
 */
function isSameFlow (ref, earlier) {
  const { requestOf } = require('./request-of') // loaded with the first request, or ask
  const request = requestOf(ref)
  return (request !== 0 && request === requestOf(earlier)) || descends(ref, earlier)
}

/**
 * Returns the ask of which a callback of a connection is a part: data has come.
 * @param {number} ref of the present ask, 0: none
 * @param {number} time ms of the clock
 * @returns {Record | undefined} undefined: nobody waits for an answer
 */
function answer (ref, time) {
  const record = records.isAsk(ref) ? findRecord(ref) : undefined
  if (record === undefined || isOver(record, time)) return undefined
  const { words, offset } = record
  words[offset + FLAGS] |= ANSWERED
  words[offset + ANSWERED_AT] = time
  if (words[offset + DUE] > 0) words[offset + DUE]--
  if (words[offset + LAST_ASK] !== 0) answer(words[offset + LAST_ASK], time)
  return record
}

/**
 * Whether data may still come for an ask. How many answers a piece of data had is not known, so some may seem
 * to be due forever.
 * @param {Record} record of the ask
 * @param {number} dueSince ms of the clock
 * @param {number} time likewise, now
 */
function isOutstanding (record, dueSince, time) {
  const { words, offset } = record
  if ((words[offset + FLAGS] & ANSWERED) === 0) return true
  return words[offset + DUE] > 0 && time - dueSince < DUE_MS && !isOver(record, time, Infinity)
}

/**
 * Whether who asked was answered and is over: the request was responded to, the span has ended, the promise
 * was settled that waited for the answer, or it is long ago.
 * @param {Record} record of the ask
 * @param {number} time ms of the clock
 * @param {number} [quietMs]
 */
function isOver ({ words, offset }, time, quietMs = QUIET_MS) {
  if ((words[offset + FLAGS] & ANSWERED) === 0) return false
  if (time - words[offset + ANSWERED_AT] > quietMs) return true
  const span = words[offset + SPAN]
  if (span !== 0 && source.spanAt(span) === undefined) return true
  const cause = words[offset + CAUSE]
  const settled = words[offset + SETTLED_FOR]
  const isSettled = settled !== 0 && cause !== 0 && words[offset + DUE] === 0
  if (isSettled && (descends(cause, settled) || descends(settled, cause))) return true
  const request = require('./request-of').requestOf(cause)
  return request !== 0 && source.isAnswered(request)
}

/**
 * Notes in the ask of which the current step is a part that it has settled a promise.
 * @param {Int32Array} words of the promise's record
 * @param {number} offset
 */
function noteSettled (words, offset) {
  records.writeWord(current[CURRENT_CAUSE], SETTLED_FOR, words[offset + CAUSE])
}

module.exports = {
  DUE_MS,
  ONE,
  QUIET_MS,
  SHARED,
  UNKNOWN,
  answer,
  descends,
  distanceToAnswer,
  isOfConnection,
  isOutstanding,
  isSameFlow,
  noteSettled,
  setAsk
}
