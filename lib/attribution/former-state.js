'use strict'

// Who was first: an error that says that a stream has ended, or that a response was sent, is thrown at the
// second call. Finds who made the first one, or destroyed, or aborted (core/state-changes.js).

const { Context, contextOf } = require('../core/context')
const { isHandleType, kindAt } = require('../core/kinds')
const { changeOf, enderOf, failedIn, linkedTo } = require('../core/state-changes')
const { source } = require('../core/source')
const { isObject, own } = require('../objects')
const capture = require('../stacks/capture')
const { findStep } = require('./flows')
const { get: getObserved } = require('./observed-errors')

const MAX_STEPS = 8 // from an error up to the connection of which it is
const MAX_FLOW = 256 // and up to the request

/**
 * @typedef {import('../core/context').Context} ContextType
 * @typedef {import('../core/state-changes').Change} Change
 * @typedef {import('./attribution').Part} Part
 */

/** @type {Record<string, (error: object, context: ContextType | undefined) => Change | undefined>} */
const findersByCode = {
  __proto__: /** @type {any} */ (null),
  ERR_HTTP_HEADERS_SENT: (error) => {
    const maker = getObserved(error)?.maker
    return maker && failedIn(maker.ref)
  },
  ECONNRESET: (_, context) => destroyerOfConnection(context),
  ERR_STREAM_PREMATURE_CLOSE: (_, context) => destroyerOfConnection(context),
  FST_ERR_REP_ALREADY_SENT: enderOfResponse
}

/**
 * Returns who brought about the state that an error comes of.
 * @param {object} error
 * @param {Part[]} parts whose it is
 * @returns {Part | undefined} undefined: it is not known, or the program did not
 */
function formerState (error, parts) {
  const cause = own(error, 'cause')
  const linked = linkedTo(error) ?? (isObject(cause) ? linkedTo(cause) : undefined)
  const find = linked === undefined ? findersByCode[String(own(error, 'code'))] : undefined
  const change = linked ?? find?.(error, parts[0]?.context)
  const context = change && contextOfChange(change)
  return context && { context, origin: /** @type {Change} */ (change).state }
}

/** @param {Change} change @returns {ContextType | undefined} undefined: it was none of the program's */
function contextOfChange ({ chain, cause, time }) {
  const made = capture.chainAt(chain)
  if (made === undefined || made.stack?.program !== true) return undefined
  const context = new Context(0, 0, kindAt(made.kind), contextOf(made.parent, cause, 0), time)
  context.chain = chain
  return context
}

/**
 * Returns who destroyed the connection in whose callback an error was made.
 * @param {ContextType | undefined} context
 */
function destroyerOfConnection (context) {
  const step = findStep(context, isOfConnection, MAX_STEPS)
  const id = step === undefined ? 0 : isRequest(step.type) ? step.triggerAsyncId : step.asyncId
  const socket = source.socketOf(id)
  return socket && changeOf(socket, ['destroyed'])
}

/** @param {ContextType} context */
const isOfConnection = ({ kind, type }) => isHandleType(type) || kind.asked || isRequest(type)

/** @param {string} type */
const isRequest = (type) => type === 'HTTPINCOMINGMESSAGE'

/**
 * Returns who ended the response to the request in which an error was made, if it names that request.
 * @param {object} error
 * @param {ContextType | undefined} context
 */
function enderOfResponse (error, context) {
  const step = findStep(context, ({ type }) => isRequest(type), MAX_FLOW)
  const [method, path] = step?.request?.split(' ') ?? []
  const message = String(own(error, 'message'))
  const isNamed = message.includes(`(${method})`) && (path.includes(':') || message.includes(`"${path}`))
  return step !== undefined && isNamed ? enderOf(step.ref) : undefined
}

module.exports = { formerState }
