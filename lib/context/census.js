'use strict'

// How many contexts are held. Counting every one would need a destroy hook or a finalizer each; a sample of one
// in SAMPLE is finalized and stands for the rest, so figures are estimates, right within some SAMPLEs after a gc. They
// are too high while the program runs without a pause, for finalizers wait for one; the heap's size is a bound.

const SAMPLE = 64
const LOOK = 1024 // contexts between two looks at the heap
const BYTES = 152 // of one context: object header, eleven fields, a boxed time

function createCensus () {
  let made = 0
  let sampled = 0
  let lookAt = 0
  let crowded = false
  const registry = new FinalizationRegistry(() => { sampled-- })

  return {
    /** @param {object} context */
    count (context) {
      if (++made % SAMPLE !== 0) return
      sampled++
      registry.register(context, undefined)
    },
    made: () => made,
    held: () => Math.min(made, sampled * SAMPLE),
    bytes: () => sampled * SAMPLE * BYTES,

    /** Do contexts take more than so many bytes? @param {number} budget */
    exceeds (budget) {
      if (sampled * SAMPLE * BYTES <= budget) return false
      if (made >= lookAt) {
        crowded = require('node:v8').getHeapStatistics().used_heap_size > budget * 2
        lookAt = made + LOOK
      }
      return crowded
    }
  }
}

module.exports = { createCensus }
