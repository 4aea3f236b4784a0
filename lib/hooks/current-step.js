'use strict'

// Reads the step that runs now, and has steps logged for a profile. Every reader first resolves it where no
// hook has entered one.

const { executionAsyncResource } = require('node:async_hooks')
const { contextAt, contextOf, OWN_WORK } = require('../context/context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_RUN, CURRENT_SPAN, DEPTH, LAST_LEFT, PROFILED, TIMED,
  current, profiled, restore, save
} = require('../context/current')
const { NO_CHAIN, OWN_WORK_CHAIN } = require('../context/records')

/** @typedef {import('../context/context').Context} Context */

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('./lookup').createLookup>} deps.lookup
 * @param {ReturnType<typeof import('./settlements').createSettlements>} deps.settlements
 * @param {() => boolean} deps.isEnabled
 */
function createCurrentStep ({ lookup, settlements, isEnabled }) {
  function resolve () {
    if (current[DEPTH] === 0) lookup.resolveCurrent(0)
  }

  return {
    resolve,

    /** @returns {Context | undefined} undefined: nothing runs, or longstack's own work, or tracing is off */
    currentContext () {
      settlements.read()
      if (!isEnabled()) return undefined
      resolve()
      const chain = current[CURRENT_CHAIN]
      if (chain === NO_CHAIN) return undefined
      const context = contextOf(chain, current[CURRENT_CAUSE], current[CURRENT_SPAN])
      return context === OWN_WORK ? undefined : context
    },

    /** Returns whether longstack's own work runs, or what came of it. */
    inOwnWork () {
      resolve()
      return current[CURRENT_CHAIN] === OWN_WORK_CHAIN
    },

    /**
     * Returns the context that was left last: queueMicrotask reports its errors only after its `after`.
     * @returns {Context | undefined}
     */
    lastExited: () => current[LAST_LEFT] === 0 ? undefined : contextAt(current[LAST_LEFT]),

    /**
     * Logs each step that begins, from the present one on.
     * @param {import('../profile/step-log').StepLog | undefined} log undefined: no longer
     */
    logSteps (log) {
      current[ATTENTION] &= ~PROFILED
      if (log === undefined) return
      profiled.log = log
      resolve()
      log.resume()
      current[ATTENTION] |= PROFILED
    },

    executingResource: () => executionAsyncResource(),
    missesSettled: settlements.last.misses,

    /** Returns the number of the chain, the reference of the record, and the number of the run. */
    currentStep () {
      resolve()
      return { chain: current[CURRENT_CHAIN], ref: current[CURRENT_CAUSE], run: current[CURRENT_RUN] }
    },

    /** @returns {number} of the span in which code runs now, 0: none */
    spanNumber () {
      resolve()
      return current[CURRENT_SPAN]
    }
  }
}

/**
 * Creates what saves the current step, and puts it back where code that ran in it was terminated: what that
 * entered was not left.
 * @param {object} deps
 * @param {ReturnType<typeof createCurrentStep>} deps.currentStep
 * @param {ReturnType<typeof import('./callback-handlers').createCallbackHandlers>} deps.callbackHandlers
 * @param {import('./async-hooks').AsyncParts['allocationClock']} deps.allocationClock
 * @returns {import('../context/guard').MomentaryState}
 */
function createMomentaryStep ({ currentStep, callbackHandlers, allocationClock }) {
  return {
    save,

    restore (saved) {
      if (saved === undefined) return // leaveAll() does it
      restore(saved)
      currentStep.resolve()
      if ((current[ATTENTION] & (TIMED | PROFILED)) !== 0) callbackHandlers.handleReturn()
      if (!allocationClock.isOn) return
      allocationClock.mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
    }
  }
}

module.exports = { createCurrentStep, createMomentaryStep }
