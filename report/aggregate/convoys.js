'use strict'

// Convoys: requests that waited at one place at once, each for its turn. A wait counts if another request
// settled the awaited promise and the line shows which run continued after it.

const { spellsOf } = require('./digest')
const { groupsOf, peakOf, periodsOf, sum } = require('./lists')
const { processOf } = require('./recording')
const { endOf } = require('./route-names')

const MIN_CONVOY = 3 // requests at once
const MIN_MS = 20 // longest wait; at 60 frames per second nobody notices less
const LONG_MS = 1000 // from here on, a single convoy is worth a line, as in a running process
const MIN_SHARE = 0.05 // otherwise, share of the time of all requests
const SAME_MS = 1 // waits that end within this time after the previous run share one response
// A line lists at most this many runs (report/path/runs.js). If some are left out, it is uncertain which run
// ended a wait.
const MAX_RUNS = 1000
const MAX_CONVOYS = 20

/**
 * @typedef {object} Turn a wait that another request ended
 * @property {import('./sites').Place} place
 * @property {string} process
 * @property {number} start ms since 1970
 * @property {number} end
 * @property {number} ranUntil end of the run in which it went on
 *
 * @typedef {object} Convoy the largest at a place, and how many there were
 * @property {string} at
 * @property {number} count requests that waited at once
 * @property {Array<{ request: string, count: number }>} requests those requests, by name
 * @property {string} for request that let the first of them go on
 * @property {number} longestMs of their waits
 * @property {number} times number of convoys there that a request of that name let go on
 */

/**
 * Returns the waits of a request for other requests, or for something else.
 * @param {import('../read/span-line').Span} span
 * @param {import('./critical-paths').PathEntry[]} waits of its line
 * @param {(until: string | undefined) => boolean} [isWanted] whether waits with this end count
 * @returns {Turn[]}
 */
function turnsOf (span, waits, isWanted = (until) => endOf(until).settler !== undefined) {
  const isTurn = waits.map(({ place }) => isWanted(place.until))
  const runs = isTurn.includes(true) ? spellsOf(span.attributes['longstack.runs'], MAX_RUNS) : []
  if (runs.length === MAX_RUNS) return []
  runs.sort((a, b) => a[0] - b[0])
  const process = processOf(span)
  return runs.flatMap(([begin, length, , ended], i) => {
    if (!isTurn[ended - 1]) return []
    const { place, ms, delayed, count } = waits[ended - 1]
    const [before, ran] = count === 1 || i === 0 ? [0, 0] : runs[i - 1]
    const end = span.startMs + begin
    const start = Math.max(span.startMs + before + ran, end - ms - delayed)
    return [{ place, process, start, end, ranUntil: end + length }]
  })
}

/**
 * @param {Array<{ name: string, facts: import('./verdict/facts').RouteFacts }>} routes
 * @returns {Convoy[]} most requests first
 */
function convoysOf (routes) {
  const totalMs = sum(routes, ({ facts }) => facts.totalMs)
  const turns = routes.flatMap(({ name, facts }) => facts.turns.map((turn) => ({ ...turn, request: name })))
  const known = turns.filter(({ place }) => place.at !== undefined)
  const places = groupsOf(known, ({ place, process }) => JSON.stringify([process, place.at]))
  const convoys = places.flatMap((waits) => {
    const isLarge = sum(waits, ({ start, end }) => end - start) >= totalMs * MIN_SHARE
    return periodsOf(waits).flatMap(convoyOf)
      .filter(({ longestMs }) => longestMs >= (isLarge ? MIN_MS : LONG_MS))
  })
  return groupsOf(convoys, ({ at: frame, for: holder }) => JSON.stringify([frame, holder])).map((group) => {
    const worst = group.reduce((max, convoy) => convoy.count > max.count ? convoy : max)
    return { ...worst, times: group.length }
  }).sort((a, b) => b.count - a.count || b.longestMs - a.longestMs).slice(0, MAX_CONVOYS)
}

/**
 * @param {Array<Turn & { request: string }>} waits of one period
 * @returns {Convoy[]} empty if they are few or shared a response
 */
function convoyOf (waits) {
  const peak = peakOf(waits.map(({ start, end }) => [start, end]))
  const atOnce = waits.filter(({ start, end }) => start <= peak.time && end > peak.time)
    .sort((a, b) => a.end - b.end)
  const turns = atOnce.filter(({ end }, i) => i === 0 || end > atOnce[i - 1].ranUntil + SAME_MS)
  if (turns.length < MIN_CONVOY) return []
  const [{ place: { at: frame = '', until } }] = atOnce
  const requests = groupsOf(atOnce, ({ request }) => request)
    .map((group) => ({ request: group[0].request, count: group.length }))
    .sort((a, b) => b.count - a.count)
  const longestMs = Math.max(...atOnce.map(({ start, end }) => end - start))
  return [{ at: frame, count: peak.count, requests, for: endOf(until).settler ?? '', longestMs, times: 1 }]
}

module.exports = { convoysOf, turnsOf }
