'use strict'

// Calls that are repeated until one succeeds, and many queries of one request that wait for each other.

const { sum } = require('../lists')

const MIN_REQUESTS = 10
const RETRIES = {
  MIN_PART: 0.25, // share of the requests
  MIN_SHARE: 0.15, // share of their time
  MIN_SUCCEEDED: 0.25 // share of those that retried; below it, it may be a list of calls that all fail
}
const FAN_OUT = {
  MIN_QUERIES: 8,
  MAX_SERIAL: 0.7, // share of the queries; with a pool of two, half of them are serial
  MIN_RATIO: 2, // wait to be sent / wait for the response
  MIN_TURNS: 8, // queries one after another; fewer may be a limit that the program has chosen well
  MIN_AT_SITE: 0.8, // share of the queries at one place
  MIN_SHARE: 0.3 // share of the route's time with at least one query in flight
}

/**
 * Reports calls that fail and are retried, one after another, until they succeed.
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
 * Reports requests that send many queries which wait for each other: each waits longer to be sent than for
 * its response, or a pool or a limiter lets few run at a time.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function fanOut ({ routes }) {
  return routes.flatMap(({ name, facts, asked }) => {
    const means = asked.means()
    if (means === undefined || facts.lines < MIN_REQUESTS || means.count < FAN_OUT.MIN_QUERIES) return []
    const { unsentMs, answerMs, most, peer, at: site, share: atSite } = asked.unsent()
    const busyMs = means.ms * facts.count
    if (means.serial > means.count * FAN_OUT.MAX_SERIAL) return []
    const isUnsent = unsentMs >= answerMs * FAN_OUT.MIN_RATIO
    if (!isUnsent && (means.serial < FAN_OUT.MIN_TURNS || atSite < FAN_OUT.MIN_AT_SITE)) return []
    if (!(busyMs >= facts.totalMs * FAN_OUT.MIN_SHARE)) return []
    const waited = sum(facts.places, ({ allWork, turnMs }) => allWork.ms + turnMs)
    const waitingShare = isUnsent ? unsentMs / (unsentMs + answerMs) : 1 - 1 / means.serial
    const lostMs = Math.min(busyMs, waited) * waitingShare
    // Below the pool, all queries have the site of its connection
    const waits = isUnsent || peer === undefined ? [] : facts.places.filter((each) => each.peer === peer)
    const [longest] = waits.sort((a, b) => b.allWork.ms - a.allWork.ms)
    return [{
      rule: /** @type {const} */ ('fanOut'),
      route: name,
      at: longest?.place.at ?? site,
      lostMs,
      share: lostMs / facts.totalMs,
      figures: {
        queries: means.count,
        unsentMs: isUnsent ? unsentMs : undefined,
        answerMs,
        turns: means.serial,
        atOnce: most,
        peer
      }
    }]
  })
}

module.exports = { fanOut, retries }
