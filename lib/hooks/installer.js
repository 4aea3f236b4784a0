'use strict'

// Chooses which functions of events.js, settlements.js and user-hooks.js serve as hooks, and installs them.
//
// Where Node can leave promises out of async_hooks (24 and later), V8's own promise hooks report them, at a
// third of the cost; else async_hooks does. That they are settled is reported by V8, and in another way while
// code runs that may be terminated (settlements.js).

const { createHook } = require('node:async_hooks')
const guard = require('../context/guard')
const records = require('../context/records')
const { OnPromise } = require('../context/tag')
const { idOfTracked } = require('./promise-ids')

const { CHAIN, FLAGS, PASSED, REF, SPAN } = records
const NO_RECORD = { ref: 0, chain: 0, span: 0 }

/**
 * Returns whether this Node can leave promises out of async_hooks, so that V8's own hooks can report them.
 * Node 20 and 22 ignore the option. Read from the hook itself, which notes it (kNoPromiseHook in
 * lib/internal/async_hooks.js): to try it would make a promise that the program's own hooks see.
 */
function canLeavePromises () {
  const callbacks = { __proto__: null, init () {}, trackPromises: false }
  const hook = /** @type {any} */ (createHook(/** @type {any} */ (callbacks)))
  return Object.getOwnPropertySymbols(hook).some((symbol) => hook[symbol] === true)
}

/** Returns whether async_hooks tracks promises: it gives those that are made an id. */
const makesTracked = () => idOfTracked(Promise.resolve()) !== 0

/**
 * @param {object} deps
 * @param {import('./async-hooks').AsyncParts} deps.parts
 * @param {ReturnType<typeof import('./events').createEvents>} deps.events
 * @param {ReturnType<typeof import('./settlements').createSettlements>} deps.settlements
 * @param {() => ReturnType<typeof import('./user-hooks').createUserHooks>} deps.loadUserHooks
 */
function createInstaller ({ parts, events, settlements, loadUserHooks }) {
  const { capture } = parts
  /** users' hooks or those of other addons are called */
  let isHooked = false
  /** V8's own hooks report promises */
  let usesPromiseHooks = false
  /**
   * promises can be left out of async_hooks: found out once, for a program's own hook sees it
   * @type {boolean | undefined}
   */
  let canLeave
  /** @type {ReturnType<typeof loadUserHooks> | undefined} */
  let userHooks
  /** @type {Function[]} */
  let disableFunctions = []
  const settledHooks = createSettledHooks(settlements.last)

  function install () {
    isHooked = needsUserHooks()
    const { init, before, after } = isHooked
      ? (userHooks ??= loadUserHooks())
      : { init: events.initResource, before: events.beforeResource, after: events.afterResource }
    events.setInitFunction(init)
    canLeave ??= guard.run(canLeavePromises)
    usesPromiseHooks = !isHooked && capture.rejection !== undefined && canLeave
    // A null prototype: createHook would accept an inherited Object.prototype.destroy.
    const callbacks = { __proto__: null, init, before, after, trackPromises: !usesPromiseHooks }
    const hook = createHook(/** @type {any} */ (callbacks)).enable()
    disableFunctions.push(() => disableHook(hook))
    if (usesPromiseHooks) {
      const { promiseHooks } = require('node:v8')
      const { initPromise, beforePromise, afterPromise } = events
      const hooks = { init: initPromise, before: beforePromise, after: afterPromise }
      disableFunctions.push(promiseHooks.createHook(hooks))
    }
    settledHooks.set(usesPromiseHooks ? settlements.settlePromise : settlements.settleResource)
  }

  /** Other addons may come at any time once they have asked, and do not say when they go. */
  const needsUserHooks = () => userHooks?.hasListeners() === true || parts.areNativeHooksInUse()

  function uninstall () {
    for (let i = 0; i < disableFunctions.length; i++) disableFunctions[i]()
    disableFunctions = []
    settledHooks.set(undefined)
  }

  return {
    install,
    uninstall,
    startTerminable: settledHooks.startTerminable,
    endTerminable: settledHooks.endTerminable,

    /**
     * Installs the hooks again where Node has lost them: code was terminated inside of AsyncHook.enable or
     * disable (lib/internal/async_hooks.js), as AsyncLocalStorage calls them on Node 20 and 22, and promises
     * are without hooks since.
     */
    repair () {
      if (disableFunctions.length === 0 || usesPromiseHooks || guard.run(makesTracked)) return
      uninstall()
      install()
    },

    /**
     * Enters the resource of a span, whose function is about to run. Without Node's own stack of async ids:
     * where that function is terminated, Node would not leave the id, and would abort at the end of the
     * callback (AsyncHooks::pop_async_context in src/env.cc).
     * @param {any} resource an AsyncResource
     * @returns {() => void} leaves it
     */
    enterResource (resource) {
      if (isHooked && userHooks !== undefined) return userHooks.enter(resource)
      const asyncId = resource.asyncId()
      events.beforeResource(asyncId)
      return () => events.afterResource(asyncId)
    },

    update () {
      if (isHooked === needsUserHooks()) return
      uninstall()
      install()
    },

    /** @param {import('./async-hooks').Hook[]} hooks */
    setUserHooks (hooks) {
      if (userHooks !== undefined || hooks.length > 0) (userHooks ??= loadUserHooks()).setListeners(hooks)
    },

    /** @param {any} promise @returns {import('./async-hooks').PromiseRecord} */
    recordOf (promise) {
      const record = usesPromiseHooks
        ? records.findRecord(OnPromise.read(promise) ?? 0)
        : records.findResource(idOfTracked(promise))
      if (record === undefined) return NO_RECORD
      const { words, offset } = record
      if ((words[offset + FLAGS] & PASSED) !== 0) return NO_RECORD
      return { ref: words[offset + REF], chain: words[offset + CHAIN], span: words[offset + SPAN] }
    }
  }
}

/**
 * Creates what installs the hook for promises that are settled: another one while code runs that may be
 * terminated, see settlements.js.
 * @param {ReturnType<typeof import('./settlements').createSettlements>['last']} last
 */
function createSettledHooks (last) {
  /** undefined: tracing is off @type {((promise: object) => void) | undefined} */
  let settle
  /** code runs that may be terminated */
  let isTerminable = false
  /** @type {Function[]} */
  let disableFunctions = []

  function install () {
    for (let i = 0; i < disableFunctions.length; i++) disableFunctions[i]() // programs may lack iterators
    disableFunctions = []
    if (settle === undefined) return
    const { promiseHooks } = require('node:v8')
    disableFunctions.push(promiseHooks.onSettled(isTerminable ? last.keep : settle))
    if (isTerminable) last.start(settle)
  }

  function stopTerminable () {
    if (!isTerminable) return
    isTerminable = false
    last.stop()
    install()
  }

  // Where no run of vm has ended what was terminated
  guard.add({ save: () => true, restore: (saved) => { if (saved === undefined) stopTerminable() } })

  return {
    /** @param {((promise: object) => void) | undefined} hook notes a promise; undefined: tracing is off */
    set (hook) {
      if (hook === undefined) last.forget()
      settle = hook
      install()
    },

    /**
     * Code begins to run that may be terminated.
     * @returns {boolean} false: in such code, or tracing is off
     */
    startTerminable () {
      if (isTerminable || settle === undefined) return false
      isTerminable = true
      install()
      return true
    },

    /** Such code has ended; its step is still the current one. @param {boolean} isOutermost */
    endTerminable (isOutermost) {
      last.read()
      if (isOutermost) stopTerminable()
    }
  }
}

/**
 * Disables a hook of async_hooks. Where one is disabled while hooks are called, Node counts wrongly and keeps
 * its own promise hook (getHookArrays in lib/internal/async_hooks.js): so once more, afterwards.
 * @param {import('node:async_hooks').AsyncHook} hook
 */
function disableHook (hook) {
  hook.disable()
  if (guard.mayBeInHook) guard.run(() => process.nextTick(() => hook.enable().disable()))
}

module.exports = { createInstaller }
