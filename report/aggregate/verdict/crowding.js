'use strict'

// Peers that have no CPU for more queries at once: they answer one after another, or take longer the more
// queries are in flight. More connections would not make them faster.

const { groupsOf, sum } = require('../lists')
const { firstIndex } = require('../summary')

const MIN_QUERIES = 40
const MIN_MORE = 1.5 // queries in flight during the most crowded quarter, relative to the least crowded one
const MIN_GROWTH = 0.3 // 1: twice as many in flight take twice as long; 0: just as long
// The lower quartile of the times between responses, relative to their mean. If a peer works on several
// queries at once, responses come close together now and then; those at random times have 0.29.
const MIN_GAP = 0.4
const MIN_IN_ORDER = 0.9 // share of the responses

/** @typedef {import('./shared').SentQuery} SentQuery */

/**
 * Whether a peer seems to have as many queries at once as it can work on.
 * @param {import('./index').RouteEvidence[]} routes
 * @param {string} peer
 */
function isCrowded (routes, peer) {
  const queries = routes.flatMap(({ facts }) => facts.queries.filter((query) => query.peer === peer))
  const processes = groupsOf(queries, ({ connection }) => connection.split(' ')[0])
    .filter(({ length }) => length >= MIN_QUERIES)
  return processes.some((own) => answersInTurn(own) || growthOf(own) >= MIN_GROWTH)
}

/** Whether responses come one after another, in order. @param {SentQuery[]} queries */
function answersInTurn (queries) {
  const inOrder = [...queries].sort((a, b) => a.end - b.end)
  const gaps = inOrder.slice(1).map(({ end }, i) => end - inOrder[i].end).sort((a, b) => a - b)
  const count = inOrder.filter(({ start }, i) => i === 0 || start >= inOrder[i - 1].start).length
  const quartile = gaps[gaps.length >> 2]
  return count >= inOrder.length * MIN_IN_ORDER && quartile * gaps.length >= sum(gaps, Number) * MIN_GAP
}

/**
 * Returns how latency grows with the number of queries in flight.
 * @param {SentQuery[]} queries
 * @returns {number} exponent of that number; NaN if it hardly varies
 */
function growthOf (queries) {
  const groups = groupsOf(withLoad(queries), ({ at: frame }) => String(frame)).flatMap((group) => {
    if (group.length < MIN_QUERIES) return []
    group.sort((a, b) => a.load - b.load)
    const [few, many] = [group.slice(0, group.length >> 2), group.slice(-(group.length >> 2))]
    const [more, longer] = [ratio(few, many, ({ load }) => load), ratio(few, many, ({ ms }) => ms)]
    return more >= MIN_MORE ? [{ count: group.length, growth: Math.log(longer) / Math.log(more) }] : []
  })
  return sum(groups, ({ count, growth }) => count * growth) / sum(groups, ({ count }) => count)
}

/** @typedef {{ at: string | undefined, ms: number, load: number }} Loaded */

/** @param {Loaded[]} a @param {Loaded[]} b as many @param {(query: Loaded) => number} figure */
const ratio = (a, b, figure) => sum(b, figure) / sum(a, figure)

/**
 * Adds to each query the mean number of queries in flight meanwhile.
 * @param {SentQuery[]} queries
 * @returns {Loaded[]}
 */
function withLoad (queries) {
  const changes = queries.flatMap(({ start, end }) => [[start, 1], [end, -1]]).sort((a, b) => a[0] - b[0])
  let [inFlight, total, before] = [0, 0, 0]
  const points = changes.map(([time, more]) => {
    total += inFlight * (time - before) // ms of all queries so far
    before = time
    inFlight += more
    return { time, total }
  })
  const totalAt = (/** @type {number} */ time) =>
    points[firstIndex(points.length, (i) => points[i].time >= time)].total
  return queries.filter(({ start, end }) => end > start).map(({ at: frame, start, end }) =>
    ({ at: frame, ms: end - start, load: (totalAt(end) - totalAt(start)) / (end - start) }))
}

module.exports = { isCrowded }
