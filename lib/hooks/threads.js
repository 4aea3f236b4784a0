'use strict'

// The chain of a worker begins in the thread that made it. What a worker inherits by setEnvironmentData is
// invisible to programs (no API lists the keys) and is copied when the worker is made: the maker's chain is
// put there as plain data just before, and becomes the worker's root. It is taken back as soon as the worker
// has its copy: the chain is of no other worker.

const KEY = 'longstack.chain'
/** a chain is there: of a worker that is being made, or the one that this thread inherited */
let isPassed = !isMainThread()
/** the hops that this thread inherited; null: not read yet @type {unknown} */
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
  if (Array.isArray(inherited)) root.carried = inherited

  return {
    /**
     * A worker is being made in the running context.
     * @param {import('../stacks/chain').PrintedHop[]} hops that led here
     */
    starting (hops) {
      const carried = hops.map((hop) => ({ ...hop, origin: 'worker' }))
      require('node:worker_threads').setEnvironmentData(KEY, /** @type {any} */ (carried))
      isPassed = true
    }
  }
}

/** Takes back what was put there for a worker: it is made, or nothing is traced any more. */
function takeBackChain () {
  if (!isPassed) return
  isPassed = false
  const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads')
  if (inherited === null) inherited = getEnvironmentData(KEY)
  setEnvironmentData(KEY, undefined) // else workers of this one inherit it
}

module.exports = { createThreadLayer, isMainThread, takeBackChain }
