'use strict'

// Errors as events of spans, in OpenTelemetry's terms.

const { isNativeError } = require('node:util').types
const { own } = require('../objects')
const { messageOf } = require('../warnings')

const MAX_EVENTS = 32 // errors of one span

/** @typedef {{ type: string, message: string, stacktrace?: string }} ExceptionDescription */

/**
 * Adds an error to a span, once.
 * @param {import('./span').Span} span
 * @param {ExceptionDescription} exception
 * @param {number} time ms of the clock
 */
function addException (span, { type, message, stacktrace }, time) {
  const events = span.events ??= []
  if (events.length >= MAX_EVENTS) return
  const isRecorded = events.some(({ attributes }) => {
    return attributes['exception.stacktrace'] === stacktrace && attributes['exception.message'] === message
  })
  if (isRecorded) return
  span.attributes['error.type'] ??= type
  /** @type {Record<string, unknown>} */
  const attributes = { 'exception.type': type, 'exception.message': message }
  if (stacktrace !== undefined) attributes['exception.stacktrace'] = stacktrace
  events.push({ name: 'exception', time, attributes })
}

/**
 * Describes an error; what is no Error has no stack.
 * @param {unknown} error
 * @param {(error: Error) => string | undefined} errorStack
 * @returns {ExceptionDescription}
 */
function describeException (error, errorStack) {
  if (!isNativeError(error)) return { type: typeof error, message: messageOf(error) }
  const code = own(error, 'code')
  const type = typeof code === 'string' ? code : nameOf(error)
  const stacktrace = errorStack(error)
  const message = messageOf(error)
  return stacktrace === undefined ? { type, message } : { type, message, stacktrace }
}

/** @param {Error} error */
function nameOf (error) {
  const name = own(error, 'name') ?? own(Object.getPrototypeOf(error) ?? {}, 'name')
  return typeof name === 'string' ? name : 'Error'
}

module.exports = { addException, describeException }
