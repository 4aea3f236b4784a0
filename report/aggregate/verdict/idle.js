'use strict'

// Connections that nobody uses while a request waits for one: they were not returned to their pool.

const { shortFrame } = require('../../../lib/text')
const { isOfLimiter } = require('../frames')

const MIN_IDLE_MS = 2000 // unless the request is younger
const MAX_IDLE_PEERS = 2

/**
 * @typedef {Omit<import('../../../lib/handles/idle-connections').IdleConnections, 'silent'>} IdlePeer
 * @typedef {import('../../../lib/handles/stopped-requests').LastStep} LastStep
 */

/**
 * Names the last users of connections that a request may wait for, if all connections to a peer are idle.
 * @param {IdlePeer[]} idle
 * @param {{ at: string | undefined, isUsing: boolean, ageMs: number }} request at: place of its await;
 *   isUsing: it waits for a connection or call that is known
 * @param {(ms: number) => string} time formats a duration
 * @param {boolean} [isOver] the process has ended
 * @returns {string} begins with a space, or empty
 */
function idleSentence (idle, { at: waitsAt = '', isUsing, ageMs }, time, isOver = false) {
  // Only a request that uses no connection and waits in a package, which may be a driver
  if (isUsing || !/ via \S+$/.test(waitsAt) || isOfLimiter(waitsAt)) return ''
  const minMs = Math.min(ageMs, MIN_IDLE_MS)
  const unused = idle.filter(({ open, idle: count, leastMs }) => count === open && leastMs >= minMs)
  return unused.slice(0, MAX_IDLE_PEERS).map(({ peer, open, leastMs, users }) => {
    const by = users.map(({ request, at: place, count }) => {
      const site = place === undefined ? undefined : `at ${shortFrame(place)}`
      const who = [request, site].filter(Boolean).join(', ')
      return who === '' || users.length === 1 ? who : `${count} × ${who}`
    }).filter(Boolean).join('; ')
    const [all, have, they] = open === 1
      ? ['The only connection', 'has', 'it is']
      : [`All ${open} connections`, 'have', 'they are']
    return ` ${all} to ${peer} ${isOver ? 'had' : have} been idle for ${time(leastMs)}` +
      `${by === '' ? '' : `, last used by ${by}`}: check whether ${they} released there.`
  }).join('')
}

module.exports = { idleSentence }
