'use strict'

// Resources that Node makes after the call of the program that asked for them is over: in a later tick, with
// frames of Node's alone. They give their name to the hop of that call.

const { apiName } = require('./api-names')
const { labelOf } = require('./labels')
const { isWordCode } = require('./text-scan')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./chain').PrintedHop} PrintedHop
 */

const ranked = ['', '', 'HTTPCLIENTREQUEST', 'GETADDRINFOREQWRAP', 'FSREQCALLBACK']

/**
 * Ranks how much a type says about a call into Node.
 * @param {string} type
 * @returns {number} 0 says the most, -1 nothing
 */
function rankOf (type) {
  if (type.endsWith('CONNECTWRAP')) return 0
  if (type.endsWith('SERVERWRAP')) return 1
  return ranked.indexOf(type)
}

/**
 * Returns the one of two resources that says more.
 * @param {Context | undefined} later
 * @param {Context} candidate
 * @returns {Context | undefined}
 */
function moreTelling (later, candidate) {
  const rank = rankOf(candidate.type)
  if (rank === -1) return later
  return later === undefined || rank < rankOf(later.type) ? candidate : later
}

/**
 * Names the hop of a call by what Node made later.
 * @param {PrintedHop} hop
 * @param {Context} later
 * @param {Frame[]} frames of the hop's context
 */
function nameByLater (hop, later, frames) {
  const api = apiName(frames)
  if (api === undefined || defers(api)) return
  if (rankOf(later.type) > 1 && hop.type !== 'TickObject') return
  hop.asyncId = later.asyncId
  hop.triggerAsyncId = later.triggerAsyncId
  hop.type = later.type
  hop.label = labelOf(later, frames)
}

/**
 * Whether a call only defers: setTimeout, socket.setTimeout, queueMicrotask, nextTick.
 * @param {string} api
 */
function defers (api) {
  let start = api.length
  while (start > 0 && isWordCode(api.charCodeAt(start - 1))) start--
  const method = api.slice(start)
  if (method.startsWith('set')) return method.length > 'set'.length
  return method === 'queueMicrotask' || method === 'nextTick'
}

module.exports = { moreTelling, nameByLater }
