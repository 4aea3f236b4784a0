'use strict'

// Who is given what in features that are off until an option, a listener or a call asks for them. Loaded with
// the first of them.

const { now } = require('../context/clock')
const guard = require('../context/guard')
const { Context, contextTag } = require('../context/context')
const { kindOf } = require('../context/kinds')
const { VARIABLE } = require('../hooks/threads')
const { handleOf, idOf, underlyingHandle } = require('../node-objects')
const { own } = require('../objects')
const { loadBinding } = require('../stacks/binding')

/** @typedef {import('./wiring').Wiring} Wiring */

/** Makes the room of spans. @param {Wiring} wiring */
function createSpanRecorder (wiring) {
  const { asyncLayer, events, settings, warnings } = wiring
  return require('../spans/recorder').createSpanRecorder({
    asyncLayer,
    loop: wiring.loopTime(),
    now,
    warn: warnings.warn,
    options: () => settings.options,
    listeners: wiring.spanListeners,
    failed: events.failed,
    stack: (chain) => wiring.queries().place(chain),
    pathOf: (span) => wiring.queries().waitSites().pathOf(span),
    siteOf: (chain) => wiring.queries().waitSites().siteOf(chain),
    errorStack: (error) => wiring.queries().errorStack(error),
    contextOfRequest: wiring.contextOfRequest,
    koaRoutes: wiring.loadKoaRoutes(),
    frameAt: (start, end) => wiring.blocked?.frameDuring(start, end),
    handlesOf,
    listenToRequests: (httpSpans, noteTimer) => listenToRequests(wiring, httpSpans, noteTimer)
  })
}

/**
 * Listens to Node's requests for the span recorder, and to timers that stay.
 * @param {Wiring} wiring
 * @param {import('../spans/http-spans').HttpSpans} httpSpans
 * @param {(timer: import('../handles/entry').Entry) => void} noteTimer
 * @returns {{ enable: () => void, disable: () => void }}
 */
function listenToRequests (wiring, httpSpans, noteTimer) {
  const { asyncLayer, channels, events, registry, settings, callbackListeners } = wiring
  const layer = require('../requests/layer').createRequestLayer({
    listener: { ...httpSpans, asyncIdsOf },
    callbackListeners,
    isSelected: wiring.isSelected,
    propagates: () => settings.options.propagate,
    spanOf: asyncLayer.spanOf,
    setSpan: asyncLayer.setSpan
  })
  const unsubscribe = channels.subscribe(layer.subscriptions)
  wiring.requests = layer
  events.tickScheduled = layer.ticked
  return {
    enable () {
      layer.enable()
      registry.onTimer = noteTimer
    },
    disable () {
      unsubscribe()
      layer.disable()
      callbackListeners.clear() // of connections that stay open: tracing may go on without spans
      registry.onTimer = undefined
      wiring.requests = events.tickScheduled = undefined
    }
  }
}

/** Returns a socket's own handle, and what lies below it under TLS. @param {object} socket */
function handlesOf (socket) {
  const handle = handleOf(socket)
  return [handle, underlyingHandle(handle)].filter((handle) => handle !== undefined)
}

/** Returns the async ids on which a socket runs: its own, and those of its handles. @param {object} socket */
function asyncIdsOf (socket) {
  const handle = handleOf(socket)
  const ids = [idOf(socket), handle && idOf(handle), handle && idOf(underlyingHandle(handle))]
  return [...new Set(ids.filter((id) => id !== undefined))]
}

/** Makes the detection of blocking callbacks. @param {Wiring} wiring */
function createBlockedCallbacks (wiring) {
  const { asyncLayer, events, formatter, settings, warnings } = wiring
  return require('../blocked/setup').createBlockedCallbacks({
    now,
    current: asyncLayer.currentContext,
    withPlainFormat: formatter.withPlainFormat,
    explain: (context, stack) => wiring.queries().blocked(context, stack),
    options: () => settings.options,
    warn: warnings.warn,
    listeners: wiring.blockedListeners,
    observers: wiring.blockedObservers,
    record: (event, callback) => wiring.spans?.recordBlocking(event, callback),
    safely: guard.createSafely(events.failed)
  })
}

/**
 * Has messages of the thread that made this one begin with the chain of their sender. Not where the program
 * can have sent or taken some before: another preload came first.
 * @param {Wiring} wiring
 */
function joinParentThread (wiring) {
  const preloads = own(process, '_preload_modules')
  const first = Array.isArray(preloads) ? own(preloads, '0') : undefined
  if (first !== undefined && !isRegister(first)) return
  guard.run(() => {
    try {
      const queries = wiring.queries()
      wiring.passing.add(queries.stopMessages)
      queries.watchParent()
    } catch {} // the tracer is of another version of longstack
  })
}

/** @param {unknown} preload */
function isRegister (preload) {
  return typeof preload === 'string' && /(longstack|lib)[\\/]register(\.js)?$/.test(preload)
}

/** Makes what passes chains to child processes. @param {Wiring} wiring */
function createChildProcessLayer (wiring) {
  const layer = require('../requests/child-processes').createChildProcesses({
    variable: VARIABLE,
    guarded (work) {
      if (guard.inOwnWork) return
      guard.run(() => {
        try {
          work()
        } catch {} // the stack may be full
      })
    },
    named: (handle, name) => setDetail(contextTag.read(handle), 'PROCESSWRAP', name),
    chainFor: (handle) => wiring.queries().passToProcess(contextTag.read(handle))
  })
  wiring.passing.add(layer.unwatch)
  return layer
}

/** Makes what records profiles. @param {Wiring} wiring */
function createProfileRecorder (wiring) {
  const { asyncLayer, channels, settings } = wiring
  const served = wiring.servedRequests()
  return require('../profile/recorder').createProfileRecorder({
    logSteps: asyncLayer.logSteps,
    routeOf: (request) => served.routeOf(request) ?? served.nameOf(request),
    watchResponses: () => channels.subscribe([['http.server.response.finish', served.answered]]),
    describe: (chain) => wiring.queries().describeChain(chain),
    lacks: () => profileLacks(settings)
  })
}

/**
 * Returns what a profile lacks under the options in force.
 * @param {import('../settings').Settings} settings
 * @returns {string[]}
 */
function profileLacks ({ options: { filter } }) {
  if (filter.length === 1 && filter[0] === '*') return []
  return [`The filter ${filter.join(',')} leaves resources out: what they run counts for the chain that ` +
    'made them.']
}

/** Makes what holds the transforms of trace.intercept. @param {Wiring} wiring */
function createIntercepts (wiring) {
  const { asyncLayer, channels, events, warnings } = wiring
  const intercepts = require('../intercept/servers').createIntercepts({
    warn: warnings.warn,
    failed: events.failed,
    named: nameOnHandle
  })
  channels.subscribe([['http.server.request.start', ({ socket }) => {
    setDetail(asyncLayer.currentContext(), 'HTTPINCOMINGMESSAGE', intercepts.names(socket))
  }]])
  return intercepts
}

/**
 * Lets a connection's own hop name its transforms.
 * @param {object} socket
 * @param {string | undefined} names
 */
function nameOnHandle (socket, names) {
  const handle = handleOf(socket)
  const context = handle === undefined ? undefined : contextTag.read(handle)
  if (handle !== undefined && context?.asyncId === idOf(handle)) setDetail(context, context?.type, names)
}

/** @param {Context | undefined} context @param {string | undefined} type @param {string | undefined} names */
function setDetail (context, type, names) {
  if (context !== undefined && context.type === type && context.detail !== names) context.detail = names
}

/** Makes the hooks of other addons. @param {Wiring} wiring */
function createNativeHooks (wiring) {
  const { capture } = wiring
  return require('../hooks/native-hooks').createNativeHooks({
    load: () => capture.binding() === undefined ? loadBinding() : { binding: capture.binding() },
    stack (id) {
      const stack = capture.stackById(id)
      if (stack === undefined) return undefined
      const holder = new Context(0, 0, kindOf('STACK', false), undefined, now())
      holder.stack = stack
      return guard.run(() => wiring.queries().lines(holder))
    }
  })
}

module.exports = {
  createBlockedCallbacks,
  createChildProcessLayer,
  createIntercepts,
  createNativeHooks,
  createProfileRecorder,
  createSpanRecorder,
  joinParentThread
}
