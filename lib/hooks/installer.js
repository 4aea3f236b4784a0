'use strict'

// Chooses which functions of events.js, settlements.js and user-hooks.js serve as hooks, and installs them.
//
// Where Node can leave promises out of async_hooks (24 and later), V8's own promise hooks report them, at a
// third of the cost; else async_hooks does. In light mode nothing reports them. That they are settled is
// reported by V8, and in another way while code runs that may be terminated (settlements.js).

const { createHook } = require('node:async_hooks')
const guard = require('../context/guard')
const records = require('../context/records')
const { OnPromise } = require('../context/tag')
const { canLeavePromises } = require('./light-support')
const { idOfTracked } = require('./promise-ids')

const { CHAIN, REF, SPAN } = records
const NO_RECORD = { ref: 0, chain: 0, span: 0 }

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
  let isLight = false
  /** users' hooks or those of other addons are called */
  let isHooked = false
  let seesSettled = false
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

  /** @param {boolean} light */
  function install (light) {
    isLight = light
    isHooked = needsUserHooks()
    const { init, before, after } = isHooked
      ? (userHooks ??= loadUserHooks())
      : { init: events.initResource, before: events.beforeResource, after: events.afterResource }
    events.setInitFunction(init)
    canLeave ??= guard.run(canLeavePromises)
    usesPromiseHooks = !isLight && !isHooked && capture.rejection !== undefined && canLeave
    const trackPromises = !isLight && !usesPromiseHooks
    // A null prototype: createHook would accept an inherited Object.prototype.destroy.
    const callbacks = { __proto__: null, init, before, after, trackPromises }
    const hook = createHook(/** @type {any} */ (callbacks)).enable()
    disableFunctions.push(() => disableHook(hook))
    seesSettled = needsSettled()
    if (usesPromiseHooks) {
      const { promiseHooks } = require('node:v8')
      const { initPromise, beforePromise, afterPromise } = events
      const hooks = { init: initPromise, before: beforePromise, after: afterPromise }
      disableFunctions.push(promiseHooks.createHook(hooks))
    }
    if (!seesSettled) return
    const { settlePromise, settleResource, settleUnrecorded } = settlements
    settledHooks.set(usesPromiseHooks ? settlePromise : isLight ? settleUnrecorded : settleResource, isLight)
  }

  /** Light mode needs to know who rejects only for errors and spans; one hook makes all promises slower. */
  const needsSettled = () => !isLight || (parts.needsRejecters() && capture.rejection !== undefined)

  /** Other addons may come at any time once they have asked, and do not say when they go. */
  const needsUserHooks = () => userHooks?.hasListeners() === true || parts.areNativeHooksInUse()

  function uninstall () {
    for (let i = 0; i < disableFunctions.length; i++) disableFunctions[i]()
    disableFunctions = []
    settledHooks.set(undefined, isLight)
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
      if (disableFunctions.length === 0 || isLight || usesPromiseHooks || guard.run(makesTracked)) return
      uninstall()
      install(isLight)
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
      if (isHooked === needsUserHooks() && seesSettled === needsSettled()) return
      uninstall()
      install(isLight)
    },

    /** @param {import('./async-hooks').Hook[]} hooks */
    setUserHooks (hooks) {
      if (userHooks !== undefined || hooks.length > 0) (userHooks ??= loadUserHooks()).setListeners(hooks)
    },

    /** @param {any} promise @returns {import('./async-hooks').PromiseRecord} */
    recordOf (promise) {
      // In light mode a record would be from before, or made because of a program's own hook
      if (isLight) return NO_RECORD
      const record = usesPromiseHooks
        ? records.findRecord(OnPromise.read(promise) ?? 0)
        : records.findResource(idOfTracked(promise))
      if (record === undefined) return NO_RECORD
      const { words, offset } = record
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
  /** undefined: none is needed @type {((promise: object) => void) | undefined} */
  let settle
  let isLight = false
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
    if (!isTerminable) return
    last.start(settle)
    if (isLight) disableFunctions.push(promiseHooks.onInit(last.read)) // nothing else is called for promises
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
    /**
     * @param {((promise: object) => void) | undefined} hook notes a promise; undefined: none is needed
     * @param {boolean} light
     */
    set (hook, light) {
      if (hook === undefined) last.forget()
      settle = hook
      isLight = light
      install()
    },

    /**
     * Code begins to run that may be terminated.
     * @returns {boolean} false: in such code, or nobody needs to know which promises are settled
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
