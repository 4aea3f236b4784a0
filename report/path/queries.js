'use strict'

// The queries of requests: one per promise that an answer settled, and with callbacks one per write that no
// promise claims (query-writes.js). A query lasts from its write until its answer had come.

const { CAME, SENT, SETTLED_BY_ANSWER } = require('../../lib/core/run-log-words')
const { QueryWrites } = require('./query-writes')
const { outermostOf } = require('./requests')
const { NONE, arrivalOf, countBelow } = require('./timeline')

/**
 * @typedef {import('./entries').Recording} Recording
 *
 * @typedef {object} Query
 * @property {number} request number of the outermost span
 * @property {number} span number of the span that asked
 * @property {number} start ms, when it was written
 * @property {number} end when its answer had come; if it is unanswered: the end of the recording
 * @property {number} chain where its promise was made, or without one where it was written
 * @property {number} writer chain of the write
 * @property {number} connection reference
 * @property {number} unsent ms before that in which a driver or a pool held it
 * @property {number} promise reference, 0: its answer called back
 * @property {boolean} unanswered
 * @property {number} made run in which it was asked
 * @property {number} sent entry of its write
 * @property {number} callback run that brought its answer, NONE: none has
 *
 * @typedef {object} Traffic of one connection: entries
 * @property {number[]} sent
 * @property {number[]} came
 * @property {number[]} settled
 *
 * @typedef {object} Queries
 * @property {Map<number, Query[]>} byRequest in order of the callbacks that brought their answers
 * @property {Map<number, number>} lastSent by callback: entry of the newest write that it answered
 * @property {Map<number, Traffic>} traffic by reference of the connection
 */

/** @type {WeakMap<Recording, Queries>} */
const cache = new WeakMap()

/** @param {Recording} recording @returns {Queries} */
function allQueries (recording) {
  let queries = cache.get(recording)
  if (queries === undefined) cache.set(recording, queries = findQueries(recording))
  return queries
}

/**
 * Returns what a request or a span asked, without the spans inside of it, in order of time.
 * @param {Recording} recording
 * @param {import('./requests').Request} request
 */
function queriesOf (recording, { begin, end, number, outermost }) {
  const queries = allQueries(recording).byRequest.get(outermost) ?? NO_QUERIES
  const own = queries.filter((query) => query.span === number && query.start <= end && query.end >= begin)
  return own.map((query) => {
    const isOver = query.end <= end
    return { ...query, start: Math.max(begin, query.start), end: isOver ? query.end : end }
  }).sort((a, b) => a.start - b.start)
}

/**
 * Returns the query of a request to which a callback brought the answer; of several the one that was asked
 * last, but not after a run.
 * @param {Recording} recording
 * @param {number} callback
 * @param {number} request number
 * @param {number} run NONE: any
 * @returns {Query | undefined}
 */
function queryEndedBy (recording, callback, request, run) {
  const queries = allQueries(recording).byRequest.get(request) ?? NO_QUERIES
  let last
  for (let i = placeOf(queries, callback); i < queries.length && queries[i].callback === callback; i++) {
    const query = queries[i]
    const isEarlier = run === NONE || query.made <= run
    const wasEarlier = last !== undefined && (run === NONE || last.made <= run)
    if (last === undefined || (isEarlier && (!wasEarlier || query.made > last.made))) last = query
  }
  return last
}

/**
 * Returns the place of the first query that a callback answered, or a later one did.
 * @param {Query[]} queries
 * @param {number} callback
 */
function placeOf (queries, callback) {
  let [low, high] = [0, queries.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (queries[middle].callback < callback) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Returns between which times an answer had come. The kernel knows when the last data came: if that answered
 * several queries, the earlier ones may have been answered at any time since the loop polled.
 * @param {Recording} recording
 * @param {number} callback
 * @param {Query | undefined} query of which it was the answer
 */
function answerTime (recording, callback, query) {
  const { after, by } = arrivalOf(recording, callback)
  const last = allQueries(recording).lastSent.get(callback)
  if (query === undefined || last === undefined || last <= query.sent) return { after, by }
  const poll = recording.timeline.pollBefore[callback]
  return { after: poll === NONE ? -Infinity : Math.min(after, recording.time[poll]), by }
}

/**
 * Whether another request wrote last on the connection before a callback of it.
 * @param {Recording} recording
 * @param {number} callback
 * @param {number} request number
 */
function isAskedByOther (recording, callback, request) {
  const came = recording.timeline.cameIn[callback]
  const sent = allQueries(recording).traffic.get(recording.ref[came])?.sent ?? []
  const last = sent[countBelow(sent, came) - 1]
  const writer = last === undefined ? 0 : outermostOf(recording, recording.request[last])
  return writer !== 0 && writer !== request
}

/** @param {Recording} recording @returns {Queries} */
function findQueries (recording) {
  /** @type {Queries} */
  const queries = { byRequest: new Map(), lastSent: new Map(), traffic: trafficOf(recording) }
  for (const traffic of queries.traffic.values()) {
    for (const query of new QueryWrites(recording, traffic).find()) {
      if (query.request !== 0) addTo(queries.byRequest, query.request, query)
      const last = queries.lastSent.get(query.callback) ?? NONE
      queries.lastSent.set(query.callback, Math.max(last, query.sent))
    }
  }
  for (const list of queries.byRequest.values()) list.sort((a, b) => a.callback - b.callback)
  return queries
}

/** @param {Recording} recording @returns {Map<number, Traffic>} */
function trafficOf ({ count, kind, ref, settled, timeline: { cameIn, headOf } }) {
  /** @type {Map<number, Traffic>} */
  const connections = new Map()
  const of = (/** @type {number} */ connection) => {
    let traffic = connections.get(connection)
    if (traffic === undefined) connections.set(connection, traffic = { sent: [], came: [], settled: [] })
    return traffic
  }
  for (let i = 0; i < count; i++) {
    if (kind[i] === SENT) of(ref[i]).sent.push(i)
    else if (kind[i] === CAME) of(ref[i]).came.push(i)
    else if (kind[i] === SETTLED_BY_ANSWER && settled[i] !== NONE) {
      const came = cameIn[headOf[settled[i]]]
      if (came !== NONE) of(ref[came]).settled.push(i)
    }
  }
  return connections
}

/** @template T @param {Map<number, T[]>} map @param {number} key @param {T} item */
function addTo (map, key, item) {
  const list = map.get(key)
  if (list === undefined) map.set(key, [item])
  else list.push(item)
}

/** @type {Query[]} */
const NO_QUERIES = []

module.exports = { answerTime, isAskedByOther, queriesOf, queryEndedBy }
