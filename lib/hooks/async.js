'use strict'

// What Node tells us through async_hooks: a context for every resource, and the register of the current one.
// This and channels.js are the only rooms that know async_hooks and diagnostics_channel.
//
// A hot room: `init` runs for every promise of the program. The register is not a variable: Node already keeps the executing resource, and the context is a stamp on it.

const { AsyncResource, asyncWrapProviders, createHook, executionAsyncId, executionAsyncResource, triggerAsyncId } = require('node:async_hooks')
const { performance } = require('node:perf_hooks')
const guard = require('../context/guard')
const { Context, descends, stamp, settler, muted } = require('../context/context')
const { MAX } = require('../context/fold')
const { kindOf } = require('../context/kinds')

const now = performance.now.bind(performance)
const RECENT = 64 // contexts that ran last, for attribution
const SERVERS = 1000 // remembered that the filter leaves out
const KINDS = 1000 // distinct type names remembered; programs may make them up

/**
 * The callbacks of the rooms that hooks feed. All run guarded.
 * @typedef {object} Rooms
 * @property {(type: string) => boolean} wanted the filter
 * @property {(context: Context, above: Function, promise: boolean) => void} capture takes the present stack
 * @property {(context: Context) => void} deep the chain of this context is to be folded
 * @property {() => boolean} full the budget for contexts is spent
 * @property {(context: Context, resource: object) => void} opened a resource that stays open
 * @property {(asyncId: number) => Context | undefined} opener the context of an open resource, by id
 * @property {(asyncId: number, time: number) => void} active an open resource runs
 * @property {(asyncId: number) => void} closed a timer ran for the last time
 * @property {(context: Context, tick: any) => void} ticks something was passed to nextTick
 * @property {(context: Context) => void} connecting a connect request runs for the first time
 * @property {(time: number) => void} turn the event loop enters JavaScript
 * @property {(error: unknown) => void} failed a hook could not do its work
 * @property {Array<Hook>} listeners hooks of users, in order; replaced, never mutated
 * @property {(hook: Hook, stage: 'init' | 'before' | 'after', context: Context) => void} tell
 */

/**
 * @typedef {object} Hook
 * @property {(context: any) => void} [init]
 * @property {(context: any) => void} [before]
 * @property {(context: any) => void} [after]
 */

/** @param {Rooms} rooms */
function createAsyncLayer (rooms) {
  /** @type {Map<string, import('../context/kinds').Kind>} */
  let kinds = new Map()
  const root = new Context(1, 0, 'process', undefined, now())
  root.origin = 'process'
  /** the contexts that were left last, a ring @type {Context[]} */
  let recent = []
  let runs = 0

  const servers = createServers()
  /** a handle that was just made while nothing executed @type {Context | undefined} */
  let orphan

  /** @param {string} type */
  function kindFor (type) {
    let kind = kinds.get(type)
    if (kind === undefined) {
      if (kinds.size > KINDS) kinds = new Map()
      kind = kindOf(type, rooms.wanted(type))
      kinds.set(type, kind)
    }
    return kind
  }

  /**
   * @param {number} asyncId
   * @param {string} type
   * @param {number} trigger
   * @param {object} resource
   */
  function init (asyncId, type, trigger, resource) {
    if (guard.busy) return mute(asyncId, type, resource)
    guard.busy = true
    try {
      const parent = stamp.read(executionAsyncResource()) ?? adopt(trigger)
      if (parent === muted) return pass(muted, asyncId, type, resource)
      const kind = kindFor(type)
      if (!kind.wanted || (kind.promise && rooms.full())) {
        if (parent !== undefined) pass(parent, asyncId, type, resource)
        return
      }
      const context = new Context(asyncId, trigger, type, parent, now())
      if (parent === undefined && trigger === 0 && (type === 'FILEHANDLE' || type === 'DIRHANDLE')) orphan = context
      rooms.capture(context, init, kind.promise)
      stamp.write(resource, context)
      if (context.depth > MAX) rooms.deep(context)
      if (kind.promise) {
        unsettle ??= listenToSettles()
        context.awaited = trigger !== executionAsyncId()
      } else {
        if (type === 'Timeout') context.detail = /** @type {any} */ (kind).detail(resource)
        if (kind.handle) rooms.opened(context, resource)
        else if (type === 'TickObject') rooms.ticks(context, resource)
      }
      const listeners = rooms.listeners
      for (let i = 0; i < listeners.length; i++) rooms.tell(listeners[i], 'init', context)
    } catch (error) {
      rooms.failed(error) // the resource then stays without a context, the program unharmed
    } finally {
      guard.busy = false
    }
  }

  /**
   * The resource gets no context of its own.
   * @param {Context} context that is in force in it
   * @param {number} asyncId
   * @param {string} type
   * @param {object} resource
   */
  function pass (context, asyncId, type, resource) {
    stamp.write(resource, context)
    if (type === 'TCPSERVERWRAP' || type === 'PIPESERVERWRAP') servers.add(asyncId, resource)
  }

  /** @param {number} asyncId @param {string} type @param {object} resource */
  function mute (asyncId, type, resource) {
    try {
      pass(muted, asyncId, type, resource)
    } catch {}
  }

  /**
   * Finds the parent of what no known resource created: the trigger is the cause where nothing executes (an
   * accepted connection); a resource from before enabling gets a context on the spot.
   * @param {number} trigger
   * @returns {Context | undefined}
   */
  function adopt (trigger) {
    const id = executionAsyncId()
    if (id === 0) return servers.context(trigger) ?? rooms.opener(trigger)
    if (id === 1) return root
    // A worker's program runs inside a message of its maker: the root tells the maker's story.
    const early = new Context(id, triggerAsyncId(), 'unknown', root, now())
    early.origin = 'early'
    stamp.write(executionAsyncResource(), early)
    return early
  }

  /** @param {number} asyncId */
  function before (asyncId) {
    if (guard.busy) return
    guard.busy = true
    try {
      const resource = executionAsyncResource()
      const context = stamp.read(resource)
      if (context === undefined || context === muted) return
      if (orphan !== undefined) claim(context)
      if (context.type !== 'PROMISE') run(context, asyncId, resource)
      if (context.asyncId !== asyncId) return
      const listeners = rooms.listeners
      for (let i = 0; i < listeners.length; i++) rooms.tell(listeners[i], 'before', context)
    } catch (error) {
      rooms.failed(error)
    } finally {
      guard.busy = false
    }
  }

  /**
   * @param {Context} context
   * @param {number} asyncId
   * @param {object} resource
   */
  function run (context, asyncId, resource) {
    const time = now()
    rooms.turn(time)
    if (context.asyncId !== asyncId) return
    const kind = kindFor(context.type)
    if (kind.handle) rooms.active(asyncId, time)
    if (kind.detail !== undefined && context.detail === undefined) {
      context.detail = kind.detail(resource)
      rooms.connecting(context)
    }
  }

  /** @param {number} asyncId */
  function after (asyncId) {
    if (guard.busy) return
    guard.busy = true
    try {
      const resource = /** @type {any} */ (executionAsyncResource())
      const context = stamp.read(resource)
      if (context === undefined || context === muted) return
      recent[runs++ % RECENT] = context
      if (context.asyncId !== asyncId) return
      if (kindFor(context.type).oneShot) context.done = true
      else if (context.type === 'Timeout') ran(context, resource)
      const listeners = rooms.listeners
      for (let i = 0; i < listeners.length; i++) rooms.tell(listeners[i], 'after', context)
    } catch (error) {
      rooms.failed(error)
    } finally {
      guard.busy = false
    }
  }

  /** A timer's turn is over: it is closed, or its next turn comes. @param {Context} context @param {any} timer */
  function ran (context, timer) {
    if (timer._destroyed === true) rooms.closed(context.asyncId)
    else context.repeats++
  }

  /**
   * fs makes the handle of an opened file or directory before it enters the callback, or resolves the promise, of
   * the one who asked for it.
   * @param {Context} context of the callback or promise
   */
  function claim (context) {
    if (orphan === undefined) return
    if (context !== orphan && !descends(context, orphan)) { // else the chain would have no end
      orphan.parent = context
      orphan.depth = context.depth + 1
    }
    orphan = undefined
  }

  /** Notes who resolved or rejected a promise. @param {Promise<unknown>} promise */
  function settled (promise) {
    if (guard.busy) return
    guard.busy = true
    try {
      const context = stamp.read(promise)
      if (context === undefined || context === muted) return
      if (orphan !== undefined) claim(context)
      if (context.type === 'PROMISE') context.done = true
      const present = stamp.read(executionAsyncResource())
      if (present !== undefined && present !== context && present !== muted) settler.write(promise, present)
    } catch (error) {
      rooms.failed(error)
    } finally {
      guard.busy = false
    }
  }

  /** From the first promise on: many programs have none, and node:v8 takes 2 ms to load. @returns {Function} */
  function listenToSettles () {
    return require('node:v8').promiseHooks.onSettled(settled)
  }

  // A null prototype: createHook would accept an inherited Object.prototype.destroy.
  const hook = createHook(/** @type {any} */ ({ __proto__: null, init, before, after }))
  /** @type {Function | undefined} */
  let unsettle

  return {
    root,

    enable () {
      kinds = new Map()
      hook.enable()
    },

    disable () {
      hook.disable()
      unsettle?.()
      unsettle = undefined
      recent = []
    },

    /** A new filter is in force. */
    refilter () {
      kinds = new Map()
    },

    /** @returns {Context | undefined} the running context */
    current () {
      const context = stamp.read(executionAsyncResource())
      if (context !== undefined) return context === muted ? undefined : context
      return executionAsyncId() === 1 || 'carried' in root ? root : undefined
    },

    /** The context that was left last: queueMicrotask reports its errors only after its `after`. @returns {Context | undefined} */
    left: () => recent[(runs - 1) % RECENT],

    /** The contexts that ran last, in no order. */
    recent: () => recent,

    /** The executing resource. */
    resource: () => executionAsyncResource()
  }
}

/** Servers that have no context of their own; by id, since nothing executes when a connection comes. */
function createServers () {
  /** @type {Map<number, WeakRef<object>>} oldest first */
  const servers = new Map()

  return {
    /** @param {number} asyncId @param {object} resource */
    add (asyncId, resource) {
      servers.set(asyncId, new WeakRef(resource))
      for (const oldest of servers.keys()) {
        if (servers.size <= SERVERS) break
        servers.delete(oldest)
      }
    },

    /** @param {number} asyncId */
    context (asyncId) {
      const resource = servers.get(asyncId)?.deref()
      return resource === undefined ? undefined : stamp.read(resource)
    }
  }
}

/** The provider types of the running Node. */
function providers () {
  return Object.keys(asyncWrapProviders)
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

module.exports = { createAsyncLayer, providers, bind, now }
