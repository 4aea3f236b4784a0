'use strict'

// What the methods of the public object do once api.js has checked their arguments. Loaded with it: a program
// that only has longstack preloaded does without.

const guard = require('../context/guard')
const { mistake } = require('../errors')
const { changeState } = require('../listeners')

/** @typedef {import('../hooks/async-hooks').Hook} Hook */

/** @param {import('../tracer').Tracer} tracer */
function createMethods ({ wiring, applySpans }) {
  const { settings, asyncLayer, uncaughtLayer, formatter, warnings } = wiring
  const { noSpan } = require('../spans/user-span') // now: trace.span must run its function, whatever happens
  /** @type {Hook[]} */
  let hooks = []

  const stats = () => guard.run(() => require('./stats').readStats(wiring))

  return {
    /** Returns what answers queries. @param {unknown} [target] what the query is for */
    queries: (target) => wiring.queries(target),

    current: () => wiring.queries().view(asyncLayer.currentContext()),

    request () {
      const context = asyncLayer.currentContext()
      if (context !== undefined && !context.folded) wiring.queries().foldLoops(context)
      return require('./present-request').requestOf(context)
    },

    stats,

    /** @returns {import('../doctor').Diagnosis} */
    doctor () {
      const facts = { stats: stats(), filter: settings.options.filter, copies: [...wiring.copies] }
      return guard.run(() => require('../doctor').examine({ ...facts, formatter: formatter.inForce() }))
    },

    /** @param {Hook} hook @returns {() => void} */
    addHook (hook) {
      const applyHooks = () => changeState(() => asyncLayer.setUserHooks(hooks))
      hooks = [...hooks, hook]
      applyHooks()
      return () => {
        hooks = hooks.filter((other) => other !== hook)
        applyHooks()
      }
    },

    /** Returns what another addon needs to add its own. */
    nativeHooks () {
      const handle = wiring.nativeHooks().handle()
      asyncLayer.updateHooks()
      return handle
    },

    /**
     * @param {(type: string) => boolean} matches the filter
     * @param {import('../api').ErrorHandler} handler
     * @returns {() => void}
     */
    addHandler (matches, handler) {
      const entry = { matches, handler }
      wiring.errorHandlers = [...wiring.errorHandlers, entry]
      if (settings.enabled) uncaughtLayer.intercept()
      return () => {
        wiring.errorHandlers = wiring.errorHandlers.filter((other) => other !== entry)
        if (wiring.errorHandlers.length === 0) uncaughtLayer.release()
      }
    },

    /** @param {import('../api').Event} event @param {(event: any) => void} listener @returns {() => void} */
    listen (event, listener) {
      const { spanListeners, blockedListeners } = wiring
      const listeners = { warning: warnings.listeners, span: spanListeners, blocked: blockedListeners }[event]
      const change = (/** @type {'add' | 'delete'} */ name) => {
        if (event !== 'span') return listeners[name](listener)
        wiring.spans?.handOn() // what has ended is for those that listened until now
        listeners[name](listener)
        changeState(applySpans)
      }
      change('add')
      return () => { if (listeners.has(listener)) change('delete') }
    },

    /**
     * Runs a function as a span; without a place for spans to go it just runs.
     * @param {string} name
     * @param {Record<string, unknown>} attributes
     * @param {(span: import('../spans/user-span').SpanHandle) => any} fn
     */
    span (name, attributes, fn) {
      const { spans } = wiring
      const isOn = spans !== undefined && spans.isEnabled()
      return isOn ? spans.span(name, attributes, fn) : fn(noSpan)
    },

    /**
     * @param {object} server
     * @param {import('../intercept/connection').Transform} transform
     * @param {Function} above the caller's frames start below this function
     */
    intercept: (server, transform, above) => guard.run(() => {
      const [place] = wiring.queries().presentLines(above)
      wiring.intercepts ??= require('./features').createIntercepts(wiring)
      return wiring.intercepts.add(server, transform, place?.trim())
    }),

    /**
     * Records a profile of this thread.
     * @param {{ seconds: number, samples: boolean }} options
     * @returns {Promise<import('../profile/profile').Profile>}
     */
    profile: (options) => guard.run(() => {
      if (!settings.enabled) throw mistake('NOT_ENABLED', 'trace.profile')
      wiring.profiles ??= require('./features').createProfileRecorder(wiring)
      return wiring.profiles.record(options)
    }),

    /** Ends the profile that is being recorded. */
    finishProfile: () => wiring.profiles?.finish(),

    /** Opens the files that spans go to again. */
    reopen: () => guard.run(() => wiring.spans?.reopen())
  }
}

module.exports = { createMethods }
