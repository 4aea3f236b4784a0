'use strict'

// Times in the run log that hooks do not report: polls of the event loop and their sleep, from libuv's count
// (uv_metrics_idle_time), and the arrival of each callback's event (arrivals.js). Loaded when logging starts.
//
// Hot path while runs are logged: `polled` once per iteration, `begun` once per callback.

const { performance } = require('node:perf_hooks')
const { Arrivals } = require('./arrivals')
const { typeOfStep } = require('./context')
const loopIterations = require('./loop-iterations')
const { DATA, POLLED } = require('./run-log-words')

const MAX_LOOP = 0.3 // ms, from the end of a callback to the poll phase
const MIN_RUN = 0.2 // ms; a shorter run contains no wait

/** Returns ms that the event loop has waited in the poll phase so far; costs about 30 ns. */
const idleTime = () => performance.nodeTiming.idleTime

/**
 * libuv's count and the iteration at the last poll; ms of the clock when a callback last returned, if noted
 */
const last = { idle: 0, iteration: 0, returned: 0 }

/** The current callback; arrival times are of the clock. */
const callback = {
  zero: 0,
  callbackId: 0,
  chain: 0,
  get knowsPolls () { return loopIterations.areCounted() },
  get type () { return this.callbackId === 0 ? 'process' : typeOfStep(this.chain, this.callbackId << 1) }
}

let arrivals = new Arrivals()

/**
 * Returns ms that the loop has slept since the last poll, 0: none. If a signal interrupts a poll, libuv
 * counts only the time after it (uv__io_poll in src/unix/linux.c).
 * @param {number} time now, in ms
 * @param {number} since begin of the last run
 */
function readSlept (time, since) {
  const idle = idleTime()
  const counted = idle - last.idle
  if (!(counted > 0)) return 0
  last.idle = idle
  const isCut = last.returned >= since && time - counted - last.returned > MAX_LOOP
  return isCut ? time - last.returned : counted
}

/** Arrival of the event that the current callback waited for, for the log. */
const arrival = { how: 0, time: 0, range: 0 }

module.exports = {
  arrival,
  last,

  /** Starts the times of a log. @param {number} time ms of the clock */
  start (time) {
    last.idle = idleTime()
    last.returned = 0
    arrivals = new Arrivals()
    arrivals.start(time)
  },

  /**
   * Notes that the event loop may have polled before a callback.
   * @param {number} time now, in ms
   * @param {number} since begin of the last run
   * @returns {number} ms slept, -1 if it has not polled
   */
  polled (time, since) {
    const slept = readSlept(time, since)
    const iteration = loopIterations.counters[0]
    if (slept === 0 && iteration === last.iteration) return -1
    last.iteration = iteration
    arrivals.polled(time, slept)
    return slept
  },

  /**
   * Returns the sleep within a run. Hooks do not report every entry into JavaScript (the end of a WebAssembly
   * compilation, V8's cleanup of FinalizationRegistry), so a long run may be a wait.
   * @param {number} time now, in ms
   * @param {number} since begin of the run
   * @returns {number} ms slept, 0: none
   */
  sleptUnseen: (time, since) => time - since < MIN_RUN ? 0 : readSlept(time, since),

  /**
   * Returns the sleep before longstack's own work, which runs right before the next poll. This is the last
   * poll's sleep if hooks have reported nothing since.
   * @param {number} time now, in ms
   * @param {number} since begin of the last run
   * @returns {number} ms slept, 0: none
   */
  sleptBefore (time, since) {
    const slept = readSlept(time, since)
    if (slept === 0) return 0
    last.iteration = loopIterations.counters[0] - 1 // the next poll belongs to the current one
    arrivals.polled(time, slept)
    return slept
  },

  /**
   * Finds the arrival time of a callback's event, if the polls do not determine it.
   * @param {number} time now, in ms
   * @param {number} id asyncId of the resource
   * @param {number} chain number of its chain, 0: unknown
   * @param {Int32Array} words
   * @param {number} offset of its record
   * @returns {boolean} whether `arrival` is set
   */
  begun (time, id, chain, words, offset) {
    callback.callbackId = id
    callback.chain = chain
    arrivals.begin(time, words, offset, callback)
    const { cameAfter, cameBy, cameLast, found } = arrivals
    if (found === 0) return false
    arrival.how = found
    arrival.time = cameBy
    arrival.range = found === POLLED ? cameBy - cameAfter : found === DATA ? cameLast - cameBy : 0
    return true
  },

  /** @type {Arrivals['queueTime']} how long a request sat unread before Node read it */
  queueTime: (socket, isNew, time) => arrivals.queueTime(socket, isNew, time)
}
