'use strict'

// The chain of a worker begins in the thread that made it. What a worker inherits by setEnvironmentData is
// invisible to programs (no API lists the keys) and is copied when the worker is made: the maker's chain is
// put there as plain data just before, and becomes the worker's root.

const KEY = 'longstack.chain'

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
  if (!isMainThread()) {
    const carried = require('node:worker_threads').getEnvironmentData(KEY)
    if (Array.isArray(carried)) root.carried = carried
  }

  return {
    /**
     * A worker is being made in the running context.
     * @param {import('../stacks/chain').PrintedHop[]} hops that led here
     */
    starting (hops) {
      const carried = hops.map((hop) => ({ ...hop, origin: 'worker' }))
      require('node:worker_threads').setEnvironmentData(KEY, /** @type {any} */ (carried))
    }
  }
}

module.exports = { createThreadLayer, isMainThread }
