'use strict'

// Arrival times: when the event that a callback waited for arrived. Before that the callback waited, after
// that it was delayed. Sources of the time:
//
// - timers: when they were due; an immediate is due at once;
// - data on a TCP connection, on Linux: the kernel's own time, to 4 ms;
// - everything else: the polls of the event loop. An event that a poll did not deliver arrived after it.
//   If much ran between two polls, the time is a range, and both ends are kept.
//
// The middle between two polls is exact enough unless the loop has not polled for MAX_GAP, or for twice that
// when the kernel can be queried. Hot path: `polled` and `begin`.
//
// Times are ms since the caller's `zero`.

const { executionAsyncResource } = require('node:async_hooks')
const { now } = require('./clock')
const { timeAt } = require('./record-ids')
const { FLAGS, ONE_SHOT, PARSER, PASSED, TIMER } = require('./records')
const { callNative, handleOf } = require('../node-objects')
const { hiddenProperty, isObject, own } = require('../objects')
const layout = require('./run-log-words')
const { loadBinding } = require('../stacks/binding')

const MAX_GAP = 4 // ms, the kernel's own precision
const KERNEL_GAP = 2 * MAX_GAP // ms
const MAX_TIMER_GAP = 1 // ms, the precision of timers
const MIN_SLEEP = 0.5 // ms in a poll that found nothing at first: its events arrived at its end
const { DATA, DUE, POLLED } = layout
const BUSY_MEMORY = 2000 // ms for which a connection may have waited for accept after such a gap
const WITH_ITS_CAUSE = 0
const DESCRIPTORS = 1 << 10 // server connections with a cached descriptor, a power of two

/** Types whose callbacks come from a poll: later events are delivered by the next one. */
const polledTypes = new Set((
  'TCPWRAP PIPEWRAP TLSWRAP UDPWRAP HTTPINCOMINGMESSAGE HTTPCLIENTREQUEST HTTP2SESSION TCPCONNECTWRAP ' +
  'PIPECONNECTWRAP WRITEWRAP SHUTDOWNWRAP UDPSENDWRAP TTYWRAP QUERYWRAP').split(' '))

const REQUEST = 'HTTPINCOMINGMESSAGE'
/** Types whose callbacks are called by data on a connection. */
const dataTypes = new Set(['TCPWRAP', 'TLSWRAP', REQUEST])

const socketHandle = hiddenProperty('kHandle')

/**
 * @typedef {object} Callback called by the event loop
 * @property {number} zero ms of the clock at time 0
 * @property {number} callbackId asyncId of its resource, 0: unknown
 * @property {string} type of its resource
 * @property {boolean} knowsPolls all polls are known, including those that did not sleep
 */

class Arrivals {
  constructor () {
    /** end of the last poll and of the previous one */
    this.polledAt = 0
    this.polledBefore = 0
    /** sleep of these in ms */
    this.slept = 0
    this.sleptBefore = 0
    /** begin of the current callback */
    this.begunAt = 0
    /** its event arrived after cameAfter, at cameBy at the latest; 0 if it was due together with its cause */
    this.cameBy = 0
    this.cameAfter = 0
    /** DATA: arrival of the last data before the read, possibly after the poll */
    this.cameLast = 0
    /** how the arrival was found, see run-log-words.js; 0 if not looked up @type {number} */
    this.found = 0
    /** a timer or an immediate */
    this.isScheduled = false
    /** end of the last long gap between polls */
    this.busyUntil = -Infinity
    /** lag of Node's timer time, by which timers are set: the largest certain value */
    this.timerOffset = -Infinity
    /** @type {((fd: number) => number | undefined) | undefined} */
    this.dataAge = undefined
    /** descriptors of connections, indexed by the lowest bits of their parsers' asyncIds */
    this.descriptors = new Int32Array(DESCRIPTORS)
    this.describedIds = new Float64Array(DESCRIPTORS)
    /** asyncId of the last resource queried, and the poll before that query */
    this.askedFor = 0
    this.askedAt = 0
    /** arrival of its data, undefined: unknown @type {number | undefined} */
    this.askedCame = undefined
  }

  /** @param {number} time */
  start (time) {
    this.polledAt = this.polledBefore = this.begunAt = this.cameBy = this.cameAfter = time
    this.slept = this.sleptBefore = 0
    this.timerOffset = -Infinity
    this.dataAge = /** @type {any} */ (loadBinding().binding)?.arrival?.dataAge
  }

  /** Notes a poll. @param {number} time of its end @param {number} slept ms */
  polled (time, slept) {
    this.polledBefore = this.polledAt
    this.polledAt = time
    this.sleptBefore = this.slept
    this.slept = slept
    if (time - slept - this.polledBefore >= MAX_GAP) this.busyUntil = time
  }

  /**
   * Notes that the event loop calls a callback.
   * @param {number} time now
   * @param {Int32Array} words of its record
   * @param {number} offset
   * @param {Callback} loop
   */
  begin (time, words, offset, loop) {
    this.begunAt = time
    const flags = words[offset + FLAGS]
    this.isScheduled = (flags & TIMER) !== 0
    this.found = 0
    const { polledAt, polledBefore, slept } = this
    if (this.isScheduled && (flags & ONE_SHOT) !== 0) {
      this.cameBy = this.cameAfter = WITH_ITS_CAUSE
    } else if (time - slept - polledBefore < (this.isScheduled ? MAX_TIMER_GAP : MAX_GAP)) {
      this.cameBy = this.cameAfter = slept >= MIN_SLEEP ? polledAt : (polledBefore + polledAt - slept) / 2
    } else {
      this.find(time, words, offset, loop)
    }
  }

  /**
   * Finds the arrival time of the current callback's event, after a time without polls.
   * @param {number} time now
   * @param {Int32Array} words
   * @param {number} offset
   * @param {Callback} loop
   */
  find (time, words, offset, loop) {
    const { polledAt, polledBefore, slept } = this
    this.found = POLLED
    const isPassed = (words[offset + FLAGS] & PASSED) !== 0 // such a record lacks TIMER
    if (this.isScheduled || isPassed) {
      const madeAt = isPassed ? undefined : timeAt(words, offset) - loop.zero
      const due = this.dueTime(executionAsyncResource(), madeAt)
      if (due !== undefined) {
        this.isScheduled = true
        this.found = DUE
        this.cameBy = this.cameAfter = Math.min(due, time)
        return
      }
    }
    const isRequest = (words[offset + FLAGS] & PARSER) !== 0 // true of most callbacks of a server
    const type = isRequest ? REQUEST : loop.type
    this.cameBy = loop.knowsPolls && (isRequest || polledTypes.has(type)) ? polledAt : time
    this.cameAfter = slept >= MIN_SLEEP ? polledAt : polledBefore
    if (!isRequest && !dataTypes.has(type)) return
    if (time - slept - polledBefore < KERNEL_GAP && this.dataAge !== undefined) {
      this.cameBy = this.cameAfter = slept >= MIN_SLEEP ? polledAt : (polledBefore + polledAt - slept) / 2
      return
    }
    // Node calls a parser three times for one request; one query of the kernel is enough.
    if (this.askedFor !== loop.callbackId || this.askedAt !== polledAt) {
      // A parser runs only while its connection is open. A handle also runs after the close, when another
      // connection may have its descriptor.
      const fd = isRequest
        ? this.descriptorOfRequest(loop.callbackId)
        : descriptorOf(executionAsyncResource())
      this.askedFor = loop.callbackId
      this.askedAt = polledAt
      const came = this.dataTime(fd)
      this.askedCame = came === undefined ? undefined : came - loop.zero
    }
    const came = this.askedCame
    // Data older than a poll that did not deliver it: the callback is for the connection's end instead
    if (came === undefined || came < polledBefore - MAX_GAP) return
    this.found = DATA
    this.cameLast = Math.max(polledBefore, Math.min(came, time))
    this.cameBy = this.cameAfter = Math.min(this.cameLast, this.cameBy)
  }

  /**
   * Returns when a timer was due, 0 for an immediate. Node stores the time at which a timer was last set, in
   * whole ms of its own time (lib/internal/timers.js): when the timer was made, or later.
   * @param {object} resource
   * @param {number | undefined} madeAt when it was made, if known
   * @returns {number | undefined} undefined: neither of them, or unknown
   */
  dueTime (resource, madeAt) {
    if (!isObject(resource)) return undefined
    const start = own(resource, '_idleStart')
    const delay = own(resource, '_idleTimeout')
    if (typeof start !== 'number' || typeof delay !== 'number') {
      return own(resource, '_onImmediate') === undefined ? undefined : WITH_ITS_CAUSE
    }
    if (madeAt !== undefined) this.timerOffset = Math.max(this.timerOffset, madeAt - start)
    return this.timerOffset === -Infinity ? undefined : start + delay + this.timerOffset
  }

  /**
   * Returns the descriptor of the connection whose parser runs. The lookup takes longer than a query of the
   * kernel.
   * @param {number} id of the parser
   * @returns {number} -1: unknown
   */
  descriptorOfRequest (id) {
    if (this.dataAge === undefined) return -1
    const slot = id & (DESCRIPTORS - 1)
    if (this.describedIds[slot] !== id) {
      this.describedIds[slot] = id
      this.descriptors[slot] = descriptorOf(executionAsyncResource())
    }
    return this.descriptors[slot]
  }

  /**
   * Queries the kernel for the last arrival of data on a connection.
   * @param {number} fd -1: unknown
   * @returns {number | undefined} ms of the clock; undefined if the kernel does not know
   */
  dataTime (fd) {
    if (fd < 0 || this.dataAge === undefined) return undefined
    const before = now()
    const age = this.dataAge(fd)
    if (age === undefined) return undefined
    const time = now()
    if (time - before < MAX_GAP) return time - age
    // The thread lost its CPU meanwhile, before or after the kernel responded.
    const again = this.dataAge(fd)
    return again === undefined ? undefined : now() - again
  }

  /**
   * Returns how long a request sat unread before Node read it. On a known connection it was read after the
   * next poll; a new connection may have waited for accept.
   * @param {unknown} socket
   * @param {boolean} isNew whether the connection is new
   * @param {number} time now
   * @returns {{ ms: number, max: number }}
   */
  queueTime (socket, isNew, time) {
    // Queries the kernel even if the loop slept: on a busy machine a thread gets its CPU late. A signal ends
    // a poll without delivering the data.
    const isShort = isNew
      ? time - this.busyUntil > BUSY_MEMORY && this.dataAge === undefined
      : time - this.polledBefore + this.sleptBefore < KERNEL_GAP
    if (isShort) return NOT_QUEUED
    const isAsked = !isNew && this.askedAt === this.polledAt && this.cameBy === this.cameAfter
    const came = isAsked || !isObject(socket) ? undefined : this.dataTime(descriptorOf({ socket }))
    if (came !== undefined) {
      const ms = time - came
      return ms < MAX_GAP ? NOT_QUEUED : { ms, max: ms }
    }
    const max = time - this.cameAfter
    return max < MAX_GAP ? NOT_QUEUED : { ms: time - this.cameBy, max }
  }
}

/**
 * Returns the descriptor of a connection, -1: unknown.
 * @param {unknown} resource of a callback: the connection's handle, or its parser
 * @returns {number}
 */
function descriptorOf (resource) {
  if (!isObject(resource)) return -1
  const socket = own(resource, 'socket')
  const ofSocket = isObject(socket) ? socketHandle(socket) ?? handleOf(socket) : undefined
  const handle = ofSocket ?? handleOfReused(resource) ?? resource
  const fd = callNative(handle, 'fd')
  return typeof fd === 'number' ? fd : -1
}

/**
 * Returns the handle in Node's stand-in object: when the agent reuses a connection, it gives it a new asyncId
 * and such an object (ReusedHandle in lib/internal/http.js).
 * @param {unknown} resource
 * @returns {object | undefined} the handle; undefined: not such an object
 */
function handleOfReused (resource) {
  const handle = isObject(resource) ? own(resource, 'handle') : undefined
  return isObject(handle) ? handle : undefined
}

const NOT_QUEUED = { ms: 0, max: 0 }

module.exports = { Arrivals, handleOfReused }
