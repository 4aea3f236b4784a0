'use strict'

// How many contexts are held. Counting every one would need a destroy hook or a finalizer each; a sample of one
// in SAMPLE is finalized and stands for the rest, so figures are estimates, right within some SAMPLEs after a gc. They
// are too high while the program runs without a pause, for finalizers wait for one; the heap's size is a bound.

const SAMPLE = 64 // see hooks/async.js
const BYTES = 136 // of one context: object header, twelve fields, a boxed time

function createCensus () {
  let sampled = 0
  const registry = new FinalizationRegistry(() => { sampled-- })

  return {
    SAMPLE,

    /** One of SAMPLE contexts. @param {object} context */
    sample (context) {
      sampled++
      registry.register(context, undefined)
    },
    held: () => sampled * SAMPLE,
    bytes: () => sampled * SAMPLE * BYTES,

    /**
     * Is the budget plenty (0), short (1: chains are to be cut) or spent (2: promises are left out)?
     * @param {number} budget bytes
     * @returns {0 | 1 | 2}
     */
    pressure (budget) {
      const bytes = sampled * SAMPLE * BYTES
      if (bytes * 2 <= budget) return 0
      // Finalizers are late; the heap's size is a bound.
      const { used_heap_size: heap } = require('node:v8').getHeapStatistics()
      if (heap < budget) return 0
      return bytes > budget && heap > budget * 2 ? 2 : 1
    }
  }
}

module.exports = { createCensus }
