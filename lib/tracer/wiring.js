'use strict'

// Creates the parts and passes each its neighbours. Data flows one way: hooks report resources -> contexts ->
// stacks and handles; questions go to queries.js. What recording needs is created at once; every other part
// is undefined until it is first needed, and its file is loaded then.

const { isNativeError } = require('node:util').types
const { now } = require('../context/clock')
const { Context, connectSource, typeOfStep } = require('../context/context')
const { kindOf } = require('../context/kinds')
const { createMakerLookup } = require('../attribution/maker')
const { CHAIN_BITS } = require('../context/records')
const { createObservedErrors } = require('../attribution/observed-errors')
const { createAsyncLayer } = require('../hooks/async-hooks')
const { createChannelLayer } = require('../requests/channels')
const { createUncaughtLayer } = require('../hooks/uncaught')
const { createAllocationClock } = require('../attribution/allocation-clock')
const { Registry } = require('../handles/registry')
const { Listeners } = require('../listeners')
const capture = require('../stacks/capture')
const formatter = require('../stacks/formatter')
const { ensureHeadroomToLoad } = require('../stacks/stack-headroom')
const { settings } = require('../settings')
const { createWarnings } = require('../warnings')
const { createErrorEvents, createEvents, createSubscriptions } = require('./listener')

/**
 * @typedef {object} ErrorHandlerEntry
 * @property {(type: string) => boolean} matches the filter that it was registered with
 * @property {import('../api').ErrorHandler} handler
 *
 * @typedef {ReturnType<typeof import('./queries').createQueries>} Queries
 * @typedef {ReturnType<typeof import('../spans/recorder').createSpanRecorder>} SpanRecorder
 * @typedef {ReturnType<typeof import('../requests/layer').createRequestLayer>} RequestLayer
 * @typedef {ReturnType<typeof import('../requests/served-requests').createServedRequests>} ServedRequests
 * @typedef {ReturnType<typeof import('../intercept/servers').createIntercepts>} Intercepts
 * @typedef {ReturnType<typeof import('../hooks/native-hooks').createNativeHooks>} NativeHooks
 * @typedef {ReturnType<typeof import('../spans/frameworks').createKoaRoutes>} KoaRoutes
 * @typedef {import('../requests/channels').ConnectionUses} ConnectionUses
 * @typedef {import('../spans/loop-time').LoopTime} LoopTime
 */

class Wiring {
  // Created at once.
  /** @type {ReturnType<typeof createWarnings>} */
  warnings = createWarnings()
  /** @type {Registry} */
  registry = new Registry()
  /** @type {ReturnType<typeof createAllocationClock>} */
  allocationClock = createAllocationClock()
  /** @type {ReturnType<typeof createObservedErrors>} */
  observedErrors
  formatter = formatter
  capture = capture
  /** @type {ReturnType<typeof createAsyncLayer>} */
  asyncLayer
  /** @type {ReturnType<typeof createUncaughtLayer>} */
  uncaughtLayer
  /** @type {ReturnType<typeof createChannelLayer>} */
  channels

  // Created when an option, a listener or a call first needs them.
  /** Makes spans and passes them to sinks and listeners. @type {SpanRecorder | undefined} */
  spans
  /** Reports requests to the span recorder, while it is on. @type {RequestLayer | undefined} */
  requests
  /** Reads the routes of Koa. @type {KoaRoutes | undefined} */
  koaRoutes
  /** @type {import('../blocked/setup').BlockedCallbacks | undefined} */
  blocked
  /** @type {ReturnType<typeof import('../format/printed-errors').createErrorPrinter> | undefined} */
  errorPrinter
  /** @type {ReturnType<typeof import('../profile/recorder').createProfileRecorder> | undefined} */
  profiles
  /** End what passes chains to other threads and processes. @type {Set<() => void>} */
  passing = new Set()
  /** Holds the transforms of trace.intercept. @type {Intercepts | undefined} */
  intercepts

  // Created by the method of the same name.
  /** @type {Queries | undefined} */
  #queries
  /** @type {LoopTime | undefined} */
  #loopTime
  /** @type {ServedRequests | undefined} */
  #servedRequests
  /** @type {ConnectionUses | undefined} */
  #connectionUses
  /** @type {NativeHooks | undefined} */
  #nativeHooks

  /** Handlers of trace.onError; replaced, never changed. @type {ErrorHandlerEntry[]} */
  errorHandlers = []
  /** @type {Listeners<any>} */
  spanListeners = new Listeners()
  /** @type {Listeners<import('../blocked/blocking-callback').BlockedEvent>} */
  blockedListeners = new Listeners()
  /** those of longstack itself @type {import('../blocked/setup').Observers} */
  blockedObservers = { ms: undefined, listeners: new Listeners(), apply () {} }
  /**
   * Called when a resource's callback begins and ends, by async id, while spans are timed.
   * @type {Map<number, () => void>}
   */
  callbackListeners = new Map()
  /** directories of the copies of the package, that of this one first @type {Set<string>} */
  copies = new Set()

  /** when the present query began, ms of the clock */
  queriedAt = 0
  /** hops that chains were cut by */
  droppedHops = 0
  /**
   * the first defect of longstack itself that a hook met
   * @type {{ code: string, message: string } | undefined}
   */
  firstFault

  settings = settings

  constructor () {
    /** Returns whether the filter selects a type of resource. @type {(type: string) => boolean} */
    this.isSelected = (type) => settings.isSelected(type)
    this.observedErrors = createObservedErrors({ maker: createMakerLookup(this.allocationClock) })
    const errors = createErrorEvents(this)
    formatter.setReporter(errors)
    this.observe = errors.observe
    this.connectContexts()
    this.events = createEvents(this)
    this.asyncLayer = createAsyncLayer({
      isSelected: this.isSelected,
      capture: this.capture,
      loopTime: () => this.loopTime(),
      callbackListeners: this.callbackListeners,
      allocationClock: this.allocationClock,
      registry: this.registry,
      installedFormatter: formatter.installed,
      nativeHooks: () => this.nativeHooks(),
      areNativeHooksInUse: () => this.#nativeHooks !== undefined && this.#nativeHooks.inUse()
    }, this.events)
    this.uncaughtLayer = createUncaughtLayer({
      escaped: errors.noteEscaped,
      hasHandlers: () => this.errorHandlers.length > 0,
      handle: errors.handle,
      fatal: errors.decorateFatal,
      addsHops: () => settings.options.errors === 'print'
    })
    this.channels = this.createChannels()
  }

  /** Lets contexts read the chains and spans of this thread. */
  connectContexts () {
    connectSource({
      chainAt: this.capture.chainAt,
      intern: this.capture.intern,
      spanAt: (number) => loadIdentities().spanAt(number),
      identityAt: (number) => loadIdentities().identityAt(number),
      routeOf: (ref) => this.servedRequests().routeOf(ref),
      isAnswered: (ref) => this.servedRequests().isAnswered(ref),
      lastAsks: () => this.registry.lastAsks()
    })
  }

  /** @returns {ReturnType<typeof createChannelLayer>} */
  createChannels () {
    const { capture, registry } = this
    const channels = createChannelLayer({
      uses: () => this.connectionUses(),
      watch: (enable) => registry.watch(capture.clock[0], enable),
      unwatch: () => registry.unwatch()
    })
    channels.subscribe(createSubscriptions(this))
    return channels
  }

  /**
   * Returns what answers queries, loaded with the first one. Ages are as of the call: loading adds nothing.
   * @param {unknown} [target] an object that the query is for: if it is an error, it is observed first
   * @returns {Queries}
   */
  queries (target) {
    this.queriedAt = now()
    if (target !== undefined && isNativeError(target)) this.observe(target)
    this.#queries ??= this.createQueries()
    return this.#queries
  }

  /** @returns {Queries} */
  createQueries () {
    const { asyncLayer, capture, formatter, registry, settings, observedErrors } = this
    return require('./queries').createQueries({
      asyncLayer,
      capture,
      observedErrors,
      registry,
      withPlainFormat: formatter.withPlainFormat,
      readStack: formatter.readStack,
      usesNodeFormatter: formatter.usesNodeFormatter,
      options: () => settings.options,
      settings,
      queriedAt: () => this.queriedAt,
      enabled: () => settings.enabled,
      dropped: (/** @type {number} */ count) => { this.droppedHops += count },
      through: (socket) => this.intercepts?.through(socket) ?? []
    })
  }

  /**
   * Returns what notes who uses a connection, loaded with the first message for it.
   * @returns {ConnectionUses}
   */
  connectionUses () {
    if (this.#connectionUses !== undefined) return this.#connectionUses
    ensureHeadroomToLoad()
    this.#connectionUses = require('../handles/connection-uses').createConnectionUses({
      registry: this.registry,
      now: () => this.capture.clock[0],
      isSelected: this.isSelected,
      noteTraffic: this.asyncLayer.noteTraffic,
      asks: this.asyncLayer.asks,
      contextOfRequest: this.contextOfRequest
    })
    return this.#connectionUses
  }

  /**
   * Returns what notes the requests that servers get, loaded with the first of them.
   * @returns {ServedRequests}
   */
  servedRequests () {
    if (this.#servedRequests !== undefined) return this.#servedRequests
    ensureHeadroomToLoad()
    const { asyncLayer, registry } = this
    this.#servedRequests = require('../requests/served-requests').createServedRequests({
      enterRequest: asyncLayer.enterRequest,
      currentRef: () => asyncLayer.currentStep().ref,
      registry,
      koaRoutes: () => this.loadKoaRoutes(),
      routeOf: (request) => this.loadKoaRoutes().routeTextOf(request)
    })
    return this.#servedRequests
  }

  /** Loads what reads the routes of Koa, with the first request. @returns {KoaRoutes} */
  loadKoaRoutes () {
    this.koaRoutes ??= require('../spans/frameworks').createKoaRoutes()
    return this.koaRoutes
  }

  /** Returns what times spans, loaded with the first of them. @returns {LoopTime} */
  loopTime () {
    this.#loopTime ??= new (require('../spans/loop-time').LoopTime)(typeOfStep)
    return this.#loopTime
  }

  /** Returns the hooks of other addons, loaded with the first hook. @returns {NativeHooks} */
  nativeHooks () {
    this.#nativeHooks ??= require('./features').createNativeHooks(this)
    return this.#nativeHooks
  }

  /**
   * Creates a context for a request, which is no async resource: with the stack of the call that made it.
   * @param {Function} above frames start below this function
   * @returns {Context}
   */
  contextOfRequest = (above) => {
    const { asyncLayer, capture } = this
    const context = new Context(0, 0, kindOf('REQUEST', false), asyncLayer.currentContext(), now())
    context.chain = capture.step(asyncLayer.currentStep().chain, context.kind.number, above) & CHAIN_BITS
    context.spanNumber = asyncLayer.spanNumber()
    return context
  }
}

/** @type {typeof import('../spans/identities') | undefined} */
let identities

/** Loads the register of spans; before it is loaded no span has a number to look up. */
function loadIdentities () {
  identities ??= require('../spans/identities')
  return identities
}

module.exports = { Wiring }
