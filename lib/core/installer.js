'use strict'

// Chooses which functions of events.js, settlements.js and user-hooks.js serve as hooks, and installs them.
//
// Where Node can leave promises out of async_hooks (24 and later), V8's own promise hooks report them, at a
// third of the cost; else async_hooks does. That they are settled is reported by V8, and in another way while
// code runs that may be terminated (settled-hook.js).

const { AsyncLocalStorage, createHook } = require('node:async_hooks')
const guard = require('./guard')
const capture = require('../stacks/capture')
const { momentaryStep } = require('./current-step')
const events = require('./events')
const { setSettled, terminableState } = require('./settled-hook')
const settlements = require('./settlements')
const { idOfTracked } = require('./tag')

/**
 * @typedef {object} HookWrapper functions around initResource, beforeResource and afterResource
 * @property {(asyncId: number, type: string, trigger: number, resource: any) => void} init
 * @property {(asyncId: number) => void} before
 * @property {(asyncId: number) => void} after
 * @property {(resource: any) => () => void} enter enters a resource that Node does not enter; returns what
 *   leaves it
 * @property {() => boolean} areWanted
 */

// In this order
guard.add(momentaryStep)
guard.add(terminableState)

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

/**
 * Makes a context frame, where Node has them (24 and later), and leaves it. Until there was one, what V8
 * compiles of Node's ticks and timers looks up the methods of their class each time, program or not:
 * bench/run.js, -0.6 µs a request of hello. Only the addon can leave one without a resource, which has an id.
 * The program may have replaced `run`: what that throws is no reason not to start.
 */
function makeContextFrame () {
  if (Object.hasOwn(AsyncLocalStorage.prototype, '_enable')) return
  capture.binding()?.keepContext(() => {
    try {
      new AsyncLocalStorage().run(true, () => {})
    } catch {}
  })
}

/** Returns whether async_hooks tracks promises: it gives those that are made an id. */
const makesTracked = () => idOfTracked(Promise.resolve()) !== 0

/** users' hooks or those of other addons are called */
let isHooked = false
/** V8's own hooks report promises */
let usesPromiseHooks = false
/**
 * promises can be left out of async_hooks: found out once, for a program's own hook sees it
 * @type {boolean | undefined}
 */
let canLeave
/** @type {HookWrapper} */
const plain = {
  init: events.initResource,
  before: events.beforeResource,
  after: events.afterResource,

  enter (resource) {
    const asyncId = resource.asyncId()
    events.beforeResource(asyncId)
    return () => events.afterResource(asyncId)
  },

  areWanted: () => false
}
let wrapper = plain
/** @type {Function[]} */
let disableFunctions = []

function install () {
  isHooked = wrapper.areWanted()
  const { init, before, after } = isHooked ? wrapper : plain
  events.setInitFunction(init)
  if (canLeave === undefined) {
    canLeave = guard.run(canLeavePromises)
    guard.run(makeContextFrame)
  }
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
  setSettled(usesPromiseHooks ? settlements.settlePromise : settlements.settleResource)
}

function uninstall () {
  for (let i = 0; i < disableFunctions.length; i++) disableFunctions[i]()
  disableFunctions = []
  setSettled(undefined)
}

/**
 * Installs the hooks again where Node has lost them: code was terminated inside of AsyncHook.enable or
 * disable (lib/internal/async_hooks.js), as AsyncLocalStorage calls them on Node 20 and 22, and promises
 * are without hooks since.
 */
function repair () {
  if (disableFunctions.length === 0 || usesPromiseHooks || guard.run(makesTracked)) return
  uninstall()
  install()
}

/**
 * Enters the resource of a span, whose function is about to run. Without Node's own stack of async ids:
 * where that function is terminated, Node would not leave the id, and would abort at the end of the
 * callback (AsyncHooks::pop_async_context in src/env.cc).
 * @param {any} resource an AsyncResource
 * @returns {() => void} leaves it
 */
const enterResource = (resource) => (isHooked ? wrapper : plain).enter(resource)

/**
 * Has functions around those that record, for as long as they are wanted: called again when that changes.
 * @param {HookWrapper} next
 */
function wrapHooks (next) {
  wrapper = next
  if (disableFunctions.length === 0 || isHooked === wrapper.areWanted()) return
  uninstall()
  install()
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

module.exports = { enterResource, install, repair, uninstall, wrapHooks }
