'use strict'

// The conductor: joins the rooms, enables and disables them, and is the API. Data flows one way: hooks tell of
// resources → contexts → stacks and handles → views. Rooms get their neighbours from here as arguments.

const fs = require('node:fs')
const { v8StartupSnapshot } = snapshotApi()
const guard = require('./context/guard')
const { Context, stamp, settler, muted } = require('./context/context')
const { createCensus } = require('./context/census')
const { compile } = require('./context/subsystems')
const { createViews } = require('./context/view')
const { mistake, nearest } = require('./errors')
const { createAsyncLayer, providers, bind, now } = require('./hooks/async')
const { createChannelLayer } = require('./hooks/channels')
const { createFatalLayer } = require('./hooks/fatal')
const { createThreadLayer } = require('./hooks/threads')
const { createRegistry } = require('./handles/registry')
const { createReports, requestLabel } = require('./handles/report')
const { summary } = require('./views/handles')
const { defaults, fromEnvironment, parse } = require('./options')
const { createAttribution } = require('./stacks/attribution')
const { createCapture } = require('./stacks/capture')
const { createChain } = require('./stacks/chain')
const { createFormatter } = require('./stacks/formatter')
const { Stack, frameLines } = require('./stacks/frames')
const { mapFrame } = require('./stacks/source-maps')
const { captureInto } = require('./stacks/trace-limit')
const { text } = require('./views/text')

/**
 * @typedef {import('./options').Options} Options
 * @typedef {import('./hooks/async').Hook} Hook
 * @typedef {import('./stacks/chain').Hop} Hop
 * @typedef {import('./stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('./handles/report').Why} Why
 * @typedef {NonNullable<ReturnType<ReturnType<typeof createViews>['view']>>} ContextView one asynchronous step
 *
 * @typedef {object} Stats
 * @property {boolean} enabled
 * @property {string} engine `js` or `native`
 * @property {string} engineWhy why it is that one
 * @property {string} mode the mode in force: `full` or `light`
 * @property {string} modeWhy
 * @property {number} contexts held, estimated from a sample
 * @property {number} contextBytes
 * @property {number} stacks held
 * @property {number} stackBytes
 * @property {number} pending stacks not formatted yet
 * @property {number} budget bytes that contexts and stacks may take
 * @property {number} captured stacks taken
 * @property {number} hits formatted stacks that were known
 * @property {number} misses formatted stacks that were new
 * @property {number} dropped contexts or stacks let go before they were asked for
 * @property {number} handles open resources in the register
 */

const events = ['warning', 'span', 'blocked']

function createTracer () {
  /** @type {Options} */
  let options = defaults()
  let enabled = false
  let selected = compile(options.filter)
  /** @type {Array<Hook>} */
  let hooks = []
  /** @type {Array<{ matches: (type: string) => boolean, handler: Function }>} */
  let handlers = []
  /** @type {Map<string, Set<Function>>} */
  const listeners = new Map(events.map((name) => [name, new Set()]))
  /** @type {Set<string>} */
  const warned = new Set()
  let cut = 0
  /** @type {string | undefined} */
  let signal

  const registry = createRegistry()
  const census = createCensus()
  const formatter = createFormatter({ story })
  const { capture, why: engineWhy } = createCapture(options.capture, {
    plainly: (read) => formatter.plainly(read),
    options: () => options
  })

  /** @type {import('./hooks/async').Rooms} */
  const rooms = {
    wanted: (type) => selected(type),
    capture (context, above, promise) {
      census.count(context)
      capture.take(context, above, promise)
    },
    deep: (context) => chain.folded(context),
    full: () => census.bytes() + capture.stats().bytes > options.budget,
    opened: (context, resource) => {
      registry.opened(context, resource)
      if (context.type === 'WORKER') threads.starting(hops(async.current()))
    },
    opener: (asyncId) => registry.opener(asyncId),
    active: (asyncId, time) => registry.active(asyncId, time),
    made (context, resource) {
      if (context.type === 'TickObject') notePassed(resource)
    },
    connecting (context) {
      const entry = registry.get(context.triggerAsyncId)
      if (entry !== undefined) entry.remote ??= context.detail
    },
    turn (time) {
      capture.turn(time)
      if (!formatter.inForce()) formatter.enable()
    },
    listeners: hooks,
    tell
  }

  const async = createAsyncLayer(rooms)
  const threads = createThreadLayer(async.root)
  const attribution = createAttribution({ root: async.root, current: async.current, stackOf: capture.stackOf })
  const chain = createChain({
    stackOf: capture.stackOf,
    options: () => options,
    map: mapFrame,
    now,
    dropped: (count) => { cut += count }
  })
  const { hops } = chain
  const { view, unwrap } = createViews({ describe })
  const reports = createReports({ registry, hops, plain, stackOf: capture.stackOf, maker: (request) => stamp.read(request), now })
  const fatal = createFatalLayer({ escaped, handle })
  const channels = createChannelLayer({
    requested (request) {
      const context = new Context(0, 0, 'REQUEST', async.current(), now())
      capture.take(context, rooms.capture, false)
      stamp.write(request, context)
    },
    uses (socket, request) {
      const entry = registry.ofSocket(socket)
      if (entry === undefined) return
      entry.active = now()
      entry.use = { request: new WeakRef(request), label: requestLabel(request), context: stamp.read(request), over: false }
      uses.set(request, entry)
    },
    finished (request) {
      const entry = uses.get(request)
      if (entry?.use?.request.deref() !== request) return
      entry.active = now()
      entry.use.over = true
    },
    accepted: (socket) => registry.connected(registry.ofSocket(socket))
  })
  /** @type {WeakMap<object, import('./handles/registry').Entry>} */
  const uses = new WeakMap()

  /**
   * An error that Node's core hands to nextTick was just made there. Others may be old, and prove nothing.
   * @param {any} tick
   */
  function notePassed (tick) {
    const { args } = tick
    const context = async.current()
    if (!Array.isArray(args) || context === undefined) return
    for (const value of args) {
      if (typeof value === 'object' && value !== null && require('node:util').types.isNativeError(value)) attribution.passes(value, context)
    }
  }

  /**
   * What is appended to an error's stack.
   * @param {object} error
   * @param {NodeJS.CallSite[]} sites
   * @param {Function} above
   */
  function story (error, sites, above) {
    return guard.run(() => {
      const { context, origin } = attribution.attribute(error, sites, above)
      const own = new Stack(sites.join('\n')).frames
      const list = hops(context, { above: own, origin })
      told.set(error, list)
      return text(list)
    })
  }
  /** the hops of errors whose stack was formatted @type {WeakMap<object, PrintedHop[]>} */
  const told = new WeakMap()

  /** @param {unknown} error @param {boolean} rejected */
  function escaped (error, rejected) {
    const context = async.current()
    const left = async.left()
    if (context === undefined && left === undefined) return
    const resource = rejected && context !== undefined ? async.resource() : undefined
    const settledBy = resource === undefined ? undefined : settler.read(resource)
    attribution.escapes(error, {
      context: settledBy ?? context ?? /** @type {Context} */ (left),
      left,
      settled: settledBy !== undefined
    })
  }

  /** @param {unknown} error @returns {boolean} */
  function handle (error) {
    const context = async.current() ?? async.left()
    for (const { matches, handler } of handlers) {
      const match = matching(context, matches)
      if (match === null) continue
      try {
        if (handler(error, view(match)) === true) return true
      } catch (thrown) {
        warn('HANDLER', `A handler of trace.onError threw: ${brief(thrown)}`)
      }
    }
    return false
  }

  /**
   * The context of the filter: the failing one, or the one behind Node's own ticks ("error" events).
   * @param {Context | undefined} context
   * @param {(type: string) => boolean} matches
   * @returns {Context | undefined | null} null where the filter does not select it
   */
  function matching (context, matches) {
    for (let one = context; one !== undefined; one = one.parent) {
      if (matches(one.type)) return one
      const frames = capture.stackOf(one)?.frames ?? []
      if (one.type !== 'TickObject' || frames.some((frame) => frame.kind !== 'core')) return null
    }
    return matches('') ? context : null
  }

  /** @param {Hook} hook @param {'init' | 'before' | 'after'} stage @param {Context} context */
  function tell (hook, stage, context) {
    const callback = hook[stage]
    if (callback === undefined) return
    try {
      callback.call(hook, view(context))
    } catch (thrown) {
      warn('HOOK', `A callback of trace.hook threw: ${brief(thrown)}`)
    }
  }

  /**
   * Tells the listeners of `warning`, or stderr where there is none; each kind once.
   * @param {string} code
   * @param {string} message
   */
  function warn (code, message) {
    if (warned.has(code)) return
    warned.add(code)
    const error = Object.assign(new Error(message), { code: `LONGSTACK_WARN_${code}` })
    const heard = /** @type {Set<Function>} */ (listeners.get('warning'))
    if (heard.size === 0) return say(message)
    for (const listener of heard) {
      try {
        listener(error)
      } catch {}
    }
  }

  /** @param {Context} context @returns {Hop} */
  function describe (context) {
    const hop = guard.run(() => chain.describe(context))
    return plain(hop)
  }

  /**
   * @param {unknown} target
   * @param {Function} above
   * @returns {PrintedHop[]}
   */
  function hopsOf (target, above) {
    if (target === undefined) return hops(async.current(), { above: presentFrames(above) })
    if (typeof target !== 'object' || target === null) throw mistake('INVALID_TARGET', target)
    const inside = unwrap(target)
    if (inside !== undefined) return hops(inside)
    if (require('node:util').types.isNativeError(target)) return hopsOfError(target)
    if (target instanceof Promise) return hopsOfPromise(target)
    const { context } = reports.find(target)
    return hops(context)
  }

  /** @param {Error} error @returns {PrintedHop[]} */
  function hopsOfError (error) {
    if (!told.has(error)) void error.stack
    const list = told.get(error)
    if (list !== undefined) return list
    // It was formatted by somebody else, or before: only the reader is known.
    return hops(async.current(), { origin: 'reader' })
  }

  /** Who settled it, then who made it. @param {Promise<unknown>} promise @returns {PrintedHop[]} */
  function hopsOfPromise (promise) {
    const context = stamp.read(promise)
    const by = settler.read(promise)
    const made = hops(context === muted ? undefined : context)
    if (by === undefined) return made
    const [first, ...others] = hops(by)
    if (first === undefined) return made
    const list = [{ ...first, origin: /** @type {const} */ ('settled') }, ...others]
    return list.concat(made.filter((hop) => !list.some((one) => one.asyncId === hop.asyncId))).slice(0, options.depth)
  }

  /** @param {Function} above @returns {import('./stacks/frames').Frame[]} */
  function presentFrames (above) {
    const holder = /** @type {any} */ ({ __proto__: null })
    captureInto(holder, above, options.frames + 10)
    return new Stack(frameLines(formatter.plainly(() => holder.stack))).frames
  }

  function install () {
    async.enable()
    channels.enable()
    fatal.monitor()
    if (handlers.length > 0) fatal.intercept()
    if (!formatter.enable()) {
      warn('FROZEN', 'longstack: Error.prepareStackTrace cannot be set here; errors keep their short stack, trace.stack(error) still tells the chain.')
    }
    listenToSignal(options.signal)
  }

  /** @param {string | undefined} name */
  function listenToSignal (name) {
    if (signal === name) return
    if (signal !== undefined) process.off(signal, printHandles)
    signal = undefined
    if (name === undefined) return
    guard.run(() => process.on(name, printHandles))
    signal = name
  }

  function printHandles () {
    guard.run(() => say(summary(reports.handles(selected))))
  }

  const trace = {
    /**
     * Starts tracing, or changes the options of a running trace.
     * @param {readonly string[] | Partial<Options>} [given] a filter such as ['TCP'], or options
     * @returns {typeof trace}
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_UNKNOWN_SUBSYSTEM, _INVALID_FILTER, _UNKNOWN_OPTION, _INVALID_OPTION, _INVALID_OPTIONS
     */
    enable (given) {
      const next = parse(given, defaults())
      return apply(next)
    },

    /**
     * Stops tracing and puts back everything that longstack set in the process. What is known stays known.
     * @returns {typeof trace}
     */
    disable () {
      if (!enabled) return trace
      enabled = false
      async.disable()
      channels.disable()
      fatal.unmonitor()
      fatal.release()
      formatter.disable()
      listenToSignal(undefined)
      return trace
    },

    /** Whether tracing is on. @returns {boolean} */
    get enabled () {
      return enabled
    },

    /** The running context; undefined where nothing is known of it. @returns {ContextView | undefined} */
    current () {
      return enabled ? view(async.current()) : undefined
    },

    /**
     * The hops that led to a target, newest first.
     * @param {unknown} [target] an Error, or anything with an async resource behind it; default the running context
     * @returns {Hop[]}
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_INVALID_TARGET
     */
    chain (target) {
      return guard.run(() => hopsOf(target, trace.chain).map(plain))
    },

    /**
     * The same as text: an error's whole stack, for other targets their hops.
     * @param {unknown} [target]
     * @returns {string}
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_INVALID_TARGET
     */
    stack (target) {
      return guard.run(() => {
        const list = hopsOf(target, trace.stack)
        if (target === undefined) return [...presentFrames(trace.stack).filter((frame) => frame.kind !== 'core').map((frame) => `    at ${frame.text}`), text(list)].filter(Boolean).join('\n')
        if (!require('node:util').types.isNativeError(target)) return text(list)
        const shown = String(target.stack)
        return list.length === 0 || shown.includes('  ── ') ? shown : `${shown}\n${text(list)}`
      })
    },

    /**
     * Why a handle is there: what it is, who opened it, who uses it now, how long, how much.
     * @param {unknown} target a socket, server, request, timer, promise, worker …
     * @returns {Why}
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_INVALID_TARGET
     */
    why (target) {
      return guard.run(() => reports.why(target))
    },

    /**
     * What is open now.
     * @param {readonly string[]} [filter] default all
     * @returns {Why[]}
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_UNKNOWN_SUBSYSTEM, _INVALID_FILTER
     */
    handles (filter) {
      const matches = compile(filter ?? ['*'], providers())
      return guard.run(() => reports.handles(matches))
    },

    /**
     * Figures about longstack itself.
     * @returns {Stats}
     */
    stats () {
      const { captured, formatted, hits, dropped, stacks, bytes, pending } = capture.stats()
      return {
        enabled,
        engine: capture.name,
        engineWhy,
        mode: 'full',
        modeWhy: options.mode === 'full' ? 'asked for' : 'light needs an engine that this version does not have',
        contexts: census.held(),
        contextBytes: census.bytes(),
        stacks,
        stackBytes: bytes,
        pending,
        budget: options.budget,
        captured,
        hits,
        misses: formatted - hits,
        dropped: dropped + cut,
        handles: registry.all().length
      }
    },

    /**
     * Registers callbacks for every resource of the filter. What they do is not traced; what they throw is
     * reported once and harms nobody.
     * @param {{ init?: (context: ContextView) => void, before?: (context: ContextView) => void, after?: (context: ContextView) => void }} callbacks
     * @returns {() => void} removes them again
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_INVALID_HOOK, _INVALID_HANDLER
     */
    hook (callbacks) {
      if (typeof callbacks !== 'object' || callbacks === null) throw mistake('INVALID_HOOK', callbacks)
      const { init, before, after } = callbacks
      if (init === undefined && before === undefined && after === undefined) throw mistake('INVALID_HOOK', callbacks)
      for (const [name, callback] of Object.entries({ init, before, after })) {
        if (callback !== undefined && typeof callback !== 'function') throw mistake('INVALID_HANDLER', `The hook's ${name}`, callback)
      }
      const hook = { init, before, after }
      setHooks([...hooks, hook])
      return () => setHooks(hooks.filter((one) => one !== hook))
    },

    /**
     * Sees every error that escapes a traced asynchronous event, before the process's own handlers. `true` means
     * handled, and the program goes on; anything else leaves Node's behaviour as it is.
     * @param {readonly string[] | ((error: unknown, context: ContextView | undefined) => unknown)} filter subsystems, or the handler for all
     * @param {(error: unknown, context: ContextView | undefined) => unknown} [handler]
     * @returns {() => void} removes the handler again
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_INVALID_HANDLER, _UNKNOWN_SUBSYSTEM, _INVALID_FILTER
     */
    onError (filter, handler) {
      const [names, callback] = typeof filter === 'function' && handler === undefined ? [['*'], filter] : [filter, handler]
      if (typeof callback !== 'function') throw mistake('INVALID_HANDLER', 'The handler of trace.onError', callback)
      const entry = { matches: compile(/** @type {string[]} */ (names), providers()), handler: callback }
      handlers = [...handlers, entry]
      if (enabled) fatal.intercept()
      return () => {
        handlers = handlers.filter((one) => one !== entry)
        if (handlers.length === 0) fatal.release()
      }
    },

    /**
     * Listens to longstack itself: `warning` gets an Error with a LONGSTACK_WARN_ code.
     * @param {'warning' | 'span' | 'blocked'} event
     * @param {(event: any) => void} listener
     * @returns {() => void} removes the listener again
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_UNKNOWN_EVENT, _INVALID_HANDLER
     */
    on (event, listener) {
      const set = listeners.get(event)
      if (set === undefined) throw mistake('UNKNOWN_EVENT', event, nearest(String(event), events))
      if (typeof listener !== 'function') throw mistake('INVALID_HANDLER', 'The listener of trace.on', listener)
      set.add(listener)
      return () => { set.delete(listener) }
    },

    /**
     * Binds a function to the context of now, for code that keeps callbacks in queues of its own.
     * @template {(...args: any[]) => any} F
     * @param {F} fn
     * @returns {F}
     * @throws {import('./errors').LongstackError} LONGSTACK_ERR_INVALID_HANDLER
     */
    bind (fn) {
      if (typeof fn !== 'function') throw mistake('INVALID_HANDLER', 'What trace.bind binds', fn)
      return bind(fn)
    }
  }

  /** @param {Hook[]} next */
  function setHooks (next) {
    hooks = next
    rooms.listeners = next
  }

  /** @param {Options} next */
  function apply (next) {
    const compiled = compile(next.filter, providers())
    options = next
    selected = compiled
    async.refilter()
    if (enabled) {
      listenToSignal(next.signal)
      return trace
    }
    enabled = true
    // A hook that is on while a start-up snapshot is built aborts Node.
    if (v8StartupSnapshot?.isBuildingSnapshot()) v8StartupSnapshot.addDeserializeCallback(() => { if (enabled) install() })
    else install()
    return trace
  }

  /** The preload's way in: options from the environment, mistakes as one line each. */
  function register () {
    if (enabled) return trace
    const next = fromEnvironment(process.env, (error) => say(`longstack: ${error.message}`))
    if (unsafe()) say(`longstack: on Node ${process.version} a caught stack overflow is fatal while async hooks are on (CVE-2025-59466); update Node.`)
    return apply(next)
  }

  return { trace, register }
}

/** @param {PrintedHop} hop @returns {Hop} */
function plain ({ asyncId, triggerAsyncId, type, label, ageMs, repeats, origin, frames }) {
  return { asyncId, triggerAsyncId, type, label, ageMs, repeats, origin, frames }
}

/** @param {unknown} thrown */
function brief (thrown) {
  try {
    return String(/** @type {any} */ (thrown)?.message ?? thrown).split('\n', 1)[0].slice(0, 200)
  } catch {
    return 'a value that cannot be shown'
  }
}

/** One line on stderr, at once, without a stream of the program's. @param {string} line */
function say (line) {
  try {
    fs.writeSync(2, `${line}\n`)
  } catch {}
}

/** Versions on which an enabled hook makes a caught stack overflow fatal. */
function unsafe () {
  const [major, minor] = process.versions.node.split('.').map(Number)
  /** @type {Record<number, number>} */
  const safe = { 20: 20, 22: 22, 24: 13, 25: 3 }
  return major < 20 || major === 21 || major === 23 || minor < (safe[major] ?? 0)
}

function snapshotApi () {
  const v8 = /** @type {any} */ (require('node:v8'))
  return { v8StartupSnapshot: v8.startupSnapshot }
}

module.exports = { createTracer }
