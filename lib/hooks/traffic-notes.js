'use strict'

// Notes who writes on a connection, and while spans are timed whose question an answer belongs to.

const { now } = require('../context/clock')
const {
  CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, CURRENT_RUN, CURRENT_SPAN, current
} = require('../context/current')
const { CHAIN_BITS, FIRST_CHAIN } = require('../context/records')

/**
 * @param {object} deps
 * @param {import('./async-hooks').AsyncParts['capture']} deps.capture
 * @param {import('../context/kinds').Kind} deps.kind of a write
 * @param {() => void} deps.resolve makes sure that the current step is known
 * @param {() => import('../spans/loop-time').LoopTime | undefined} deps.loopTime while spans are timed
 */
function createTrafficNotes ({ capture, kind, resolve, loopTime }) {
  /**
   * Notes the step that writes on a connection; the connection's own callbacks read.
   * @param {import('../handles/entry').Entry} entry
   */
  function noteWrite (entry) {
    const chain = current[CURRENT_CHAIN]
    if (chain < FIRST_CHAIN || current[CURRENT_CAUSE] === entry.context.ref) return
    entry.writeChain = capture.step(chain, kind.number, noteTraffic) & CHAIN_BITS
    entry.writeRef = current[CURRENT_CAUSE]
    entry.writeTime = entry.activeAt = now()
  }

  /**
   * Notes data on a connection that no server accepted. Where a request uses it, that is its writer.
   * @param {import('../handles/entry').Entry} entry
   */
  function noteTraffic (entry) {
    resolve()
    if (entry.use === undefined) noteWrite(entry)
    const loop = loopTime()
    loop?.noteTraffic(loop, entry, current[CURRENT_REF], current[CURRENT_SPAN], current[CURRENT_RUN])
  }

  return noteTraffic
}

module.exports = { createTrafficNotes }
