'use strict'

// How many contexts are held. Counting every one would need a destroy hook or a finalizer each; a sample of one
// in SAMPLE is finalized and stands for the rest, so figures are estimates, right within some SAMPLEs after a gc. They
// are too high while the program runs without a pause, for finalizers wait for one; the heap's size is a bound.

const SAMPLE = 64 // see hooks/async.js
const LOOK = 16 // samples from one look at the heap to the next
const MANY = 4096 // contexts: a sample keeps its ancestors from a young collection, so there are fewer of them then
const BYTES = 144 // of one context: object header, eleven fields, the mark on its resource

function createCensus () {
  let sampled = 0 // contexts that the held samples stand for
  let unsampled = 0
  let looks = 0
  /** @type {0 | 1 | 2} */
  let found = 0
  const registry = new FinalizationRegistry((/** @type {number} */ weight) => { sampled -= weight })

  return {
    SAMPLE,

    /** One of SAMPLE contexts. @param {object} context */
    sample (context) {
      unsampled += SAMPLE
      if (sampled >= MANY && unsampled < SAMPLE * 16) return
      sampled += unsampled
      registry.register(context, unsampled)
      unsampled = 0
    },
    held: () => sampled,
    bytes: () => sampled * BYTES,

    /**
     * Is the budget plenty (0), short (1: chains are to be cut) or spent (2: promises are left out)?
     * @param {number} budget bytes
     * @returns {0 | 1 | 2}
     */
    pressure (budget) {
      const bytes = sampled * BYTES
      if (bytes * 2 <= budget) return 0
      // Finalizers are late; the heap's size is a bound.
      if (looks++ % LOOK !== 0) return found
      const { used_heap_size: heap } = require('node:v8').getHeapStatistics()
      found = heap < budget ? 0 : bytes > budget && heap > budget * 2 ? 2 : 1
      return found
    }
  }
}

module.exports = { createCensus }
