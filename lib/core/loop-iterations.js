'use strict'

// Iterations of the event loop, as native/loop-iterations.cc counts them: work that is scheduled here runs
// once, right before the poll phase. Without the addon, or where the loop does not run yet or any more,
// nothing is scheduled: `batching()` is false, and callers do their work at once. What is scheduled within a
// time runs without the addon as well: then its timer is one of Node's.
//
// One for each thread.

const { setTimeout } = require('node:timers') // programs replace the global ones
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
const ROUNDS = 3 // of what is scheduled by what was scheduled: spans, their lines

/**
 * Shared with native/loop-iterations.cc: [0] changes with each iteration, [1] not 0 where the callback is
 * wanted, [2] not 0 where the time of `wake` is over.
 */
const counters = new Uint32Array(3)

/** @type {NativeBinding | undefined} */
let native
/** the iteration in which nothing is batched: the one before the loop runs, and the one in which it ended */
let heldIteration = 0
/** @type {Array<() => void>} */
let scheduled = []
/** what is scheduled is done at the end of a function that runs, see `batch` */
let isBatch = false
/** to be done within a time @type {Array<() => void>} */
let delayed = []
/** the shortest that one of these may take, in ms */
let delay = Infinity

/** Runs what is scheduled. Throws nothing: an exception here would be the program's. */
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

/** Runs what is to be done within a time: it is over, or comes no more. */
function runDelayed () {
  const works = delayed
  counters[DUE] = 0
  delayed = []
  delay = Infinity
  for (let i = 0; i < works.length; i++) attempt(works[i])
}

/** Has delayed work done, without the addon. @param {number} ms */
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
   * Has the iterations counted, until `stop` is called.
   * @returns {boolean} false where no addon is there to do it
   */
  start () {
    native = /** @type {any} */ (loadBinding().binding)?.turns
    heldIteration = counters[ITERATIONS]
    if (native !== undefined && !native.start(counters, runScheduled)) native = undefined
    return native !== undefined
  },

  /** Takes back `start`. What is scheduled runs now. */
  stop () {
    native?.stop()
    native = undefined
    counters[WANTED] = 0
    counters[DUE] = 1
    runScheduled()
  },

  /** Returns whether iterations are counted: without the addon they are not. */
  areCounted: () => native !== undefined,

  /** Returns whether what is scheduled now will run before the next poll phase. */
  batching: () => isBatch || (native !== undefined && counters[ITERATIONS] !== heldIteration),

  /**
   * Runs a function, and then what it has scheduled: for a thread of longstack's own.
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
   * Runs a function once, right before the next poll phase. Guarded; what it throws is dropped.
   * @param {() => void} work
   */
  schedule (work) {
    scheduled.push(work)
    counters[WANTED] = 1
  },

  /**
   * Runs a function once, outside of callbacks, when so many ms are over or earlier. This keeps no process
   * alive. A function that is scheduled already keeps its time. Guarded; what it throws is dropped.
   * @param {() => void} work
   * @param {number} ms
   */
  scheduleWithin (work, ms) {
    if (!delayed.includes(work)) delayed.push(work)
    if (ms >= delay) return
    delay = ms
    if (native?.wake(ms) !== true) setTimer(ms)
  },

  /** Batches nothing until the next iteration: the loop may have ended for good. */
  hold () {
    heldIteration = counters[ITERATIONS]
  }
}

module.exports = loopIterations
