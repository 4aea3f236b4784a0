'use strict'

// End of a request as the end of its span, derived from an error, a status or a closed connection.

const { messageOf } = require('../warnings')
const { inherits, isObject, own, readLazy } = require('../objects')
const { expressError } = require('../requests/frameworks')

/** @typedef {import('./spans').End} End */

const TIMED_OUT = /TIMEOUT$|^ETIMEDOUT$/
const ABORTED = /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|ERR_STREAM_PREMATURE_CLOSE)$/
const CANCELLED = /^(ABORT_ERR|UND_ERR_ABORTED)$/
const HANG_UP = 'ECONNRESET' // Node's error for calls whose connection was closed, also by the program
/** @type {End} */
const UPGRADED = { end: 'upgraded' }
/** @type {End} */
const CANCELLED_END = { end: 'cancelled' }

/**
 * Returns the end of a request that a server answered. spans.js adds a rejection inside it.
 * @param {object} request
 * @param {unknown} status
 * @returns {End}
 */
function endOfAnswer (request, status) {
  if (typeof status !== 'number' || status < 500) return {}
  const error = expressError(request)
  return { code: 'ERROR', ...(isObject(error) ? { error } : {}) }
}

/**
 * Returns the end of a request whose connection was closed.
 * @param {boolean} timedOut
 * @param {string} message
 * @param {string} [type] error type, if known
 * @returns {End}
 */
function endOfClose (timedOut, message, type) {
  const end = timedOut ? 'timeout' : 'aborted'
  return { code: 'ERROR', end, message, attributes: { 'error.type': type ?? end } }
}

/**
 * Returns the end of a request that failed with an error.
 * @param {unknown} error
 * @param {boolean} timedOut
 * @param {boolean} [isClosedHere] whether this process closed its connection
 * @returns {End}
 */
function endOfFailure (error, timedOut, isClosedHere = false) {
  const code = errorCode(error) ?? ''
  const name = exceptionField(error, 'name')
  const cause = isObject(error) ? own(error, 'cause') : undefined
  const isTimeout = timedOut || TIMED_OUT.test(code) || name === 'TimeoutError' ||
    (isObject(cause) && exceptionField(cause, 'name') === 'TimeoutError')
  const isCancelled = CANCELLED.test(code) || name === 'AbortError' || (isClosedHere && code === HANG_UP)
  if (isCancelled && !isTimeout) return { end: 'cancelled', error }
  /** @type {End} */
  const end = { code: 'ERROR', message: exceptionField(error, 'message') ?? messageOf(error), error }
  if (isTimeout) end.end = 'timeout'
  else if (ABORTED.test(code)) end.end = 'aborted'
  if (name !== undefined) end.attributes = { 'error.type': name }
  return end
}

/** @param {unknown} error @returns {string | undefined} */
function errorCode (error) {
  const code = isObject(error) ? own(error, 'code') : undefined
  return typeof code === 'string' ? code : undefined
}

/**
 * Reads a field of a DOMException, as abort signals throw. Not every version of V8 treats it as an error.
 * @param {unknown} error
 * @param {'name' | 'message'} field
 * @returns {string | undefined}
 */
function exceptionField (error, field) {
  if (!isObject(error)) return undefined
  try {
    const { prototype } = readLazy(globalThis, 'DOMException') // Node 20 creates it on first read
    if (!inherits(error, prototype)) return undefined
    return Object.getOwnPropertyDescriptor(prototype, field)?.get?.call(error)
  } catch {
    return undefined
  }
}

/** Returns the error that a socket was destroyed with. @param {any} socket */
function errorOfSocket (socket) {
  try {
    return socket?.errored ?? undefined
  } catch {
    return undefined
  }
}

/**
 * Whether the program closed a socket, without an error of its own: its peer had neither closed nor reset the
 * connection.
 * @param {any} socket
 */
function isClosedHere (socket) {
  try {
    const { destroyed, errored, readableEnded } = socket
    return destroyed === true && readableEnded === false && (errored === null || isAbort(errored))
  } catch {
    return false
  }
}

/** Whether a stream that the program stopped has this error. @param {unknown} error */
const isAbort = (error) => /^(ABORT_ERR|ECANCELED|ERR_STREAM_PREMATURE_CLOSE)$/.test(errorCode(error) ?? '')

module.exports = {
  CANCELLED_END,
  UPGRADED,
  endOfAnswer,
  endOfClose,
  endOfFailure,
  errorCode,
  errorOfSocket,
  isClosedHere
}
