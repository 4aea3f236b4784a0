'use strict'

// Which step runs where nothing has been entered: in the main script, in what an accepted connection makes,
// in light mode behind an await, and in callbacks of what is older than longstack.

const { executionAsyncId, triggerAsyncId } = require('node:async_hooks')
const { now } = require('../context/clock')
const { root } = require('../context/context')
const records = require('../context/records')
const { ATTENTION, CURRENT_CAUSE, CURRENT_RUN, TIMED, current, take } = require('../context/current')

const {
  MASK, SHIFT, REF, CHAIN, CAUSE, TRIGGER, SPAN, TIME, FLAGS, LIVE, PASSED,
  NO_CHAIN, ROOT_CHAIN, EARLY_CHAIN, resources
} = records

/**
 * @param {object} deps
 * @param {import('./light-carrier').Carrier} deps.carrier
 * @param {import('../handles/registry').Registry} deps.registry
 * @param {() => import('../spans/loop-time').LoopTime} deps.loop while spans are timed
 */
function createLookup ({ carrier, registry, loop }) {
  /**
   * Puts the step in force that runs where nothing has been entered.
   * @param {number} trigger async id of what causes the resource that is being made
   */
  function look (trigger) {
    current[CURRENT_RUN] = 0
    if (carrier.on) {
      const carried = carrier.read()
      if (carried !== undefined) return takeCarried(carried)
    }
    const id = executionAsyncId()
    if (id === 1) return take(ROOT_CHAIN, 0, 0)
    if (id !== 0) return takeExecuting(id)
    // Nothing executes: an accepted connection has its server as the trigger, which is the cause.
    const found = trigger > 1 ? records.findRecord(trigger << 1) : undefined
    if (found !== undefined) return takeRecord(trigger << 1, found.words, found.offset)
    const opener = registry.openerOf(trigger)
    if (opener !== undefined) return take(opener.chain, opener.ref, 0)
    take('carried' in root ? ROOT_CHAIN : NO_CHAIN, 0, 0)
  }

  /** @param {number} ref @param {Int32Array} words @param {number} at */
  function takeRecord (ref, words, at) {
    const passes = (words[at + FLAGS] & PASSED) !== 0
    take(words[at + CHAIN], passes ? words[at + CAUSE] : ref, words[at + SPAN])
  }

  /**
   * What follows an await is no callback: another run of its span begins when the loop has waited.
   * @param {NonNullable<ReturnType<import('./light-carrier').Carrier['read']>>} carried
   */
  function takeCarried (carried) {
    take(carried.chain, carried.cause, carried.span)
    current[CURRENT_RUN] = carried.run
    if ((current[ATTENTION] & TIMED) === 0) return
    const timed = loop()
    if (carried.span !== timed.spanNumber) timed.switchTo(carried.span, now())
    if (carried.span !== 0) current[CURRENT_RUN] = carried.run = timed.resumeRun(carried.run)
  }

  /**
   * A resource executes that was never entered: it was made before longstack was enabled.
   * @param {number} id
   */
  function takeExecuting (id) {
    const ref = id << 1
    const found = records.findRecord(ref)
    if (found !== undefined) return takeRecord(ref, found.words, found.offset)
    recordEarly(id)
    take(EARLY_CHAIN, ref, 0)
  }

  return {
    look,

    /** @returns {number} reference of the step that runs while nothing is entered */
    causeNow () {
      const carried = (current[ATTENTION] & TIMED) !== 0 ? undefined : carrier.read()
      if (carried !== undefined) return carried.cause
      look(0)
      return current[CURRENT_CAUSE]
    }
  }
}

/** Records what executes, which was made before longstack was enabled. @param {number} id */
function recordEarly (id) {
  const ref = id << 1
  const at = ((ref >> 1) & MASK) << SHIFT
  if ((resources[at + FLAGS] & (LIVE | PASSED)) !== 0) records.keep(resources, at)
  resources[at + REF] = ref
  resources[at + CHAIN] = EARLY_CHAIN
  resources[at + CAUSE] = 0
  resources[at + TRIGGER] = triggerAsyncId() << 1
  resources[at + SPAN] = 0
  resources[at + TIME] = 0
  resources[at + FLAGS] = LIVE
}

module.exports = { createLookup, recordEarly }
