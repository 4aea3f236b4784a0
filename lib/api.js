'use strict'

// What users call: arguments are checked here, mistakes become errors with a code, and all work is done guarded,
// so that asking makes no events of its own. None of the methods needs `this`.

const guard = require('./context/guard')
const { compile } = require('./context/subsystems')
const { mistake, nearest } = require('./errors')
const { bind } = require('./hooks/async-hooks')
const { providers } = require('./node-objects')
const { environmentOptions, parseOptions } = require('./options')
const { createMethods } = require('./tracer/methods')

/**
 * @typedef {import('./options').Options} Options
 * @typedef {import('./stacks/chain').Hop} Hop
 * @typedef {import('./stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('./handles/why').Why} Why
 * @typedef {import('./hooks/native-hooks').NativeHooks} NativeHooks
 * @typedef {import('./tracer/stats').Stats} Stats
 * @typedef {import('./doctor').Diagnosis} Diagnosis
 * @typedef {import('./context/view').ContextView} ContextView
 * @typedef {import('./errors').LongstackError} LongstackError
 * @typedef {import('./spans/user-span').SpanHandle} SpanHandle
 * @typedef {import('./spans/span-record').SpanRecord} SpanRecord
 * @typedef {'warning' | 'span' | 'blocked'} Event
 * @typedef {(error: unknown, context: ContextView | undefined) => unknown} ErrorHandler `true` means handled
 *
 * @typedef {import('node:http').Server | import('node:https').Server | import('node:http2').Http2SecureServer} HttpServer that speaks HTTP/1
 * @typedef {(chunk: Buffer, socket: import('node:net').Socket) => Uint8Array | undefined | void} Transform
 *
 * @typedef {object} HookCallbacks
 * @property {(context: ContextView) => void} [init] a resource was made
 * @property {(context: ContextView) => void} [before] its callback is about to run
 * @property {(context: ContextView) => void} [after] its callback has run
 *
 * @typedef {object} Methods
 * @property {(given?: readonly string[] | Partial<Options>) => Trace} enable
 *   Starts tracing, or changes the options of a running trace; a filter such as ['TCP'], or options. What is not
 *   given is as the environment says (LONGSTACK, LONGSTACK_FRAMES …), else the default.
 *   Throws LONGSTACK_ERR_UNKNOWN_SUBSYSTEM, _INVALID_FILTER, _UNKNOWN_OPTION, _INVALID_OPTION, _INVALID_OPTIONS.
 * @property {() => Trace} disable
 *   Stops tracing and puts back everything that longstack set in the process. What is known stays known.
 * @property {() => ContextView | undefined} current the running context; undefined where nothing is known of it
 * @property {(target?: unknown) => Hop[]} chain
 *   The hops that led to a target, newest first. A target is an Error or anything with an async resource behind
 *   it: a socket, server, request, response, timer, promise, worker; none is the running context.
 *   Throws LONGSTACK_ERR_INVALID_TARGET.
 * @property {(target?: unknown) => string} stack the same as text: an error's whole stack, for other targets their hops
 * @property {(target: unknown) => Why} why
 *   Why a handle is there: what it is, who opened it, who uses it now, how long, how much. Throws LONGSTACK_ERR_INVALID_TARGET.
 * @property {(filter?: readonly string[]) => Why[]} handles
 *   What is open now, of the subsystems in the filter. Throws LONGSTACK_ERR_UNKNOWN_SUBSYSTEM, _INVALID_FILTER.
 * @property {() => Stats} stats figures about longstack itself
 * @property {() => Diagnosis} doctor
 *   What is in force and why, and what in this process stands in longstack's way; `text` is for people.
 * @property {(callbacks: HookCallbacks) => () => void} hook
 *   Registers callbacks for every resource of the filter. What they do is not traced; what they throw is reported
 *   once and harms nobody. Returns a remover. Throws LONGSTACK_ERR_INVALID_HOOK, _INVALID_HANDLER.
 * @property {() => NativeHooks} nativeHooks
 *   The same for C callbacks of another addon, which make no object: the address to give to it, and the text behind
 *   its stack numbers. See docs/native-hooks.md. Throws LONGSTACK_ERR_NOT_AVAILABLE where the native part does not load.
 * @property {(filter: readonly string[] | ErrorHandler, handler?: ErrorHandler) => () => void} onError
 *   Sees every error that escapes a traced asynchronous event, before the process's own handlers. `true` means
 *   handled, and the program goes on; anything else leaves Node's behaviour as it is. Returns a remover.
 *   Throws LONGSTACK_ERR_INVALID_HANDLER, _UNKNOWN_SUBSYSTEM, _INVALID_FILTER.
 * @property {(event: Event, listener: (event: any) => void) => () => void} on
 *   Listens to longstack itself: `warning` gets an Error with a LONGSTACK_WARN_ code, `span` the record of every span that
 *   ends (see SpanRecord). Returns a remover.
 *   Throws LONGSTACK_ERR_UNKNOWN_EVENT, _INVALID_HANDLER.
 * @property {{ <T>(name: string, fn: (span: SpanHandle) => T): T, <T>(name: string, attributes: Record<string, unknown>, fn: (span: SpanHandle) => T): T }} span
 *   Runs fn as a span of its own, inside of the running one, and returns what fn returns; for a promise, another one that
 *   settles like it when the span has ended. An error that fn throws or rejects with is the span's, and goes on. Where spans
 *   are off, fn just runs. Throws LONGSTACK_ERR_INVALID_SPAN.
 * @property {() => void} reopen
 *   Opens the files that spans go to anew, after they were renamed. SIGHUP does the same.
 * @property {<F extends (...args: any[]) => any>(fn: F) => F} bind
 *   Binds a function to the context of now, for code that keeps callbacks in queues of its own.
 *   Throws LONGSTACK_ERR_INVALID_HANDLER.
 * @property {(server: HttpServer, transform: Transform) => () => void} intercept
 *   Sees each chunk that comes in on the connections of a server, between socket and HTTP/1 parser, and may change it.
 *   A transform returns what goes on: bytes, none of them, or undefined for the chunk as it is; at the end of the input it is
 *   given an empty chunk, for what it held back. Several run in order. Works whether tracing is on or off. Returns a remover.
 *   See docs/intercept.md. Throws LONGSTACK_ERR_INVALID_SERVER, _INVALID_HANDLER.
 *
 * @typedef {Methods & { readonly enabled: boolean }} Trace `enabled`: whether tracing is on
 */

/** @type {Event[]} */
const events = ['warning', 'span', 'blocked']

/**
 * @param {import('./tracer').Tracer} tracer
 * @returns {Trace}
 */
function createApi (tracer) {
  const methods = createMethods(tracer)
  /** @type {Trace} */
  const trace = {
    enable (given) {
      tracer.apply(parseOptions(given, environmentOptions()))
      return trace
    },

    disable () {
      tracer.disable()
      return trace
    },

    get enabled () {
      return tracer.enabled()
    },

    current: () => tracer.enabled() ? methods.current() : undefined,

    chain: (target) => guard.run(() => {
      const hops = methods.queries(target).hopsOf(target, trace.chain)
      return hops.map(methods.queries().plain)
    }),

    stack: (target) => guard.run(() => methods.queries(target).stackText(target, trace.stack)),

    why: (target) => guard.run(() => methods.queries().why(target)),

    handles (filter) {
      const matches = compile(filter ?? ['*'], providers())
      return guard.run(() => methods.queries().handles(matches))
    },

    stats: () => methods.stats(),

    doctor: () => methods.doctor(),

    hook (callbacks) {
      if (typeof callbacks !== 'object' || callbacks === null) throw mistake('INVALID_HOOK', callbacks)
      const { init, before, after } = callbacks
      const hook = { init, before, after }
      const given = Object.entries(hook).filter(([, callback]) => callback !== undefined)
      if (given.length === 0) throw mistake('INVALID_HOOK', callbacks)
      for (const [name, callback] of given) {
        if (typeof callback !== 'function') throw mistake('INVALID_HANDLER', `The hook's ${name}`, callback)
      }
      return methods.addHook(hook)
    },

    nativeHooks: () => guard.run(methods.nativeHooks),

    onError (filter, handler) {
      const all = typeof filter === 'function' && handler === undefined
      const callback = all ? filter : handler
      if (typeof callback !== 'function') throw mistake('INVALID_HANDLER', 'The handler of trace.onError', callback)
      const matches = compile(all ? ['*'] : /** @type {string[]} */ (filter), providers())
      return methods.addHandler(matches, callback)
    },

    on (event, listener) {
      if (!events.includes(event)) throw mistake('UNKNOWN_EVENT', event, nearest(event, events))
      if (typeof listener !== 'function') throw mistake('INVALID_HANDLER', 'The listener of trace.on', listener)
      return methods.listen(event, listener)
    },

    span (/** @type {string} */ name, /** @type {any} */ attributes, /** @type {any} */ fn = attributes) {
      const given = fn === attributes ? {} : attributes
      if (typeof name !== 'string' || name === '') throw mistake('INVALID_SPAN', name)
      if (typeof given !== 'object' || given === null) throw mistake('INVALID_SPAN', given)
      if (typeof fn !== 'function') throw mistake('INVALID_SPAN', fn)
      return methods.span(name, given, fn)
    },

    reopen: () => methods.reopen(),

    intercept (server, transform) {
      if (typeof transform !== 'function') throw mistake('INVALID_HANDLER', 'The transform of trace.intercept', transform)
      return methods.intercept(server, transform, trace.intercept)
    },

    bind (fn) {
      if (typeof fn !== 'function') throw mistake('INVALID_HANDLER', 'The argument of trace.bind', fn)
      return bind(fn)
    }
  }
  return trace
}

module.exports = { createApi }
