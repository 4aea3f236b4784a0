'use strict'

// Reads the step that runs now. Every reader first resolves it where no hook has entered one.

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

/** @returns {Context | undefined} undefined: nothing runs, or longstack's own work, or tracing is off */
function currentContext () {
  readSettlements()
  if (!settings.enabled) return undefined
  resolve()
  const chain = current[CURRENT_CHAIN]
  if (chain === NO_CHAIN) return undefined
  const context = contextOf(chain, current[CURRENT_CAUSE], current[CURRENT_SPAN])
  return context === OWN_WORK ? undefined : context
}

/** Returns whether longstack's own work runs, or what came of it. */
function inOwnWork () {
  resolve()
  return current[CURRENT_CHAIN] === OWN_WORK_CHAIN
}

/**
 * Returns the context that was left last: queueMicrotask reports its errors only after its `after`.
 * @returns {Context | undefined}
 */
const lastExited = () => current[LAST_LEFT] === 0 ? undefined : contextAt(current[LAST_LEFT])

/** Has the run log say what runs now. */
function logPresent () {
  resolve()
  const time = now()
  runLog.accountUntil(time)
  runLog.resumed(time)
}

/** Returns whether a promise may have been settled unseen since the event loop called last. */
const missesSettled = () => (current[ATTENTION] & MISSING) !== 0

/** Returns the number of the chain, and the reference of the record. */
function currentStep () {
  resolve()
  return { chain: current[CURRENT_CHAIN], ref: current[CURRENT_CAUSE] }
}

/** @returns {number} of the span in which code runs now, 0: none */
function spanNumber () {
  resolve()
  return current[CURRENT_SPAN]
}

/** Returns the id of the resource that was entered last, 0: it was a promise, or none was. */
function enteredId () {
  const id = executionAsyncId()
  return id << 1 === current[CURRENT_REF] ? id : 0
}

/**
 * Creates a context for a request, which is no async resource: with the stack of the call that made it.
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
 * Saves the current step, and puts it back where code that ran in it was terminated: what that entered was
 * not left.
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

/** Marks that it is not known what runs from here on: an error has ended a callback. */
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
