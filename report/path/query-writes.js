'use strict'

// Finds the write of each query on one connection.
//
// A promise belongs to the request that made it, whoever wrote: the queue of a pool or a driver writes for
// others. Its write is the first one on the connection after it was made that no other promise has taken.
// If a driver sends several commands in one write, they share it.

const {
  ASKED, AWAITED, CALLED, CONNECTION, HELD, PARSER, TIMER, USED
} = require('../../lib/core/run-log-words')
const { outermostOf } = require('./requests')
const { NONE, arrivalOf, countBelow } = require('./timeline')

const MAX_WRITES = 256 // of others between those of one call
const MAX_STEPS = 256 // from a write up to its cause

/**
 * @typedef {import('./entries').Recording} Recording
 * @typedef {import('./queries').Query} Query
 * @typedef {import('./queries').Traffic} Traffic
 */

class QueryWrites {
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
    /** how many writes a driver made by itself when it had connected */
    this.handshake = 0
  }

  find () {
    this.reserve()
    this.handshake = this.takeGreeting()
    for (const entry of this.traffic.settled) this.addPromise(entry)
    this.addCallbacks()
    return this.queries
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
  takeGreeting () {
    const { recording: { b, caller, flags, registered, timeline: { headOf } }, traffic: { sent } } = this
    if (sent.length === 0) return 0
    const run = registered[sent[0]]
    const isConnecting = run !== NONE && headOf[run] === run && caller[run] === NONE &&
      (flags[run] & (CALLED | TIMER | PARSER | CONNECTION)) === CALLED
    if (this.next[0] !== 0 || (b[sent[0]] & ASKED) !== 0) return 0
    if (!isConnecting && !this.isInAnswer(sent[0])) return 0
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

module.exports = { QueryWrites }
