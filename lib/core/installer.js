'use strict'

// Installs the hooks: functions of events.js, settlements.js and user-hooks.js.
//
// If Node can exclude promises from async_hooks (24 and later), V8's own promise hooks report them, at a
// third of the cost; otherwise async_hooks does. V8 reports that promises settle, through another hook
// while terminable code runs (settled-hook.js).

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
 * @property {(resource: any) => () => void} enter enters a resource that Node does not enter; returns a
 *   function that leaves it
 * @property {() => boolean} areWanted
 */

// Order matters
guard.add(momentaryStep)
guard.add(terminableState)

/**
 * Returns whether this Node can exclude promises from async_hooks, so that V8's own hooks can report them.
 * Node 20 and 22 ignore the option. This is read from the hook itself (kNoPromiseHook in
 * lib/internal/async_hooks.js): trying it would make a promise that the program's own hooks see.
 */
function canLeavePromises () {
  const callbacks = { __proto__: null, init () {}, trackPromises: false }
  const hook = /** @type {any} */ (createHook(/** @type {any} */ (callbacks)))
  return Object.getOwnPropertySymbols(hook).some((symbol) => hook[symbol] === true)
}

/**
 * Makes a context frame and leaves it, if Node has them (24 and later). Until one exists, the compiled code
 * of Node's ticks and timers looks up the methods of their class each time, with or without a program:
 * bench/run.js, -0.6 µs per request of hello. Only the addon can leave a frame without a resource, which
 * has an id. An exception from a program's replacement of `run` must not prevent the start.
 */
function makeContextFrame () {
  if (Object.hasOwn(AsyncLocalStorage.prototype, '_enable')) return
  capture.binding()?.keepContext(() => {
    try {
      new AsyncLocalStorage().run(true, () => {})
    } catch {}
  })
}

/** Returns whether async_hooks tracks promises, that is, gives new ones an id. */
const makesTracked = () => idOfTracked(Promise.resolve()) !== 0

/** hooks of users or of other addons are called */
let isHooked = false
/** V8's own hooks report promises */
let usesPromiseHooks = false
/**
 * promises can be excluded from async_hooks; tested once, because a hook of the program sees the test
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
 * Reinstalls the hooks if Node has lost them. V8 terminated code inside AsyncHook.enable or disable
 * (lib/internal/async_hooks.js), which AsyncLocalStorage calls on Node 20 and 22; since then, promises have
 * had no hooks.
 */
function repair () {
  if (disableFunctions.length === 0 || usesPromiseHooks || guard.run(makesTracked)) return
  uninstall()
  install()
}

/**
 * Enters the resource of a span, whose function is about to run. Bypasses Node's own stack of async ids: if
 * V8 terminated that function, Node would not pop the id, and would abort at the end of the callback
 * (AsyncHooks::pop_async_context in src/env.cc).
 * @param {any} resource an AsyncResource
 * @returns {() => void} leaves it
 */
const enterResource = (resource) => (isHooked ? wrapper : plain).enter(resource)

/**
 * Wraps the recording functions while the wrappers are wanted; called again when that changes.
 * @param {HookWrapper} next
 */
function wrapHooks (next) {
  wrapper = next
  if (disableFunctions.length === 0 || isHooked === wrapper.areWanted()) return
  uninstall()
  install()
}

/**
 * Disables a hook of async_hooks. If hooks are running, Node miscounts and keeps its own promise hook
 * (getHookArrays in lib/internal/async_hooks.js), so the hook is disabled once more afterwards.
 * @param {import('node:async_hooks').AsyncHook} hook
 */
function disableHook (hook) {
  hook.disable()
  if (guard.mayBeInHook) guard.run(() => process.nextTick(() => hook.enable().disable()))
}

module.exports = { enterResource, install, repair, uninstall, wrapHooks }
