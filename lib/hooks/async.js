'use strict'

// What Node tells us through async_hooks: a context for every resource, and the register of the current one.
// hooks/ are the only rooms that record by async_hooks and diagnostics_channel.
//
// A hot room: `init` runs for every promise of the program. The register is not a variable: Node already keeps the executing resource, and the context is a stamp on it.

const { AsyncLocalStorage, AsyncResource, asyncWrapProviders, createHook, executionAsyncId, executionAsyncResource, triggerAsyncId } = require('node:async_hooks')
const { performance } = require('node:perf_hooks')
const { types } = require('node:util')
const guard = require('../context/guard')
const { Context, descends, muted } = require('../context/context')
const { MAX } = require('../context/fold')
const { kindOf } = require('../context/kinds')
const { OnPromise, OnResource, stamp } = require('../context/stamp')
const { entered } = require('./light')
const { createServers } = require('./servers')
const { INIT, BEFORE, AFTER } = require('./native')

const now = performance.now.bind(performance)
/** @type {(value: any) => boolean} */
const isError = /** @type {any} */ (Error).isError ?? types.isNativeError // the first is a built-in of V8's from Node 24 on
const RECENT = 64 // contexts that ran last, for attribution; a power of two
const KINDS = 1000 // distinct type names remembered; programs may make them up
const SAMPLE = 64 // contexts from one look at the budget to the next; a power of two
const PLAIN = 1 << 14 // ids whose runs need no look at the resource; a power of two
const LOOP = 16 // links, from which on a chain is watched for loops of one step
/** As arguments: room on the stack for what begins and ends a run. Node aborts where an AsyncResource finds none there. @type {unknown[]} */
const WORDS = Array(8192).fill(undefined)
const roomy = /** @type {Function} */ () => {}
const TIGHT = 8 // links that a chain keeps while the budget is short

/**
 * The callbacks of the rooms that hooks feed. All run guarded.
 * @typedef {object} Rooms
 * @property {(type: string) => boolean} wanted the filter
 * @property {import('../stacks/capture').Capture} capture takes the present stack and time
 * @property {(context: Context, keep?: number) => void} deep the chain of this context is to be folded
 * @property {(context: Context) => 0 | 1 | 2} sample one of SAMPLE contexts; is the budget plenty, short or spent?
 * @property {() => 0 | 1 | 2} pressure the same, where no context is made
 * @property {(context: Context, resource: object) => void} opened a resource that stays open
 * @property {(asyncId: number) => Context | undefined} opener the context of an open resource, by id
 * @property {(asyncId: number, time: number) => void} active an open resource runs
 * @property {(asyncId: number) => void} closed a timer ran for the last time
 * @property {(context: Context, timer: object) => void} repeated a timer ran, and will again
 * @property {(error: object, context: Context) => void} passed an error was passed to nextTick
 * @property {((context: Context, tick: object) => void) | undefined} ticked something is put off to a tick, where that tells of requests
 * @property {(context: Context) => void} connecting a connect request runs for the first time
 * @property {(time: number) => void} turn the event loop enters JavaScript
 * @property {((time: number, context: Context) => void) | undefined} began a run of the loop begins, where its length is watched
 * @property {(error: unknown) => void} failed a hook could not do its work
 * @property {(reason: object, context: Context) => void} rejected a promise was rejected in this context
 * @property {(hook: Hook, stage: 'init' | 'before' | 'after', context: Context) => void} tell
 * @property {import('../spans/loop-time').LoopTime} loop whose code runs; told while spans are timing
 * @property {Map<number, () => void>} watched what is asked when a resource has run, by id, while spans are timing
 * @property {ReturnType<typeof import('./native').createNativeHooks>} native hooks of other addons
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
  let promiseKind = kindOf('PROMISE', false)
  let tickKind = kindOf('TickObject', false)
  const root = new Context(1, 0, kindOf('process', false), undefined, now())
  root.origin = 'process'
  /** the contexts that were left last, a ring @type {Context[]} */
  let recent = []
  let runs = 0
  /** hooks of users, in order; replaced, never mutated @type {Array<Hook>} */
  let listeners = []

  // The register of the current context: Node keeps the executing resource, and the context is a stamp on it. Reading
  // that is dear, for resources have many shapes; so the last answer is kept with the id that it belongs to for good.
  let lastId = -1
  let last = root

  /** ids of promises, and of what needs no context, by their lowest bits: most ids are asked about soon after */
  const plain = new Uint32Array(PLAIN)

  /** are spans timing? */
  let timing = false
  /** the numbers of their spans, if so; else they say nothing */
  let spanOf = new Uint32Array(0)
  const { loop, watched } = rooms

  /** runs that are inside of one another, ticks and promises left out */
  let inside = 0

  /** contexts and promises without one, for the budget */
  let made = 0
  let pressure = 0

  /** a promise that is being settled: V8 tells before it has a state @type {object | undefined} */
  let unread
  let unreadBy = root

  /** carries the context across await where promise hooks are off @type {AsyncLocalStorage<Context> | undefined} */
  let carrier

  const servers = createServers()
  const { native } = rooms
  const { wants } = native
  /** a handle that was just made while nothing executed @type {Context | undefined} */
  let orphan

  /** @param {string} type */
  function kindFor (type) {
    let kind = kinds.get(type)
    if (kind === undefined) {
      if (kinds.size > KINDS) kinds = new Map()
      kind = kindOf(type, rooms.wanted(type))
      kind.entered = entered.has(type)
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
      if (unread !== undefined) read()
      const id = executionAsyncId()
      if (type === 'PROMISE') {
        plain[asyncId & (PLAIN - 1)] = asyncId
        const parent = id === lastId ? last : parentOf(id, trigger)
        if (timing) spanOf[asyncId & (PLAIN - 1)] = parent === undefined || parent.span === undefined ? 0 : parent.span.seq
        if (!promiseKind.wanted || pressure === 2 || parent === muted) return passPromise(parent, resource)
        const context = new Context(asyncId, trigger, promiseKind, parent, 0)
        if (parent !== undefined) parent.bred = true
        context.awaited = trigger !== id
        rooms.capture.take(context, init, true)
        OnPromise.write(resource, context)
        unsettle ??= listenToSettles()
        finish(context)
        return
      }
      const kind = type === 'TickObject' ? tickKind : kindFor(type)
      if (carrier !== undefined && !kind.wanted && !kind.server && !timing) return carry(id, asyncId, kind, resource)
      const parent = id === lastId ? last : parentOf(id, trigger)
      if (timing && carrier !== undefined && parent?.span !== loop.running) loop.sees(parent?.span, now())
      if (parent === muted) return pass(muted, asyncId, kind, resource)
      if (!kind.wanted) {
        if (parent !== undefined) pass(parent, asyncId, kind, resource)
        return
      }
      const context = new Context(asyncId, trigger, kind, parent, 0)
      if (parent !== undefined) parent.bred = true
      if (parent === undefined && trigger === 0 && (type === 'FILEHANDLE' || type === 'DIRHANDLE' || type === 'HTTP2STREAM')) orphan = context
      rooms.capture.take(context, init, false)
      if (type === 'Timeout') timed(context, resource)
      else OnResource.write(resource, context)
      if (kind.tick) ticks(context, resource)
      finish(context)
      if (timing && context.span !== undefined && kind.waits !== undefined) pends(context, resource)
      // Last: a handle that is still being made must not be asked anything, a callback might.
      if (kind.handle) rooms.opened(context, resource)
    } catch (error) {
      rooms.failed(error) // the resource then stays without a context, the program unharmed
    } finally {
      guard.busy = false
    }
  }

  /**
   * A step like the one before it is one more turn of a loop; folding would find out only later, at a greater price.
   * @param {Context} context deep in a chain
   */
  function turn (context) {
    const parent = /** @type {Context} */ (context.parent)
    if (parent.stack !== context.stack || parent.kind !== context.kind || parent.extra !== context.extra || context.stack === undefined) return
    context.parent = parent.parent
    context.depth = parent.depth
    context.repeats = parent.repeats + 1
  }

  /** The span of a context waits for it from now on. @param {Context} context @param {object} resource */
  function pends (context, resource) {
    const { kind, span, type, asyncId } = context
    const waiting = span?.live
    if (waiting === undefined || kind.waits === undefined) return
    context.pends = kind.once || type === 'Timeout'
    if (kind.once) waiting.waitsFor(kind.waits, loop.idle)
    else waiting.watches(asyncId, kind.waits, type, resource, loop)
  }

  /** What a span waits for has run. @param {Context} context */
  function came (context) {
    const { kind, span, asyncId } = context
    if (!kind.once && /** @type {any} */ (executionAsyncResource())._destroyed !== true) return // an interval
    context.pends = false
    if (!kind.once) span?.over(asyncId, loop.idle)
    else if (kind.waits !== undefined) span?.got(kind.waits, loop.idle)
  }

  /** One that starts for the first time has no start yet; a refreshed one may be stamped. @param {Context} context @param {any} timer */
  function timed (context, timer) {
    if (timer._idleStart === null) OnResource.write(timer, context)
    else OnResource.rewrite(timer, context)
    const delay = timer._idleTimeout
    if (typeof delay === 'number') context.extra = delay
  }

  /**
   * An error that Node's core hands to nextTick was just made there. Others may be old; attribution uses this for
   * errors without a frame of the program only.
   * @param {Context} context
   * @param {any} tick
   */
  function ticks (context, tick) {
    const { args } = tick
    if (timing && rooms.ticked !== undefined) rooms.ticked(context, tick)
    if (!Array.isArray(args) || context.parent === undefined) return
    for (let i = 0; i < args.length; i++) {
      const value = args[i]
      if (typeof value === 'object' && value !== null && isError(value)) rooms.passed(value, context.parent)
    }
  }

  /** @param {Context} context that was just made */
  function finish (context) {
    if ((++made & (SAMPLE - 1)) === 0) pressure = rooms.sample(context)
    if (context.depth > LOOP) turn(context)
    if (context.depth > MAX) rooms.deep(context)
    else if (pressure !== 0 && context.depth > TIGHT) rooms.deep(context, TIGHT)
    if (wants[INIT] !== 0) native.init(context)
    if (listeners.length > 0) tellAll('init', context)
  }

  /** @param {'init' | 'before' | 'after'} stage @param {Context} context */
  function tellAll (stage, context) {
    clock(stage, context.more())
    for (const hook of listeners) rooms.tell(hook, stage, context) // the list is replaced where a callback changes it
  }

  /** How long it waited and ran, for users. @param {'init' | 'before' | 'after'} stage @param {import('../context/context').Extra} extra */
  function clock (stage, extra) {
    const time = now()
    if (stage === 'before') {
      extra.begun ??= []
      extra.waitMs = extra.begun.length > 0 ? 0 : extra.since === undefined ? undefined : time - extra.since
      extra.begun.push(time)
      return
    }
    if (stage === 'after') {
      const began = extra.begun?.pop()
      extra.runMs = began === undefined ? undefined : time - began
    }
    extra.since = time
  }

  /** The promise gets no context of its own. @param {Context | undefined} parent @param {object} promise */
  function passPromise (parent, promise) {
    if (parent !== undefined) OnPromise.write(promise, parent)
    if (promiseKind.wanted && (++made & (SAMPLE - 1)) === 0) pressure = rooms.pressure()
  }

  /**
   * The resource gets no context of its own.
   * @param {Context} context that is in force in it
   * @param {number} asyncId
   * @param {import('../context/kinds').Kind} kind
   * @param {object} resource
   */
  function pass (context, asyncId, kind, resource) {
    if (kind.brief) OnResource.rewrite(resource, context)
    else OnResource.write(resource, context)
    if (kind.server) servers.add(asyncId, resource)
  }

  /** @param {number} asyncId @param {string} type @param {object} resource */
  function mute (asyncId, type, resource) {
    try {
      if (type === 'PROMISE') OnPromise.write(resource, muted)
      else pass(muted, asyncId, kindFor(type), resource)
    } catch {}
  }

  /**
   * The context that is in force, or the one to be put in its place: what no known resource created has its trigger
   * as the cause.
   * @param {number} id of the executing resource
   * @param {number} trigger
   * @returns {Context | undefined}
   */
  function parentOf (id, trigger) {
    return present(id) ?? adopt(id, trigger)
  }

  /** @param {number} id of the executing resource @returns {Context | undefined} the context that is in force */
  function present (id) {
    if (id === lastId) return last
    if (carrier !== undefined) return carrier.getStore()
    if (id <= 1) return undefined // nothing executes, or the program starts
    const resource = executionAsyncResource()
    const context = plain[id & (PLAIN - 1)] === id ? OnPromise.read(resource) : stamp.read(resource)
    if (context !== undefined) {
      lastId = id
      last = context
    }
    return context
  }

  /**
   * A resource without a context of its own where contexts are carried: it needs none, but where what executes was entered
   * by hand: an AsyncResource puts back what was carried when it was made.
   * @param {number} id of the executing resource
   * @param {number} asyncId
   * @param {import('../context/kinds').Kind} kind
   * @param {object} resource
   */
  function carry (id, asyncId, kind, resource) {
    if (id === lastId && last !== carrier?.getStore()) pass(last, asyncId, kind, resource)
    else plain[asyncId & (PLAIN - 1)] = asyncId
  }

  /**
   * Finds the parent of what no known resource created: the trigger is the cause where nothing executes (an
   * accepted connection); a resource from before enabling gets a context on the spot.
   * @param {number} id of the executing resource
   * @param {number} trigger
   * @returns {Context | undefined}
   */
  function adopt (id, trigger) {
    if (id === 0) return servers.context(trigger) ?? rooms.opener(trigger)
    if (id === 1) return root
    // A worker's program runs inside a message of its maker: the root tells the maker's story.
    const early = new Context(id, triggerAsyncId(), kindOf('unknown', false), root, now())
    early.origin = 'early'
    stamp.write(executionAsyncResource(), early)
    return early
  }

  /** @param {number} asyncId */
  function before (asyncId) {
    if (guard.busy) return
    if (unread !== undefined) read()
    const at = asyncId & (PLAIN - 1)
    if (timing) loop.level++
    if (orphan === undefined && listeners.length === 0 && wants[BEFORE] === 0 && plain[at] === asyncId && (!timing || spanOf[at] === loop.seq)) return
    guard.busy = true
    try {
      const resource = executionAsyncResource()
      const context = stamp.read(resource)
      if (timing) begin(context, asyncId)
      if (context === undefined) return
      lastId = asyncId
      last = context
      // A tick that Node made for itself is no part of a story, and to carry it copies a map.
      if (carrier !== undefined && context.kind.entered && (!context.kind.tick || context.stack?.program !== false) &&
        carrier.getStore() !== context) carrier.enterWith(context)
      if (context === muted) return
      if (orphan !== undefined) claim(context)
      if (!context.kind.promise) run(context, asyncId, resource)
      if (context.asyncId !== asyncId || context.type === 'unknown') return // its init was not told
      if (listeners.length > 0) tellAll('before', context)
      if (wants[BEFORE] !== 0) native.before(context)
    } catch (error) {
      rooms.failed(error)
    } finally {
      guard.busy = false
    }
  }

  /** Whose run is it? Where the filter leaves the resource out, its context is that of its maker. @param {Context | undefined} context @param {number} asyncId */
  function begin (context, asyncId) {
    const span = context?.span?.owner
    const own = context !== undefined && context.asyncId === asyncId ? context.kind : undefined
    if (plain[asyncId & (PLAIN - 1)] === asyncId || own?.tick || own?.promise) {
      if (span !== loop.running) loop.change(span, now(), loop.type)
      return
    }
    loop.turn(span, now(), own?.type ?? (context === muted ? muted.type : 'unknown'))
    if (watched.size > 0) watched.get(asyncId)?.()
  }

  /** @param {number} asyncId */
  function end (asyncId) {
    loop.after(now)
    if (watched.size > 0 && plain[asyncId & (PLAIN - 1)] !== asyncId) watched.get(asyncId)?.()
  }

  /**
   * @param {Context} context
   * @param {number} asyncId
   * @param {object} resource
   */
  function run (context, asyncId, resource) {
    const { kind } = context
    if (kind.tick) return
    const time = now()
    if (inside++ === 0 && rooms.began !== undefined) rooms.began(time, context)
    rooms.turn(time)
    if (context.asyncId !== asyncId) return
    if (kind.handle && context.registered) rooms.active(asyncId, time)
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
      if (unread !== undefined) read()
      if (timing) end(asyncId)
      /** @type {Context | undefined} */
      let context = last
      if (asyncId !== lastId) {
        // A promise's run that neither made nor settled anything left no trace; only the JavaScript engine waits for its end.
        if (plain[asyncId & (PLAIN - 1)] === asyncId && listeners.length === 0 && wants[AFTER] === 0 && rooms.capture.name !== 'js') return
        context = stamp.read(executionAsyncResource())
      }
      if (context === undefined || context === muted) return
      if (inside > 0 && !context.kind.tick && !context.kind.promise) inside--
      recent[runs++ & (RECENT - 1)] = context
      if (context.asyncId !== asyncId || context.type === 'unknown') return // its init was not told
      if (wants[AFTER] !== 0) native.after(context)
      if (timing && context.pends) came(context)
      if (context.kind.oneShot) context.done = true
      else if (context.kind.brief && context.type === 'Timeout') ran(context, executionAsyncResource())
      if (listeners.length > 0) tellAll('after', context)
    } catch (error) {
      rooms.failed(error)
    } finally {
      guard.busy = false
    }
  }

  /** A timer's turn is over: it is closed, or its next turn comes. @param {Context} context @param {any} timer */
  function ran (context, timer) {
    if (timer._destroyed === true) return context.registered ? rooms.closed(context.asyncId) : undefined
    context.repeats++
    rooms.repeated(context, timer)
  }

  /**
   * fs makes the handle of an opened file or directory before it enters the callback, or resolves the promise, of
   * the one who asked for it; HTTP/2 the stream of a request before it enters the session's. Where anything else runs first, the
   * request's head came in pieces, and nobody knows.
   * @param {Context} context of the callback, promise or session
   */
  function claim (context) {
    if (orphan === undefined) return
    if ((orphan.type !== 'HTTP2STREAM' || context.type === 'HTTP2SESSION') && context !== orphan && !descends(context, orphan)) { // else the chain would have no end
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
      if (unread !== undefined) read()
      const id = executionAsyncId()
      const by = present(id) ?? (id === 1 ? root : undefined)
      const context = carrier === undefined ? OnPromise.read(promise) : undefined
      if (context === muted) return
      if (context !== undefined) {
        if (orphan !== undefined) claim(context)
        if (context.kind.promise) {
          context.done = true
          if (by !== undefined && by !== context && by !== muted && !context.bred) context.settler = by
        }
      }
      if (by !== undefined && by !== muted && rooms.capture.rejection !== undefined) {
        unread = promise
        unreadBy = by
      }
    } catch (error) {
      rooms.failed(error)
    } finally {
      guard.busy = false
    }
  }

  /** Looks at the promise that was settled last: now it has its state. Nothing of the program's runs. */
  function read () {
    const promise = /** @type {object} */ (unread)
    unread = undefined
    try {
      const reason = /** @type {(promise: object) => unknown} */ (rooms.capture.rejection)(promise)
      if (typeof reason === 'object' && reason !== null) rooms.rejected(reason, unreadBy)
    } catch (error) {
      rooms.failed(error)
    }
  }

  /** From the first promise on: many programs have none, and node:v8 takes 2 ms to load. @returns {Function} */
  function listenToSettles () {
    return require('node:v8').promiseHooks.onSettled(settled)
  }

  // A null prototype: createHook would accept an inherited Object.prototype.destroy.
  /** @param {boolean} trackPromises */
  const makeHook = (trackPromises) => createHook(/** @type {any} */ ({ __proto__: null, init, before, after, trackPromises }))
  /** @type {import('node:async_hooks').AsyncHook | undefined} */
  let hook
  /** @type {Function | undefined} */
  let unsettle

  const layer = {
    root,

    /** @param {boolean} light without promise hooks */
    enable (light) {
      layer.refilter()
      hook = makeHook(!light)
      hook.enable()
      if (!light) return
      const context = present(executionAsyncId()) ?? root
      carrier = new AsyncLocalStorage()
      carrier.enterWith(context) // what finds nothing carried later on is from before
      if (rooms.capture.rejection !== undefined) unsettle = listenToSettles()
    },

    disable () {
      hook?.disable()
      unsettle?.()
      unsettle = undefined
      carrier?.disable()
      carrier = undefined
      recent = []
      unread = undefined
      lastId = -1
      inside = 0
      plain.fill(0) // what is plain in one mode is not in the other
      watched.clear()
      pressure = 0
    },

    /** A new filter is in force. */
    refilter () {
      kinds = new Map()
      promiseKind = kindFor('PROMISE')
      tickKind = kindFor('TickObject')
    },

    /** From now on spans are timing, or no longer. @param {boolean} on */
    time (on) {
      if (on === timing) return
      timing = on
      spanOf = new Uint32Array(on ? PLAIN : 0)
      plain.fill(0)
      if (on) loop.start(now())
      else loop.stop()
    },

    /**
     * The rest of this run is part of a span. A connection's requests come on one resource: from now on that is this one's.
     * @param {import('../spans/span').Span} span
     * @returns {Context} the context in force
     */
    enter (span) {
      const id = executionAsyncId()
      const before = present(id) ?? root
      const context = before.twin(span, now())
      if (id <= 1) return context // what runs there is no part of a request
      OnResource.rewrite(executionAsyncResource(), context)
      lastId = id
      last = context
      carrier?.enterWith(context)
      if (timing) loop.change(span, now(), context.type)
      return context
    },

    /**
     * Runs a function as part of a span, in a resource of its own.
     * @template T
     * @param {import('../spans/span').Span} span
     * @param {() => T} fn
     * @returns {T}
     */
    within (span, fn) {
      roomy.apply(undefined, WORDS) // throws here, where it does no harm, if the stack is nearly full
      const resource = new AsyncResource('Span')
      const made = stamp.read(resource)
      if (made === muted) return resource.runInAsyncScope(fn)
      const context = made !== undefined && made.asyncId === resource.asyncId() ? made : (made ?? root).twin(span, now())
      context.span = span
      if (context.kind.type === 'Span') context.detail = span.name
      stamp.write(resource, context)
      span.context = context
      const storage = carrier
      try {
        return resource.runInAsyncScope(storage === undefined ? fn : () => storage.run(context, fn))
      } finally {
        if (timing) loop.sees(layer.current()?.span, now())
      }
    },

    /** @param {Array<Hook>} hooks of users, in order */
    listen (hooks) {
      listeners = hooks
    },

    /** @returns {Context | undefined} the running context */
    current () {
      if (unread !== undefined) guard.run(read)
      const id = executionAsyncId()
      const context = present(id)
      if (context !== undefined) return context === muted ? undefined : context
      return id === 1 || 'carried' in root ? root : undefined
    },

    /** Is what runs longstack's own, or comes of it? */
    muted: () => present(executionAsyncId()) === muted,

    /** Runs what is no part of the program, nor what comes of it. Guarded. @param {() => void} work */
    apart: (work) => carrier === undefined ? work() : carrier.run(muted, work),

    /** The context that was left last: queueMicrotask reports its errors only after its `after`. @returns {Context | undefined} */
    left: () => recent[(runs - 1) & (RECENT - 1)],

    /** The contexts that ran last, in no order. */
    recent: () => recent,

    /** The executing resource. */
    resource: () => executionAsyncResource()
  }
  return layer
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
