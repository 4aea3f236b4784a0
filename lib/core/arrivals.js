'use strict'

// Arrival times: when the event that a callback waited for had arrived. Until then the callback waited, from
// then on it was delayed. The time comes from
//
// - timers: when they were due; an immediate is due at once;
// - data on a TCP connection, on Linux: the kernel's own time, to 4 ms;
// - everything else: the polls of the event loop. An event that a poll did not deliver arrived after it. If
//   much ran between two polls, the time is a range, and both ends are kept.
//
// The middle between two polls is exact enough unless the loop has not polled for MAX_GAP, or twice as long
// before the kernel is asked. Hot path: `polled` and `begin`.
//
// Times are ms since the `zero` of the caller.

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
const MAX_TIMER_GAP = 1 // ms, that of timers
const MIN_SLEEP = 0.5 // ms in a poll that found nothing at first: what it brought came when it ended
const { DATA, DUE, POLLED } = layout
const BUSY_MEMORY = 2000 // ms for which a connection may have waited to be accepted after such a gap
const WITH_ITS_CAUSE = 0
const DESCRIPTORS = 1 << 10 // connections of servers whose descriptors are remembered, a power of two

/** Types whose callbacks a poll brings: what came later is brought by the next one. */
const polledTypes = new Set((
  'TCPWRAP PIPEWRAP TLSWRAP UDPWRAP HTTPINCOMINGMESSAGE HTTPCLIENTREQUEST HTTP2SESSION TCPCONNECTWRAP ' +
  'PIPECONNECTWRAP WRITEWRAP SHUTDOWNWRAP UDPSENDWRAP TTYWRAP QUERYWRAP').split(' '))

const REQUEST = 'HTTPINCOMINGMESSAGE'
/** Types whose callbacks data on a connection calls. */
const dataTypes = new Set(['TCPWRAP', 'TLSWRAP', REQUEST])

const socketHandle = hiddenProperty('kHandle')

/**
 * @typedef {object} Callback the one that the event loop calls
 * @property {number} zero ms of the clock at which times begin
 * @property {number} callbackId asyncId of its resource, 0: not known
 * @property {string} type of that
 * @property {boolean} knowsPolls every poll is known, including those without sleep
 */

class Arrivals {
  constructor () {
    /** end of the last poll, and of the one before */
    this.polledAt = 0
    this.polledBefore = 0
    /** ms for which these slept */
    this.slept = 0
    this.sleptBefore = 0
    /** begin of the present callback */
    this.begunAt = 0
    /** what it waited for had come by then, and came after that; 0: with its cause */
    this.cameBy = 0
    this.cameAfter = 0
    /** DATA: when the last of it came, which may be behind the poll, until it is read */
    this.cameLast = 0
    /** how that was found out, see run-log-words.js; 0: it was not asked for @type {number} */
    this.found = 0
    /** it is a timer or an immediate */
    this.isScheduled = false
    /** the last time that the loop had not polled for long */
    this.busyUntil = -Infinity
    /** what Node's time of timers, which a timer is set by, is behind: the largest of what is sure */
    this.timerOffset = -Infinity
    /** @type {((fd: number) => number | undefined) | undefined} */
    this.dataAge = undefined
    /** descriptors of connections, by the lowest bits of their parsers' asyncIds */
    this.descriptors = new Int32Array(DESCRIPTORS)
    this.describedIds = new Float64Array(DESCRIPTORS)
    /** the resource that was asked last, by asyncId, and the poll after which */
    this.askedFor = 0
    this.askedAt = 0
    /** when its data had come, undefined: not known @type {number | undefined} */
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
   * Finds when what the present callback waited for had come, after a time without a poll.
   * @param {number} time now
   * @param {Int32Array} words
   * @param {number} offset
   * @param {Callback} loop
   */
  find (time, words, offset, loop) {
    const { polledAt, polledBefore, slept } = this
    this.found = POLLED
    const isPassed = (words[offset + FLAGS] & PASSED) !== 0 // then all of them have one type
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
    const isRequest = (words[offset + FLAGS] & PARSER) !== 0 // what most callbacks of a server are
    const type = isRequest ? REQUEST : loop.type
    this.cameBy = loop.knowsPolls && (isRequest || polledTypes.has(type)) ? polledAt : time
    this.cameAfter = slept >= MIN_SLEEP ? polledAt : polledBefore
    if (!isRequest && !dataTypes.has(type)) return
    if (time - slept - polledBefore < KERNEL_GAP && this.dataAge !== undefined) {
      this.cameBy = this.cameAfter = slept >= MIN_SLEEP ? polledAt : (polledBefore + polledAt - slept) / 2
      return
    }
    // Node calls a parser three times for one request: the kernel is asked once.
    if (this.askedFor !== loop.callbackId || this.askedAt !== polledAt) {
      // A parser runs only while its connection is open; a handle also once it is closed, when another
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
    // Older than the poll that did not bring it: the end of a connection, which is no data
    if (came === undefined || came < polledBefore - MAX_GAP) return
    this.found = DATA
    this.cameLast = Math.max(polledBefore, Math.min(came, time))
    this.cameBy = this.cameAfter = Math.min(this.cameLast, this.cameBy)
  }

  /**
   * Returns when a timer was due, 0 for an immediate. A timer says in whole ms of a time of its own when it
   * was set last (lib/internal/timers.js), which was when it was made, or later.
   * @param {object} resource
   * @param {number | undefined} madeAt when it was made, where that is known
   * @returns {number | undefined} undefined: it is neither, or that is not known
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
   * Returns the descriptor of the connection whose parser runs. To find it takes longer than to ask the
   * kernel.
   * @param {number} id of the parser
   * @returns {number} -1: none is known
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
   * Asks the kernel when data last came on a connection.
   * @param {number} fd -1: not known
   * @returns {number | undefined} ms of the clock; undefined if the kernel does not know
   */
  dataTime (fd) {
    if (fd < 0 || this.dataAge === undefined) return undefined
    const before = now()
    const age = this.dataAge(fd)
    if (age === undefined) return undefined
    const time = now()
    if (time - before < MAX_GAP) return time - age
    // The thread has lost its CPU meanwhile: before or after the kernel answered.
    const again = this.dataAge(fd)
    return again === undefined ? undefined : now() - again
  }

  /**
   * Returns for how long a request that has just been read lay there. One on a connection that is known was
   * read after the next poll; a new connection may have waited to be accepted.
   * @param {unknown} socket
   * @param {boolean} isNew the connection is
   * @param {number} time now
   * @returns {{ ms: number, max: number }}
   */
  queueTime (socket, isNew, time) {
    // The kernel is asked even if the loop slept: on a busy machine a thread gets its CPU late. A signal ends
    // a poll without the data that is there.
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
 * Returns the descriptor of a connection, -1: none is known.
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
 * Node's agent gives a connection that it reuses a new asyncId, and an object in place of its handle
 * (ReusedHandle in lib/internal/http.js).
 * @param {unknown} resource
 * @returns {object | undefined} the handle; undefined: it is no such object
 */
function handleOfReused (resource) {
  const handle = isObject(resource) ? own(resource, 'handle') : undefined
  return isObject(handle) ? handle : undefined
}

const NOT_QUEUED = { ms: 0, max: 0 }

module.exports = { Arrivals, handleOfReused }
