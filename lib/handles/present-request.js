'use strict'

// Result of trace.request: the current request, for a log line. In a callback of an outgoing connection
// without a known query, the chain leads to the connection's opener, whichever request the data is for, so
// the request is unknown.

const { ONE } = require('../core/asks')
const { connectionTypes } = require('../core/kinds')
const { STATE } = require('../core/records')

const MAX_STEPS = 1 << 12 // up a chain

/**
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} PresentRequest
 * @property {string} name `GET /config`, or `GET /users/:id` once a framework reported the route
 * @property {string | undefined} traceId 32 hex digits, of its span; undefined while spans are off
 * @property {string | undefined} spanId 16 hex digits
 */

/**
 * Returns the request that led to a step.
 * @param {Context | undefined} newest
 * @returns {PresentRequest | undefined} undefined if none or unknown
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
