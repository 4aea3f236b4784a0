'use strict'

// trace.span: a span around a function of the program. The function gets a handle that describes the span
// while it is open and does not expose its internals.

const { isPromise } = require('node:util').types
const guard = require('../core/guard')
const { safely } = require('../core/faults')
const { runInSpan } = require('./step-spans')
const { messageOf } = require('../warnings')
const { noSpan } = require('./index')
const spans = require('./spans')
const { format } = require('./traceparent')

/**
 * @typedef {import('./span').Span} Span
 *
 * @typedef {import('./index').SpanHandle} SpanHandle
 */

/**
 * Returns a handle. Programs may keep it: it holds only the span.
 * @param {Span} span
 * @returns {SpanHandle}
 */
function handleOf (span) {
  /** @type {SpanHandle} */
  const handle = {
    traceId: span.traceId,
    spanId: span.spanId,
    traceparent: format(span),
    set (attributes) {
      if (!span.ended) span.attributes = { ...span.attributes, ...attributes }
      return handle
    },
    fail (error) {
      if (!span.ended) span.failure = { error }
      return handle
    }
  }
  return Object.freeze(handle)
}

/** spans with their function on the stack, innermost last @type {Span[]} */
const running = []

guard.add({
  save: () => running.length,

  restore (count = running.length) {
    const terminated = running.splice(count)
    for (let i = terminated.length - 1; i >= 0; i--) {
      safely(() => spans.end(terminated[i], { code: 'ERROR', message: 'terminated' }))
    }
  }
})

/** @param {Span} span @param {number} [since] ms of the clock, if it ended earlier */
function end (span, since) {
  if (span.failure !== undefined) fail(span, span.failure.error, since)
  else safely(() => spans.end(span, {}, since))
}

/** @param {Span} span @param {unknown} error @param {number} [since] ms of the clock, if it ended earlier */
function fail (span, error, since) {
  safely(() => spans.end(span, { code: 'ERROR', message: messageOf(error), error }, since))
}

/** Ends a span when a promise settles. @param {Span} span @param {Promise<unknown>} promise */
function endWith (span, promise) {
  // Only the promise's reactions hold this object; once it is collected, nothing can end the span.
  const ending = { span }
  span.endsBy(ending)
  return promise.then((value) => {
    end(ending.span)
    return value
  }, (/** @type {unknown} */ error) => {
    fail(ending.span, error)
    throw error
  })
}

/**
 * Runs a function as a span, which lasts until the function returns or its promise settles.
 * @param {string} name
 * @param {Record<string, unknown>} attributes
 * @param {(span: SpanHandle) => any} fn
 */
function runSpan (name, attributes, fn) {
  const copy = { ...attributes } // the program's getters may throw
  const span = safely(() => spans.start({ name, kind: 'INTERNAL', attributes: copy }))
  if (span === undefined) return fn(noSpan)
  const depth = running.push(span) - 1
  span.endsBy(running)
  const handle = handleOf(span)
  let result
  try {
    result = runInSpan(span, () => {
      spans.begin(span)
      return promiseOf(fn(handle))
    })
  } catch (error) {
    fail(span, error, spans.presentSince())
    running.length = depth
    throw error
  }
  if (!isPromise(result)) end(span, spans.presentSince())
  else result = endWith(span, result)
  running.length = depth // last: if V8 terminates this earlier, `restore` ends the span
  return result
}

/**
 * Converts a thenable to a promise, since many thenables start their work only in `then`. Returns other
 * values unchanged.
 * @param {any} result
 */
function promiseOf (result) {
  if (isPromise(result)) return result
  const then = thenOf(result)
  return then === undefined ? result : new Promise((resolve, reject) => then.call(result, resolve, reject))
}

/** Reads `then`; the program's getter may throw. @param {any} result @returns {Function | undefined} */
function thenOf (result) {
  try {
    const then = result?.then
    return typeof then === 'function' ? then : undefined
  } catch {
    return undefined
  }
}

module.exports = { runSpan }
