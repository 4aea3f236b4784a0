'use strict'

// What is told of the connection on which something happened: who opened it, and whose answer came
// (requests/asks.js).

const { contextAt } = require('../core/context')
const { FIRST_ASK, LAST_ASK, OUTER, STATE } = require('../core/records')
const { ONE, SHARED } = require('../core/asks')
const { source } = require('../core/source')
const { findStep, isOneFlow, isSame, requestOf } = require('./flows')
const { requestText } = require('./queued-jobs')

const MAX_STEPS = 64 // from what happened up to the connection

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('./attribution').Part} Part
 */

/** Whether a context is an answer, or a connection. @param {Context} context */
const isOfConnection = (context) => context.kind.asked || isClient(context)

/**
 * Whether a context is an answer to an unknown question: one step stands for several flows.
 * @param {Context} context
 */
const isOfSeveral = (context) => context.kind.asked && context.readWord(STATE) !== ONE

/** Whether a context is of a connection that the program has made. @param {Context} context */
function isClient ({ detail, parent, type }) {
  if (detail === undefined || (type !== 'TCPWRAP' && type !== 'PIPEWRAP')) return false
  return parent?.type.endsWith('SERVERWRAP') === false
}

/**
 * Adds what is told of the connection on which something happened to whose it is. What is awaited decides
 * where the connection does not know who asked, or contradicts.
 * @param {Part[]} parts first whose it is
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
    const isTask = first.until !== undefined // of the awaiter's
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
 * Puts who waits before the part in which the error was made, which is marked then: it may have been in
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
 * Whether who waits is of another flow than who is taken for the asker.
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
 * @returns {Part | undefined} undefined where it is one flow that opened the connection and asks
 */
function openerLine (asked, origin) {
  const connection = contextAt(asked.readWord(OUTER))
  if (connection?.asyncId !== asked.asyncId) return undefined // it is forgotten
  const opener = requestOf(connection)
  if (origin === 'opened') {
    if (opener !== 0 && opener === requestOf(asked)) return undefined
    const { parent } = connection
    if (opener === 0 && parent !== undefined && isOneFlow(asked.parent, parent)) return undefined
  }
  return { context: connection, origin, label: requestText(connection) }
}

/** @param {Context} asked of several @returns {Part | undefined} undefined: one of them is not known */
function sharedLine (asked) {
  const asks = [FIRST_ASK, LAST_ASK].map((word) => contextAt(asked.readWord(word)))
  if (asks.some((each) => source.startOf(each) !== undefined)) return undefined
  const [first, last] = asks.map(requestText)
  if (first === undefined || last === undefined) return undefined
  const label = first === last ? `several ${first}` : `${first} and ${last}`
  return { context: asked, origin: 'shared', label }
}

module.exports = { behindWaiter, isOfSeveral, withConnection }
