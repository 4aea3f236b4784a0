'use strict'

// Reads the current step. Every reader resolves it first, in case no hook has entered one.

const { executionAsyncId } = require('node:async_hooks')
const { now } = require('./clock')
const { Context, contextAt, contextOf, OWN_WORK } = require('./context')
const { kindOf } = require('./kinds')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, CURRENT_SPAN, LAST_LEFT, LOGGED, MISSING, current,
  restore, save
} = require('./current')
const { CHAIN_BITS, NO_CHAIN, OWN_WORK_CHAIN } = require('./records')
const { settings } = require('../settings')
const capture = require('../stacks/capture')
const allocationClock = require('./allocation-clock')
const { handleReturn } = require('./callback-handlers')
const { resolve } = require('./lookup')
const runLog = require('./run-log')
const { read: readSettlements } = require('./settlements')

const { mark } = allocationClock

/** @returns {Context | undefined} undefined: nothing runs, longstack's own work runs, or tracing is off */
function currentContext () {
  readSettlements()
  if (!settings.enabled) return undefined
  resolve()
  const chain = current[CURRENT_CHAIN]
  if (chain === NO_CHAIN) return undefined
  const context = contextOf(chain, current[CURRENT_CAUSE], current[CURRENT_SPAN])
  return context === OWN_WORK ? undefined : context
}

/** Returns whether longstack's own work runs, or something it caused. */
function inOwnWork () {
  resolve()
  return current[CURRENT_CHAIN] === OWN_WORK_CHAIN
}

/**
 * Returns the context left last: queueMicrotask reports its errors only after its `after` hook.
 * @returns {Context | undefined}
 */
const lastExited = () => current[LAST_LEFT] === 0 ? undefined : contextAt(current[LAST_LEFT])

/** Writes the current step to the run log. */
function logPresent () {
  resolve()
  const time = now()
  runLog.accountUntil(time)
  runLog.resumed(time)
}

/** Returns whether a promise may have settled unseen since the event loop's last callback. */
const missesSettled = () => (current[ATTENTION] & MISSING) !== 0

/** Returns the current chain number and the reference of its record. */
function currentStep () {
  resolve()
  return { chain: current[CURRENT_CHAIN], ref: current[CURRENT_CAUSE] }
}

/** @returns {number} span number of the running code, 0: none */
function spanNumber () {
  resolve()
  return current[CURRENT_SPAN]
}

/** Returns the id of the last resource entered, or 0 if there is none or it was a promise. */
function enteredId () {
  const id = executionAsyncId()
  return id << 1 === current[CURRENT_REF] ? id : 0
}

/**
 * Creates a context for a request, which is not an async resource, with the stack of the call that made it.
 * @param {Function} above frames start below this function
 * @returns {Context}
 */
function contextOfRequest (above) {
  const context = new Context(0, 0, kindOf('REQUEST', false), currentContext(), now())
  context.chain = capture.step(currentStep().chain, context.kind.number, above) & CHAIN_BITS
  context.spanNumber = spanNumber()
  return context
}

/**
 * Saves the current step, and restores it after V8 terminates code that ran in it: that code did not leave
 * the steps it entered.
 * @type {import('./guard').MomentaryState}
 */
const momentaryStep = {
  save,

  restore (saved) {
    if (saved === undefined) return // leaveAll() does it
    restore(saved)
    resolve()
    if ((current[ATTENTION] & LOGGED) !== 0) handleReturn()
    if (allocationClock.isOn) mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
  }
}

/** Marks the running step as unknown from here on: an error has ended a callback. */
function markUnknown () {
  if (allocationClock.isOn) mark(NO_CHAIN, 0, 0)
}

module.exports = {
  contextOfRequest,
  currentContext,
  currentStep,
  enteredId,
  inOwnWork,
  lastExited,
  logPresent,
  markUnknown,
  missesSettled,
  momentaryStep,
  spanNumber
}
