'use strict'

// Requests without a response: their clients gave up, or they are still pending, while others of the route
// were answered long before, or long after an error in them.

const { amount, text } = require('../../read/values')
const { MAX_ASKED, askedOf } = require('../asked')
const { exceptionsOf } = require('../failures')
const { innermostOwnFrame } = require('../frames')
const { endOf } = require('../route-names')

const MAX_PATH_CHARS = 200
const MAX_LISTED = 1000 // requests per route
const MIN_ANSWERED = 10
const MIN_UNANSWERED = 3
const MIN_MS = 1000
const MIN_RATIO = 5 // to the mean of the answered ones
const MIN_LAST_WAIT = 0.95 // share of the time since an error; below it, the request went on after it

/**
 * @typedef {object} UnansweredRequest
 * @property {number} ms
 * @property {string | undefined} at place of its last wait
 * @property {string | undefined} path
 * @property {boolean} isPending it is open
 * @property {{ type: string, at: string } | undefined} error its last error, if nothing followed it
 * @property {string} spanId
 * @property {number} end ms since 1970
 */

class Unanswered {
  answered = 0
  answeredMs = 0
  /** @type {UnansweredRequest[]} */
  requests = []

  /**
   * @param {import('../../read/span-line').Span} span
   * @param {import('../critical-paths').PathEntry[]} waits
   */
  add (span, waits) {
    const { attributes, kind, ms, open } = span
    if (!open && attributes['longstack.end'] !== 'aborted') {
      this.answered++
      this.answeredMs += ms
      return
    }
    // An open one may be a stream of events or a WebSocket, unless it is known what it waits for
    const isBegun = amount(attributes['http.response.status_code']) !== undefined ||
      (open && (attributes['longstack.pending'] === undefined || attributes['longstack.responding'] === true))
    if (kind !== 'SERVER' || isBegun || this.requests.length === MAX_LISTED) return
    // Its last wait ended when the client closed the connection.
    const client = `${attributes['network.peer.address']}:${attributes['network.peer.port']}`
    const last = waits.find(({ place }) => endOf(place.until).peer === client)
    const path = text(attributes['url.path'], MAX_PATH_CHARS)
    const [spanId, end] = [span.spanId, span.startMs + ms]
    const error = errorOf(span, last)
    this.requests.push({ ms, at: last?.place.at, path, isPending: open, error, spanId, end })
  }
}

/**
 * Returns the error after which a request did nothing, nor waited for a query.
 * @param {import('../../read/span-line').Span} span
 * @param {import('../critical-paths').PathEntry | undefined} last wait until the client closed the connection
 * @returns {UnansweredRequest['error']}
 */
function errorOf (span, last) {
  const error = exceptionsOf(span).at(-1)
  if (error?.stack === undefined || last === undefined) return undefined
  const sinceMs = span.startMs + span.ms - error.unixMs
  const isLast = last.count === 1 && last.ms >= sinceMs * MIN_LAST_WAIT
  const queries = askedOf(span.attributes['longstack.asked'], MAX_ASKED)
  const isAsking = queries.some(({ unanswered }) => unanswered)
  if (sinceMs < MIN_MS || !isLast || isAsking) return undefined
  const frame = innermostOwnFrame(error.stack)
  return frame === undefined ? undefined : { type: error.type, at: frame }
}

/**
 * Returns the error of at least half of the requests. The others may have had it too: an error that the
 * program has dropped is unknown.
 * @param {UnansweredRequest[]} requests
 */
function commonErrorOf (requests) {
  const errors = requests.flatMap((request) => request.error ?? [])
  const [first] = errors
  if (first === undefined || errors.length < requests.length / 2) return undefined
  const isOne = errors.every(({ type, at: frame }) => type === first.type && frame === first.at)
  return isOne ? { ...first, count: errors.length } : undefined
}

/**
 * Reports routes with several requests that got no response, for much longer than the others took. If too few
 * others got one, only an error is evidence: clients may well leave requests that wait for news.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules: what pending requests wait for
 * @returns {import('./index').Fault[]}
 */
function unanswered ({ routes, calls }, faults) {
  const known = new Set(faults.flatMap(({ rule, route }) => rule === 'hangs' ? route : []))
  return routes.flatMap(({ name, facts: { totalMs, unanswered: facts } }) => {
    const { answered, answeredMs, requests: all } = facts
    const requests = known.has(name) ? all.filter(({ isPending }) => !isPending) : all
    const meanMs = answered < MIN_ANSWERED ? undefined : answeredMs / answered
    const long = requests.filter(({ ms }) => ms >= MIN_MS && ms >= (meanMs ?? 0) * MIN_RATIO)
    if (long.length < MIN_UNANSWERED || long.length < requests.length / 2) return []
    // A request that is calling goes on, whatever it has thrown before
    const error = commonErrorOf(long.map((request) =>
      calls.outlasts(request.spanId, request.end) ? { ...request, error: undefined } : request))
    if (meanMs === undefined && (error === undefined || answered > 0)) return []
    const [{ at: frame, path }] = long
    const isOnePath = long.every((request) => request.path === path)
    const isOnePlace = long.every((request) => request.at === frame)
    const longestMs = Math.max(...long.map(({ ms }) => ms))
    return [{
      rule: /** @type {const} */ ('unanswered'),
      route: name,
      at: error?.at ?? (isOnePlace ? frame : undefined),
      lostMs: 0,
      share: long.reduce((sum, { ms }) => sum + ms, 0) / totalMs,
      figures: { requests: long.length, longestMs, answeredMs: meanMs, path: isOnePath ? path : undefined },
      details: { error }
    }]
  })
}

module.exports = { Unanswered, unanswered }
