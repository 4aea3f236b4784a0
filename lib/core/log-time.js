'use strict'

// Times in the run log that hooks do not report: polls of the event loop and how long each slept, from
// libuv's own count (uv_metrics_idle_time), and the arrival of each callback's event (arrivals.js). Loaded
// when logging starts.
//
// Hot path, while runs are logged: `polled` once an iteration, `begun` for each callback.

const { performance } = require('node:perf_hooks')
const { Arrivals } = require('./arrivals')
const { typeOfStep } = require('./context')
const loopIterations = require('./loop-iterations')
const { DATA, POLLED } = require('./run-log-words')

const MAX_LOOP = 0.3 // ms, from the end of a callback to the poll phase
const MIN_RUN = 0.2 // ms; what is shorter is no wait that hooks have not reported

/** Returns ms that the event loop has waited in the poll phase so far; costs some 30 ns. */
const idleTime = () => performance.nodeTiming.idleTime

/**
 * libuv's count, and the iteration, at the last poll; ms of the clock when a callback returned, where that is
 * noted
 */
const last = { idle: 0, iteration: 0, returned: 0 }

/** The present callback; times of arrivals are of the clock. */
const callback = {
  zero: 0,
  callbackId: 0,
  chain: 0,
  get knowsPolls () { return loopIterations.areCounted() },
  get type () { return this.callbackId === 0 ? 'process' : typeOfStep(this.chain, this.callbackId << 1) }
}

let arrivals = new Arrivals()

/**
 * Returns ms that the loop has slept since the last poll, 0: it has not. Of a poll that a signal interrupted
 * libuv counts only what came after (uv__io_poll in src/unix/linux.c).
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

/** How what the present callback waited for had come, for the log. */
const arrival = { how: 0, time: 0, range: 0 }

module.exports = {
  arrival,
  last,

  /** Runs are logged from now on. @param {number} time ms of the clock */
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
   * @returns {number} ms that it slept, -1: it has not polled
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
   * The same within a run. Not all that enters JavaScript is reported by hooks (the end of a WebAssembly
   * compilation, V8's cleanup of FinalizationRegistry): a long run may be a wait.
   * @param {number} time now, in ms
   * @param {number} since when the run began
   * @returns {number} ms that the loop slept, 0: it has not
   */
  sleptUnseen: (time, since) => time - since < MIN_RUN ? 0 : readSlept(time, since),

  /**
   * The same before work of longstack's own, right before the next poll: how long the last one slept, if
   * nothing that hooks report came after it.
   * @param {number} time now, in ms
   * @param {number} since begin of the last run
   * @returns {number} ms that the loop slept, 0: it has not
   */
  sleptBefore (time, since) {
    const slept = readSlept(time, since)
    if (slept === 0) return 0
    last.iteration = loopIterations.counters[0] - 1 // the next poll is of the present one
    arrivals.polled(time, slept)
    return slept
  },

  /**
   * Finds when what a callback waited for had come, where that is not clear from the polls.
   * @param {number} time now, in ms
   * @param {number} id asyncId of the resource
   * @param {number} chain its number, 0: not known
   * @param {Int32Array} words
   * @param {number} offset of its record
   * @returns {boolean} whether `arrival` says it
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

  /** @type {Arrivals['queueTime']} for how long a request lay there that has just been read */
  queueTime: (socket, isNew, time) => arrivals.queueTime(socket, isNew, time)
}
