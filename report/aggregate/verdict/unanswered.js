'use strict'

// Requests without a response: their clients gave up, or they are still pending, while others of the route
// were answered long before.

const { amount, text } = require('../../read/values')
const { endOf } = require('../route-names')

const MAX_PATH_CHARS = 200
const MAX_LISTED = 1000 // requests per route
const MIN_ANSWERED = 10
const MIN_UNANSWERED = 3
const MIN_MS = 1000
const MIN_RATIO = 5 // to the mean of the answered ones

/** @typedef {{ ms: number, at: string | undefined, path: string | undefined }} UnansweredRequest */

class Unanswered {
  answered = 0
  answeredMs = 0
  /** @type {UnansweredRequest[]} */
  requests = []

  /**
   * @param {import('../../read/span-line').Span} span
   * @param {import('../critical-paths').PathEntry[]} waits
   */
  add ({ attributes, kind, ms, open }, waits) {
    if (!open && attributes['longstack.end'] !== 'aborted') {
      this.answered++
      this.answeredMs += ms
      return
    }
    const isBegun = amount(attributes['http.response.status_code']) !== undefined
    if (kind !== 'SERVER' || isBegun || this.requests.length === MAX_LISTED) return
    // Its last wait ended when the client closed the connection.
    const client = `${attributes['network.peer.address']}:${attributes['network.peer.port']}`
    const last = waits.find(({ place }) => endOf(place.until).peer === client)
    this.requests.push({ ms, at: last?.place.at, path: text(attributes['url.path'], MAX_PATH_CHARS) })
  }
}

/**
 * Reports routes with several requests that got no response, for much longer than the others took.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function unanswered ({ routes }) {
  return routes.flatMap(({ name, facts: { totalMs, unanswered: { answered, answeredMs, requests } } }) => {
    if (answered < MIN_ANSWERED) return []
    const meanMs = answeredMs / answered
    const long = requests.filter(({ ms }) => ms >= MIN_MS && ms >= meanMs * MIN_RATIO)
    if (long.length < MIN_UNANSWERED || long.length < requests.length / 2) return []
    const [{ at: frame, path }] = long
    const isOnePath = long.every((request) => request.path === path)
    const isOnePlace = long.every((request) => request.at === frame)
    const longestMs = Math.max(...long.map(({ ms }) => ms))
    return [{
      rule: /** @type {const} */ ('unanswered'),
      route: name,
      at: isOnePlace ? frame : undefined,
      lostMs: 0,
      share: long.reduce((sum, { ms }) => sum + ms, 0) / totalMs,
      figures: { requests: long.length, longestMs, answeredMs: meanMs, path: isOnePath ? path : undefined }
    }]
  })
}

module.exports = { Unanswered, unanswered }
