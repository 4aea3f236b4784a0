'use strict'

// Event loop iterations, counted by native/loop-iterations.cc. Scheduled work runs once, right before the
// poll phase. Without the addon, or before the loop starts or after it ends, nothing is scheduled:
// `batching()` is false, and callers do their work at once. Work with a time limit runs even without the
// addon, on a Node timer.
//
// One instance per thread.

const { setTimeout } = require('node:timers') // programs replace the global one
const { now } = require('./clock')
const guard = require('./guard')
const runLog = require('./run-log')
const { attempt } = require('../files')
const { loadBinding } = require('../stacks/binding')

/**
 * @typedef {object} NativeBinding native/loop-iterations.cc
 * @property {(counters: Uint32Array, callback: () => void) => boolean} start
 * @property {() => void} stop
 * @property {(ms: number) => boolean} wake
 */

const ITERATIONS = 0
const WANTED = 1
const DUE = 2
const ROUNDS = 3 // rounds of scheduled work that schedules more, such as lines of spans

/**
 * Shared with native/loop-iterations.cc: [0] changes with each iteration, [1] is nonzero if the callback is
 * wanted, [2] is nonzero once the time of `wake` is over.
 */
const counters = new Uint32Array(3)

/** @type {NativeBinding | undefined} */
let native
/** the iteration number without batching: before the loop runs, or after it has ended */
let heldIteration = 0
/** @type {Array<() => void>} */
let scheduled = []
/** scheduled work is done at the end of the running function, see `batch` */
let isBatch = false
/** work with a time limit @type {Array<() => void>} */
let delayed = []
/** the shortest limit, in ms */
let delay = Infinity

/** Runs scheduled work. Never throws: the exception would surface in the program. */
function runScheduled () {
  attempt(() => guard.run(() => {
    if (counters[DUE] === 0 && scheduled.length === 0) return
    runLog.leftProgram(now())
    if (counters[DUE] !== 0) runDelayed()
    for (let round = 0; round < ROUNDS && scheduled.length > 0; round++) {
      const works = scheduled
      scheduled = []
      for (let i = 0; i < works.length; i++) attempt(works[i])
    }
    runLog.returned()
  }))
}

/** Runs work with a time limit: the time has passed, or the loop has ended. */
function runDelayed () {
  const works = delayed
  counters[DUE] = 0
  delayed = []
  delay = Infinity
  for (let i = 0; i < works.length; i++) attempt(works[i])
}

/** Schedules delayed work without the addon. @param {number} ms */
function setTimer (ms) {
  const runTimer = () => {
    runLog.leftProgram(now())
    runDelayed()
  }
  guard.run(() => setTimeout(() => { guard.runQuietly(runTimer) }, ms).unref())
}

const loopIterations = {
  counters,

  /**
   * Starts counting iterations, until `stop` is called.
   * @returns {boolean} false without the addon
   */
  start () {
    native = /** @type {any} */ (loadBinding().binding)?.turns
    heldIteration = counters[ITERATIONS]
    if (native !== undefined && !native.start(counters, runScheduled)) native = undefined
    return native !== undefined
  },

  /** Reverts `start`. Scheduled work runs now. */
  stop () {
    native?.stop()
    native = undefined
    counters[WANTED] = 0
    counters[DUE] = 1
    runScheduled()
  },

  /** Returns whether iterations are counted; only the addon does. */
  areCounted: () => native !== undefined,

  /** Returns whether work scheduled now will run before the next poll phase. */
  batching: () => isBatch || (native !== undefined && counters[ITERATIONS] !== heldIteration),

  /**
   * Runs a function and then the work it has scheduled: for longstack's own threads.
   * @param {() => void} work
   */
  batch (work) {
    isBatch = true
    try {
      work()
    } finally {
      isBatch = false
      runScheduled()
    }
  },

  /**
   * Runs a function once, right before the next poll phase. Guarded; exceptions are dropped.
   * @param {() => void} work
   */
  schedule (work) {
    scheduled.push(work)
    counters[WANTED] = 1
  },

  /**
   * Runs a function once, outside of callbacks, after at most the given time. Never keeps the process alive.
   * A function that is already scheduled keeps its time. Guarded; exceptions are dropped.
   * @param {() => void} work
   * @param {number} ms
   */
  scheduleWithin (work, ms) {
    if (!delayed.includes(work)) delayed.push(work)
    if (ms >= delay) return
    delay = ms
    if (native?.wake(ms) !== true) setTimer(ms)
  },

  /** Stops batching until the next iteration: the loop may have ended for good. */
  hold () {
    heldIteration = counters[ITERATIONS]
  }
}

module.exports = loopIterations
