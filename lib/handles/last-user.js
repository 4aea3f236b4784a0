'use strict'

// Who uses a connection: the request of a client of Node's, else who wrote on it last, as a context: the place of the write,
// below the step that wrote.

const { contextAt, contextOfChain } = require('../context/context')

/**
 * @param {import('./registry').Entry | undefined} entry
 * @returns {import('../context/context').Context | undefined}
 */
function writerOf (entry) {
  if (entry === undefined || entry.use !== undefined || entry.writeChain === 0) return undefined
  const write = contextOfChain(entry.writeChain)
  if (write === undefined) return undefined
  write.time = entry.writeTime
  const step = entry.writeRef === 0 ? undefined : contextAt(entry.writeRef)
  if (step !== undefined && step.chain === write.parent?.chain) write.parent = step
  return write
}

/**
 * @param {import('./registry').Entry | undefined} entry
 * @returns {{ context: import('../context/context').Context, origin: 'used' | 'written' } | undefined}
 */
function userOf (entry) {
  const use = entry?.use
  if (use !== undefined) return use.over || use.context === undefined ? undefined : { context: use.context, origin: 'used' }
  const context = writerOf(entry)
  return context && { context, origin: 'written' }
}

module.exports = { userOf, writerOf }
