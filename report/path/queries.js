'use strict'

// What requests asked on connections: one query per promise that an answer settled, and of callbacks one per
// write that nobody's promise claims. A query lasts from its write until its answer had come.
//
// A promise belongs to the request that made it, whoever wrote: the queue of a pool or a driver writes for
// others. Its write is the first one on the connection after it was made that no other promise has taken.
// Where a driver sends several commands in one write, they share it.

const {
  ASKED, AWAITED, CALLED, CAME, CONNECTION, HELD, PARSER, SENT, SETTLED_BY_ANSWER, TIMER, USED
} = require('../../lib/core/run-log-words')
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

const MAX_WRITES = 256 // of others between those of one call
const MAX_STEPS = 256 // from a write up to its cause

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
    for (const query of new Matching(recording, traffic).queries) {
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

/** Finds the writes of the queries on one connection. */
class Matching {
  /** @param {Recording} recording @param {Traffic} traffic */
  constructor (recording, traffic) {
    this.recording = recording
    this.traffic = traffic
    /** @type {Query[]} */
    this.queries = []
    const { length } = traffic.sent
    /** by write: a later one that may be free, itself if it is */
    this.next = Int32Array.from({ length: length + 1 }, (_, place) => place)
    /** by write: entry of the data that answered it; Infinity: it is that of a promise to come */
    this.answeredBy = new Float64Array(length)
    /** place of its own write, by entry of a promise @type {Map<number, number>} */
    this.reserved = new Map()
    this.reserve()
    this.handshake = this.greetings()
    for (const entry of traffic.settled) this.addPromise(entry)
    this.addCallbacks()
  }

  /** Returns the first free write from a place on. @param {number} place */
  freeFrom (place) {
    const { next } = this
    while (next[place] !== place) place = next[place] = next[next[place]]
    return place
  }

  /** @param {number} place of a write @param {number} answeredBy */
  take (place, answeredBy) {
    if (this.next[place] === place) this.next[place] = place + 1
    this.answeredBy[place] = answeredBy
  }

  /** Returns the place of the first write after a promise was made. @param {number} entry of the promise */
  firstAfter (entry) {
    const made = this.recording.registered[entry]
    return countBelow(this.traffic.sent, made === NONE ? 0 : made)
  }

  /** Whether a promise was made by the run that wrote. @param {number} entry @param {number} place */
  isOwnWrite (entry, place) {
    const { recording: { registered }, traffic: { sent } } = this
    return place < sent.length && registered[entry] !== NONE && registered[sent[place]] === registered[entry]
  }

  /** Keeps for each promise a write of the run that made it, in the order in which they were made. */
  reserve () {
    const { recording: { x }, traffic: { sent, settled } } = this
    const kept = new Int32Array(sent.length) // by the first write of a run
    for (const entry of [...settled].sort((a, b) => x[a] - x[b])) {
      const first = this.firstAfter(entry)
      const place = first + kept[first]
      if (!this.isOwnWrite(entry, place)) continue
      kept[first]++
      this.reserved.set(entry, place)
      this.take(place, Infinity)
    }
  }

  /**
   * Takes what a driver writes first on a connection that it makes, unless that is all.
   * @returns {number} how many writes
   */
  greetings () {
    const { recording: { caller, flags, registered, timeline: { headOf } }, traffic: { sent } } = this
    if (sent.length === 0) return 0
    const run = registered[sent[0]]
    const isConnecting = run !== NONE && headOf[run] === run && caller[run] === NONE &&
      (flags[run] & (CALLED | TIMER | PARSER | CONNECTION)) === CALLED
    if (this.next[0] !== 0 || !(isConnecting || this.isByDriver(sent[0]))) return 0
    const count = this.isHeldAt(0) ? 2 : 1
    for (let place = 0; sent.length > count && place < count; place++) this.take(place, 0)
    return count
  }

  /** @param {number} entry of a promise that was settled */
  addPromise (entry) {
    const { recording, traffic: { sent } } = this
    const { b, chain, ref, registered, request, settled, timeline, x } = recording
    const callback = timeline.headOf[settled[entry]]
    const came = timeline.cameIn[callback]
    const limit = countBelow(sent, came)
    const first = this.firstAfter(entry)
    if (first >= limit) return // nothing was asked for it here: a pool gave its connection to someone
    const place = this.writeOf(entry, first, limit)
    if (place < this.handshake && sent.length > this.handshake) return // it waited for the connection
    if ((b[sent[place]] & USED) !== 0) return
    this.takeCall(place, limit, came)
    const start = this.timeOf(place)
    const made = registered[entry]
    const isHeld = made === NONE || timeline.headOf[made] !== timeline.headOf[registered[sent[place]]]
    const madeAt = x[entry] > 0 ? x[entry] : made === NONE ? start : this.beginOf(made)
    this.queries.push({
      request: outermostOf(recording, request[entry]),
      span: request[entry],
      start,
      end: this.endOf(callback, start),
      chain: chain[entry],
      writer: chain[sent[place]],
      connection: ref[came],
      unsent: isHeld ? Math.max(0, start - madeAt) : this.heldMs(place),
      promise: ref[entry],
      unanswered: false,
      made,
      sent: sent[place],
      callback
    })
  }

  /**
   * Returns the place of a promise's write.
   * @param {number} entry
   * @param {number} first place after it was made
   * @param {number} limit place after its answer
   */
  writeOf (entry, first, limit) {
    const { answeredBy, traffic: { sent } } = this
    const later = this.lastAsked(entry, first, limit)
    if (later !== NONE) return later
    const own = this.reserved.get(entry)
    if (own !== undefined) return own
    if (this.isOwnWrite(entry, first) && answeredBy[first] === Infinity) return first
    if (first < this.handshake) {
      // The connection was made for it: the driver's last write before the answer is the query.
      let last = limit - 1
      while (last > Math.max(first, limit - MAX_WRITES) && !this.isByDriver(sent[last])) last--
      this.takeCall(first, last, sent[last])
      return last
    }
    const free = this.freeFrom(first)
    if (free >= limit) return first
    // A queue writes when the query before is answered; what is written earlier is a command after this one.
    return answeredBy[first] === Infinity || sent[free] > answeredBy[first] ? free : first
  }

  /**
   * Returns the place of the last question that an earlier answer for a promise led to: the program asked
   * several in callbacks, one after another. NONE: there is none.
   * @param {number} entry
   * @param {number} first place after it was made
   * @param {number} limit place after its answer
   */
  lastAsked (entry, first, limit) {
    const { recording: { b, registered }, traffic: { sent } } = this
    let last = NONE
    let place = this.freeFrom(first + 1)
    for (let i = 0; i < MAX_WRITES && place < limit; i++, place = this.freeFrom(place + 1)) {
      if ((b[sent[place]] & ASKED) === 0 || !this.isInAnswer(sent[place])) continue
      if (this.isCausedBy(registered[sent[place]], registered[entry])) last = place
    }
    return last
  }

  /** Whether a run was caused by another one, step by step. @param {number} run @param {number} cause */
  isCausedBy (run, cause) {
    let step = run
    for (let i = 0; i < MAX_STEPS && step > cause; i++) step = this.recording.registered[step]
    return step !== NONE && step === cause
  }

  /**
   * Takes the writes of a promise's call: those of the same run, and what the connection's callbacks wrote
   * until the answer. A statement is prepared, then executed.
   * @param {number} place of the first
   * @param {number} limit place after the answer
   * @param {number} came entry of the answer
   */
  takeCall (place, limit, came) {
    const { recording: { registered }, traffic: { sent } } = this
    const run = registered[sent[place]]
    this.take(place, came)
    let next = this.freeFrom(place + 1)
    for (let i = 0; i < MAX_WRITES && next < limit; i++, next = this.freeFrom(next + 1)) {
      if (registered[sent[next]] === run || this.isByDriver(sent[next])) this.take(next, came)
    }
  }

  /** Whether the connection's own callback wrote by itself, or a tick of it. @param {number} entry */
  isByDriver (entry) {
    return (this.recording.b[entry] & ASKED) === 0 && this.isInAnswer(entry)
  }

  /** Whether a connection's own callback wrote, or a tick of it. @param {number} entry */
  isInAnswer (entry) {
    const { a, b, ref, registered, timeline: { cameIn, headOf }, flags } = this.recording
    const run = registered[entry]
    if (run === NONE) return true
    const head = headOf[run]
    const isOwnCallback = cameIn[head] === NONE
      ? b[head] === a[entry] && a[entry] !== 0
      : ref[cameIn[head]] === ref[entry]
    return isOwnCallback && (flags[run] & AWAITED) === 0
  }

  /** Adds what no promise claims. */
  addCallbacks () {
    const { recording, traffic: { came, sent } } = this
    const { b, chain, ref, registered, request, timeline } = recording
    /** @type {Query | undefined} */
    let open
    for (let place = 0; place < sent.length; place++) {
      const entry = sent[place]
      const isInAnswer = this.isInAnswer(entry)
      // The program asks in an answer: for whom is not known, a pool may have given the connection on.
      const isFree = this.next[place] === place || this.answeredBy[place] === Infinity
      if (!isFree || (isInAnswer && (b[entry] & ASKED) !== 0)) {
        open = undefined
        continue
      }
      const answer = lastBetween(came, entry, sent[place + 1] ?? Infinity)
      const callback = answer === undefined ? NONE : registered[answer]
      const isMore = open !== undefined && (isInAnswer || registered[entry] === open.made)
      const isHeldBefore = place > 0 && this.isHeldAt(place - 1)
      if (!isMore && !isHeldBefore) {
        if (request[entry] === 0 || (b[entry] & USED) !== 0 || isInAnswer) continue
        const start = this.timeOf(place)
        open = {
          request: outermostOf(recording, request[entry]),
          span: request[entry],
          start,
          end: timeline.end,
          chain: chain[entry],
          writer: chain[entry],
          connection: ref[entry],
          unsent: this.heldMs(place),
          promise: 0,
          unanswered: true,
          made: registered[entry],
          sent: entry,
          callback: NONE
        }
        this.queries.push(open)
      }
      if (open === undefined || callback === NONE) continue
      open.callback = callback
      open.end = this.endOf(callback, open.start)
      open.unanswered = false
    }
  }

  /** Whether a write is kept until the connection is there. @param {number} place */
  isHeldAt (place) {
    const { recording: { b }, traffic: { sent } } = this
    return (b[sent[place]] & HELD) !== 0 && place + 1 < sent.length
  }

  /** When a write went out. @param {number} place */
  timeOf (place) {
    return this.recording.time[this.traffic.sent[this.isHeldAt(place) ? place + 1 : place]]
  }

  /** @param {number} place of a write @returns {number} ms that it was kept */
  heldMs (place) {
    return Math.max(0, this.timeOf(place) - this.recording.time[this.traffic.sent[place]])
  }

  /** @param {number} run */
  beginOf (run) {
    const { slices, sliceOf } = this.recording.timeline
    return slices.start[sliceOf[run]]
  }

  /** When an answer had come. @param {number} callback @param {number} start */
  endOf (callback, start) {
    const { time, timeline: { pollOf } } = this.recording
    const { by } = arrivalOf(this.recording, callback)
    if (by > start) return by
    // When it had come is not known that well.
    const polled = pollOf[callback] === NONE ? start : time[pollOf[callback]]
    return Math.max(start, Math.min(polled, this.beginOf(callback)))
  }
}

/**
 * Returns the last of sorted numbers between two.
 * @param {number[]} sorted
 * @param {number} from
 * @param {number} to
 */
function lastBetween (sorted, from, to) {
  const last = sorted[countBelow(sorted, to) - 1]
  return last > from ? last : undefined
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
