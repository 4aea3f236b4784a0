'use strict'

// The layer of async hooks: chooses which functions of hooks/events.js serve as hooks and puts them in force,
// and answers which step runs.
//
// Where Node can leave promises out of async_hooks (24 and later), V8's own promise hooks tell of them, at a
// third of the price; else async_hooks does. In light mode nobody does.

const { AsyncResource, createHook, executionAsyncResource } = require('node:async_hooks')
const { now } = require('../context/clock')
const guard = require('../context/guard')
const records = require('../context/records')
const { contextAt, contextOf, OWN_WORK, root } = require('../context/context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, CURRENT_RUN, CURRENT_SPAN, DEPTH, LEFT, TIMED,
  WATCHED, current, leaveAll
} = require('../context/current')
const { OnPromise } = require('../context/tag')
const { ensureHeadroom } = require('../stacks/stack-headroom')
const { createCarrier } = require('./light-carrier')
const { createEvents, refOfTracked } = require('./events')
const { createKindTable } = require('./kind-table')
const { canLeavePromises } = require('./light-support')
const { createLookup } = require('./lookup')
const { createSettlements } = require('./settlements')
const { HEAD, createKindHandlers } = require('./kind-handlers')

const {
  CHAIN, CAUSE, SPAN, DETAIL, FLAGS, PASSED, PARSER, INCOMING,
  NO_CHAIN, OWN_WORK_CHAIN, FIRST_CHAIN, CHAIN_BITS, TICKS
} = records
const ROOM_KB = 64 // on the stack, for what begins and ends a callback

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../context/kinds').Kind} Kind
 *
 * @typedef {object} Hook
 * @property {(context: any) => void} [init]
 * @property {(context: any) => void} [before]
 * @property {(context: any) => void} [after]
 *
 * @typedef {object} AsyncParts what the events need
 * @property {(type: string) => boolean} isSelected the filter
 * @property {import('../stacks/capture').Capture} capture
 * @property {() => import('../spans/loop-time').LoopTime} loopTime whose code runs, while spans are timed
 * @property {Map<number, () => void>} callbackListeners called when a resource's callback begins and ends,
 *   by async id, while spans are timed
 * @property {ReturnType<typeof import('../attribution/allocation-clock').createAllocationClock>} allocationClock
 * @property {import('../handles/registry').Registry} registry
 * @property {{ format: unknown }} installedFormatter what Error.prepareStackTrace is while errors have chains
 * @property {() => boolean} needsRejecters errors get hops, or spans the errors that promises were rejected
 *   with
 * @property {() => ReturnType<typeof import('./native-hooks').createNativeHooks>} nativeHooks of other addons
 * @property {() => boolean} areNativeHooksInUse another addon has asked for them
 *
 * @typedef {{ ref: number, chain: number, span: number }} PromiseRecord what is recorded of a promise; 0:
 *   nothing
 *
 * @typedef {object} Listener what is done when something happens that is more than a step; called seldom
 * @property {(context: Context, resource: object) => void} opened a resource that stays open was made
 * @property {(context: Context) => void} connectStarted a connect request runs for the first time
 * @property {(error: object, context: Context) => void} errorPassedToTick an error was handed to nextTick
 * @property {(stream: unknown, headers: unknown) => number} http2StreamStarted a stream of HTTP/2 is about to be told
 *   of; number of the words of its request, 0: none
 * @property {((context: Context, tick: object) => void) | undefined} tickScheduled something is put off to a tick
 * @property {(reason: unknown, context: Context, promise: PromiseRecord) => void} rejected a promise was, in
 *   this context
 * @property {(time: number) => void} iterationStarted the event loop came round
 * @property {() => void} formatterReplaced Error.prepareStackTrace is not longstack's any more
 * @property {((time: number, context: Context) => void) | undefined} callbackStarted a callback begins, where its
 *   length is watched
 * @property {(error: unknown) => void} failed a hook could not do its work
 * @property {(hook: Hook, stage: 'init' | 'before' | 'after', context: Context) => void} callHook a hook of the
 *   user's
 */

/** @param {AsyncParts} rooms @param {Listener} listener */
function createAsyncLayer (rooms, listener) {
  const { capture, callbackListeners, registry, allocationClock } = rooms
  const { clock } = capture
  /** asked only while spans are timed @type {import('../spans/loop-time').LoopTime} */
  let timedLoop
  const loop = () => timedLoop
  const carrier = createCarrier()
  const table = createKindTable({
    wanted: rooms.isSelected,
    carries: () => carrier.on,
    forget: () => capture.reset()
  })
  const lookup = createLookup({ carrier, registry, loop })
  const special = createKindHandlers({ rooms, listener, carrier, loop })
  const settlements = createSettlements({
    capture,
    rejected: (reason, context, promise) => listener.rejected(reason, context, promiseOf(promise))
  })
  const events = createEvents({ rooms, listener, table, carrier, lookup, special, settlements, loop })

  /** V8's own hooks tell of promises */
  let promiseHooks = false
  /**
   * promises can be left out of async_hooks: looked for once, for a program's own hook sees it
   * @type {boolean | undefined}
   */
  let canLeave
  /** @type {ReturnType<typeof createTold> | undefined} */
  let told

  /** Puts the step in force that runs, where none has been entered. */
  function lookHere () {
    if (current[DEPTH] === 0) lookup.look(0)
  }

  /**
   * @param {any} promise
   * @returns {PromiseRecord}
   */
  function promiseOf (promise) {
    // A record would be from before, or a program's own hook has it made
    if (isLight) return { ref: 0, chain: 0, span: 0 }
    const ref = promiseHooks ? OnPromise.read(promise) ?? 0 : refOfTracked(promise)
    const found = ref === 0 ? undefined : records.findRecord(ref)
    if (found === undefined) return { ref: 0, chain: 0, span: 0 }
    const { words, offset } = found
    return { ref, chain: words[offset + CHAIN], span: words[offset + SPAN] }
  }

  /**
   * Around the functions that record, while there are users' hooks or those of other addons: loaded with the
   * first.
   */
  const createTold = () => require('./user-hooks').createUserHooks({
    hooks: { init: events.initResource, before: events.beforeResource, after: events.afterResource },
    rooms,
    listener,
    guarded: special.guarded,
    running: () => current[CURRENT_REF],
    recorded () {
      const cause = current[CURRENT_CAUSE]
      const isRecorded = cause === current[CURRENT_REF] || records.isRequest(cause)
      return isRecorded && current[CURRENT_CHAIN] >= FIRST_CHAIN
    }
  })

  // On and off.

  let enabled = false
  let isLight = false
  let isTold = false
  let looksAtSettled = false
  /** @type {Function[]} */
  let undo = []

  /** Chooses the functions that serve as hooks, and puts them in force. */
  function install () {
    isTold = isHooked()
    const { initResource, beforeResource, afterResource } = events
    const { initPromise, beforePromise, afterPromise, settlePromise } = events
    const hooks = isTold
      ? (told ??= createTold())
      : { init: initResource, before: beforeResource, after: afterResource }
    events.beneath(hooks.init)
    canLeave ??= guard.run(canLeavePromises)
    promiseHooks = !isLight && !isTold && capture.rejection !== undefined && canLeave
    const trackPromises = !isLight && !promiseHooks
    // A null prototype: createHook would accept an inherited Object.prototype.destroy.
    const { init, before, after } = hooks
    const callbacks = { __proto__: null, init, before, after, trackPromises }
    const hook = createHook(/** @type {any} */ (callbacks)).enable()
    undo.push(() => hook.disable())
    looksAtSettled = wantsSettled()
    if (!looksAtSettled) return
    const { promiseHooks: v8Hooks } = require('node:v8')
    const forPromises = {
      init: initPromise,
      before: beforePromise,
      after: afterPromise,
      settled: settlePromise
    }
    undo.push(promiseHooks
      ? v8Hooks.createHook(forPromises)
      : v8Hooks.onSettled(isLight ? events.settleUnknown : events.settleResource))
  }

  /** In light mode it shows who rejects, for errors and spans; one hook makes all promises slower. */
  const wantsSettled = () => !isLight || (rooms.needsRejecters() && capture.rejection !== undefined)

  /** Are there hooks of users, or might there be some of other addons? Those come and go without a word. */
  const isHooked = () => told?.listening() === true || rooms.areNativeHooksInUse()

  function uninstall () {
    for (const step of undo) step()
    undo = []
  }

  const isTimed = () => (current[ATTENTION] & TIMED) !== 0

  const layer = {
    root,
    readSettlements: events.readSettlements,

    /** @param {boolean} light without hooks of promises */
    enable (light) {
      enabled = true
      isLight = light
      if (light) {
        carrier.start()
        lookup.look(0)
        carrier.enterRoot()
      }
      table.refill()
      install()
    },

    disable () {
      enabled = false
      uninstall()
      carrier.stop()
      settlements.forget()
      records.endRequests()
      current[LEFT] = 0
      allocationClock.forget()
      leaveAll()
      special.disown()
      callbackListeners.clear()
    },

    /** A new filter is in force. */
    updateFilter: table.refill,

    /** Whether callbacks are watched has changed. */
    updateWatching () {
      if (listener.callbackStarted === undefined) current[ATTENTION] &= ~WATCHED
      else current[ATTENTION] |= WATCHED
    },

    /** From now on spans are timing, or no longer. @param {boolean} on */
    timeSpans (on) {
      if (on === isTimed()) return
      current[ATTENTION] ^= TIMED
      if (on) (timedLoop ??= rooms.loopTime()).start(now())
      else timedLoop.stop()
    },

    /**
     * Where the event loop counts how often it comes round.
     * @param {Uint32Array} counters
     * @param {boolean} byLoop the addon counts
     */
    countIterations: events.count,

    /**
     * The rest of this run is part of a span. A connection's requests come on one resource: from now on that
     * is this one's.
     * @param {import('../spans/span').Span} next
     * @returns {{ chain: number, ref: number }} the step in force
     */
    enterSpan (next) {
      lookHere()
      const ref = current[CURRENT_REF]
      const cause = current[CURRENT_CAUSE]
      const step = { chain: current[CURRENT_CHAIN], ref: cause }
      if (ref === 0) return step // what runs there is no part of a request
      const span = current[CURRENT_SPAN] = next.seq
      records.writeWord(ref, SPAN, span)
      if (records.isRequest(cause)) records.writeWord(cause, SPAN, span)
      const entry = registry.openerOf(ref >>> 1)
      if (entry !== undefined) entry.spanNumber = span
      if (isTimed()) {
        timedLoop.switchTo(span, now())
        current[CURRENT_RUN] = timedLoop.beginFirstRun()
      }
      carrier.enter()
      return step
    },

    /**
     * A server got a request: the rest of this callback is its, and so is all that the connection's parser
     * brings of it.
     * @param {number} number of its words, see context/request-names.js
     * @returns {boolean} the first one of its connection
     */
    enterRequest (number) {
      const ref = current[CURRENT_REF]
      const parser = (ref & 1) === 0 ? records.findRecord(ref) : undefined
      if (parser === undefined || (parser.words[parser.offset + FLAGS] & PARSER) === 0) return false
      const request = records.addRequest(parser, clock[0] * TICKS, number)
      const isFirst = parser.words[parser.offset + DETAIL] === 0
      parser.words[parser.offset + DETAIL] = request
      parser.words[parser.offset + INCOMING] = HEAD
      const carried = carrier.read()
      if (carried !== undefined && carried.cause === current[CURRENT_CAUSE]) carried.cause = request
      current[CURRENT_CAUSE] = request
      if (allocationClock.isOn) allocationClock.mark(current[CURRENT_CHAIN], request, current[CURRENT_SPAN])
      return isFirst
    },

    /**
     * What runs on a resource from now on is part of a span, or of none.
     * @param {number} asyncId
     * @param {number} number of the span
     */
    setSpan (asyncId, number) {
      records.writeWord(asyncId << 1, SPAN, number)
      const opener = registry.openerOf(asyncId)
      if (opener !== undefined) opener.spanNumber = number
    },

    /** @param {number} asyncId @returns {number} of the span that a resource is part of */
    spanOf: (asyncId) => records.readWord(asyncId << 1, SPAN) || (registry.openerOf(asyncId)?.spanNumber ?? 0),

    /**
     * Who writes on a connection last is noted; its own callbacks read.
     * @param {import('../handles/entry').Entry} entry
     */
    noteWrite (entry) {
      lookHere()
      const chain = current[CURRENT_CHAIN]
      if (chain < FIRST_CHAIN || current[CURRENT_CAUSE] === entry.context.ref) return
      entry.writeChain = capture.step(chain, table.write.number, layer.noteWrite) & CHAIN_BITS
      entry.writeRef = current[CURRENT_CAUSE]
      entry.writeTime = entry.activeAt = now()
    },

    /** @returns {number} of the span in which code runs now */
    spanNumber () {
      lookHere()
      return current[CURRENT_SPAN]
    },

    /**
     * Runs a function as part of a span, in a resource of its own.
     * @template T
     * @param {import('../spans/span').Span} next
     * @param {() => T} fn
     * @returns {T}
     */
    runInSpan (next, fn) {
      // Node aborts where an AsyncResource finds none (node#19859 and src/api/callback.cc)
      ensureHeadroom(ROOM_KB)
      const resource = new AsyncResource('Span')
      const ref = resource.asyncId() << 1
      const found = records.findRecord(ref)
      if (found === undefined || found.words[found.offset + CHAIN] === OWN_WORK_CHAIN) {
        return resource.runInAsyncScope(fn)
      }
      found.words[found.offset + SPAN] = next.seq
      const context = contextAt(ref)
      if (context?.ref === ref) found.words[found.offset + DETAIL] = next.seq
      if (context !== undefined) next.chain = context.chain
      const chain = found.words[found.offset + CHAIN]
      const cause = (found.words[found.offset + FLAGS] & PASSED) !== 0 ? found.words[found.offset + CAUSE] : ref
      try {
        return resource.runInAsyncScope(carrier.on ? () => carrier.run(chain, cause, next.seq, fn) : fn)
      } finally {
        lookHere()
        const span = current[CURRENT_SPAN]
        if (isTimed() && span !== timedLoop.spanNumber) timedLoop.switchTo(span, now())
      }
    },

    /** @param {Hook[]} hooks of users, in order */
    setUserHooks (hooks) {
      if (told !== undefined || hooks.length > 0) (told ??= createTold()).listen(hooks)
      layer.updateHooks()
    },

    /** There are hooks now, or none any more; or it matters who rejects, or does no longer. */
    updateHooks () {
      if (!enabled || (isTold === isHooked() && looksAtSettled === wantsSettled())) return
      uninstall()
      install()
    },

    /** @returns {Context | undefined} the running context */
    currentContext () {
      events.readSettlements()
      if (!enabled) return undefined
      lookHere()
      const chain = current[CURRENT_CHAIN]
      if (chain === NO_CHAIN) return undefined
      const context = contextOf(chain, current[CURRENT_CAUSE], current[CURRENT_SPAN])
      return context === OWN_WORK ? undefined : context
    },

    /** Is what runs longstack's own, or comes of it? */
    inOwnWork () {
      lookHere()
      return current[CURRENT_CHAIN] === OWN_WORK_CHAIN
    },

    /** Runs what is no part of the program, nor what comes of it. Guarded. @param {() => void} work */
    runUntraced: carrier.apart,

    /**
     * The context that was left last: queueMicrotask reports its errors only after its `after`.
     * @returns {Context | undefined}
     */
    lastExited: () => current[LEFT] === 0 ? undefined : contextAt(current[LEFT]),

    /** What runs from here on is not known: an error has ended a callback. */
    markUnknown: () => { if (allocationClock.isOn) allocationClock.mark(NO_CHAIN, 0, 0) },

    /** Had a timer an id before its present one? @param {object} timer */
    isReusedTimer: special.isReused,

    /** The executing resource. */
    executingResource: () => executionAsyncResource(),

    /** The step that runs: number of its chain, reference of its record. */
    currentStep () {
      lookHere()
      return { chain: current[CURRENT_CHAIN], ref: current[CURRENT_CAUSE], run: current[CURRENT_RUN] }
    }
  }
  return layer
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
