'use strict'

// Calls that are made again and again until one succeeds, and queries that wait for each other because a
// request asks them all at once.

const { sum } = require('../lists')

const MIN_REQUESTS = 10
const RETRIES = {
  MIN_PART: 0.25, // of the requests
  MIN_SHARE: 0.15, // of their time
  MIN_SUCCEEDED: 0.25 // of those that tried again: else it may be a list of things that all fail
}
const FAN_OUT = {
  MIN_QUERIES: 8,
  MAX_SERIAL: 0.7, // of the queries: on a pool of two, half of them come one after another
  MIN_RATIO: 2, // of the wait to be sent to that for the answer
  MIN_SHARE: 0.3 // of the route's time: for so long at least one query is under way
}

/**
 * Speaks where a call fails and is made again, one after another, and in the end succeeds.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function retries ({ routes }) {
  return routes.flatMap(({ name, facts }) => [...facts.tries].flatMap(([call, tries]) => {
    const { requests, succeeded, calls, most, failedMs } = tries
    const share = failedMs / facts.totalMs
    if (facts.lines < MIN_REQUESTS || requests < MIN_REQUESTS) return []
    if (requests < facts.count * RETRIES.MIN_PART) return []
    if (succeeded < requests * RETRIES.MIN_SUCCEEDED || !(share >= RETRIES.MIN_SHARE)) return []
    const failedShare = (calls - succeeded) / calls
    const figures = { call, callsPerRequest: calls / requests, most, failedShare }
    return [{ rule: /** @type {const} */ ('retries'), route: name, lostMs: failedMs, share, figures }]
  }))
}

/**
 * Speaks where a request asks many queries at once, and each waits longer to be sent than for its answer.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function fanOut ({ routes }) {
  return routes.flatMap(({ name, facts, asked }) => {
    const means = asked.means()
    if (means === undefined || facts.lines < MIN_REQUESTS || means.count < FAN_OUT.MIN_QUERIES) return []
    const { unsentMs, answerMs, most, peer, at: frame } = asked.unsent()
    const busyMs = means.ms * facts.count
    if (means.serial > means.count * FAN_OUT.MAX_SERIAL || unsentMs < answerMs * FAN_OUT.MIN_RATIO) return []
    if (!(busyMs >= facts.totalMs * FAN_OUT.MIN_SHARE)) return []
    const waited = sum(facts.places, ({ allWork, turnMs }) => allWork.ms + turnMs)
    const lostMs = Math.min(busyMs, waited) * unsentMs / (unsentMs + answerMs)
    return [{
      rule: /** @type {const} */ ('fanOut'),
      route: name,
      at: frame,
      lostMs,
      share: lostMs / facts.totalMs,
      figures: { queries: means.count, unsentMs, answerMs, atOnce: most, peer }
    }]
  })
}

module.exports = { fanOut, retries }
