'use strict'

// The answer of trace.request: the request in which code runs, for a line of log. The chain of a callback of
// a client's connection on which nobody is known to have asked leads to who opened that, whichever request
// the data is for: there it is not known.

const { ONE } = require('../core/asks')
const { connectionTypes } = require('../core/kinds')
const { STATE } = require('../core/records')

const MAX_STEPS = 1 << 12 // up a chain

/**
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} PresentRequest
 * @property {string} name `GET /config`, or `GET /users/:id` once a framework told the route
 * @property {string | undefined} traceId 32 hex digits, of its span; undefined while no spans are made
 * @property {string | undefined} spanId 16 hex digits
 */

/**
 * Returns the request that led to a step.
 * @param {Context | undefined} newest
 * @returns {PresentRequest | undefined} undefined: none, or it is not known
 */
function requestOf (newest) {
  let context = newest
  for (let steps = 0; context !== undefined && steps < MAX_STEPS; steps++) {
    const name = context.request
    if (name !== undefined) {
      const { traceId, spanId } = context.spanIdentity ?? {}
      return { name, traceId, spanId }
    }
    const isAsked = context.kind.asked && context.readWord(STATE) === ONE
    if (!isAsked && connectionTypes.has(context.type)) return undefined
    context = context.parent
  }
  return undefined
}

module.exports = { requestOf }
