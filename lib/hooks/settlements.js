'use strict'

// Who rejected a promise, and with what. V8 tells that a promise is settled before it has a state, and nothing in
// JavaScript may look at that without marking a rejection as handled; the addon can. A call of it costs more than all else
// that is done for a promise, so that some are looked at in one: BATCH of them, or those that there are when somebody asks,
// a span ends, or the event loop comes round.

const { contextAt, root } = require('../context/context')

const BATCH = 8 // the addon looks at its arguments, without reading an array

/**
 * @param {object} parts
 * @param {ReturnType<typeof import('../stacks/capture').createCapture>} parts.capture
 * @param {(reason: unknown, context: import('../context/context').Context, promise: object) => void} parts.rejected
 */
function createSettlements ({ capture, rejected }) {
  /** @type {any[]} */
  const promises = Array(BATCH).fill(undefined)
  const settlers = new Int32Array(BATCH)
  let count = 0

  /** Looks at those that were settled since it last did: now they have their state. Nothing of the program's runs. */
  function read () {
    if (count === 0) return
    count = 0
    const [one, two, three, four, five, six, seven, eight] = promises
    const rejected = capture.rejected === undefined ? 0 : capture.rejected(one, two, three, four, five, six, seven, eight)
    for (let i = 0; i < BATCH; i++) {
      const promise = promises[i]
      promises[i] = undefined
      if ((rejected >> i & 1) !== 0) tell(promise, settlers[i])
    }
  }

  /** @param {object} promise @param {number} settler */
  function tell (promise, settler) {
    const reason = capture.rejection?.(promise)
    const context = settler === 0 ? root : contextAt(settler)
    if (context !== undefined) rejected(reason, context, promise)
  }

  return {
    read,

    /** A promise is being settled. The hot path. @param {object} promise @param {number} settler reference of the step that does */
    note (promise, settler) {
      promises[count] = promise
      settlers[count] = settler
      if (++count === BATCH) read()
    },

    forget () {
      count = 0
      promises.fill(undefined)
    }
  }
}

module.exports = { createSettlements }
