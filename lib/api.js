'use strict'

// The public object. Checks arguments, throws errors with a code, and runs all work guarded, so that a call
// creates no events of its own. No method needs `this`. docs/api.md is generated from these comments (npm
// run docs).

const { AsyncResource } = require('node:async_hooks')
const { types } = require('node:util')
const { observeQuietly } = require('./attribution/observed-errors')
const { addHandler } = require('./attribution/uncaught')
const { listeners: blockedListeners } = require('./blocked/wanted')
const { startQuery } = require('./core/clock')
const guard = require('./core/guard')
const { compile } = require('./subsystems')
const { mistake, nearest } = require('./errors')
const { currentContext } = require('./core/current-step')
const { changeState } = require('./listeners')
const { providers } = require('./node-objects')
const { isAnyObject } = require('./objects')
const { environmentOptions, parseOptions } = require('./options')
const { settings } = require('./settings')
const spans = require('./spans/index')
const formatter = require('./stacks/formatter')
const tracer = require('./tracer')
const { listeners: warningListeners, messageOf, warn } = require('./warnings')

/**
 * @typedef {import('./options').Options} Options
 * @typedef {import('./stacks/chain').Hop} Hop
 * @typedef {import('./stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('./handles/why').Why} Why
 * @typedef {import('./handles/snapshots').Snapshot} Snapshot
 * @typedef {import('./handles/snapshots').NewHandle} NewHandle
 * @typedef {import('./hooks/native-hooks').NativeHooks} NativeHooks
 * @typedef {import('./stats').Stats} Stats
 * @typedef {import('./metrics/figures').Metrics} Metrics
 * @typedef {import('./doctor').Diagnosis} Diagnosis
 * @typedef {import('./format/context-view').ContextView} ContextView
 * @typedef {import('./errors').LongstackError} LongstackError
 * @typedef {import('./spans/index').SpanHandle} SpanHandle
 * @typedef {import('./encoding/span-form').SpanRecord} SpanRecord
 * @typedef {import('./blocked/blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {import('./profile/profile').Profile} Profile
 * @typedef {import('./handles/pending').Pending} Pending
 * @typedef {import('./handles/pending').PendingWaits} PendingWaits
 * @typedef {import('./handles/present-request').PresentRequest} PresentRequest
 *
 * @typedef {'warning' | 'span' | 'blocked'} Event
 *
 * @typedef {(error: unknown, context: ContextView | undefined) => unknown} ErrorHandler
 *   Receives an uncaught error and the context that it escaped from. Returns `true` if it handled the error.
 *
 * @typedef {import('node:http').Server | import('node:https').Server | import('node:http2').Http2SecureServer
 *   } HttpServer a server that speaks HTTP/1
 *
 * @typedef {(chunk: Buffer, socket: import('node:net').Socket) => Uint8Array | undefined | void} Transform
 *   Returns the bytes that replace the chunk (possibly none), or undefined to pass the chunk on unchanged.
 *
 * @typedef {object} HookCallbacks
 * @property {(context: ContextView) => void} [init] called when a resource is created
 * @property {(context: ContextView) => void} [before] called before the resource's callback runs
 * @property {(context: ContextView) => void} [after] called after the resource's callback has run
 *
 * @typedef {Partial<Omit<Options, 'filter'>> & { filter?: string | readonly string[] }} EnableOptions
 *   The filter is an array of names, or a string of comma-separated names.
 *
 * @typedef {object} Methods
 * @property {(options?: readonly string[] | EnableOptions) => Trace} enable
 *   Starts tracing, or changes the options while tracing is on. Takes options or a filter such as `['TCP']`.
 *   Options that are left out come from the environment (`LONGSTACK`, `LONGSTACK_FRAMES` …), or else have
 *   their default. Throws LONGSTACK_ERR_UNKNOWN_SUBSYSTEM, LONGSTACK_ERR_INVALID_FILTER,
 *   LONGSTACK_ERR_UNKNOWN_OPTION, LONGSTACK_ERR_INVALID_OPTION, LONGSTACK_ERR_INVALID_OPTIONS.
 * @property {() => Trace} disable
 *   Stops tracing and restores everything that longstack changed in the process. Recorded contexts can still
 *   be queried.
 * @property {() => ContextView | undefined} current
 *   Returns the running context, or undefined if tracing is off or the context is unknown.
 * @property {() => PresentRequest | undefined} request
 *   Returns the name of the server request that the caller runs in, for log lines, and the ids of its span if
 *   spans are on. Returns undefined outside of requests, while tracing is off, and in callbacks of a client
 *   connection, which several requests may share.
 * @property {(target?: unknown) => Hop[]} chain
 *   Returns the hops that led to a target, newest first. A target is an Error, or an object with an async
 *   resource behind it: a socket, server, request, response, timer, promise or worker. The default is the
 *   running context. Throws LONGSTACK_ERR_INVALID_TARGET.
 * @property {(target?: unknown) => string} stack
 *   Returns the chain as text: the whole stack of an error, or the hops of any other target. Throws
 *   LONGSTACK_ERR_INVALID_TARGET.
 * @property {(target: unknown) => Why} why
 *   Describes a handle: its type, who opened it, who uses it now, its age, and how much data it has carried.
 *   `console.log` and template strings print the report as text. Throws LONGSTACK_ERR_INVALID_TARGET.
 * @property {(filter?: readonly string[]) => Why[]} handles
 *   Describes all open handles, or those that the filter selects. Throws LONGSTACK_ERR_UNKNOWN_SUBSYSTEM,
 *   LONGSTACK_ERR_INVALID_FILTER.
 * @property {(options?: { olderThanMs?: number }) => Pending} pending
 *   Reports unsettled promises that an `await` or a `then` is waiting for, grouped by the place that waits,
 *   most frequent first. With `olderThanMs`, reports only those that have waited at least that long.
 *   `console.log` and template strings print the report as text. If awaits are unknown (promises are filtered
 *   out, or tracing is off), the array is empty and its property `note` gives the reason. See
 *   docs/handles.md. Throws LONGSTACK_ERR_INVALID_PENDING, LONGSTACK_ERR_UNKNOWN_PENDING_OPTION.
 * @property {() => Snapshot} snapshot
 *   Takes a snapshot of the open handles, for `trace.diff` and `trace.assertNoLeaks`. A snapshot has no
 *   properties and keeps no handle alive.
 * @property {(before: Snapshot) => NewHandle[]} diff
 *   Reports the handles that are open now and were not in the snapshot, which must be of this thread, with
 *   their growth per minute. Throws LONGSTACK_ERR_INVALID_SNAPSHOT.
 * @property {(before: Snapshot) => void} assertNoLeaks
 *   Throws an `Error` with the code `ERR_LONGSTACK_LEAK` if `trace.diff(before)` contains files, or handles
 *   that keep the process alive. `message` lists them, and `handles` holds them as data. Throws
 *   LONGSTACK_ERR_INVALID_SNAPSHOT.
 * @property {() => Stats} stats
 *   Returns statistics about longstack itself, which `console.log` prints as text.
 * @property {() => Metrics} metrics
 *   Returns metrics of this thread for dashboards: event loop delay, requests in flight, request latency,
 *   open handles by opener, and awaits by place. Counters, histograms and delays start with the first call.
 *   While tracing is off there are none. See docs/metrics.md.
 * @property {() => Diagnosis} doctor
 *   Reports which settings are in force and why, and the problems of this process; `console.log` prints its
 *   `text`.
 * @property {(callbacks: HookCallbacks) => () => void} hook
 *   Registers callbacks for every resource that the filter selects. Work in the callbacks is not traced;
 *   exceptions are caught and reported once. Returns a function that removes them. Throws
 *   LONGSTACK_ERR_INVALID_HOOK, LONGSTACK_ERR_INVALID_HANDLER.
 * @property {() => NativeHooks} nativeHooks
 *   Gives another addon the events of `trace.hook` as C callbacks, without an object each. Returns the
 *   address to pass to that addon, and the text behind its stack numbers. See docs/native-hooks.md. Throws
 *   LONGSTACK_ERR_NOT_AVAILABLE if longstack's own addon does not load.
 * @property {(filter: readonly string[] | ErrorHandler, handler?: ErrorHandler) => () => void} onError
 *   Registers a handler for every error that escapes a traced asynchronous event. It runs before the
 *   process's own handlers. If it returns `true`, the program continues; otherwise Node does what it does
 *   without longstack. Returns a function that removes the handler. Throws LONGSTACK_ERR_INVALID_HANDLER,
 *   LONGSTACK_ERR_UNKNOWN_SUBSYSTEM, LONGSTACK_ERR_INVALID_FILTER.
 * @property {(event: Event, listener: (event: any) => void) => () => void} on
 *   Listens to events of longstack itself: `warning` passes an Error with a LONGSTACK_WARN_ code, `span` the
 *   `SpanRecord` of every span that ends, and `blocked` a `BlockedEvent`. Returns a function that removes the
 *   listener. Throws LONGSTACK_ERR_UNKNOWN_EVENT, LONGSTACK_ERR_INVALID_HANDLER.
 * @property {{
 *   <T>(name: string, fn: (span: SpanHandle) => T): T,
 *   <T>(name: string, attributes: Record<string, unknown>, fn: (span: SpanHandle) => T): T
 * }} span
 *   Runs `fn` in a new child span of the running one, and returns its result. If the result is a promise,
 *   returns another promise that settles the same way once the span has ended. An error that `fn` throws or
 *   rejects with is recorded and passed on. If spans are off, just calls `fn`. Throws
 *   LONGSTACK_ERR_INVALID_SPAN.
 * @property {(options?: { seconds?: number, samples?: boolean }) => Promise<Profile>} profile
 *   Profiles the asynchronous time of this thread for `seconds` (default 5, at most 1800): how often each
 *   chain ran, how long it ran, and how long it waited. With `samples` (default true), V8's sampling profiler
 *   adds the CPU time. Resolves earlier if the program has nothing left to do, or tracing is disabled. Does
 *   not keep the process alive. See docs/profile.md. Rejects with LONGSTACK_ERR_INVALID_PROFILE,
 *   LONGSTACK_ERR_UNKNOWN_PROFILE_OPTION, LONGSTACK_ERR_PROFILE_RUNS, LONGSTACK_ERR_NOT_ENABLED.
 * @property {<F extends (...args: any[]) => any>(fn: F) => F} bind
 *   Binds a function to the current context, for code that keeps callbacks in its own queues. Throws
 *   LONGSTACK_ERR_INVALID_HANDLER.
 * @property {(server: HttpServer, transform: Transform) => () => void} intercept
 *   Passes each chunk that arrives on a server's connections through a transform, between socket and HTTP/1
 *   parser. At the end of the input, the transform receives an empty chunk, so that it can flush buffered
 *   bytes. Several transforms run in order. Works whether tracing is on or off. Returns a function that
 *   removes the transform. See docs/intercept.md. Throws LONGSTACK_ERR_INVALID_SERVER,
 *   LONGSTACK_ERR_INVALID_HANDLER.
 *
 * @typedef {Methods & { readonly enabled: boolean }} Trace `enabled`: whether tracing is on
 */

/** @type {Event[]} */
const events = ['warning', 'span', 'blocked']

const stages = /** @type {const} */ (['init', 'before', 'after'])
const MAX_PROFILE_SECONDS = 1800

/** hooks of trace.hook, in order; replaced, never mutated @type {import('./hooks/user-hooks').Hook[]} */
let hooks = []

/**
 * Runs a query of the program: ages are computed as of now, and an error target is observed first.
 * @template T
 * @param {() => T} work
 * @param {unknown} [target] subject of the query
 * @returns {T}
 */
function answer (work, target) {
  return guard.run(() => {
    startQuery()
    if (types.isNativeError(target)) observeQuietly(target)
    return work()
  })
}

/** @type {Trace} */
const trace = {
  enable (options) {
    tracer.apply(parseOptions(options, environmentOptions()))
    return trace
  },

  disable () {
    tracer.disable()
    return trace
  },

  get enabled () {
    return settings.enabled
  },

  current: () => settings.enabled ? require('./format/context-view').view(currentContext()) : undefined,

  request: () => settings.enabled ? guard.run(presentRequest) : undefined,

  chain: (target) => answer(() => require('./handles/chain-of').chainOf(target, trace.chain), target),

  stack: (target) => answer(() => require('./handles/chain-of').stackOf(target, trace.stack), target),

  why: (target) => answer(() => require('./handles/why').why(target)),

  handles (filter) {
    const matches = compile(filter ?? ['*'], providers())
    return answer(() => require('./handles/why').handles(matches))
  },

  pending: (options) => answer(() => require('./handles/pending').pending(checkPending(options))),

  snapshot: () => answer(() => require('./handles/snapshots').take()),

  diff (before) {
    const snapshot = checkSnapshot('trace.diff', before)
    return answer(() => require('./handles/snapshots').diff(snapshot))
  },

  assertNoLeaks (before) {
    checkSnapshot('trace.assertNoLeaks', before)
    const { createLeakError, isLeaking, leakMessage } = require('./handles/snapshots')
    const leaks = trace.diff(before).filter(isLeaking)
    if (leaks.length === 0) return
    throw createLeakError(guard.run(() => leakMessage(leaks)), leaks, trace.assertNoLeaks)
  },

  stats: () => guard.run(() => require('./stats').readStats()),

  metrics: () => answer(() => require('./metrics/figures').readMetrics()),

  doctor () {
    const { filter } = settings.options
    const facts = { stats: trace.stats(), filter, copies: [...tracer.copies] }
    return guard.run(() => require('./doctor').examine({ ...facts, formatter: formatter.inForce() }))
  },

  hook (callbacks) {
    const hook = reportingHook(checkHook(callbacks))
    const { setListeners } = require('./hooks/user-hooks')
    const setHooks = (/** @type {typeof hooks} */ next) => changeState(() => setListeners(hooks = next))
    setHooks([...hooks, hook])
    return () => setHooks(hooks.filter((other) => other !== hook))
  },

  nativeHooks: () => guard.run(() => require('./hooks/user-hooks').shareNative()),

  onError (filter, handler) {
    const hasFilter = typeof filter !== 'function' || handler !== undefined
    const callback = checkFunction('The handler of trace.onError', hasFilter ? handler : filter)
    const matches = compile(hasFilter ? /** @type {string[]} */ (filter) : ['*'], providers())
    return addHandler(matches, callback)
  },

  on (event, listener) {
    if (!events.includes(event)) throw mistake('UNKNOWN_EVENT', event, nearest(event, events))
    return listen(event, checkFunction('The listener of trace.on', listener))
  },

  span (/** @type {string} */ name, /** @type {any} */ attributes, /** @type {any} */ fn = attributes) {
    const checkedAttributes = fn === attributes ? {} : attributes
    if (typeof name !== 'string' || name === '') throw mistake('INVALID_SPAN', name)
    if (typeof checkedAttributes !== 'object' || checkedAttributes === null) {
      throw mistake('INVALID_SPAN', checkedAttributes)
    }
    if (typeof fn !== 'function') throw mistake('INVALID_SPAN', fn)
    const recorder = spans.recorder()
    return recorder?.isEnabled() === true ? recorder.span(name, checkedAttributes, fn) : fn(spans.noSpan)
  },

  async profile (options) {
    const checkedOptions = checkProfile(options)
    if (!settings.enabled) throw mistake('NOT_ENABLED', 'trace.profile')
    return guard.run(() => tracer.recordProfile(checkedOptions))
  },

  intercept (server, transform) {
    checkFunction('The transform of trace.intercept', transform)
    return guard.run(() => require('./intercept/servers').intercept(server, transform, trace.intercept))
  },

  bind (fn) {
    checkFunction('The argument of trace.bind', fn)
    return AsyncResource.bind(fn, fn.name || 'trace.bind')
  }
}

function presentRequest () {
  const context = currentContext()
  if (context !== undefined && !context.folded) require('./stacks/loop-folding').foldLoops(context)
  return require('./handles/present-request').requestOf(context)
}

/**
 * Adds a listener for an event of longstack itself.
 * @param {Event} event
 * @param {(event: any) => void} listener
 * @returns {() => void} removes it
 */
function listen (event, listener) {
  const listeners = { warning: warningListeners, span: spans.listeners, blocked: blockedListeners }[event]
  const change = (/** @type {'add' | 'delete'} */ name) => {
    if (event !== 'span') return listeners[name](listener)
    spans.recorder()?.handOn() // spans that have ended belong to the listeners so far
    listeners[name](listener)
    changeState(spans.applySpans)
  }
  change('add')
  return () => { if (listeners.has(listener)) change('delete') }
}

/**
 * Returns a hook that passes context views to users' callbacks, and reports what these throw.
 * @param {HookCallbacks} callbacks
 */
function reportingHook (callbacks) {
  /** @type {import('./hooks/user-hooks').Hook} */
  const hook = {}
  for (const stage of stages) {
    const callback = callbacks[stage]
    if (callback === undefined) continue
    hook[stage] = (context) => {
      try {
        callback(/** @type {ContextView} */ (require('./format/context-view').view(context)))
      } catch (thrown) {
        warn('HOOK', `a callback of trace.hook threw: ${messageOf(thrown)}`)
      }
    }
  }
  return hook
}

/**
 * @param {unknown} options
 * @returns {{ seconds: number, samples: boolean }}
 * @throws {LongstackError}
 */
function checkProfile (options) {
  const { seconds = 5, samples = true } = checkNames('PROFILE', ['seconds', 'samples'], options)
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= MAX_PROFILE_SECONDS)) {
    throw mistake('INVALID_PROFILE', 'seconds', seconds, `a number above 0, at most ${MAX_PROFILE_SECONDS}`)
  }
  if (typeof samples !== 'boolean') throw mistake('INVALID_PROFILE', 'samples', samples, 'true or false')
  return { seconds, samples }
}

/**
 * @param {unknown} options
 * @returns {{ olderThanMs: number }}
 * @throws {LongstackError}
 */
function checkPending (options) {
  const { olderThanMs = 0 } = checkNames('PENDING', ['olderThanMs'], options)
  if (typeof olderThanMs !== 'number' || !(olderThanMs >= 0)) {
    throw mistake('INVALID_PENDING', 'olderThanMs', olderThanMs, 'a number of ms, at least 0')
  }
  return { olderThanMs }
}

/**
 * @param {'PROFILE' | 'PENDING'} call
 * @param {string[]} names of its options
 * @param {unknown} options
 * @returns {any} the same options, or an empty object
 * @throws {LongstackError}
 */
function checkNames (call, names, options = {}) {
  if (!isAnyObject(options)) throw mistake(`INVALID_${call}`, 'options', options, 'an object')
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined) throw mistake(`UNKNOWN_${call}_OPTION`, unknown, nearest(unknown, names))
  return options
}

/**
 * @template {Function | undefined} F
 * @param {string} name for the message
 * @param {F} value
 * @returns {NonNullable<F>}
 * @throws {LongstackError}
 */
function checkFunction (name, value) {
  if (typeof value !== 'function') throw mistake('INVALID_HANDLER', name, value)
  return value
}

/**
 * @param {string} name of the method
 * @param {unknown} value
 * @returns {import('./handles/snapshots').Snapshot}
 * @throws {LongstackError}
 */
function checkSnapshot (name, value) {
  if (!require('./handles/snapshots').isSnapshot(value)) throw mistake('INVALID_SNAPSHOT', name, value)
  return value
}

/**
 * @param {HookCallbacks} callbacks
 * @returns {HookCallbacks} a copy
 * @throws {LongstackError}
 */
function checkHook (callbacks) {
  if (typeof callbacks !== 'object' || callbacks === null) throw mistake('INVALID_HOOK', callbacks)
  const { init, before, after } = callbacks
  const copy = { init, before, after }
  if (stages.every((stage) => copy[stage] === undefined)) throw mistake('INVALID_HOOK', callbacks)
  for (const stage of stages) {
    if (copy[stage] !== undefined) checkFunction(`The hook's ${stage}`, copy[stage])
  }
  return copy
}

module.exports = { trace }
