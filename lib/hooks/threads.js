'use strict'

// The chain of a worker begins in the thread that made it. What a worker inherits by setEnvironmentData is
// invisible to programs (no API lists the keys) and is copied when the worker is made: the maker's chain is
// put there as plain data just before, and becomes the worker's root. It is taken back as soon as the worker
// has its copy: the chain is of no other worker. A worker without longstack takes nothing back, and workers
// that it makes inherit it in their turn: so the data names the thread that it is for.

/**
 * @typedef {object} Passed
 * @property {number} threadId of the worker that it is for
 * @property {import('../stacks/chain').PrintedHop[]} hops
 */

const KEY = 'longstack.chain'
/** a chain is there: of a worker that is being made, or the one that this thread inherited */
let isPassed = !isMainThread()
/** what this thread inherited; null: not read yet @type {Passed | null | undefined} */
let inherited = isPassed ? null : undefined

/**
 * Returns whether this is the main thread, without loading node:worker_threads there, which takes
 * milliseconds: in a worker Node disables what concerns the whole process
 * (lib/internal/bootstrap/switches/does_not_own_process_state.js).
 */
function isMainThread () {
  return /** @type {any} */ (process.abort)?.disabled !== true || require('node:worker_threads').isMainThread
}

/** @param {import('../context/context').Context & { carried?: any }} root the first context of this thread */
function createThreadLayer (root) {
  takeBackChain()
  if (isForThisThread(inherited)) root.carried = inherited.hops

  return {
    /**
     * A worker is being made in the running context.
     * @param {{ threadId?: number }} handle which gets its number after this call
     * @param {import('../stacks/chain').PrintedHop[]} hops that led here
     */
    starting (handle, hops) {
      const passed = {
        get threadId () { return handle.threadId }, // read when the worker's copy is made
        hops: hops.map((hop) => ({ ...hop, origin: 'worker' }))
      }
      require('node:worker_threads').setEnvironmentData(KEY, /** @type {any} */ (passed))
      isPassed = true
    }
  }
}

/** @param {any} passed @returns {passed is Passed} */
function isForThisThread (passed) {
  return Array.isArray(passed?.hops) && passed.threadId === require('node:worker_threads').threadId
}

/** Takes back what was put there for a worker: it is made, or nothing is traced any more. */
function takeBackChain () {
  if (!isPassed) return
  isPassed = false
  const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads')
  if (inherited === null) inherited = /** @type {any} */ (getEnvironmentData(KEY))
  setEnvironmentData(KEY, undefined) // else workers of this one inherit it
}

module.exports = { createThreadLayer, isMainThread, takeBackChain }
