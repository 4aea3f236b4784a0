'use strict'

// The conductor: joins the rooms, enables and disables them. Data flows one way: hooks tell of resources ->
// contexts -> stacks and handles; what is asked goes to answers.js, which judges on the way out. Rooms get their
// neighbours from here as arguments.

const { executionAsyncId } = require('node:async_hooks')
const { isNativeError } = require('node:util').types
const { now } = require('./context/clock')
const guard = require('./context/guard')
const { Context, connect, contextAt, settlerOf, stamp, typeOfStep } = require('./context/context')
const { kindOf } = require('./context/kinds')
const records = require('./context/records')
const { createMaker } = require('./context/maker')
const { createSightings } = require('./context/sightings')
const { createAsyncLayer, providers } = require('./hooks/async')
const { createChannelLayer } = require('./hooks/channels')
const { createFatalLayer } = require('./hooks/fatal')
const { canBeLight, canLeavePromises } = require('./hooks/light')
const { createMarkers } = require('./hooks/markers')
const turns = require('./hooks/turns')
const { createRegistry } = require('./handles/registry')
const { handleOf, idOf, below } = require('./handles/inside')
const { defaults } = require('./options')
const { loadBinding } = require('./stacks/binding')
const { createCapture } = require('./stacks/capture')
const { createFormatter } = require('./stacks/formatter')
const { requireLoadingRoom } = require('./stacks/stack-room')
const { createWarnings, say, brief } = require('./warnings')

/**
 * @typedef {import('./options').Options} Options
 * @typedef {import('./hooks/async').Hook} Hook
 * @typedef {import('./hooks/native').NativeHooks} NativeHooks
 * @typedef {import('./api').ErrorHandler} ErrorHandler
 * @typedef {import('./stacks/chain').Hop} Hop
 * @typedef {import('./stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('./context/view').ContextView} ContextView
 * @typedef {import('./handles/report').Why} Why
 * @typedef {ReturnType<typeof createTracer>} Tracer
 *
 * @typedef {object} Stats
 * @property {boolean} enabled
 * @property {string} engine `js` or `native`
 * @property {string} engineWhy why it is that one
 * @property {string} clock `on` where the run that made an error is told by the time of its making, else `off`
 * @property {string} clockWhy
 * @property {string} mode the mode in force: `full` or `light`
 * @property {string} modeWhy
 * @property {boolean} errors errors get hops; false: `.stack` and `Error.prepareStackTrace` are left alone
 * @property {number} contexts steps of which all is known: those in the rings, and older ones that have not run yet
 * @property {number} contextBytes
 * @property {number} chains known: ways through the program
 * @property {number} stacks held
 * @property {number} stackBytes
 * @property {number} bytes of both
 * @property {number} pending always 0: no stack is kept unformatted
 * @property {number} budget bytes that contexts and stacks may take
 * @property {number} captured stacks taken
 * @property {number} hits stacks that were known, of those taken (native) or formatted (js)
 * @property {number} misses stacks that were new
 * @property {number} unstored stacks whose identity the native engine could not confirm, and took for real
 * @property {number} dropped hops lost: chains cut at their depth, promises past the budget
 * @property {number} handles open resources in the register
 * @property {{ open: number, ended: number, written: number, dropped: number, outputs: object[] } | undefined} spans where they are on: dropped could not be written
 * @property {string | undefined} fault the first defect of longstack itself that a hook met; please report it
 */

const CHAIN_BITS = 0xffffff // see stacks/capture.js
const TRIM_MS = 1000 // from one look at the budget to the next

/** @type {typeof import('./spans/identities') | undefined} */
let spanIdentities

/** Who spans are: loaded with the room of spans, before there is a number of one to ask for. */
function identities () {
  spanIdentities ??= require('./spans/identities')
  return spanIdentities
}

const selectsAll = () => true

/** Compiles a filter; that which selects all needs no table of subsystems. @param {readonly string[]} filter @returns {(type: string) => boolean} */
function filterOf (filter) {
  if (filter.length === 1 && filter[0] === '*') return selectsAll
  return require('./context/subsystems').compile(filter, providers())
}

function createTracer () {
  let options = defaults()
  let enabled = false
  let selected = filterOf(options.filter)
  let lost = 0
  /** @type {string | undefined} */
  let fault
  /** @type {Array<Hook>} */
  let hooks = []
  let mode = { light: false, why: 'not enabled yet' }
  /** can this Node do without promise hooks? @type {boolean | undefined} */
  let light
  /** @type {string | undefined} */
  let signal
  /** @type {Array<{ matches: (type: string) => boolean, handler: ErrorHandler }>} */
  let handlers = []
  /** @type {ReturnType<typeof import('./answers').createAnswers> | undefined} */
  let answers
  let askedAt = 0

  /** the room of spans, from the first time that somebody wants them @type {ReturnType<typeof createSpanRoom> | undefined} */
  let spans
  /** what listens to requests for it @type {ReturnType<typeof import('./hooks/requests').createRequestLayer> | undefined} */
  let requests
  /** @type {Set<(record: any) => void>} */
  const spanListeners = new Set()
  /** what trace.intercept set, likewise @type {ReturnType<typeof import('./hooks/intercept').createIntercepts> | undefined} */
  let intercepts
  /** what Koa says of routes, likewise @type {ReturnType<typeof import('./spans/frameworks').createKoa> | undefined} */
  let koaRoutes
  /** the room of long runs, likewise @type {import('./blocked/room').BlockedRoom | undefined} */
  let blocked
  /** @type {Set<(event: import('./blocked/blocked').BlockedEvent) => void>} */
  const blockedListeners = new Set()

  const warnings = createWarnings()
  const registry = createRegistry()
  const markers = createMarkers()
  const sightings = createSightings({ maker: createMaker(markers) })
  const formatter = createFormatter({ story, sight, internals: () => options.internals })
  const capture = createCapture({
    plainly: (read) => formatter.plainly(read),
    sitesOf: (read) => formatter.sitesOf(read),
    options: () => options,
    awaiting: () => !selected('PROMISE')
  })

  /** @type {ReturnType<typeof import('./hooks/native').createNativeHooks> | undefined} */
  let native

  /** Hooks of other addons, loaded with the first wish for any hook. */
  function useNative () {
    native ??= require('./hooks/native').createNativeHooks({
      load: () => capture.binding() === undefined ? loadBinding() : { binding: capture.binding() },
      stack (id) {
        const stack = capture.byId(id)
        if (stack === undefined) return undefined
        const holder = new Context(0, 0, kindOf('STACK', false), undefined, now())
        holder.stack = stack
        return guard.run(() => ask().lines(holder))
      }
    })
    return native
  }

  /** @type {import('./spans/loop-time').LoopTime | undefined} */
  let loopTime
  /** when to look at the budget next, ms */
  let trimAt = 0
  /** the addon counts the iterations of the event loop */
  let isCounting = false
  /** tracing was on once: there may be records */
  let isInstalled = false
  /** the first error finds everything loaded */
  let isWarm = false

  /** @type {Map<number, () => void>} */
  const watched = new Map()

  connect({
    chainAt: capture.chainAt,
    intern: capture.intern,
    spanAt: (number) => identities().spanAt(number),
    identityAt: (number) => identities().identityAt(number),
    routeOf: (ref) => served().routeOf(ref),
    latestId: executionAsyncId
  })

  /** Made with the first wish to time spans. */
  function loop () {
    loopTime ??= new (require('./spans/loop-time').LoopTime)(typeOfStep)
    return loopTime
  }

  /** @type {import('./hooks/async').Parts} */
  const parts = {
    wanted: (type) => selected(type),
    capture,
    loop,
    watched,
    markers,
    registry,
    canLeavePromises,
    opened (context, resource) {
      registry.opened(context, resource)
      requests?.opened(context)
      if (context.type === 'WORKER') ask().worker(context)
    },
    connecting (context) {
      const entry = registry.get(context.triggerAsyncId)
      if (entry === undefined || !context.type.endsWith('CONNECTWRAP')) return
      entry.remote ??= context.detail
      entry.context.detail ??= context.detail
      requests?.connecting(context, entry.resource.deref())
    },
    streamed: (stream, headers) => served().streamed(stream, headers),
    passed: (error, context) => sightings.passes(error, context),
    ticked: undefined,
    rejected (reason, context, promise) {
      if (typeof reason !== 'object' || reason === null) return sightings.rejectsValue(reason, context, promise)
      sightings.rejects(reason, context, promise)
      const { span } = context
      if (span !== undefined) spans?.rejected(reason, span)
    },
    turn (time) {
      registry.turn(time)
      sightings.turn()
      if (options.errors && !formatter.inForce()) formatter.enable()
      if (time < trimAt) return
      trimAt = time + TRIM_MS
      capture.trim()
      if (isWarm || !options.errors) return
      isWarm = true
      ask().warm()
      formatter.warm()
    },
    force: formatter.force,
    replaced: () => guard.run(formatter.enable),
    began: undefined,
    failed,
    tell,
    native: useNative,
    isNativeInUse: () => native !== undefined && native.inUse()
  }

  const async = createAsyncLayer(parts)
  const fatal = createFatalLayer({ escaped, handle })
  /** @type {import('./hooks/channels').ConnectionRooms | undefined} */
  let connections
  const channels = createChannelLayer({
    rooms () {
      if (connections !== undefined) return connections
      requireLoadingRoom()
      connections = require('./handles/uses').createUses({ registry, now: () => capture.clock[0], wanted: parts.wanted, touched: async.touched, request: contextOfRequest })
      return connections
    },
    watch: (enable) => registry.watch(capture.clock[0], enable),
    unwatch: registry.unwatch
  })

  /** what tells of the requests that a server got, from the first one on @type {ReturnType<typeof import('./hooks/served').createServedLayer> | undefined} */
  let servedLayer

  function served () {
    if (servedLayer !== undefined) return servedLayer
    requireLoadingRoom()
    servedLayer = require('./hooks/served').createServedLayer({
      serve: async.serve,
      cause: () => async.step().ref,
      registry,
      koa,
      routeOf (request) {
        const { expressRoute, routeText } = require('./spans/frameworks')
        return routeText(expressRoute(request) ?? koa().routeOf(request))
      }
    })
    return servedLayer
  }
  channels.add([
    ['http.server.request.start', (message) => served().started(message)],
    ['tracing:fastify.request.handler:start', (message) => served().routed(message)]
  ])

  /** Loaded with the first request. */
  function koa () {
    koaRoutes ??= require('./spans/frameworks').createKoa()
    return koaRoutes
  }

  /** Loaded with the first wish for spans. */
  function createSpanRoom () {
    return require('./spans/room').createSpanRoom({
      async,
      loop: loop(),
      now,
      warn: warnings.warn,
      options: () => options,
      listeners: spanListeners,
      failed,
      stack: (chain) => ask().place(chain),
      pathOf: (span) => ask().pathOf(span),
      errorStack: (error) => ask().errorStack(error),
      request: contextOfRequest,
      koa: koa(),
      at: (start, end) => blocked?.at(start, end),
      handlesOf: (socket) => [handleOf(socket), below(handleOf(socket))].filter((handle) => handle !== undefined),
      wires: listenToRequests
    })
  }

  /** @param {import('./spans/web').WebRooms} web @returns {{ use: () => void, rest: () => void }} */
  function listenToRequests (web) {
    const { createRequestLayer } = require('./hooks/requests')
    const layer = createRequestLayer({ rooms: { ...web, idsOf }, watched, wanted: parts.wanted, propagates: () => options.propagate, spanOf: async.spanOf, setSpan: async.setSpan })
    const unwire = channels.add(layer.wires)
    requests = layer
    parts.ticked = layer.ticked
    return {
      use: layer.use,
      rest () {
        unwire()
        layer.rest()
        requests = parts.ticked = undefined
      }
    }
  }

  /** Spans are made where they go somewhere. */
  function useSpans () {
    const wanted = enabled && (options.spans !== undefined || options.blocked !== undefined || spanListeners.size > 0)
    if (wanted) guard.run(() => (spans ??= createSpanRoom()).use(options.spans))
    else guard.run(() => spans?.rest())
  }

  /** Loaded with the first wish to see long runs. */
  function createBlockedRoom () {
    return require('./blocked/room').createBlockedRoom({
      now,
      current: async.current,
      plainly: formatter.plainly,
      explain: (context, stack) => ask().blocked(context, stack),
      options: () => options,
      warn: warnings.warn,
      listeners: blockedListeners,
      log: (event, run) => spans?.blocked(event, run)
    })
  }

  /** Long runs are watched where that is asked for. A filter in light mode hides runs. */
  function useBlocked () {
    const threshold = enabled ? options.blocked : undefined
    if (threshold === undefined && blocked === undefined) return
    guard.run(() => (blocked ??= createBlockedRoom()).use(threshold, mode.light && !providers().every((type) => type === 'PROMISE' || selected(type))))
    parts.began = blocked?.began()
    async.watch()
  }

  /** The async ids on which a socket runs: its own, and that of what lies below TLS. @param {object} socket */
  function idsOf (socket) {
    const handle = handleOf(socket)
    const all = [idOf(socket), handle && idOf(handle), handle && idOf(below(handle))]
    return [...new Set(all.filter((id) => id !== undefined))]
  }

  /**
   * The room of answers, loaded with the first question: what that takes makes nothing older.
   * @param {unknown} [target] what is asked about
   */
  function ask (target) {
    askedAt = now()
    if (target !== undefined && isNativeError(target)) sight(target)
    answers ??= require('./answers').createAnswers({
      async,
      capture,
      sightings,
      registry,
      plainly: formatter.plainly,
      readStack: formatter.readStack,
      isNodes: formatter.isNodes,
      options: () => options,
      now,
      askedAt: () => askedAt,
      enabled: () => enabled,
      dropped: (/** @type {number} */ count) => { lost += count },
      through: (socket) => intercepts?.through(socket) ?? []
    })
    return answers
  }

  /** Loaded with the first transform. */
  function createIntercepts () {
    const made = require('./hooks/intercept').createIntercepts({ warn: warnings.warn, failed, named: nameOnHandle })
    channels.add([['http.server.request.start', ({ socket }) => nameOn(async.current(), 'HTTPINCOMINGMESSAGE', made.names(socket))]])
    return made
  }

  /** A connection's own hop tells of its transforms. @param {object} socket @param {string | undefined} names */
  function nameOnHandle (socket, names) {
    const handle = handleOf(socket)
    const context = handle === undefined ? undefined : stamp.read(handle)
    if (handle !== undefined && context?.asyncId === idOf(handle)) nameOn(context, context?.type, names)
  }

  /** @param {Context | undefined} context @param {string | undefined} type @param {string | undefined} names */
  function nameOn (context, type, names) {
    if (context !== undefined && context.type === type && context.detail !== names) context.detail = names
  }

  /** A full stack can surface anywhere, and is the program's affair; all else is a defect, and must be seen. @param {any} error */
  function failed (error) {
    markers.forget()
    if (!(error instanceof RangeError)) fault ??= brief(error)
  }

  /** A request is no async resource: its context is the place that made it. @param {Function} above */
  function contextOfRequest (above) {
    const context = new Context(0, 0, kindOf('REQUEST', false), async.current(), now())
    context.chain = capture.step(async.step().chain, context.kind.number, above) & CHAIN_BITS
    context.spanNumber = async.spanNumber()
    return context
  }

  /** Looks at an error that is about to be formatted. @param {unknown} error */
  function sight (error) {
    try {
      if (typeof error === 'object' && error !== null) sightings.sight(error)
    } catch {} // the program's stack may be full here
  }

  /**
   * What is appended to an error's stack.
   * @param {object} error
   * @param {NodeJS.CallSite[]} sites
   */
  function story (error, sites) {
    return guard.run(() => ask().story(error, sites))
  }

  /** Notes the context of an error that nobody caught. @param {unknown} error @param {boolean} rejected */
  function escaped (error, rejected) {
    const present = async.current() ?? async.left() // a microtask's error is reported after its `after`
    // Node reports a rejection in the context of its promise.
    const settledBy = sightings.rejectionOfValue(error) ?? (rejected ? settlerOf(async.resource()) ?? rejecterOf(error) : undefined)
    const context = settledBy ?? present
    if (context !== undefined) sightings.escapes(error, { context, settled: settledBy !== undefined })
    async.lost()
    const span = context?.span
    if (span !== undefined) guard.run(() => spans?.exception(span, error))
  }

  /** @param {unknown} error @returns {Context | undefined} */
  const rejecterOf = (error) => typeof error === 'object' && error !== null ? sightings.rejection(error) : undefined

  /** Asks the handlers of trace.onError. @param {unknown} error @param {boolean} [fromPromise] @returns {boolean} */
  function handle (error, fromPromise = false) {
    const promise = fromPromise ? sightings.promiseOf(error) : 0
    const context = (promise === 0 ? undefined : contextAt(promise)) ?? async.current() ?? async.left()
    for (const { matches, handler } of handlers) {
      const match = ask().matching(context, matches)
      if (match === null) continue
      try {
        if (handler(error, ask().view(match)) === true) return true
      } catch (thrown) {
        warnings.warn('HANDLER', `a handler of trace.onError threw: ${brief(thrown)}`)
      }
    }
    return false
  }

  /** @param {Hook} hook @param {'init' | 'before' | 'after'} stage @param {Context} context */
  function tell (hook, stage, context) {
    const callback = hook[stage]
    if (callback === undefined) return
    try {
      callback(ask().view(context))
    } catch (thrown) {
      warnings.warn('HOOK', `a callback of trace.hook threw: ${brief(thrown)}`)
    }
  }

  /** Promise hooks are dear: they stay off where nobody wants them and Node can do without. @param {Options} next */
  function modeFor (next) {
    const asked = next.mode === 'light'
    if (!asked && selected('PROMISE')) return { light: false, why: 'asked for' }
    light ??= guard.run(canBeLight)
    if (!light) return { light, why: `${asked ? 'light was asked for' : 'the filter leaves promises out'}, but this Node cannot keep promise hooks off` }
    return { light, why: asked ? 'asked for' : 'the filter leaves promises out' }
  }

  /** Other options are in force. */
  function change () {
    const was = mode.light
    useEngine()
    mode = modeFor(options)
    if (mode.light === was) {
      async.refilter()
    } else {
      async.disable()
      async.enable(mode.light)
    }
    useErrors()
    listenToSignal(options.signal)
    useSpans()
    useBlocked()
  }

  /** Errors get hops, or are left alone. */
  function useErrors () {
    if (!options.errors) return formatter.disable()
    if (formatter.enable()) return
    warnings.warn('FROZEN', 'Error.prepareStackTrace cannot be set here; errors keep their short stack, trace.stack(error) tells the chain.')
  }

  /** Numbers of chains are those of one engine. */
  function useEngine () {
    const before = capture.name
    capture.use(options.capture)
    if (capture.name !== before && isInstalled) records.clear() // before that there are none, and to clear touches all their pages
    const isNative = capture.name === 'native'
    markers.use(isNative ? capture.binding()?.markers : undefined)
    if (isNative === isCounting) return
    isCounting = isNative
    if (!isNative) turns.stop()
    if (isNative && turns.start()) async.count(turns.counters, true)
    else async.count(new Uint32Array(2), false)
  }

  function install () {
    useEngine()
    isInstalled = true
    mode = modeFor(options)
    async.enable(mode.light)
    channels.enable()
    fatal.monitor()
    if (handlers.length > 0) fatal.intercept()
    useErrors()
    listenToSignal(options.signal)
    useSpans()
    useBlocked()
  }

  /** @param {string | undefined} name */
  function listenToSignal (name) {
    if (signal === name) return
    if (signal !== undefined) process.off(signal, printHandles)
    signal = name
    if (name !== undefined) guard.run(() => process.on(name, printHandles))
  }

  function printHandles () {
    guard.run(() => say(ask().summary(selected)))
  }

  return {
    enabled: () => enabled,
    ask,
    current: () => ask().view(async.current()),

    /** Puts options in force; turns tracing on. @param {Options} next */
    apply (next) {
      const compiled = filterOf(next.filter)
      options = next
      selected = compiled
      if (enabled) return change()
      enabled = true
      // A hook that is on while a start-up snapshot is built aborts Node.
      if (process.execArgv.some((flag) => flag.startsWith('--build-snapshot'))) {
        require('node:v8').startupSnapshot.addDeserializeCallback(() => { if (enabled) install() })
      } else {
        install()
      }
    },

    disable () {
      if (!enabled) return
      enabled = false
      useBlocked()
      useSpans()
      async.disable()
      if (isCounting) turns.stop()
      isCounting = false
      markers.use(undefined)
      async.count(new Uint32Array(2), false)
      channels.disable()
      koaRoutes?.rest()
      fatal.unmonitor()
      fatal.release()
      formatter.disable()
      listenToSignal(undefined)
    },

    /** @param {Hook} hook @returns {() => void} */
    addHook (hook) {
      hooks = [...hooks, hook]
      async.listen(hooks)
      return () => {
        hooks = hooks.filter((one) => one !== hook)
        async.listen(hooks)
      }
    },

    nativeHooks () {
      const handle = useNative().handle()
      async.rehook()
      return handle
    },

    /** @param {(type: string) => boolean} matches @param {ErrorHandler} handler @returns {() => void} */
    addHandler (matches, handler) {
      const entry = { matches, handler }
      handlers = [...handlers, entry]
      if (enabled) fatal.intercept()
      return () => {
        handlers = handlers.filter((one) => one !== entry)
        if (handlers.length === 0) fatal.release()
      }
    },

    /** @param {import('./api').Event} event @param {(event: any) => void} listener @returns {() => void} */
    listen (event, listener) {
      const listeners = event === 'warning' ? warnings.listeners : event === 'span' ? spanListeners : blockedListeners
      listeners.add(listener)
      if (event === 'span') useSpans()
      return () => {
        listeners.delete(listener)
        if (event === 'span') useSpans()
      }
    },

    /**
     * Runs a function as a span; without a place for spans to go it just runs.
     * @param {string} name
     * @param {Record<string, unknown>} attributes
     * @param {(span: import('./spans/handle').SpanHandle) => any} fn
     */
    span: (name, attributes, fn) => spans === undefined || !spans.on() ? fn(require('./spans/handle').nothing) : spans.span(name, attributes, fn),

    /** @param {object} server @param {import('./hooks/intercept-connection').Transform} transform @param {Function} above */
    intercept: (server, transform, above) => guard.run(() => {
      const [place] = ask().presentLines(above)
      return (intercepts ??= createIntercepts()).add(server, transform, place?.trim())
    }),

    /** Files are opened anew. */
    reopen: () => guard.run(() => spans?.reopen()),

    /** @returns {import('./doctor').Diagnosis} */
    doctor () {
      const stats = this.stats()
      return guard.run(() => require('./doctor').examine({ stats, filter: options.filter, formatter: formatter.holder() }))
    },

    /** @returns {Stats} */
    stats () {
      const { captured, hits, misses, stacks, chains, bytes, unstored, dropped } = capture.stats()
      const contextBytes = records.bytes()
      return {
        enabled,
        engine: capture.name,
        engineWhy: capture.why(),
        clock: markers.on ? 'on' : 'off',
        clockWhy: markers.why(),
        mode: mode.light ? 'light' : 'full',
        modeWhy: mode.why,
        errors: enabled && options.errors,
        contexts: records.held(),
        contextBytes,
        chains,
        stacks,
        stackBytes: bytes,
        bytes: contextBytes + bytes,
        pending: 0,
        budget: options.budget,
        captured,
        hits,
        misses,
        unstored,
        dropped: lost + dropped + records.lostRecords(),
        handles: registry.size(),
        spans: spans?.stats(),
        fault
      }
    }
  }
}

module.exports = { createTracer }
