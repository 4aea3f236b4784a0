'use strict'

// Which answers were asked for: what goes out on a connection of the program is a question, what comes in
// next the answer to it. An answer to the question of another request is a turn at most: a pool gives the
// connection to the next one.

const { isHandleType } = require('../core/kinds')
const { CHAIN, DETAIL, SETTLED_RUN, readWord } = require('../core/records')
const { OWN_QUESTION } = require('./critical-path')
const { spanAt } = require('./identities')

/** @typedef {import('../core/entry').Entry} Entry */

/**
 * Returns whether what another request settled came on a connection. A pooled connection runs its callbacks
 * as part of the request that opened it, which has nothing to do with what comes on it later: it settled the
 * promise in the connection's own callback, or in no step of its own, for it has ended.
 * @param {import('./loop-time').LoopTime} loop
 * @param {number} promise reference
 */
function isAnswer (loop, promise) {
  const step = readWord(promise, DETAIL)
  if (step !== 0 && isHandleType(loop.typeOf(readWord(step, CHAIN), step))) return true
  return readWord(promise, SETTLED_RUN) === 0 && isHandleType(loop.type)
}

/**
 * Notes data on a connection. What comes first in a callback of its own has come in; all else goes out.
 * @param {import('./loop-time').LoopTime} loop
 * @param {Entry} entry of the connection
 * @param {number} ref of the step that runs
 * @param {number} span number
 * @param {number} run of it
 */
function noteTraffic (loop, entry, ref, span, run) {
  const isOwnCallback = ref === entry.context.ref
  const { running } = loop
  if (isOwnCallback && loop.answered === undefined) {
    loop.answered = entry
    entry.answeredIdle = entry.sentIdle
    entry.answeredSpan = entry.sentSpan
    if (run !== 0 && running !== undefined) noteAnswer(entry, running.log, run, 0)
    return
  }
  entry.sentIdle = loop.idle
  entry.sentSpan = isOwnCallback || spanAt(span) === undefined ? 0 : span
  if (!isOwnCallback && run !== 0 && span === loop.spanNumber) running?.log.noteSent(entry.context.ref, run)
}

/**
 * Notes whose question was answered by the data that a run began with.
 * @param {Entry} entry of the connection
 * @param {import('./critical-path').PathLog} log
 * @param {number} run
 * @param {number} registered run in which the wait began
 */
function noteAnswer ({ context, answeredIdle, answeredSpan }, log, run, registered) {
  if (log.hasSent(context.ref, registered)) log.setSent(run, OWN_QUESTION)
  else if (answeredSpan === 0) log.setSent(run, answeredIdle ?? NaN)
  // The request asked before this wait: rows come one after another, or it has done something else meanwhile
  else if (spanAt(answeredSpan)?.log !== log) log.setSent(run, Infinity)
}

module.exports = { isAnswer, noteAnswer, noteTraffic }
