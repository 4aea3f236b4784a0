'use strict'

// Finds the call that made an undici request. If all connections of a Pool are busy, it queues calls, and
// makes the next call's request in the callback of whichever request freed a connection. The request's
// handler identifies the call: undici's functions pass an AsyncResource. For fetch and dispatch(),
// allocation-clock.js finds when the handler object was created, unless it is too old.

const { locate } = require('../core/allocation-clock')
const { Context, contextOf, contextTag, root } = require('../core/context')
const { contextOfRequest, currentStep } = require('../core/current-step')
const { kindOf } = require('../core/kinds')
const { CHAIN_BITS, FIRST_CHAIN, SPAN } = require('../core/records')
const { hidden, isObject } = require('../objects')
const capture = require('../stacks/capture')

/**
 * @param {object} request
 * @param {Function} above frames start below this function
 * @returns {Context}
 */
function contextOfUndici (request, above) {
  const handler = hidden(request, 'handler')
  if (!isObject(handler)) return contextOfRequest(above)
  const call = contextTag.read(handler)
  if (call !== undefined) return contextOfCall(call)
  const made = locate(handler)
  const context = contextOfRequest(above)
  if (made === undefined ? !isQueued(context) : made.ref === currentStep().ref) return context
  // The request's own stack shows only the queue
  const caller = made && made.chain >= FIRST_CHAIN ? contextOf(made.chain, made.ref, made.span) : root
  return childOf(caller ?? root, 0, context.time, made?.span ?? 0)
}

/** @param {Context} call @returns {Context} with the stack of the call */
function contextOfCall (call) {
  const stack = call.stack?.id ?? 0
  return childOf(call.parent ?? root, stack, call.time, call.readWord(SPAN))
}

/**
 * @param {Context} parent
 * @param {number} stack number
 * @param {number} time
 * @param {number} span number
 */
function childOf (parent, stack, time, span) {
  const context = new Context(0, 0, kindOf('REQUEST', false), parent, time)
  context.chain = capture.intern(parent.chain, stack, context.kind.number) & CHAIN_BITS
  context.spanNumber = span
  return context
}

/** Whether a request was made because a connection became free. @param {Context} context of the request */
function isQueued ({ stack }) {
  return stack?.frames.some(({ functionName = '' }) => functionName.includes('onDrain')) === true
}

module.exports = { contextOfUndici }
