'use strict'

// Creates the parts that record spans, and joins them: spans, Node's requests, sinks, listeners, trace.span.
// Loaded when spans are first enabled. Everything but the functions of users runs guarded.

const process = require('node:process')
const guard = require('../context/guard')
const loopIterations = require('../hooks/loop-iterations')
const { describeException } = require('./exception-events')
const { createHttpSpans } = require('./http-spans')
const { createIterationBatches } = require('./iteration-batches')
const { createSpanListeners } = require('./span-listeners')
const { SpanOutputs } = require('./span-outputs')
const { spanResource } = require('./span-resource')
const { createSpans } = require('./spans')
const { createUserSpans, noSpan } = require('./user-span')
const { unwatchZlibWrites } = require('../hooks/zlib-writes')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./user-span').SpanHandle} SpanHandle
 *
 * @typedef {object} RecorderDeps
 * @property {import('./connect').AsyncLayer} asyncLayer
 * @property {import('./loop-time').LoopTime} loop
 * @property {() => number} now
 * @property {(code: string, message: string) => void} warn
 * @property {(error: unknown) => void} failed notes a defect of longstack's
 * @property {() => import('../options').Options} options
 * @property {import('../listeners').Listeners<any>} listeners of `span`
 * @property {(chain: number) => string | undefined} stack the long stack of a place
 * @property {(span: Span) => import('./wait-sites').Path} pathOf where a span's time went
 * @property {(chain: number) => import('./path-sites').Site} siteOf the place that registered a step
 * @property {(error: Error) => string | undefined} errorStack
 * @property {(above: Function) => Context} contextOfRequest a context for a request made here
 * @property {(start: number, end: number) => string | undefined} frameAt the innermost frame sampled in a
 *   blocking callback
 * @property {ReturnType<typeof import('./frameworks').createKoaRoutes>} koaRoutes
 * @property {(socket: object) => object[]} handlesOf a socket: its own handle and what lies below
 * @property {(
 *   httpSpans: import('./http-spans').HttpSpans,
 *   noteTimer: (timer: import('../handles/entry').Entry) => void
 * ) => { enable: () => void, disable: () => void }} listenToRequests and to timers that stay
 */

/** @param {RecorderDeps} deps */
function createSpanRecorder (deps) {
  const { asyncLayer, failed, loop, now, warn, options, stack, pathOf, frameAt } = deps
  let isOn = false
  const outputs = new SpanOutputs(warn)
  /** @type {ReturnType<typeof deps.listenToRequests> | undefined} */
  let requests
  /** @type {Record<string, unknown> | undefined} */
  let resource
  const { count: countIterations, isBatching, schedule } = createIterationBatches()

  const listeners = createSpanListeners({
    listeners: deps.listeners,
    isBatching,
    schedule,
    warn
  })
  const spans = createSpans({
    loop,
    now,
    step: asyncLayer.currentStep,
    readSettled: asyncLayer.readSettlements,
    spanNumber: asyncLayer.spanNumber,
    pathOf,
    stack: (span) => span.chain === 0 ? undefined : stack(span.chain),
    describeException: (error) => describeException(error, deps.errorStack),
    listeners,
    sinks: () => outputs.sinks,
    frameAt,
    siteOf: deps.siteOf,
    resource: () => (resource ??= spanResource()),
    isBatching,
    schedule
  })
  const httpSpans = createHttpSpans({ ...deps, spans })
  const safely = guard.createSafely(failed)
  const runSpan = createUserSpans({ spans, loop, runWithin: asyncLayer.runInSpan, safely })

  /** Hands spans that have ended to outputs, and to those that listen now. */
  function handOn () {
    guard.run(spans.drain)
    listeners.flush()
  }

  function onExit () {
    safely(() => {
      loopIterations.hold() // the loop has ended
      spans.flush()
      listeners.flush()
      outputs.sinks?.flush()
    })
  }

  return {
    isEnabled: () => isOn,
    sweep: spans.sweep,
    recordException: spans.recordException,
    noteRejection: spans.noteRejection,
    recordBlocking: spans.recordBlocking,

    handOn,

    /** @param {unknown} wanted where spans go */
    enable (wanted) {
      handOn()
      countIterations(options().capture !== 'js')
      outputs.set(wanted)
      // Else spans are made only to name those of blocking callbacks.
      asyncLayer.timeSpans(wanted !== undefined || listeners.areThere() ? loop : undefined)
      if (isOn) return requests?.enable()
      isOn = true
      requests = deps.listenToRequests(httpSpans, spans.noteTimer)
      requests.enable()
      process.on('exit', onExit)
    },

    disable () {
      if (!isOn) return
      isOn = false
      spans.flush()
      listeners.flush()
      outputs.set(undefined)
      countIterations(false)
      requests?.disable()
      asyncLayer.timeSpans(undefined)
      unwatchZlibWrites()
      process.removeListener('exit', onExit)
    },

    reopen () {
      spans.drain()
      outputs.sinks?.reopen()
    },

    /**
     * Runs a function as a span, see trace.span.
     * @param {string} name
     * @param {Record<string, unknown>} attributes
     * @param {(span: SpanHandle) => any} fn
     */
    span (name, attributes, fn) {
      return guard.inOwnWork || asyncLayer.inOwnWork() ? fn(noSpan) : runSpan(name, attributes, fn)
    },

    /** Counts, when listeners and outputs have got what has ended. */
    stats () {
      handOn()
      const { open, ended, dropped } = spans.stats()
      const delivered = outputs.stats()
      const { written, waiting, outputs: list } = delivered
      return { open, ended, written, waiting, dropped: dropped + delivered.dropped, outputs: list }
    }
  }
}

module.exports = { createSpanRecorder }
