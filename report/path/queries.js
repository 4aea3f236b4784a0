'use strict'

// Queries of requests: one per promise that a response settled, and with callbacks one per write that no
// promise claims (query-writes.js). A query lasts from its write until its response had arrived.

const { ASKED, DATA, SENT, USED } = require('../../lib/core/run-log-words')
const { NONE } = require('./entries')
const { CLAIMED, GREETING, IN_ANSWER, PART, SETTLED } = require('./query-writes')
const { findArrival, isSameIteration } = require('./timeline')

/**
 * @typedef {import('./window').SpanReader} SpanReader
 * @typedef {import('./entries').Recording} Recording
 * @typedef {import('./requests').Request} Request
 * @typedef {import('./timeline').Arrival} Arrival
 * @typedef {Pick<SpanReader, 'recording' | 'spans' | 'timeline' | 'traffic'>} Log
 *
 * @typedef {object} Query
 * @property {number} request number of the outermost span
 * @property {number} span number of the span that sent it
 * @property {number} start time of its write, ms
 * @property {number} end arrival of its response; end of the span if it is unanswered
 * @property {number} chain of the creation of its promise or, without one, of its write
 * @property {number} writer chain of the write
 * @property {number} connection reference
 * @property {number} unsent ms before the write in which a driver or a pool held it
 * @property {number} promise reference, 0 if its response called back
 * @property {boolean} unanswered when the span ended
 * @property {number} made number of the run in which it was made
 * @property {number} sent number of its write
 * @property {number} callback number of the run that brought its response, 0 if none has
 * @property {number | undefined} out bytes, undefined if several queries were in flight
 * @property {number | undefined} in likewise
 */

/** @type {Arrival} */
const arrival = { after: 0, by: 0 }

/**
 * Whether a write is a query that no promise claims: its response calls back. A write without a known call
 * from the program's code, such as a log to a pipe, is no query unless it is answered.
 * @param {Recording} recording
 * @param {number} i
 */
function isCall ({ b, came, flags, kind, sent }, i) {
  if (kind[i] !== SENT || sent[i] !== NONE || (b[i] & USED) !== 0 || (flags[i] & SETTLED) !== 0) return false
  return (b[i] & ASKED) !== 0 || ((flags[i] & IN_ANSWER) === 0 && came[i] !== NONE)
}

/** Whether a span has unanswered queries. @param {Recording} recording @param {Request} span */
function isAsking (recording, span) {
  let i = span.asked
  while (i !== NONE && (recording.came[i] !== NONE || !isCall(recording, i))) i = recording.asked[i]
  return i !== NONE
}

/**
 * Returns the queries of a span in order of time, without those of inner spans.
 * @param {Log} log
 * @param {Request} span
 * @returns {Query[]}
 */
function queriesOf ({ recording, traffic }, span) {
  const { a, asked, came, chain, flags, kind, number, ref, registered, sent, x } = recording
  const { at, time } = recording
  /** @type {Query[]} */
  const queries = []
  for (let i = span.asked; i !== NONE; i = asked[i]) {
    const isWrite = kind[i] === SENT
    const write = isWrite ? i : sent[i]
    if (isWrite ? !isCall(recording, i) : (flags[write] & GREETING) !== 0) continue
    const data = came[i]
    const made = registered[i]
    const run = registered[write]
    const unanswered = data === NONE || data > span.endEntry
    const start = traffic.timeOf(write)
    const end = data === NONE ? span.end : endOf(recording, data, start)
    if (start > span.end || end < span.begin) continue
    let unsent = start - time[write]
    if (!isWrite && !isSameIteration(recording, made, run)) {
      unsent = start - (x[i] > 0 ? x[i] : made === NONE ? start : at[made])
    }
    const isAlone = data !== NONE && isAloneOn(recording, write, data)
    queries.push({
      request: span.outermost,
      span: span.number,
      start: Math.max(span.begin, start),
      end: Math.min(end, span.end),
      // For a write in a response, the chain may be that of an equal earlier one (capture folds loops).
      chain: isWrite && (flags[i] & IN_ANSWER) !== 0 && run !== NONE ? chain[run] : chain[i],
      writer: chain[write],
      connection: ref[write],
      unsent: Math.max(0, unsent),
      promise: isWrite ? 0 : ref[i],
      unanswered,
      made: made === NONE ? 0 : number[made],
      sent: number[write],
      // The other direction is counted modulo 2 ** 32.
      out: isAlone ? (a[data] - x[write]) >>> 0 : undefined,
      in: isAlone ? (x[data] - a[write]) >>> 0 : undefined,
      callback: data === NONE || registered[data] === NONE ? 0 : number[registered[data]]
    })
  }
  return queries.reverse().sort((one, other) => one.start - other.start)
}

/**
 * Whether no other query was in flight on the connection, and bytes are known.
 * @param {Recording} recording
 * @param {number} query its write
 * @param {number} data the last part of the response
 */
function isAloneOn ({ asked, came, flags, previous, sent, x }, query, data) {
  if (x[query] < 0 || x[data] < 0) return false
  for (let i = asked[data]; i > query; i = previous[i]) {
    if ((flags[i] & (PART | CLAIMED)) !== PART && sent[i] !== query) return false
  }
  const before = previous[query]
  if (before === NONE || (flags[before] & GREETING) !== 0) return true
  return came[before] !== NONE && came[before] < query
}

/**
 * Returns the arrival time of a response.
 * @param {Recording} recording
 * @param {number} data
 * @param {number} start when its query was sent
 */
function endOf (recording, data, start) {
  const { at, poll, registered, time } = recording
  const callback = registered[data]
  if (callback === NONE) return Math.max(start, at[data])
  findArrival(recording, callback, arrival)
  if (arrival.by > start) return arrival.by
  // The arrival time is not known that precisely.
  const polled = poll[callback] === NONE ? start : time[poll[callback]]
  return Math.max(start, Math.min(polled, at[callback]))
}

/**
 * Returns the write of a query.
 * @param {Recording} recording
 * @param {number} query
 */
const writeOf = ({ kind, sent }, query) => kind[query] === SENT ? query : sent[query]

/**
 * Returns the query with a callback that data answered, or NONE.
 * @param {Recording} recording
 * @param {number} data
 */
function callEndedBy (recording, data) {
  const { asked, came, sent } = recording
  const write = asked[data]
  const call = write === NONE || sent[write] === NONE ? write : sent[write]
  return call !== NONE && came[call] === data && isCall(recording, call) ? call : NONE
}

/**
 * Returns the query of a request that data answered; if there are several, the last one that was not made
 * after a run.
 * @param {Log} log
 * @param {number} data or NONE
 * @param {number} request number
 * @param {number} run NONE for any
 */
function queryEndedBy ({ recording, spans }, data, request, run) {
  const { flags, previous, registered, sent, request: span } = recording
  let last = NONE
  if (data === NONE) return last
  const call = callEndedBy(recording, data)
  for (let i = call === NONE ? sent[data] : call; i !== NONE; i = i === call ? sent[data] : previous[i]) {
    if ((flags[writeOf(recording, i)] & GREETING) !== 0 || spans.outermostOf(span[i]) !== request) continue
    const isEarlier = run === NONE || registered[i] <= run
    const wasEarlier = last !== NONE && (run === NONE || registered[last] <= run)
    if (last !== NONE && wasEarlier && (!isEarlier || registered[i] < registered[last])) continue
    last = i
  }
  return last
}

/**
 * Finds the earliest and latest arrival of a response. If data answered several queries, the first response
 * was there when the loop polled. Later ones may have come until the data was read, and the kernel knows when
 * the last one did.
 * @param {Recording} recording
 * @param {number} callback that brought it
 * @param {number} query that it answered, NONE if unknown
 * @param {Arrival} result
 */
function findAnswer (recording, callback, query, result) {
  findArrival(recording, callback, result)
  if (query === NONE) return
  const { a, arrived, at, came, poll, previous, sent, time, x } = recording
  const data = came[callback]
  const write = writeOf(recording, query)
  const call = callEndedBy(recording, data)
  let [first, last] = call === NONE ? [write, write] : [Math.min(call, write), Math.max(call, write)]
  for (let i = sent[data]; i !== NONE; i = previous[i]) {
    first = Math.min(first, sent[i])
    last = Math.max(last, sent[i])
  }
  if (first === last) return
  const how = arrived[callback]
  const isKnown = how !== NONE && a[how] === DATA
  if (write !== first && how !== NONE) {
    result.by = isKnown ? Math.min(time[how] + Math.max(0, x[how]), at[callback]) : at[callback]
    if (write === last && isKnown) result.after = result.by
  }
  if (write === last) return
  const before = poll[callback] === NONE ? NONE : poll[poll[callback]]
  result.after = before === NONE ? -Infinity : Math.min(result.after, time[before])
}

/**
 * Returns the last write before data came, if it may belong to a request: its own, or a driver's.
 * @param {Log} log
 * @param {number} data
 * @param {number} request
 */
function lastWriteBefore ({ recording, spans }, data, request) {
  const write = recording.asked[data]
  if (write === NONE || (recording.flags[write] & IN_ANSWER) !== 0) return write
  const writer = spans.outermostOf(recording.request[write])
  return writer === 0 || writer === request ? write : NONE
}

/**
 * Whether another request wrote last before data came.
 * @param {Log} log
 * @param {number} data
 * @param {number} request
 */
function isAskedByOther ({ recording, spans }, data, request) {
  const write = recording.asked[data]
  const writer = write === NONE ? 0 : spans.outermostOf(recording.request[write])
  return writer !== 0 && writer !== request
}

module.exports = { findAnswer, isAskedByOther, isAsking, lastWriteBefore, queriesOf, queryEndedBy, writeOf }
