'use strict'

// Idle outgoing connections, with the last writer of each. If requests wait for a connection while all are
// idle, the program has not returned them to the pool. Nothing here runs code of the program.

const { now } = require('../core/clock')
const { connectionTypes } = require('../core/kinds')
const { ANSWERED, FLAGS, findRecord } = require('../core/records')
const registry = require('../core/registry')
const { requestOf } = require('../format/handles')
const { groupBy } = require('../group-by')
const { addressOf, handleOf } = require('../node-objects')
const { lastWriter } = require('./why')

const CHUNK = 64 // handles per piece of work
const MAX_CONNECTIONS = 1000
const MAX_USERS = 3

/**
 * @typedef {object} IdleUser last writer on some of the connections
 * @property {string | undefined} request its request: `GET /report`
 * @property {string | undefined} at `transfer (/app/db.js:14:9)`
 * @property {number} count connections
 *
 * @typedef {object} IdleConnections connections to one peer
 * @property {string} peer `127.0.0.1:5432`
 * @property {number} open number of connections
 * @property {number} idle connections with nothing in flight
 * @property {number} silent connections from before tracing without any data since; 0 if the program
 *   itself is the peer
 * @property {number} leastMs since the last write on an idle one; without idle ones, since tracing began
 * @property {IdleUser[]} users most connections first, at most MAX_USERS
 */

/** @typedef {import('../core/entry').Entry} Entry */

/** Whether data arrived since the program's last write. @param {Entry} entry */
function isAnswered (entry) {
  const asked = findRecord(entry.lastAsk)
  if (asked === undefined) return entry.activeAt > Number(entry.writeTime)
  return (asked.words[asked.offset + FLAGS] & ANSWERED) !== 0
}

/**
 * Returns the peers with idle connections. Yields between pieces of work.
 * @returns {Generator<void, IdleConnections[], void>}
 */
function * idleConnections () {
  const time = now()
  /** @type {Array<{ peer: string, user: { request: string | undefined, at: string | undefined } | undefined,
   *   isSilent: boolean, agoMs: number }>} user: undefined if not idle */
  const found = []
  let looked = 0
  const own = /** @type {any} */ (process)._getActiveHandles().map(handleOf).filter(Boolean)
  const ownAddresses = new Set(own.map((/** @type {object} */ handle) => addressOf(handle, 'getsockname')))
  for (const entry of registry.list()) {
    if (++looked % CHUNK === 0) yield
    if (found.length >= MAX_CONNECTIONS) break
    const handle = entry.resource.deref()
    if (!entry.isClient || !connectionTypes.has(entry.context.type) || handle === undefined) continue
    const peer = addressOf(handle, 'getpeername') ?? entry.remote
    if (peer === undefined) continue
    const isSilent = entry.context.origin === 'early' && entry.activeAt === 0 && !ownAddresses.has(peer)
    const writer = isAnswered(entry) ? lastWriter(entry) : undefined
    const user = writer && { request: requestOf(writer.hops), at: writer.at }
    const since = isSilent ? entry.context.time : Number(entry.writeTime)
    found.push({ peer, user, isSilent, agoMs: Math.max(0, time - since) })
  }
  return groupBy(found, ({ peer }) => peer).flatMap((group) => {
    const idle = group.filter(({ user }) => user !== undefined)
    const silent = group.filter(({ isSilent }) => isSilent)
    if (idle.length + silent.length === 0) return []
    const users = groupBy(idle, ({ user }) => JSON.stringify([user?.request, user?.at]))
      .map((same) => ({ request: same[0].user?.request, at: same[0].user?.at, count: same.length }))
    return [{
      peer: group[0].peer,
      open: group.length,
      idle: idle.length,
      silent: silent.length,
      leastMs: Math.min(...(idle.length > 0 ? idle : silent).map(({ agoMs }) => agoMs)),
      users: users.sort((a, b) => b.count - a.count).slice(0, MAX_USERS)
    }]
  })
}

module.exports = { idleConnections }
