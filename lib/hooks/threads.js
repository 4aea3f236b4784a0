'use strict'

// A worker's story begins in the thread that made it. What a worker inherits by setEnvironmentData is invisible
// to programs (nothing lists the keys) and is handed over when the worker is made; so the chain of the maker goes
// there as plain data just before, and the worker's root takes it from there.

const { getEnvironmentData, isMainThread, setEnvironmentData } = require('node:worker_threads')

const KEY = 'longstack.chain'

/** @param {import('../context/context').Context & { carried?: any }} root the first context of this thread */
function createThreadLayer (root) {
  if (!isMainThread) {
    const carried = getEnvironmentData(KEY)
    if (Array.isArray(carried)) root.carried = carried
  }

  return {
    /** A worker is being made in the running context. @param {import('../stacks/chain').PrintedHop[]} hops that led here */
    starting (hops) {
      setEnvironmentData(KEY, /** @type {any} */ (hops.map((hop) => ({ ...hop, origin: 'worker' }))))
    }
  }
}

module.exports = { createThreadLayer }
