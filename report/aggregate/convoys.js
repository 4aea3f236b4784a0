'use strict'

// Convoys: requests that waited at one place at once, each for its turn. A wait counts where another request
// settled what it awaited, and the line tells in which run that was seen.

const { spellsOf } = require('./digest')
const { groupsOf, peakOf, periodsOf, sum } = require('./lists')
const { processOf } = require('./recording')
const { endOf } = require('./route-names')

const MIN_CONVOY = 3 // requests at once
const MIN_MS = 20 // of the longest wait: at 60 frames a second nobody notices less
const LONG_MS = 1000 // a single convoy is worth a line, as in a running process
const MIN_SHARE = 0.05 // else of the time of all requests
const SAME_MS = 1 // waits that end within it after the run of the one before share one answer
// A line lists at most so many runs (report/path/runs.js). If some are left out, it is not certain which run
// ended a wait.
const MAX_RUNS = 1000
const MAX_CONVOYS = 20

/**
 * @typedef {object} Turn a wait that another request ended
 * @property {import('./sites').Place} place
 * @property {string} process
 * @property {number} start ms since 1970
 * @property {number} end
 * @property {number} ranUntil the end of the run in which it went on
 *
 * @typedef {object} Convoy the longest at a place, and how many there were
 * @property {string} at
 * @property {number} count requests that waited at once
 * @property {Array<{ request: string, count: number }>} requests these, by name
 * @property {string} for the request that let the first of these go on
 * @property {number} longestMs of their waits
 * @property {number} times so many convoys were let go on by a request of that name
 */

/**
 * Returns when a request waited for others.
 * @param {import('../read/span-line').Span} span
 * @param {import('./critical-paths').PathEntry[]} waits of its line
 * @returns {Turn[]}
 */
function turnsOf (span, waits) {
  const isTurn = waits.map(({ place }) => endOf(place.until).settler !== undefined)
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
 * @returns {Convoy[]} those with most requests first
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
 * @returns {Convoy[]} none: few, or they shared an answer
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
