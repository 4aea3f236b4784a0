'use strict'

// Who is given what. Data flows one way: hooks report resources -> contexts -> stacks and handles; questions
// go to answers.js, which judges on the way out. Rooms get their neighbours from here as arguments. What
// recording needs is made at once; every other room is a field that is undefined until it is first needed,
// and its file is loaded then.

const { executionAsyncId } = require('node:async_hooks')
const { isNativeError } = require('node:util').types
const { now } = require('../context/clock')
const { Context, connect, typeOfStep } = require('../context/context')
const { kindOf } = require('../context/kinds')
const { createMakerLookup } = require('../attribution/maker')
const { CHAIN_BITS } = require('../context/records')
const { createObservedErrors } = require('../attribution/observed-errors')
const { createAsyncLayer } = require('../hooks/async-hooks')
const { createChannelLayer } = require('../requests/channels')
const { createUncaughtLayer } = require('../hooks/uncaught')
const { createAllocationClock } = require('../attribution/allocation-clock')
const { Registry } = require('../handles/registry')
const { createCapture } = require('../stacks/capture')
const { createFormatter } = require('../stacks/formatter')
const { ensureHeadroomToLoad } = require('../stacks/stack-headroom')
const { createWarnings } = require('../warnings')
const { createErrorEvents, createEvents } = require('./listener')

/**
 * @typedef {object} Settings what is in force
 * @property {import('../options').Options} options
 * @property {boolean} enabled
 * @property {(type: string) => boolean} isSelected the filter
 * @property {{ light: boolean, code: import('../reasons').ModeCode }} mode
 *
 * @typedef {object} ErrorHandlerEntry
 * @property {(type: string) => boolean} matches the filter that it was registered with
 * @property {import('../api').ErrorHandler} handler
 *
 * @typedef {ReturnType<typeof import('./queries').createQueries>} Queries
 * @typedef {ReturnType<typeof import('../spans/recorder').createSpanRecorder>} SpanRecorder
 * @typedef {ReturnType<typeof import('../requests/http1').createRequestLayer>} RequestLayer
 * @typedef {ReturnType<typeof import('../requests/served-requests').createServedRequests>} ServedRequests
 * @typedef {ReturnType<typeof import('../intercept/servers').createIntercepts>} Intercepts
 * @typedef {ReturnType<typeof import('../hooks/native-hooks').createNativeHooks>} NativeHooks
 * @typedef {ReturnType<typeof import('../spans/frameworks').createKoaRoutes>} KoaRoutes
 * @typedef {import('../requests/channels').ConnectionUses} ConnectionRooms
 * @typedef {import('../blocked/setup').BlockedCallbacks} BlockedRoom
 * @typedef {import('../spans/loop-time').LoopTime} LoopTime
 */

class Wiring {
  // Made at once.
  /** @type {ReturnType<typeof createWarnings>} */
  warnings = createWarnings()
  /** @type {Registry} */
  registry = new Registry()
  /** @type {ReturnType<typeof createAllocationClock>} */
  markers = createAllocationClock()
  /** @type {ReturnType<typeof createObservedErrors>} */
  observedErrors
  /** @type {ReturnType<typeof createFormatter>} */
  formatter
  /** @type {ReturnType<typeof createCapture>} */
  capture
  /** @type {ReturnType<typeof createAsyncLayer>} */
  async
  /** @type {ReturnType<typeof createUncaughtLayer>} */
  fatal
  /** @type {ReturnType<typeof createChannelLayer>} */
  channels

  // Made when first needed.
  /** Answers questions. @type {Queries | undefined} */
  answers
  /** Makes spans and hands them on. @type {SpanRecorder | undefined} */
  spans
  /** Times them. @type {LoopTime | undefined} */
  loopTime
  /** Listens to requests for them, while they are on. @type {RequestLayer | undefined} */
  requests
  /** Reports the requests that servers get. @type {ServedRequests | undefined} */
  servedLayer
  /** Reads the routes of Koa. @type {KoaRoutes | undefined} */
  koaRoutes
  /** Notes who uses a connection. @type {ConnectionRooms | undefined} */
  connections
  /** Watches for blocking callbacks. @type {BlockedRoom | undefined} */
  blocked
  /** Holds the transforms of trace.intercept. @type {Intercepts | undefined} */
  intercepts
  /** Calls the hooks of other addons. @type {NativeHooks | undefined} */
  native

  /** Handlers of trace.onError; replaced, never changed. @type {ErrorHandlerEntry[]} */
  errorHandlers = []
  /** @type {Set<(record: any) => void>} */
  spanListeners = new Set()
  /** @type {Set<(event: import('../blocked/blocking-callback').BlockedEvent) => void>} */
  blockedListeners = new Set()
  /** Called when a resource has run, by async id, while spans are timed. @type {Map<number, () => void>} */
  watched = new Map()

  /** when the present question was asked, ms of the clock */
  askedAt = 0
  /** hops that chains were cut by */
  droppedHops = 0
  /** the first defect of longstack itself that a hook met @type {{ code: string, message: string } | undefined} */
  firstFault

  /** @param {Settings} settings */
  constructor (settings) {
    this.settings = settings
    /** Does the filter select a type of resource? @type {(type: string) => boolean} */
    this.isWanted = (type) => settings.isSelected(type)
    this.observedErrors = createObservedErrors({ maker: createMakerLookup(this.markers) })
    const errors = createErrorEvents(this)
    const formatter = createFormatter({
      report: errors.report,
      observe: errors.observe,
      internals: () => settings.options.internals
    })
    this.formatter = formatter
    this.observe = errors.observe
    this.capture = createCapture({
      withPlainFormat: (read) => formatter.withPlainFormat(read),
      withCallSites: (read) => formatter.withCallSites(read),
      options: () => settings.options,
      includesAwaiting: () => !settings.isSelected('PROMISE')
    })
    this.connectContexts()
    this.events = createEvents(this)
    this.async = createAsyncLayer({
      wanted: this.isWanted,
      capture: this.capture,
      loop: () => this.loop(),
      watched: this.watched,
      markers: this.markers,
      registry: this.registry,
      installed: formatter.installed,
      needsRejecters: () => settings.options.errors || this.spans?.isEnabled() === true,
      native: () => this.nativeHooks(),
      isNativeInUse: () => this.native !== undefined && this.native.inUse()
    }, this.events)
    this.fatal = createUncaughtLayer({ escaped: errors.noteEscaped, handle: errors.handle })
    this.channels = this.createChannels()
  }

  /** Contexts are read from the chains and spans of this thread. */
  connectContexts () {
    connect({
      chainAt: this.capture.chainAt,
      intern: this.capture.intern,
      spanAt: (number) => loadIdentities().spanAt(number),
      identityAt: (number) => loadIdentities().identityAt(number),
      routeOf: (ref) => this.served().routeOf(ref),
      latestId: executionAsyncId
    })
  }

  /** @returns {ReturnType<typeof createChannelLayer>} */
  createChannels () {
    const { capture, registry } = this
    const channels = createChannelLayer({
      uses: () => this.connectionRooms(),
      watch: (enable) => registry.watch(capture.clock[0], enable),
      unwatch: () => registry.unwatch()
    })
    channels.subscribe([
      ['http.server.request.start', (message) => this.served().started(message)],
      ['tracing:fastify.request.handler:start', (message) => this.served().routed(message)]
    ])
    return channels
  }

  /**
   * Returns the room of answers, loaded with the first question. Ages are as of then: loading adds nothing.
   * @param {unknown} [target] what is asked about
   * @returns {Queries}
   */
  queries (target) {
    this.askedAt = now()
    if (target !== undefined && isNativeError(target)) this.observe(target)
    this.answers ??= this.createAnswers()
    return this.answers
  }

  /** @returns {Queries} */
  createAnswers () {
    const { async, capture, formatter, registry, settings, observedErrors } = this
    return require('./queries').createQueries({
      async,
      capture,
      observedErrors,
      registry,
      withPlainFormat: formatter.withPlainFormat,
      readStack: formatter.readStack,
      usesNodeFormatter: formatter.usesNodeFormatter,
      options: () => settings.options,
      now,
      askedAt: () => this.askedAt,
      enabled: () => settings.enabled,
      dropped: (/** @type {number} */ count) => { this.droppedHops += count },
      through: (socket) => this.intercepts?.through(socket) ?? []
    })
  }

  /** Returns the room of connections, loaded with the first message for it. @returns {ConnectionRooms} */
  connectionRooms () {
    if (this.connections !== undefined) return this.connections
    ensureHeadroomToLoad()
    this.connections = require('../handles/connection-uses').createConnectionUses({
      registry: this.registry,
      now: () => this.capture.clock[0],
      wanted: this.isWanted,
      touched: this.async.touched,
      request: this.contextOfRequest
    })
    return this.connections
  }

  /** Returns the room of requests that servers get, loaded with the first of them. @returns {ServedRequests} */
  served () {
    if (this.servedLayer !== undefined) return this.servedLayer
    ensureHeadroomToLoad()
    const { async, registry } = this
    this.servedLayer = require('../requests/served-requests').createServedRequests({
      serve: async.serve,
      cause: () => async.step().ref,
      registry,
      koa: () => this.koa(),
      routeOf: (request) => {
        const { expressRoute, routeText } = require('../spans/frameworks')
        return routeText(expressRoute(request) ?? this.koa().routeOf(request))
      }
    })
    return this.servedLayer
  }

  /** Returns what reads the routes of Koa, loaded with the first request. @returns {KoaRoutes} */
  koa () {
    this.koaRoutes ??= require('../spans/frameworks').createKoaRoutes()
    return this.koaRoutes
  }

  /** Returns what times spans, loaded with the first of them. @returns {LoopTime} */
  loop () {
    this.loopTime ??= new (require('../spans/loop-time').LoopTime)(typeOfStep)
    return this.loopTime
  }

  /** Returns the hooks of other addons, loaded with the first hook. @returns {NativeHooks} */
  nativeHooks () {
    this.native ??= require('./features').createNativeHooks(this)
    return this.native
  }

  /**
   * Makes a context for a request, which is no async resource: the place that made it.
   * @param {Function} above frames start below this function
   * @returns {Context}
   */
  contextOfRequest = (above) => {
    const { async, capture } = this
    const context = new Context(0, 0, kindOf('REQUEST', false), async.current(), now())
    context.chain = capture.step(async.step().chain, context.kind.number, above) & CHAIN_BITS
    context.spanNumber = async.spanNumber()
    return context
  }
}

/** @type {typeof import('../spans/identities') | undefined} */
let identities

/** Loaded with the room of spans, before there is a number of a span to ask for. */
function loadIdentities () {
  identities ??= require('../spans/identities')
  return identities
}

module.exports = { Wiring }
