'use strict'

// Enters steps that the ring does not hold any more, or never held: kept records, handles of the registry,
// and what is older than longstack.

const { executionAsyncResource } = require('node:async_hooks')
const { now } = require('../context/clock')
const guard = require('../context/guard')
const { OnPromise } = require('../context/tag')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_RUN, CURRENT_SPAN, PROFILED, TIMED, current, profiled,
  push, setCurrent
} = require('../context/current')
const {
  DETAILED, EARLY_CHAIN, ENTERED, NO_CHAIN, OWN_WORK_CHAIN, SPECIAL, findCarried, findRecord, resources
} = require('../context/records')
const { countCallback } = require('./callback-handlers')
const { recordEarly } = require('./lookup')
const { refOfTracked } = require('./promise-ids')

const UNKNOWN = -1 // in place of a reference, for a promise from before enabling

/**
 * @param {object} deps
 * @param {import('./async-hooks').AsyncParts} deps.parts
 * @param {import('./light-carrier').Carrier} deps.carrier
 * @param {ReturnType<typeof import('./callback-handlers').createCallbackHandlers>} deps.callbackHandlers
 * @param {() => import('../spans/loop-time').LoopTime} deps.loopTime while spans are timed
 * @param {(ref: number, words: Int32Array, offset: number) => void} deps.enter enters a step with a record
 */
function createOlderSteps ({ parts, carrier, callbackHandlers, loopTime, enter }) {
  const { allocationClock, registry } = parts

  /**
   * Enters a step whose record is not in the ring.
   * @param {number} ref
   * @param {number} asyncId 0: a promise
   */
  function enterOlder (ref, asyncId) {
    const kept = ref === 0 || ref === UNKNOWN ? undefined : findRecord(ref)
    if (kept !== undefined) return enter(ref, kept.words, kept.offset)
    // Made while V8's hooks reported promises
    const tag = asyncId === 0 ? undefined : OnPromise.read(executionAsyncResource())
    const record = tag === undefined ? undefined : findRecord(tag)
    if (record !== undefined) return enter(ref, record.words, record.offset)
    const carried = asyncId === 0 ? undefined : findCarried(executionAsyncResource(), ref)
    if (carried !== undefined) return enter(ref, carried.words, carried.offset)
    enterUnrecorded(ref, asyncId)
  }

  /** @param {number} ref @param {number} asyncId 0: a promise */
  function enterUnrecorded (ref, asyncId) {
    const opener = asyncId === 0 ? undefined : registry.openerOf(asyncId)
    if (opener === undefined && asyncId > 1 && !guard.inOwnWork) recordEarly(asyncId)
    push(ref)
    if (opener !== undefined) setCurrent(opener.chain, opener.ref, opener.spanNumber)
    else if (asyncId > 1) setCurrent(EARLY_CHAIN, ref, 0)
    else setCurrent(chainOfUnrecorded(ref), 0, 0)
    current[CURRENT_RUN] = 0
    if ((current[ATTENTION] & PROFILED) !== 0) profiled.log.enterUnrecorded()
    if ((current[ATTENTION] & TIMED) !== 0) {
      const timed = loopTime()
      timed.enterCallback(current[CURRENT_SPAN], now())
      timed.callbackRef = ref
      timed.callbackChain = opener?.chain ?? 0
    }
    if (asyncId !== 0) countCallback()
    if (opener !== undefined || carrier.isOn) {
      callbackHandlers.handleBefore(ref, SPECIAL | DETAILED | ENTERED, resources, 0)
    }
    if (!allocationClock.isOn) return
    allocationClock.mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
  }

  /**
   * Enters a promise that V8's hooks have not seen: it is older than longstack, or async_hooks reported
   * promises when it was made.
   * @param {any} promise
   */
  function enterUnnumbered (promise) {
    const tracked = refOfTracked(promise)
    const record = tracked === 0 ? undefined : findRecord(tracked)
    if (record === undefined) return enterOlder(UNKNOWN, 0)
    enter(UNKNOWN, record.words, record.offset)
    if (current[CURRENT_CAUSE] === UNKNOWN) current[CURRENT_CAUSE] = tracked
  }

  return { enterOlder, enterUnnumbered }
}

/**
 * Returns the chain of a promise without a record: longstack's own, one from before, or one whose record was
 * given up for newer ones (older-records.js), of which nothing is known.
 * @param {number} ref
 */
function chainOfUnrecorded (ref) {
  if (ref === 0) return OWN_WORK_CHAIN
  return ref === UNKNOWN ? EARLY_CHAIN : NO_CHAIN
}

module.exports = { UNKNOWN, createOlderSteps }
