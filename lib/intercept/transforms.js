'use strict'

/** The connections whose bytes go through transforms, by socket. */
const connections = /** @type {WeakMap<object, import('./connection').Connection>} */ (new WeakMap())

/**
 * Returns the transforms of a connection as a report shows them.
 * @param {object} socket
 * @returns {Array<{ name: string, at: string | undefined }>}
 */
const transformsOf = (socket) => (connections.get(socket)?.interceptors ?? [])
  .map(({ name, at }) => ({ name, at }))

module.exports = { connections, transformsOf }
