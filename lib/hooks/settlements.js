'use strict'

// Promises that are settled: the step that settled them, and who rejected with what.
//
// V8 reports that a promise is settled before it has a state, and JavaScript cannot look at the state without
// marking a rejection as handled; the addon can. One call of it costs more than everything else that is done
// for a promise, so it looks at several: BATCH of them, or those that there are when a query comes, a span
// ends, or an iteration of the event loop begins.

const guard = require('../context/guard')
const { contextAt, root } = require('../context/context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_RUN, CURRENT_SPAN, DEPTH, ORPHANED, current
} = require('../context/current')
const {
  CHAIN, DETAIL, FLAGS, LIVE, MASK, OWN_WORK_CHAIN, REF, SETTLED, SETTLED_RUN, SETTLED_SPAN, SHIFT,
  ended, findRecord, promises, resources
} = require('../context/records')
const { OnPromise } = require('../context/tag')
const { refOfTracked } = require('./promise-ids')

const BATCH = 8 // the addon looks at its arguments, without reading an array

/**
 * @param {object} deps
 * @param {import('../stacks/capture').Capture} deps.capture
 * @param {ReturnType<typeof import('./lookup').createLookup>} deps.lookup
 * @param {ReturnType<typeof import('./orphans').createOrphans>} deps.orphans
 * @param {import('./async-hooks').Listener} deps.listener
 * @param {(promise: object) => import('./async-hooks').PromiseRecord} deps.recordOf
 */
function createSettlements ({ capture, lookup, orphans, listener, recordOf }) {
  /** @type {any[]} */
  const pending = Array(BATCH).fill(undefined)
  const settlers = new Int32Array(BATCH)
  let count = 0

  /** Notes a promise that V8's own hooks report, before it has its state. @param {object} promise */
  function settlePromise (promise) {
    try {
      if (guard.inOwnWork) return
      // No number: older than these hooks. It may be rejected all the same
      const ref = OnPromise.read(promise) ?? 0
      const offset = ((ref >> 1) & MASK) << SHIFT
      if ((current[ATTENTION] & ORPHANED) !== 0) orphans.claim(ref)
      const isOwnWork = promises[offset + CHAIN] === OWN_WORK_CHAIN
      if (promises[offset + REF] !== ref) settleOlder(ref)
      else if (!isOwnWork) noteSettler(promises, offset)
      addPending(promise)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** The same where async_hooks reports promises. @param {any} promise */
  function settleResource (promise) {
    try {
      if (guard.inOwnWork) return
      const ref = refOfTracked(promise)
      const offset = ((ref >> 1) & MASK) << SHIFT
      if ((current[ATTENTION] & ORPHANED) !== 0) orphans.claim(ref)
      if (resources[offset + REF] !== ref) settleOlder(ref)
      else if (resources[offset + CHAIN] !== OWN_WORK_CHAIN) noteSettler(resources, offset)
      if (capture.rejection !== undefined) addPending(promise)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** The same where promises have no records: in light mode. @param {object} promise */
  function settleUnrecorded (promise) {
    try {
      if (guard.inOwnWork) return
      if ((current[ATTENTION] & ORPHANED) !== 0) orphans.disown()
      addPending(promise)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** Notes in a promise's record which step settled it. @param {Int32Array} words @param {number} offset */
  function noteSettler (words, offset) {
    words[offset + FLAGS] = (words[offset + FLAGS] & ~LIVE) | SETTLED
    words[offset + DETAIL] = current[DEPTH] === 0 ? 0 : current[CURRENT_CAUSE]
    words[offset + SETTLED_RUN] = current[CURRENT_RUN]
    words[offset + SETTLED_SPAN] = current[CURRENT_SPAN]
  }

  /** The same for a record that is no longer in the ring. @param {number} ref 0: there is none */
  function settleOlder (ref) {
    const record = ref === 0 ? undefined : findRecord(ref)
    if (record === undefined || record.words[record.offset + CHAIN] === OWN_WORK_CHAIN) return
    ended(ref)
    noteSettler(record.words, record.offset)
  }

  /** Keeps a promise until its state is read. The hot path. @param {object} promise */
  function addPending (promise) {
    if (current[CURRENT_CHAIN] === OWN_WORK_CHAIN) return
    pending[count] = promise
    settlers[count] = current[DEPTH] === 0 ? lookup.resolveCause() : current[CURRENT_CAUSE]
    if (++count === BATCH) readPending()
  }

  /** Reads the states of the pending promises and reports the rejected ones. Runs no code of the program. */
  function readPending () {
    if (count === 0) return
    count = 0
    const [p0, p1, p2, p3, p4, p5, p6, p7] = pending
    const rejected = capture.rejected === undefined ? 0 : capture.rejected(p0, p1, p2, p3, p4, p5, p6, p7)
    for (let i = 0; i < BATCH; i++) {
      const promise = pending[i]
      pending[i] = undefined
      if ((rejected >> i & 1) !== 0) reportRejection(promise, settlers[i])
    }
  }

  /**
   * @param {object} promise
   * @param {number} settler reference of the step that rejected it, 0: the main script
   */
  function reportRejection (promise, settler) {
    const reason = capture.rejection?.(promise)
    const context = settler === 0 ? root : contextAt(settler)
    if (context !== undefined) listener.rejected(reason, context, recordOf(promise))
  }

  return {
    settlePromise,
    settleResource,
    settleUnrecorded,

    /** Reports all rejections up to now. */
    read () {
      try {
        readPending()
      } catch (error) {
        listener.failed(error)
      }
    },

    forget () {
      count = 0
      pending.fill(undefined)
    }
  }
}

module.exports = { createSettlements }
