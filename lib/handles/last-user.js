'use strict'

// The user of a connection: the request of a client of Node's, else the last write on it. Both as a context;
// that of a write is its place, below the step that wrote.

const { contextAt, contextOfChain } = require('../context/context')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./entry').Entry} Entry
 */

/**
 * Returns the last write on a connection.
 * @param {Entry | undefined} entry
 * @returns {Context | undefined} undefined where a client of Node's uses it
 */
function writerOf (entry) {
  if (entry === undefined || entry.use !== undefined || entry.writeChain === 0) return undefined
  const write = contextOfChain(entry.writeChain)
  if (write === undefined) return undefined
  write.time = Number(entry.writeTime)
  const step = entry.writeRef === 0 ? undefined : contextAt(entry.writeRef)
  if (step !== undefined && step.chain === write.parent?.chain) write.parent = step
  return write
}

/**
 * @param {Entry | undefined} entry
 * @returns {{ context: Context, origin: 'used' | 'written' } | undefined}
 */
function userOf (entry) {
  const use = entry?.use
  if (use?.isOver) return undefined
  const context = use === undefined ? writerOf(entry) : use.context
  return context && { context, origin: use === undefined ? 'written' : 'used' }
}

module.exports = { userOf, writerOf }
