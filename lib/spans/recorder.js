'use strict'

// The conductor of spans, loaded with the first wish for them: joins spans.js with Node's requests, with the sinks and
// with what users call. Everything but the functions of users runs guarded.

const process = require('node:process')
const path = require('node:path')
const guard = require('../context/guard')
const { isMainThread } = require('../hooks/threads')
const loopIterations = require('../hooks/loop-iterations')
const { isNativeError, isPromise } = require('node:util').types
const { messageOf } = require('../warnings')
const { createSpans } = require('./spans')
const { handleOf, nothing } = require('./user-span')
const { createHttpSpans } = require('./http-spans')
const { own } = require('../objects')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./user-span').SpanHandle} SpanHandle
 */

const MAX_UNTOLD = 1000 // records that wait for the end of an iteration

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('../hooks/async-hooks').createAsyncLayer>} deps.asyncLayer
 * @param {import('./loop-time').LoopTime} deps.loop
 * @param {() => number} deps.now
 * @param {(code: string, message: string) => void} deps.warn
 * @param {(error: unknown) => void} deps.failed something could not be done
 * @param {() => import('../options').Options} deps.options
 * @param {Set<(record: any) => void>} deps.listeners of `span`
 * @param {(chain: number) => string | undefined} deps.stack the long stack of a place
 * @param {(span: Span) => import('./wait-sites').PathWait[]} deps.pathOf its waits in words
 * @param {(error: Error) => string | undefined} deps.errorStack
 * @param {(above: Function) => Context} deps.contextOfRequest a context for a request made here
 * @param {(start: number, end: number) => string | undefined} deps.frameAt the innermost frame seen inside a blocked run
 * @param {ReturnType<typeof import('./frameworks').createKoaRoutes>} deps.koaRoutes
 * @param {(socket: object) => object[]} deps.handlesOf a socket: its own handle and what lies below
 * @param {(rooms: import('./http-spans').HttpSpans) => { enable: () => void, disable: () => void }} deps.listenToRequests listens to Node's requests
 */
function createSpanRecorder ({
  asyncLayer, failed, loop, now, warn, options, listeners, stack, pathOf, errorStack, contextOfRequest,
  koaRoutes, handlesOf, listenToRequests, frameAt
}) {
  let on = false
  /** @type {ReturnType<typeof import('../sinks/sinks').createSinks> | undefined} */
  let sinks
  /** what they were made for @type {unknown} */
  let outputs
  /** @type {ReturnType<typeof listenToRequests> | undefined} */
  let wired
  /** @type {Record<string, unknown> | undefined} */
  let resource
  /** are iterations of the event loop counted for spans? */
  let counted = false
  /** records that listeners have not heard of @type {unknown[]} */
  let untold = []
  /** who listened when the first of them came @type {Array<(record: any) => void>} */
  let audience = []

  const spans = createSpans({
    loop,
    now,
    step: asyncLayer.currentStep,
    settle: asyncLayer.readSettlements,
    spanNumber: asyncLayer.spanNumber,
    pathOf,
    stack: (span) => span.chain === 0 ? undefined : stack(span.chain),
    describe,
    tell,
    listening: () => listeners.size > 0,
    sinks: () => sinks,
    frameAt,
    resource: () => (resource ??= resourceOf()),
    schedule (work) {
      const batching = counted && loopIterations.batching()
      if (batching) loopIterations.schedule(work)
      return batching
    }
  })

  /**
   * Hands a record to the listeners, right before the event loop polls next.
   * @param {unknown} record
   * @param {boolean} [atOnce] where the loop may not poll for long
   */
  function tell (record, atOnce = false) {
    const batching = counted && loopIterations.batching()
    if (untold.length === 0) {
      audience = [...listeners]
      if (batching) loopIterations.schedule(tellAll)
    }
    untold.push(record)
    if (!batching || atOnce || untold.length >= MAX_UNTOLD) tellAll()
  }

  /** Hands on all records that wait. What listeners do makes no spans, now or later. */
  function tellAll () {
    if (untold.length > 0) guard.run(() => asyncLayer.runUntraced(tellAudience))
  }

  /** Calls those who listened when the records came. Where the stack is too full to come here, they wait on. */
  function tellAudience () {
    const records = untold
    const hearers = audience
    untold = []
    for (const record of records) for (const listener of hearers) tellOne(listener, record)
  }

  /** @param {(record: any) => void} listener @param {unknown} record */
  function tellOne (listener, record) {
    try {
      listener(record)
    } catch (thrown) {
      warn('SPAN', `a listener of 'span' threw: ${messageOf(thrown)}`)
    }
  }

  /** An error in words; what is no error has no stack. @param {unknown} error */
  function describe (error) {
    if (!isNativeError(error)) return { type: typeof error, message: messageOf(error) }
    const code = own(error, 'code')
    const stacktrace = errorStack(error)
    return { type: typeof code === 'string' ? code : nameOf(error), message: messageOf(error), ...(stacktrace === undefined ? {} : { stacktrace }) }
  }

  const web = createHttpSpans({ spans, asyncLayer, options, contextOfRequest, koaRoutes, handlesOf })

  /** @param {Span} span @param {number} [at] ms, when that was */
  function finish (span, at) {
    if (span.failure !== undefined) fail(span, span.failure.error, at)
    else safely(() => spans.end(span, {}, at))
  }

  /** @param {Span} span @param {unknown} error @param {number} [at] ms, when that was */
  function fail (span, error, at) {
    safely(() => spans.end(span, { code: 'ERROR', message: messageOf(error), error }, at))
  }

  /** Nothing of ours may come between a function and its caller. @template T @param {() => T} work @returns {T | undefined} */
  function safely (work) {
    try {
      return guard.run(work)
    } catch (error) {
      failed(error)
      return undefined
    }
  }

  function leave () {
    guard.run(() => {
      loopIterations.hold() // the loop has ended
      spans.flush()
      tellAll()
      sinks?.flush()
    })
  }

  /** Asks for iterations to be counted, or no longer. @param {boolean} wanted */
  function count (wanted) {
    if (wanted === counted) return
    counted = wanted
    if (wanted) loopIterations.start()
    else loopIterations.stop()
  }

  return {
    isEnabled: () => on,
    recordException: spans.recordException,
    noteRejection: spans.noteRejection,
    recordBlocking: spans.recordBlocking,

    /** Spans are made from now on. @param {unknown} wanted where they go */
    enable (wanted) {
      spans.drain()
      tellAll() // a listener may have been added or removed
      count(options().capture !== 'js')
      if (wanted !== outputs) {
        sinks?.close()
        sinks = undefined
        outputs = wanted
        if (wanted !== undefined) sinks = require('../sinks/sinks').createSinks(require('../sinks/outputs').parseOutputs(wanted), { warn, loopIterations })
      }
      asyncLayer.timeSpans(wanted !== undefined || listeners.size > 0) // else they only tell whose a long run is
      if (on) return wired?.enable()
      on = true
      wired = listenToRequests(web.rooms)
      wired.enable()
      process.on('exit', leave)
    },

    /** No longer. */
    disable () {
      if (!on) return
      on = false
      spans.flush()
      tellAll()
      sinks?.close()
      sinks = outputs = undefined
      count(false)
      wired?.disable()
      asyncLayer.timeSpans(false)
      process.removeListener('exit', leave)
    },

    reopen () {
      spans.drain()
      sinks?.reopen()
    },

    /**
     * @param {string} name
     * @param {Record<string, unknown>} attributes
     * @param {(span: SpanHandle) => any} fn
     */
    span (name, attributes, fn) {
      if (guard.inOwnWork || asyncLayer.inOwnWork()) return fn(nothing)
      const given = { ...attributes } // the program's getters may throw
      const span = safely(() => spans.start({ name, kind: 'INTERNAL' }))
      if (span === undefined) return fn(nothing)
      span.attributes = given
      const handle = handleOf(span)
      let result
      try {
        result = asyncLayer.runInSpan(span, () => {
          spans.begin(span)
          return promiseOf(fn(handle))
        })
      } catch (error) {
        fail(span, error, loop.since)
        throw error
      }
      if (!isPromise(result)) {
        finish(span, loop.since)
        return result
      }
      return result.then((value) => {
        finish(span)
        return value
      }, (/** @type {unknown} */ error) => {
        fail(span, error)
        throw error
      })
    },

    /** Counts, when listeners and outputs have got what has ended. */
    stats () {
      guard.run(spans.drain)
      tellAll()
      const { open, ended, dropped } = spans.stats()
      const written = sinks?.stats()
      return { open, ended, written: written?.written ?? 0, dropped: dropped + (written?.dropped ?? 0), outputs: written?.outputs ?? [] }
    }
  }
}

/**
 * What is still to come, as a promise; many thenables begin their work only when they are asked to. A getter of the program's
 * that throws is no affair of ours.
 * @param {any} result
 */
function promiseOf (result) {
  if (isPromise(result)) return result
  const then = thenOf(result)
  return then === undefined ? result : new Promise((resolve, reject) => then.call(result, resolve, reject))
}

/** @param {any} result @returns {Function | undefined} */
function thenOf (result) {
  try {
    const then = result?.then
    return typeof then === 'function' ? then : undefined
  } catch {
    return undefined
  }
}

/** @param {Error} error */
function nameOf (error) {
  const name = own(error, 'name') ?? own(Object.getPrototypeOf(error) ?? {}, 'name')
  return typeof name === 'string' ? name : 'Error'
}

/** Which service, process and thread spans are of. */
function resourceOf () {
  return {
    'service.name': process.env.OTEL_SERVICE_NAME || packageName() || 'node',
    'process.pid': process.pid,
    ...(isMainThread() ? {} : { 'longstack.thread': require('node:worker_threads').threadId })
  }
}

/** The name in the package.json nearest to the program. */
function packageName () {
  const fs = require('node:fs')
  for (let folder = process.argv[1] === undefined ? process.cwd() : path.dirname(process.argv[1]); ; folder = path.dirname(folder)) {
    try {
      const { name } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'))
      return typeof name === 'string' ? name : undefined
    } catch {}
    if (path.dirname(folder) === folder) return undefined
  }
}

module.exports = { createSpanRecorder }
