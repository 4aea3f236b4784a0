'use strict'

// Who wrote on a connection last, as a context: its place, below the step that wrote.

const { contextAt } = require('../core/context')
const { numberOf, ownerOf } = require('../node-objects')
const { own } = require('../objects')

/**
 * Returns the last write on a connection.
 * @param {import('../core/entry').Entry | undefined} entry
 * @returns {import('../core/context').Context | undefined} undefined where a client of Node's uses it,
 *   where nothing has gone out, or it is not known who wrote
 */
function writerOf (entry) {
  if (entry === undefined || entry.use !== undefined || entry.lastAsk === 0) return undefined
  const handle = entry.resource.deref()
  if (handle !== undefined && numberOf(handle, 'bytesWritten') === 0) return undefined
  const socket = handle && ownerOf(handle)
  // What waits in the buffer of the stream was written later, by whomever
  if (socket !== undefined && own(socket, '_writableState')?.bufferedRequestCount > 0) return undefined
  return contextAt(entry.lastAsk)
}

module.exports = { writerOf }
