'use strict'

// Connections of the program on which nothing is under way, and who wrote on each last: where requests wait
// for a connection and all are idle, nobody has given them back. Nothing here runs code of the program.

const { now } = require('../core/clock')
const { connectionTypes } = require('../core/kinds')
const { ANSWERED, FLAGS, findRecord } = require('../core/records')
const registry = require('../core/registry')
const { requestOf } = require('../format/handles')
const { groupBy } = require('../group-by')
const { addressOf, handleOf } = require('../node-objects')
const { lastWriter } = require('./why')

const CHUNK = 64 // handles that are looked at, at once
const MAX_CONNECTIONS = 1000
const MAX_USERS = 3

/**
 * @typedef {object} IdleUser who wrote last, on some of the connections
 * @property {string | undefined} request `GET /report`, for which it was
 * @property {string | undefined} at `transfer (/app/db.js:14:9)`
 * @property {number} count connections
 *
 * @typedef {object} IdleConnections all to one peer
 * @property {string} peer `127.0.0.1:5432`
 * @property {number} open how many there are
 * @property {number} idle those on which nothing is under way
 * @property {number} silent those from before tracing on which nothing has come or gone since; 0 if the
 *   program itself is the peer
 * @property {number} leastMs since the last write on an idle one; without any, since tracing began
 * @property {IdleUser[]} users most connections first, at most MAX_USERS
 */

/** @typedef {import('../core/entry').Entry} Entry */

/** Whether data came since the program wrote last. @param {Entry} entry */
function isAnswered (entry) {
  const asked = findRecord(entry.lastAsk)
  if (asked === undefined) return entry.activeAt > Number(entry.writeTime)
  return (asked.words[asked.offset + FLAGS] & ANSWERED) !== 0
}

/**
 * Returns the peers to which connections are idle. Yields between pieces of work.
 * @returns {Generator<void, IdleConnections[], void>}
 */
function * idleConnections () {
  const time = now()
  /** @type {Array<{ peer: string, user: { request: string | undefined, at: string | undefined } | undefined,
   *   isSilent: boolean, agoMs: number }>} user: undefined: it is not idle */
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
