'use strict'

// How many contexts are held. Counting every one would need a destroy hook or a finalizer each; a sample of one
// in SAMPLE is finalized and stands for the rest, so figures are estimates, right within some SAMPLEs after a gc.

const SAMPLE = 64
const BYTES = 152 // of one context: object header, eleven fields, a boxed time

function createCensus () {
  let made = 0
  let sampled = 0
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
    bytes: () => sampled * SAMPLE * BYTES
  }
}

module.exports = { createCensus }
