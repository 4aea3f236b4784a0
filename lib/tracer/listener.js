'use strict'

// What is done when something happens: hooks/async-hooks.js reports resources, promises and callbacks, the
// formatter errors about to be printed, the layer of uncaught errors those that escape. Not on the hot path.

const guard = require('../context/guard')
const { contextAt, settlerOf } = require('../context/context')
const { ATTENTION, TIMED, current } = require('../context/current')
const { markWaits } = require('../context/records')
const { takeBackChain } = require('../hooks/threads')
const { handleOf } = require('../node-objects')
const { isAnyObject } = require('../objects')
const { ensureHeadroomToLoad } = require('../stacks/stack-headroom')
const { messageOf } = require('../warnings')

/**
 * @typedef {import('./wiring').Wiring} Wiring
 * @typedef {import('../context/context').Context} Context
 */

const TRIM_MS = 1000 // from one look at the budget to the next

/**
 * @param {Wiring} wiring
 * @returns {import('../hooks/async-hooks').Listener}
 */
function createEvents (wiring) {
  const { settings, capture, formatter, allocationClock, registry, observedErrors, warnings } = wiring
  /** when to look at the budget next, ms */
  let trimAt = 0

  return {
    opened (context, resource) {
      registry.opened(context, resource)
      wiring.requests?.opened(context)
      if (context.type === 'ZLIB' && (current[ATTENTION] & TIMED) !== 0) {
        require('../hooks/zlib-writes').watchZlibWrites(resource)
      }
      if (context.type !== 'WORKER') return
      warnings.share()
      wiring.queries().passToWorker(context, resource)
    },

    connectStarted (context) {
      const entry = registry.get(context.triggerAsyncId)
      if (entry === undefined || !context.type.endsWith('CONNECTWRAP')) return
      entry.isClient = true
      entry.remote ??= context.detail
      entry.context.detail ??= context.detail
      wiring.requests?.connecting(context, entry.resource.deref())
    },

    http2StreamStarted (stream, headers, session, time) {
      return wiring.servedRequests().streamed(stream, headers, session, time)
    },

    errorPassedToTick: (error, context) => observedErrors.noteHandOver(error, context),
    tickScheduled: undefined, // set while spans are on

    rejected (reason, context, promise) {
      if (!isAnyObject(reason)) return observedErrors.noteRejectedValue(reason, context, promise)
      observedErrors.noteRejection(reason, context, promise)
      const { span } = context
      if (span !== undefined) wiring.spans?.noteRejection(reason, span)
    },

    iterationStarted (time) {
      takeBackChain()
      registry.startIteration(time)
      markWaits()
      observedErrors.startIteration()
      const { errors } = settings.options
      if (settings.enabled && errors === true && !formatter.isInForce()) formatter.enable()
      formatter.realms.check(time)
      if (time < trimAt) return
      trimAt = time + TRIM_MS
      capture.trim()
      guard.run(() => wiring.spans?.sweep(time))
    },

    contextRan: formatter.realms.noteRun,
    formatterReplaced () {
      if (settings.enabled && settings.options.errors === true) guard.run(formatter.enable)
    },
    callbackStarted: undefined, // set while blocking callbacks are watched

    // A full stack can surface anywhere, and is the program's affair; all else is a defect, and must be seen.
    failed (error) {
      allocationClock.forget()
      if (error instanceof RangeError) return
      wiring.firstFault ??= { code: codeOf(error), message: messageOf(error) }
    },

    callHook (hook, stage, context) {
      const callback = hook[stage]
      if (callback === undefined) return
      try {
        callback(wiring.queries().view(context))
      } catch (thrown) {
        warnings.warn('HOOK', `a callback of trace.hook threw: ${messageOf(thrown)}`)
      }
    }
  }
}

/** @param {Wiring} wiring */
function createErrorEvents (wiring) {
  const { observedErrors, warnings } = wiring

  return {
    /** Looks at an error that is about to be formatted. @param {unknown} error */
    observe (error) {
      try {
        if (isAnyObject(error)) observedErrors.observe(error)
      } catch {} // the program's stack may be full here
    },

    /**
     * Returns what is appended to an error's stack.
     * @param {object} error
     * @param {NodeJS.CallSite[]} sites
     */
    report: (error, sites) => guard.run(() => wiring.queries().report(error, sites)),

    /** Notes the context of an uncaught error. @param {unknown} error @param {boolean} isRejection */
    noteEscaped (error, isRejection) {
      const { asyncLayer, spans } = wiring
      const present = presentContext()
      const isUnsure = isRejection && asyncLayer.missesSettled()
      // Node reports a rejection in the context of its promise.
      const rejecter = (isUnsure ? undefined : observedErrors.rejecterOfValue(error)) ??
        (isRejection ? settlerOf(asyncLayer.executingResource()) ?? rejecterOf(error) : undefined)
      const context = rejecter ?? (isUnsure ? undefined : present)
      if (context !== undefined) {
        observedErrors.noteEscape(error, { context, isRejection: rejecter !== undefined })
      }
      asyncLayer.markUnknown()
      const span = context?.span
      if (span !== undefined) guard.run(() => spans?.recordException(span, error))
      guard.run(() => wiring.errorPrinter?.passToParent(error))
    },

    /** Makes the text of an error that ends the process fit for a terminal, if there is one. */
    decorateFatal: (/** @type {unknown} */ error, /** @type {boolean} */ fromPromise) => guard.run(() => {
      const { decorateFatal } = require('../format/fatal')
      decorateFatal(error, fromPromise, wiring.formatter.withPlainFormat, wiring.errorPrinter?.longStackOf)
    }),

    /**
     * Asks the handlers of trace.onError.
     * @param {unknown} error
     * @param {boolean} [fromPromise]
     * @returns {boolean} whether one of them handled it
     */
    handle (error, fromPromise = false) {
      const promise = fromPromise ? observedErrors.promiseOf(error) : 0
      const context = (promise === 0 ? undefined : contextAt(promise)) ?? presentContext()
      for (const entry of wiring.errorHandlers) {
        const { matches, handler } = entry
        if (!wiring.errorHandlers.includes(entry)) continue // a handler before it has removed it
        const match = wiring.queries().matching(context, matches)
        if (match === null) continue
        try {
          if (handler(error, wiring.queries().view(match)) === true) return true
        } catch (thrown) {
          warnings.warn('HANDLER', `a handler of trace.onError threw: ${messageOf(thrown)}`)
        }
      }
      return false
    }
  }

  /** A microtask's error is reported after its `after`. @returns {Context | undefined} */
  function presentContext () {
    return wiring.asyncLayer.currentContext() ?? wiring.asyncLayer.lastExited()
  }

  /** @param {unknown} error @returns {Context | undefined} */
  function rejecterOf (error) {
    return isAnyObject(error) ? observedErrors.rejecterOf(error) : undefined
  }
}

/** @param {any} error @returns {string} its code, or the name of its class */
function codeOf (error) {
  try {
    return String(error?.code ?? error?.name ?? typeof error).slice(0, 100)
  } catch {
    return 'unknown'
  }
}

/**
 * Returns what is done with messages of Node's channels, whatever the options.
 * @param {Wiring} wiring
 * @returns {Array<[string, (message: any) => void]>}
 */
function createSubscriptions (wiring) {
  /** @type {ReturnType<typeof import('../requests/child-processes').createChildProcesses> | undefined} */
  let childProcesses

  return [
    ['http.server.request.start', (message) => wiring.servedRequests().started(message)],
    ['tracing:fastify.request.handler:start', (message) => wiring.servedRequests().routed(message)],
    ['worker_threads', ({ worker }) => {
      const queries = wiring.queries()
      wiring.passing.add(queries.stopMessages)
      queries.watchWorker(worker, handleOf(worker))
    }],
    ['child_process', (message) => {
      ensureHeadroomToLoad()
      childProcesses ??= require('./features').createChildProcessLayer(wiring)
      childProcesses.constructed(message.process)
    }]
  ]
}

module.exports = { createErrorEvents, createEvents, createSubscriptions }
