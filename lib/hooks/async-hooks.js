'use strict'

// The layer of async hooks: creates its parts, enables and disables them. What serves as a hook:
// installer.js.

const { AsyncResource } = require('node:async_hooks')
const { readClock } = require('../context/clock')
const guard = require('../context/guard')
const records = require('../context/records')
const { root } = require('../context/context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, LAST_LEFT, WATCHED, current, leaveAll
} = require('../context/current')
const { createCallbackHandlers } = require('./callback-handlers')
const { createCurrentStep, createMomentaryStep } = require('./current-step')
const { createEvents } = require('./events')
const { createInstaller } = require('./installer')
const { createGuardedRunner, createKindHandlers } = require('./kind-handlers')
const { createKindTable } = require('./kind-table')
const { createLookup } = require('./lookup')
const { createOrphans } = require('./orphans')
const { createSettlements } = require('./settlements')
const { createStepSpans } = require('./step-spans')
const { createTerminableRuns } = require('./terminable-runs')

const { NO_CHAIN, FIRST_CHAIN } = records

/**
 * @typedef {import('../context/context').Context} Context
 *
 * @typedef {object} Hook
 * @property {(context: any) => void} [init]
 * @property {(context: any) => void} [before]
 * @property {(context: any) => void} [after]
 *
 * @typedef {object} AsyncParts what the hooks need of other directories
 * @property {(type: string) => boolean} isSelected the filter
 * @property {import('../stacks/capture').Capture} capture
 * @property {() => import('../spans/loop-time').LoopTime} loopTime times spans
 * @property {Map<number, () => void>} callbackListeners called when a resource's callback begins and ends,
 *   by async id, while spans are timed
 * @property {ReturnType<typeof import('../attribution/allocation-clock').createAllocationClock>}
 *   allocationClock
 * @property {import('../handles/registry').Registry} registry
 * @property {{ format: unknown }} installedFormatter what Error.prepareStackTrace is while errors have chains
 * @property {() => ReturnType<typeof import('./native-hooks').createNativeHooks>} nativeHooks of other addons
 * @property {() => boolean} areNativeHooksInUse another addon has asked for them
 *
 * @typedef {{ ref: number, chain: number, span: number }} PromiseRecord what is recorded of a promise; 0:
 *   nothing
 *
 * @typedef {object} Listener called, seldom, when more happens than a step
 * @property {(context: Context, resource: object) => void} opened a resource that stays open was made
 * @property {(context: Context) => void} connectStarted a connect request runs for the first time
 * @property {(error: object, context: Context) => void} errorPassedToTick an error was passed to nextTick
 * @property {(
 *     stream: unknown, headers: unknown, session: { words: Int32Array, offset: number }, time: number
 *   ) => number} http2StreamStarted
 *   a stream of HTTP/2 is about to be emitted; returns the reference of its request, 0: it has none
 * @property {((context: Context, tick: object) => void) | undefined} tickScheduled set while spans are on
 * @property {(reason: unknown, context: Context, promise: PromiseRecord) => void} rejected a promise was
 *   rejected in this context
 * @property {(time: number) => void} iterationStarted an iteration of the event loop begins
 * @property {() => void} contextRan code of a vm context has run; does not throw
 * @property {() => void} formatterReplaced Error.prepareStackTrace is not longstack's any more
 * @property {((time: number, context: Context) => void) | undefined} callbackStarted set while callbacks are
 *   watched
 * @property {(error: unknown) => void} failed a hook could not do its work
 * @property {(hook: Hook, stage: 'init' | 'before' | 'after', context: Context) => void} callHook calls a
 *   hook of trace.hook
 */

/** @param {AsyncParts} parts @param {Listener} listener */
function createAsyncLayer (parts, listener) {
  const { capture, callbackListeners, registry, allocationClock } = parts
  let enabled = false
  /** used only while spans are timed @type {import('../spans/loop-time').LoopTime} */
  let timed
  const loopTime = () => timed
  const runGuarded = createGuardedRunner(listener.failed)
  const kindTable = createKindTable({
    isSelected: parts.isSelected,
    forgetChains: () => capture.reset()
  })
  const lookup = createLookup({ registry })
  const orphans = createOrphans({ capture })
  const kindHandlers = createKindHandlers({ parts, listener, orphans, runGuarded })
  const callbackHandlers = createCallbackHandlers({ parts, listener, orphans, loopTime, runGuarded })
  const recordOf = (/** @type {any} */ promise) => installer.recordOf(promise)
  const settlements = createSettlements({ capture, lookup, orphans, registry, listener, recordOf })
  const events = createEvents({
    parts, listener, kindTable, lookup, kindHandlers, callbackHandlers, settlements, loopTime
  })
  const currentStep = createCurrentStep({ lookup, settlements, isEnabled: () => enabled })
  const stepSpans = createStepSpans({
    parts,
    kindTable,
    resolve: currentStep.resolve,
    enterResource: (resource) => installer.enterResource(resource),
    loadLoopTime: () => (timed ??= parts.loopTime())
  })
  guard.add(createMomentaryStep({ currentStep, callbackHandlers, allocationClock }))
  const installer = createInstaller({ parts, events, settlements, loadUserHooks })
  const terminableRuns = createTerminableRuns(installer, listener.contextRan)

  /** Loads what calls users' hooks and those of other addons, around the functions that record. */
  function loadUserHooks () {
    return require('./user-hooks').createUserHooks({
      hooks: { init: events.initResource, before: events.beforeResource, after: events.afterResource },
      parts,
      listener,
      runGuarded,
      currentRef: () => current[CURRENT_REF],
      isCurrentRecorded
    })
  }

  /** Installs other hooks where users' hooks came or went. */
  function updateHooks () {
    if (enabled) installer.update()
  }

  return {
    root,
    ...currentStep,
    ...stepSpans,
    readSettlements: settlements.read,
    updateHooks,

    enable () {
      enabled = true
      readClock(capture.clock)
      kindTable.refill()
      installer.install()
      terminableRuns.enable()
    },

    disable () {
      enabled = false
      terminableRuns.disable()
      installer.uninstall()
      settlements.forget()
      records.endRequests()
      current[LAST_LEFT] = 0
      allocationClock.forget()
      leaveAll()
      orphans.disown()
      callbackListeners.clear()
    },

    /** Puts a new filter in force. */
    updateFilter: kindTable.refill,

    /** Begins or ends to watch callbacks, as `callbackStarted` is set. */
    updateWatching () {
      if (listener.callbackStarted === undefined) current[ATTENTION] &= ~WATCHED
      else current[ATTENTION] |= WATCHED
    },

    countIterations: events.countIterations,

    /** Marks that it is not known what runs from here on: an error has ended a callback. */
    markUnknown () {
      if (allocationClock.isOn) allocationClock.mark(NO_CHAIN, 0, 0)
    },

    isReusedTimer: kindHandlers.isReusedTimer,

    /** @param {Hook[]} hooks of users, in order */
    setUserHooks (hooks) {
      installer.setUserHooks(hooks)
      updateHooks()
    }
  }
}

/** Returns whether the current step, or the request in it, has a record of its own. */
function isCurrentRecorded () {
  const cause = current[CURRENT_CAUSE]
  const isRecorded = cause === current[CURRENT_REF] || records.isApart(cause)
  return isRecorded && current[CURRENT_CHAIN] >= FIRST_CHAIN
}

/**
 * Binds a function to the context of now.
 * @template {(...args: any[]) => any} F
 * @param {F} fn
 * @returns {F}
 */
function bind (fn) {
  return AsyncResource.bind(fn, fn.name || 'trace.bind')
}

module.exports = { createAsyncLayer, bind }
