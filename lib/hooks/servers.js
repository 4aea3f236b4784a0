'use strict'

// Servers that have no context of their own, since the filter leaves them out; by id, for nothing executes when a
// connection comes.

const { stamp } = require('../context/stamp')

const SERVERS = 1000 // remembered

function createServers () {
  /** @type {Map<number, WeakRef<object>>} oldest first */
  const servers = new Map()

  return {
    /** @param {number} asyncId @param {object} resource */
    add (asyncId, resource) {
      servers.set(asyncId, new WeakRef(resource))
      for (const oldest of servers.keys()) {
        if (servers.size <= SERVERS) break
        servers.delete(oldest)
      }
    },

    /** @param {number} asyncId */
    context (asyncId) {
      const resource = servers.get(asyncId)?.deref()
      return resource === undefined ? undefined : stamp.read(resource)
    }
  }
}

module.exports = { createServers }
