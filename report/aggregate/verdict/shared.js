'use strict'

// Connections that are shared by queries of several requests: the peer answers one query after another, so
// they wait for each other.

const { queuedOf } = require('../../path/queue')
const { groupsOf, sum } = require('../lists')

const MIN_QUERIES = 20
const MIN_QUEUED = 0.5 // share of the time until the response
// The lower quartile of the times between responses, relative to their mean. If a peer answers several
// queries at once, responses come close together; those at random times have 0.29.
const MIN_GAP = 0.35

/**
 * @typedef {object} SentQuery times in ms since 1970
 * @property {string | undefined} at
 * @property {string} peer
 * @property {string} connection
 * @property {number} start
 * @property {number} end
 *
 * @typedef {object} Shared queries of all routes to a peer
 * @property {number} queuedMs mean time behind others on the same connection
 * @property {number} ownMs mean time until the response from then on
 * @property {number} connections
 * @property {number} atOnce queries on one connection
 */

/**
 * @param {import('./index').RouteEvidence[]} routes
 * @param {string} peer
 * @returns {Shared | undefined} undefined if they do not wait for each other
 */
function sharedBy (routes, peer) {
  const own = routes.flatMap(({ facts }) => facts.queries.filter((query) => query.peer === peer))
  if (own.length < MIN_QUERIES) return undefined
  const connections = groupsOf(own, ({ connection }) => connection)
  const queues = connections.map((sent) => queuedOf(sent, 1))
  const queuedMs = sum(queues, ({ queued }) => sum([...queued.values()], Number))
  const ms = sum(own, ({ start, end }) => end - start)
  if (queuedMs < ms * MIN_QUEUED || !connections.every(answersInTurn)) return undefined
  return {
    queuedMs: queuedMs / own.length,
    ownMs: (ms - queuedMs) / own.length,
    connections: connections.length,
    atOnce: queues.reduce((max, { most }) => Math.max(max, most), 0)
  }
}

/** Whether the responses on a connection come one after another. @param {SentQuery[]} queries */
function answersInTurn (queries) {
  const ends = queries.map(({ end }) => end).sort((a, b) => a - b)
  const gaps = ends.slice(1).map((end, i) => end - ends[i]).sort((a, b) => a - b)
  return gaps.length > 0 && gaps[Math.floor(gaps.length / 4)] >= sum(gaps, Number) / gaps.length * MIN_GAP
}

module.exports = { sharedBy }
