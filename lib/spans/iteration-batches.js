'use strict'

// Work that spans put off until the event loop polls next, while its iterations are counted for them.

const loopIterations = require('../hooks/loop-iterations')

function createIterationBatches () {
  let isCounting = false

  return {
    /** Returns whether what is scheduled now runs before the event loop polls next. */
    isBatching: () => isCounting && loopIterations.batching(),

    schedule: loopIterations.schedule,

    /** @param {boolean} wanted whether iterations are counted */
    count (wanted) {
      if (wanted === isCounting) return
      isCounting = wanted
      if (wanted) loopIterations.start()
      else loopIterations.stop()
    }
  }
}

module.exports = { createIterationBatches }
