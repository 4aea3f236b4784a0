'use strict'

// Who wrote on a connection last, as a context: the place of the write, below the step that wrote.

const { contextAt, contextOfChain } = require('../context/context')

/**
 * @param {import('./registry').Entry | undefined} entry
 * @returns {import('../context/context').Context | undefined}
 */
function writerOf (entry) {
  if (entry === undefined || entry.writeChain === 0) return undefined
  const write = contextOfChain(entry.writeChain)
  if (write === undefined) return undefined
  write.time = entry.writeTime
  const step = entry.writeRef === 0 ? undefined : contextAt(entry.writeRef)
  if (step !== undefined && step.chain === write.parent?.chain) write.parent = step
  return write
}

module.exports = { writerOf }
