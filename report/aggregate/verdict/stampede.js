'use strict'

// Stampedes: a cache entry expires, and all requests send the same query until the first response is there.

const { getOrCreate, groupsOf, peakOf, sum } = require('../lists')

const MIN_RUN = 4 // consecutive requests that send it
const MIN_RUNS = 3
const MIN_IN_RUNS = 0.8 // share of the requests that send it; below it, they do so at random
const MAX_SENDING = 0.5 // share of all requests; above it, there is no cache, or it does not help
const MIN_OTHERS = 20 // requests that need no query

/**
 * @typedef {object} Sender a request, in short
 * @property {string} process
 * @property {number} start ms since 1970
 * @property {number} end
 * @property {import('../sites').Place[]} places that wait for a response of a peer
 */

/**
 * Reports queries that most requests do not send, and that many send at once now and then.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function stampede ({ routes }) {
  return routes.flatMap(({ name, facts: { senders, isSampled, totalMs } }) => {
    if (isSampled) return []
    const inOrder = [...senders].sort((a, b) => a.start - b.start)
    const processes = groupsOf(inOrder, ({ process }) => process)
    return [...sendersAt(inOrder)].flatMap(([place, sending]) => {
      const others = inOrder.length - sending.size
      const isRare = sending.size <= inOrder.length * MAX_SENDING && others >= MIN_OTHERS
      if (!isRare || sending.size < MIN_RUNS * MIN_RUN) return []
      const runs = processes.flatMap((own) => runsOf(own, sending))
      if (runs.length < MIN_RUNS) return []
      if (sum(runs, ({ length }) => length) < sending.size * MIN_IN_RUNS) return []
      const peaks = runs.map((run) => peakOf(run.map(({ start, end }) => [start, end])).count)
      const atOnce = Math.max(...peaks)
      if (sum(peaks, Number) < runs.length * MIN_RUN) return []
      const ms = sum(runs.flat(), ({ start, end }) => end - start)
      const figures = { times: runs.length, atOnce, requests: inOrder.length, sending: sending.size }
      return [{
        rule: /** @type {const} */ ('stampede'),
        route: name,
        at: place.at,
        lostMs: 0,
        share: ms / totalMs,
        figures,
        details: { caller: place.callers[0] }
      }]
    })
  })
}

/**
 * Groups requests by the places where they send a query.
 * @param {Sender[]} senders
 */
function sendersAt (senders) {
  /** @type {Map<import('../sites').Place, Set<Sender>>} */
  const places = new Map()
  for (const sender of senders) {
    for (const place of sender.places) getOrCreate(places, place, () => new Set()).add(sender)
  }
  return places
}

/**
 * Returns the runs of consecutive requests that send a query.
 * @param {Sender[]} senders in order of start
 * @param {Set<Sender>} sending
 */
function runsOf (senders, sending) {
  /** @type {Sender[][]} */
  const runs = [[]]
  for (const sender of senders) {
    if (sending.has(sender)) runs[runs.length - 1].push(sender)
    else if (runs[runs.length - 1].length > 0) runs.push([])
  }
  return runs.filter(({ length }) => length >= MIN_RUN)
}

module.exports = { stampede }
