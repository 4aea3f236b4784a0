'use strict'

// Owners of the data that arrives on the program's connections. Node's causality ends at the handle:
// everything its data causes has the context that opened the connection; in a pool, that is whichever
// request came first. So each write has a record, an ask (request-records.js, written by requests/asks.js).
// While one is outstanding, the handle's callbacks run as a step of the writer (`beginAnswer` in enter.js).
//
// STATE of the current ask's record:
//
//   ONE      one step has sent queries since the last response, or several steps of one flow
//   SHARED   several flows have, so the owner of the next data is unknown. If a connection, or another one
//            opened at the same place, was shared, order proves nothing: responses may come in parts
//   UNKNOWN  the query was written in the connection's own callback, with no code of the program between the
//            callback and the write: the driver's queue sends the next item. Or it was written from the
//            stream's buffer, after an earlier write was done
//
// A step may send several queries on a connection. Incoming data answers one of them, and DUE counts the
// rest: another flow that sends a query then shares the connection.
//
// No ask: nobody has written, or the writer has its response and is over.
//
// On an accepted connection, the first request takes the place of an ask. While the last request is the only
// one in flight, the handle's callbacks belong to it: its client went away (`resumeServed` in
// callback-handlers.js).

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

const MAX_STEPS = 256 // steps up the causes
const QUIET_MS = 1000 // ms without data; later data was not requested by the step that got the last response
const DUE_MS = 30_000 // ms for the responses to several queries that were sent at once

/**
 * @typedef {NonNullable<ReturnType<typeof findRecord>>} Record
 * @typedef {Pick<import('./entry').Entry, 'ask' | 'context'>} Connection
 */

/**
 * Sets the ask of a connection, or the request on it. The handle's record holds it too, as long as that
 * exists.
 * @param {Connection} entry
 * @param {number} ref
 */
function setAsk (entry, ref) {
  const handle = findRecordOf(entry.context)
  entry.ask = ref
  if (handle !== undefined) handle.words[handle.offset + DETAIL] = ref
}

/**
 * Returns the number of steps from the current one up to a callback of a connection.
 * @param {number} connection reference of its handle
 * @returns {number} 0: it is that callback; -1: no callback of the connection is among its causes
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
 * Returns whether a step is a callback of a connection.
 * @param {number} step reference
 * @param {number} connection reference of its handle
 */
function isOfConnection (step, connection) {
  return step === connection || (records.isAsk(step) && records.readWord(step, OUTER) === connection)
}

/**
 * Returns whether a step was caused by another, directly or indirectly.
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
 * Returns whether two steps belong to one request, or the earlier caused the later.
 * @param {number} ref
 * @param {number} earlier
 */
function isSameFlow (ref, earlier) {
  const { requestOf } = require('./request-of') // loaded with the first request or ask
  const request = requestOf(ref)
  return (request !== 0 && request === requestOf(earlier)) || descends(ref, earlier)
}

/**
 * Returns the ask whose step owns the current callback of a connection; the callback has data.
 * @param {number} ref of the current ask, 0: none
 * @param {number} time ms of the clock
 * @returns {Record | undefined} undefined: nobody waits for a response
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
 * Returns whether data may still come for an ask. The number of responses in a chunk is unknown, so some may
 * seem due forever.
 * @param {Record} record of the ask
 * @param {number} dueSince ms of the clock
 * @param {number} time now, ms of the clock
 */
function isOutstanding (record, dueSince, time) {
  const { words, offset } = record
  if ((words[offset + FLAGS] & ANSWERED) === 0) return true
  return words[offset + DUE] > 0 && time - dueSince < DUE_MS && !isOver(record, time, Infinity)
}

/**
 * Returns whether the writer is done: its request was responded to, its span has ended, the promise that
 * waited for the response has settled, or the last data is long ago.
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
 * Notes in the ask that owns the current step that this step has settled a promise.
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
