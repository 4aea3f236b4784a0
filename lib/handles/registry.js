'use strict'

// What is open: one entry for every resource of a type that stays open, held weakly. Entries of resources that
// are gone stay for a while (the newest GONE of them), so that a closed connection can still say why it was there.

const { createGcWatch } = require('../context/collected')
const { stamp } = require('../context/context')
const { own, socketName } = require('../context/kinds')

const GONE = 1000
const FIRST_SWEEP = 1024

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {object} Use a request on a connection
 * @property {WeakRef<object>} request
 * @property {string} label
 * @property {Context | undefined} context that made it
 * @property {boolean} over
 */

class Entry {
  /** @param {Context} context @param {object} resource */
  constructor (context, resource) {
    this.context = context
    this.resource = new WeakRef(resource)
    /** ms of performance.now(): the last time that data, an answer or an event came @type {number} */
    this.active = context.time
    /** @type {string | undefined} */
    this.local = undefined
    /** @type {string | undefined} */
    this.remote = undefined
    /** @type {Use | undefined} */
    this.use = undefined
  }
}

function createRegistry () {
  /** @type {Map<number, Entry>} by asyncId, oldest first */
  const entries = new Map()
  let sweepAt = FIRST_SWEEP

  /** Removes what is gone, but for the newest. */
  function sweep () {
    /** @type {number[]} */
    const gone = []
    for (const [asyncId, entry] of entries) if (entry.resource.deref() === undefined) gone.push(asyncId)
    for (const asyncId of gone.slice(0, Math.max(0, gone.length - GONE))) entries.delete(asyncId)
    sweepAt = Math.max(FIRST_SWEEP, entries.size * 2)
  }
  const sweepAfterGc = createGcWatch(sweep)

  /** @param {object} socket @returns {Entry | undefined} */
  function ofSocket (socket) {
    const handle = own(socket, '_handle')
    const context = typeof handle === 'object' && handle !== null ? stamp.read(handle) : undefined
    if (context !== undefined) return entries.get(context.asyncId)
    const id = idOf(socket)
    return id === undefined ? undefined : entries.get(id)
  }

  return {
    ofSocket,

    /** @param {Context} context @param {object} resource */
    opened (context, resource) {
      entries.set(context.asyncId, new Entry(context, resource))
      if (entries.size >= sweepAt) sweep()
      sweepAfterGc()
    },

    /** @param {number} asyncId */
    get: (asyncId) => entries.get(asyncId),

    /** @param {number} asyncId */
    opener: (asyncId) => entries.get(asyncId)?.context,

    /** @param {number} asyncId @param {number} time */
    active (asyncId, time) {
      const entry = entries.get(asyncId)
      if (entry !== undefined) entry.active = time
    },

    /** @param {number} asyncId */
    closed (asyncId) {
      entries.delete(asyncId)
    },

    /** A connection has its two ends: keep them, they cannot be asked after close. @param {Entry | undefined} entry */
    connected (entry) {
      const handle = entry?.resource.deref()
      if (entry === undefined || handle === undefined) return
      entry.local ??= socketName(handle, 'getsockname')
      entry.remote ??= socketName(handle, 'getpeername')
    },

    all: () => [...entries.values()],

    size: () => entries.size
  }
}

/**
 * The id that net, dgram and tls keep on their objects, also after the handle is closed.
 * @param {object} object
 * @returns {number | undefined}
 */
function idOf (object) {
  for (const symbol of Object.getOwnPropertySymbols(object)) {
    if (symbol.description !== 'async_id_symbol') continue
    const id = own(object, symbol)
    return typeof id === 'number' ? id : undefined
  }
  return undefined
}

module.exports = { createRegistry, Entry, idOf }
