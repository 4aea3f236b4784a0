'use strict'

// Finds the write of each query.
//
// A promise belongs to the request that made it, even if another one wrote: the queue of a pool or a driver
// writes for others. Its write is one of the run that made it, else the first later write on the connection
// that no other promise has claimed. If a driver sends several commands in one write, they share it.

const {
  ASKED, AWAITED, CALLED, CONNECTION, GREETS, HELD, PARSER, READS_ON, TIMER, USED
} = require('../../lib/core/run-log-words')
const { getOrAdd } = require('../../lib/group-by')
const { NONE } = require('./entries')

const MAX_WRITES = 256 // on one connection between a query and its response
const MAX_STEPS = 256 // from a write up to its cause
const MAX_CONNECTIONS = 1 << 13 // known connections, including idle ones

// Flags of a write.
const CLAIMED = 1 // a promise claims it
const PART = 2 // belongs to a query that a promise claims, or to the previous write
const GREETING = 4 // the driver's own, when it had connected
const IN_ANSWER = 8 // made in a callback of its own connection
const NO_BYTES = 16 // flag of data: the peer has ended the connection
const SETTLED = CLAIMED | PART | GREETING
const DRIVERS_OWN = CLAIMED | GREETING // the driver made the promise, too

/**
 * @typedef {import('./entries').Recording} Recording
 * @typedef {import('./requests').Spans} Spans
 *
 * @typedef {object} Connection
 * @property {number} write its newest write
 * @property {number} data the newest data that came
 * @property {number} greeting last write of the driver's own when it had connected, or NONE
 * @property {number} call write of the pending query with a callback
 * @property {boolean} isUsed something was written
 */

class Traffic {
  /** @param {Recording} recording @param {Spans} spans */
  constructor (recording, spans) {
    this.recording = recording
    this.spans = spans
    /** by reference @type {Map<number, Connection>} */
    this.connections = new Map()
  }

  /** @param {number} ref @returns {Connection} */
  #get (ref) {
    return getOrAdd(this.connections, ref, newConnection)
  }

  /** @param {number} i write */
  send (i) {
    const { recording, recording: { b, end, flags, previous, ref, registered, request, sent, time } } = this
    const connection = this.#get(ref[i])
    const { call, write: before } = connection
    const isAnswer = isInAnswer(recording, i)
    const isRelease = before !== NONE && (b[before] & HELD) !== 0 // the previous write goes out with it
    previous[i] = before
    connection.write = i
    end[i] = 0
    if (isRelease) end[before] = time[i]
    flags[i] = isAnswer ? IN_ANSWER : 0
    this.#greet(connection, i)
    const isMore = call !== NONE && request[i] === request[call] && this.#isMoreOf(call, i)
    if (isAnswer && (b[i] & ASKED) !== 0 && !isMore) {
      if (call !== NONE && request[i] === 0 && this.#isAnswerOf(call, i)) request[i] = request[call]
      connection.call = request[i] === 0 ? NONE : i
    } else if (call !== NONE && (isMore || isAnswer || isRelease || registered[i] === registered[call])) {
      sent[i] = call
    } else if (isRelease) {
      flags[i] |= PART
    } else if (!isAnswer && request[i] !== 0 && (b[i] & USED) === 0) {
      connection.call = i
    }
    if (request[i] !== 0) this.#addTo(request[i], i)
  }

  /**
   * Whether a write continues a query that has a callback: a cursor reads on, or a stream does without a call
   * from the program.
   * @param {number} call write of that query
   * @param {number} i write of the same request
   */
  #isMoreOf (call, i) {
    const { b, came, registered } = this.recording
    if ((b[i] & READS_ON) !== 0) return true
    const answer = came[call] === NONE ? NONE : registered[came[call]]
    return (b[i] & (ASKED | GREETS)) === 0 && answer !== NONE && this.#isCausedBy(registered[i], answer)
  }

  /**
   * Whether the program writes in the callback of a query: it sends the next one, for the same request.
   * @param {number} call write of that query
   * @param {number} i write
   */
  #isAnswerOf (call, i) {
    const { asked, came, head, registered } = this.recording
    const data = came[call]
    if (data === NONE || data !== came[head[registered[i]]]) return false
    // Later writes of the driver may belong to others, in whose callback the program writes then.
    return asked[data] === call || this.#isAlone(call, i)
  }

  /** Whether no other request has run between two entries. @param {number} call write @param {number} i */
  #isAlone (call, i) {
    const { outer, request, slice } = this.recording
    const own = this.spans.outermostOf(request[call])
    const oldest = Math.max(call, i - MAX_STEPS)
    let each = i - 1
    while (each > oldest && (slice[each] !== each || outer[each] === 0 || outer[each] === own)) each--
    return each === call
  }

  /** @param {number} i write or query @param {number} number of its span */
  #addTo (number, i) {
    const span = this.spans.get(number)
    this.recording.asked[i] = span.asked
    span.asked = i
  }

  /**
   * Marks a driver's own writes on a connection that it makes: they are no queries, unless nothing follows.
   * @param {Connection} connection
   * @param {number} i write
   */
  #greet (connection, i) {
    const { b, flags, previous, registered } = this.recording
    const { greeting, isUsed } = connection
    const isByDriver = (b[i] & GREETS) !== 0
    connection.isUsed = true
    if (!isUsed) {
      if (isByDriver || this.#isOnConnect(i)) connection.greeting = i
      return
    }
    if (greeting !== NONE && (flags[greeting] & GREETING) === 0) {
      const isFirst = previous[greeting] === NONE
      const isRelease = isFirst && (b[greeting] & HELD) !== 0 && previous[i] === greeting
      if (isRelease) connection.greeting = i
      if (isRelease || (isByDriver && registered[i] === registered[greeting])) return
      for (let each = previous[i]; each !== NONE; each = previous[each]) flags[each] |= GREETING
    }
    if (isByDriver) connection.greeting = i
  }

  /** Whether the first write on a connection comes from its connect request. @param {number} i */
  #isOnConnect (i) {
    const { recording, recording: { b, caller, flags, head, registered, x } } = this
    if ((b[i] & ASKED) !== 0 || x[i] > 0) return false
    const run = registered[i]
    const isConnecting = run !== NONE && head[run] === run && caller[run] === NONE &&
      (flags[run] & (CALLED | TIMER | PARSER | CONNECTION)) === CALLED
    return isConnecting || isInAnswer(recording, i)
  }

  /** @param {number} i data */
  receive (i) {
    const { asked, came, flags, ref, sent, x } = this.recording
    const connection = this.#get(ref[i])
    const { data: before, write } = connection
    if (before !== NONE && x[i] > 0 && x[i] === x[before]) flags[i] = NO_BYTES
    connection.data = i
    asked[i] = write
    if (write === NONE || (flags[write] & SETTLED) !== 0) return
    came[write] = i
    const call = sent[write]
    if (call !== NONE && (flags[call] & SETTLED) === 0) came[call] = i
  }

  /** @param {number} i promise that was settled */
  settle (i) {
    const { b, came, flags, head, previous, ref, request, sent, settled } = this.recording
    const data = settled[i] === NONE ? NONE : came[head[settled[i]]]
    if (data === NONE || (flags[data] & NO_BYTES) !== 0) return
    const connection = this.#get(ref[data])
    this.#dropHandedOn(i, data)
    const write = this.#writeOf(connection, i, data)
    if (write === NONE || (b[write] & USED) !== 0) return
    this.#claim(connection, write, data)
    came[i] = data
    sent[i] = write
    previous[i] = sent[data]
    sent[data] = i
    if (request[i] !== 0) this.#addTo(request[i], i)
  }

  /**
   * Drops promises of other requests that were made later but settled before a promise, by the same data.
   * Responses come in the order of their queries: a pool got its connection back and gave it to them.
   * @param {number} promise
   * @param {number} data that settled it
   */
  #dropHandedOn (promise, data) {
    const { previous, registered, request, sent, settled } = this.recording
    if (registered[promise] === NONE) return
    const own = this.spans.outermostOf(request[promise])
    for (let i = sent[data], next = NONE; i !== NONE; i = next) {
      next = previous[i]
      if (registered[i] <= registered[promise] || settled[i] !== settled[promise]) continue
      if (this.spans.outermostOf(request[i]) !== own) this.#drop(i, data)
    }
  }

  /** Drops the query of a promise. @param {number} query @param {number} data that settled it */
  #drop (query, data) {
    const { asked, flags, previous, request, sent } = this.recording
    let isShared = false
    if (sent[data] === query) sent[data] = previous[query]
    for (let i = sent[data]; i !== NONE; i = previous[i]) {
      if (previous[i] === query) previous[i] = previous[query]
      isShared ||= sent[i] === sent[query]
    }
    if (!isShared) flags[sent[query]] &= ~CLAIMED
    const span = request[query] === 0 ? undefined : this.spans.get(request[query])
    if (span === undefined) return
    if (span.asked === query) span.asked = asked[query]
    for (let i = span.asked; i > query; i = asked[i]) {
      if (asked[i] === query) asked[i] = asked[query]
    }
  }

  /**
   * Returns the write of a promise, or NONE if nothing was sent for it here, as when a pool handed its
   * connection on.
   * @param {Connection} connection
   * @param {number} promise
   * @param {number} data that settled it
   */
  #writeOf (connection, promise, data) {
    const { asked, b, came, flags, previous, registered } = this.recording
    const made = registered[promise]
    if (this.#isOnlyQuery(asked[data], made)) return asked[data]
    let [first, own, free, driver, later] = [NONE, NONE, NONE, NONE, NONE]
    let write = connection.write
    for (let i = 0; i < MAX_WRITES && write > made; i++, write = previous[write]) {
      if (write > data || (flags[write] & DRIVERS_OWN) === DRIVERS_OWN) continue
      if (this.#isAnsweredCall(write, promise, data)) continue
      first = write
      const isAsked = (b[write] & ASKED) !== 0
      const isAnswer = (flags[write] & IN_ANSWER) !== 0
      if (driver === NONE && isAnswer && !isAsked) driver = write
      if (made !== NONE && registered[write] === made && (flags[write] & CLAIMED) === 0) own = write
      if ((flags[write] & SETTLED) !== 0) continue
      free = write
      if (later === NONE && isAnswer && isAsked && this.#isCausedBy(registered[write], made)) later = write
    }
    // The program sent several in callbacks, one after another.
    if (later !== NONE && later !== first) return later
    if (own !== NONE || first === NONE) return own
    if (first <= connection.greeting && first !== driver && driver !== NONE) {
      // The connection was made for it: the driver's last write before the response is the query.
      return driver
    }
    if ((flags[first] & GREETING) !== 0) return NONE // it waited for the connection
    if (free === NONE || free === first) return first
    // A queue writes when the previous query is answered; an earlier write is a command after this one.
    return free > came[first] ? free : first
  }

  /**
   * Whether the program sent a write in the callback of the previous response, after a promise was made, and
   * nothing else is in flight. Earlier writes belong to other promises, made before the recording began.
   * @param {number} write the last one before the data that settled the promise
   * @param {number} made run of the promise
   */
  #isOnlyQuery (write, made) {
    const { b, came, flags, previous } = this.recording
    if (write === NONE || write <= made || (flags[write] & (SETTLED | IN_ANSWER)) !== IN_ANSWER) return false
    const before = previous[write]
    return (b[write] & ASKED) !== 0 && before !== NONE && came[before] !== NONE && came[before] < write
  }

  /**
   * Whether a write belongs to a query with a callback, such as a stream, that another request sent itself
   * and that was answered before the last write before data.
   * @param {number} write
   * @param {number} promise
   * @param {number} data that settled the promise
   */
  #isAnsweredCall (write, promise, data) {
    const { asked, b, came, flags, request, sent } = this.recording
    const call = sent[write] === NONE ? write : sent[write]
    if ((b[call] & ASKED) === 0 || (flags[call] & (IN_ANSWER | SETTLED)) !== 0) return false
    if (came[call] === NONE || came[call] >= data || asked[data] < came[call]) return false
    return this.spans.outermostOf(request[call]) !== this.spans.outermostOf(request[promise])
  }

  /** Whether a run was caused by another one, step by step. @param {number} run @param {number} cause */
  #isCausedBy (run, cause) {
    const { registered } = this.recording
    let step = run
    for (let i = 0; i < MAX_STEPS && step > cause; i++) step = registered[step]
    return step !== NONE && step === cause
  }

  /**
   * Claims a write for a promise, with the rest of its call: writes of the same run, and writes of the
   * connection's callbacks until the response. A statement is prepared, then executed.
   * @param {Connection} connection
   * @param {number} write
   * @param {number} data that answers it
   */
  #claim (connection, write, data) {
    const { b, came, flags, previous, registered, sent } = this.recording
    const run = registered[write]
    let each = connection.write
    for (let i = 0; i < MAX_WRITES && each > write; i++, each = previous[each]) {
      if (each > data || (flags[each] & SETTLED) !== 0) continue
      const isByDriver = (flags[each] & IN_ANSWER) !== 0 && (b[each] & ASKED) === 0
      if (!isByDriver && registered[each] !== run) continue
      flags[each] |= PART
      came[each] = data
    }
    const { call } = connection
    if (call === write || (call !== NONE && call === sent[write])) connection.call = NONE
    this.#separate(write)
    flags[write] = (flags[write] & ~GREETING) | CLAIMED
    came[write] = data
  }

  /** Detaches a write from a query with a callback that was answered before. @param {number} write */
  #separate (write) {
    const { came, flags, head, registered, sent } = this.recording
    const call = sent[write]
    const run = registered[write]
    sent[write] = NONE
    if (call === NONE || run === NONE || (flags[call] & SETTLED) !== 0) return
    came[call] = came[head[run]]
  }

  /**
   * Notes that a request ended in a callback that brought a response: it had sent the query. A query with a
   * callback of another request was answered before its driver wrote that query.
   * @param {number} run
   * @param {number} request number
   */
  endIn (run, request) {
    const { asked, came, head, ref, request: span, sent } = this.recording
    const data = run === NONE ? NONE : came[head[run]]
    const connection = data === NONE ? undefined : this.connections.get(ref[data])
    const call = connection?.call ?? NONE
    if (connection === undefined || call === NONE || this.spans.outermostOf(span[call]) === request) return
    const write = asked[data]
    if (write === NONE || sent[write] !== call) return
    connection.call = NONE
    this.#separate(write)
  }

  /** Returns when a write went out. @param {number} write */
  timeOf (write) {
    const { b, end, time } = this.recording
    return (b[write] & HELD) === 0 || end[write] === 0 ? time[write] : end[write]
  }

  /** Forgets all writes, since entries are lost. */
  interrupt () {
    for (const connection of this.connections.values()) {
      connection.write = connection.data = connection.greeting = connection.call = NONE
    }
  }

  /** Updates indexes of entries that moved. @param {Int32Array} moved */
  move (moved) {
    for (const [ref, connection] of this.connections) {
      for (const name of /** @type {const} */ (['write', 'data', 'greeting', 'call'])) {
        if (connection[name] !== NONE) connection[name] = moved[connection[name]]
      }
      const isIdle = connection.write === NONE && connection.data === NONE
      if (isIdle && this.connections.size > MAX_CONNECTIONS) this.connections.delete(ref)
    }
  }
}

/**
 * Whether a write was made in a callback of its own connection, or in a tick of it.
 * @param {Recording} recording
 * @param {number} i
 */
function isInAnswer ({ b, came, flags, head, ref, registered }, i) {
  const run = registered[i]
  if (run === NONE) return true
  if ((flags[run] & AWAITED) !== 0) return false
  const data = came[head[run]]
  return data === NONE ? b[head[run]] === ref[i] >>> 1 : ref[data] === ref[i]
}

/** @returns {Connection} */
const newConnection = () => ({ write: NONE, data: NONE, greeting: NONE, call: NONE, isUsed: false })

module.exports = { CLAIMED, GREETING, IN_ANSWER, PART, SETTLED, Traffic }
