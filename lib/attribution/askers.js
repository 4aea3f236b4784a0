'use strict'

// Adds the connection on which something happened to an attribution: who opened it, and whose response
// arrived (requests/asks.js).

const { contextAt } = require('../core/context')
const { FIRST_ASK, LAST_ASK, OUTER, STATE } = require('../core/records')
const { ONE, SHARED } = require('../core/asks')
const { source } = require('../core/source')
const { findStep, isOneFlow, isSame, requestOf } = require('./flows')
const { requestText } = require('./queued-jobs')

const MAX_STEPS = 64 // up to the connection

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('./attribution').Part} Part
 */

/** Whether a context is a response or a connection. @param {Context} context */
const isOfConnection = (context) => context.kind.asked || isClient(context)

/**
 * Whether a context is the response to an unknown query: one step stands for several flows.
 * @param {Context} context
 */
const isOfSeveral = (context) => context.kind.asked && context.readWord(STATE) !== ONE

/** Whether a context belongs to a connection that the program opened. @param {Context} context */
function isClient ({ detail, parent, type }) {
  if (detail === undefined || (type !== 'TCPWRAP' && type !== 'PIPEWRAP')) return false
  return parent?.type.endsWith('SERVERWRAP') === false
}

/**
 * Adds the connection on which something happened. If the connection does not know who sent the query, or
 * contradicts the awaiter, the awaiter decides.
 * @param {Part[]} parts the owner first
 * @returns {Part[]}
 */
function withConnection (parts) {
  const [first] = parts
  const step = first.origin === 'reader' ? undefined : connectionOf(first)
  if (step === undefined) return parts
  if (!step.kind.asked) {
    const isOpener = step === first.context && first.origin === undefined
    return isOpener ? [{ ...first, origin: 'idle' }, ...parts.slice(1)] : parts
  }
  const awaited = parts.find(({ origin }) => origin === 'awaited')
  const state = step.readWord(STATE)
  if (state !== ONE) {
    const line = (state === SHARED ? sharedLine(step) : undefined) ?? openerLine(step, 'unasked')
    const isTask = first.until !== undefined // of the awaiter
    const told = awaited === undefined || isTask ? parts : behindWaiter(awaited, parts)
    return line === undefined ? told : [...told, line]
  }
  if (awaited !== undefined && first.until === undefined && isContradiction(step, awaited)) {
    return [awaited, openerLine(step, 'unasked')].filter((part) => part !== undefined)
  }
  const opener = openerLine(step, 'opened')
  return opener === undefined ? parts : [...parts, opener]
}

/**
 * Returns the step of a connection that led to a part.
 * @param {Part} part
 */
function connectionOf ({ context, until }) {
  const isEnd = (/** @type {Context} */ step) => until !== undefined && isSame(step, until)
  const step = findStep(context, (each) => isEnd(each) || isOfConnection(each), MAX_STEPS)
  return step === undefined || isEnd(step) ? undefined : step
}

/**
 * Puts the awaiter before the part that made the error. That part is then marked, since it may belong to
 * another request.
 * @param {Part} awaited
 * @param {Part[]} parts
 * @returns {Part[]}
 */
function behindWaiter (awaited, parts) {
  const [maker, ...others] = parts.filter((part) => part !== awaited)
  return [awaited, { ...maker, origin: maker.origin ?? 'triggered' }, ...others]
}

/**
 * Whether the awaiter and the presumed sender of the query belong to different flows.
 * @param {Context} asked
 * @param {Part} awaited
 */
function isContradiction (asked, { context }) {
  const caller = context?.parent
  if (caller === undefined || asked.parent === undefined || isOneFlow(asked.parent, caller)) return false
  const request = requestOf(asked.parent)
  return request === 0 || request !== requestOf(caller)
}

/**
 * @param {Context} asked
 * @param {'opened' | 'unasked'} origin
 * @returns {Part | undefined} undefined if one flow opened the connection and sent the query
 */
function openerLine (asked, origin) {
  const connection = contextAt(asked.readWord(OUTER))
  if (connection?.asyncId !== asked.asyncId) return undefined // its record is gone
  const opener = requestOf(connection)
  if (origin === 'opened') {
    if (opener !== 0 && opener === requestOf(asked)) return undefined
    const { parent } = connection
    if (opener === 0 && parent !== undefined && isOneFlow(asked.parent, parent)) return undefined
  }
  return { context: connection, origin, label: requestText(connection) }
}

/** @param {Context} asked by several @returns {Part | undefined} undefined if one of them is unknown */
function sharedLine (asked) {
  const asks = [FIRST_ASK, LAST_ASK].map((word) => contextAt(asked.readWord(word)))
  if (asks.some((each) => source.startOf(each) !== undefined)) return undefined
  const [first, last] = asks.map(requestText)
  if (first === undefined || last === undefined) return undefined
  const label = first === last ? `several ${first}` : `${first} and ${last}`
  return { context: asked, origin: 'shared', label }
}

module.exports = { behindWaiter, isOfSeveral, withConnection }
