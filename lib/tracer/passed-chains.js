'use strict'

// Chains that go on in another thread or process.

const { createThreadLayer } = require('../hooks/threads')

/** @typedef {import('../context/context').Context} Context */

/**
 * @param {ReturnType<typeof import('../hooks/async-hooks').createAsyncLayer>} asyncLayer
 * @param {ReturnType<typeof import('../stacks/chain').createChain>} chain
 */
function createPassedChains (asyncLayer, chain) {
  const threads = createThreadLayer(asyncLayer.root)

  return {
    /**
     * Passes the chain of a context to the worker that is being made in it.
     * @param {Context} context
     * @param {object} handle of the worker
     */
    passToWorker: (context, handle) => threads.starting(handle, chain.hops(context)),

    /**
     * Returns the chain of a child process as text for its environment.
     * @param {Context} [context] of the child; without it that of the caller
     * @returns {string | undefined}
     */
    passToProcess (context = asyncLayer.currentContext()) {
      const { encodeChain } = require('../stacks/passed-chain')
      return encodeChain(chain.hops(context), process.pid)
    }
  }
}

module.exports = { createPassedChains }
