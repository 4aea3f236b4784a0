'use strict'

// Requests by fetch.

/**
 * @typedef {import('./world').World} World
 * @typedef {import('./world').Task} Task
 */

/** @param {World} world @param {Task} task @param {string} how */
const urlOf = (world, task, how) => `http://127.0.0.1:${world.ports.http}${task.path}/${how}`

/** @type {Record<string, import('./world').Exchange>} */
module.exports = {
  async fetch (world, task) {
    task.truth.isGood = true
    /** @type {import('./judge').Side} */
    const side = { outcome: 'cut' }
    task.truth.made.push(side)
    const response = await fetch(urlOf(world, task, ['', 'slow', 'big'][world.below(3)]))
    await response.arrayBuffer()
    side.outcome = 'whole'
  },

  async 'cut-fetch' (world, task) {
    /** @type {import('./judge').Side} */
    const side = { outcome: 'cut' }
    task.truth.made.push(side)
    const controller = new AbortController()
    const signal = world.below(3) === 0 ? AbortSignal.timeout(1 + world.below(6)) : controller.signal
    world.sometime(() => controller.abort())
    setTimeout(() => controller.abort(), 50).unref()
    try {
      const how = ['slow', 'silent', 'half', 'big', 'cut-by-server'][world.below(5)]
      const response = await fetch(urlOf(world, task, how), { signal })
      side.outcome = 'free'
      await response.text()
      side.outcome = 'whole'
    } catch {} // the last byte may have come all the same
  },

  // The body is never read: cancelled, or left to the collector.
  async 'unread-fetch' (world, task) {
    task.truth.made.push({ outcome: 'free' })
    const response = await fetch(urlOf(world, task, ['', 'big', 'slow'][world.below(3)]))
    if (world.below(2) === 0) await response.body?.cancel()
  },

  async 'failed-fetch' (world, task) {
    task.truth.made.push({ outcome: 'cut' })
    await fetch(`http://127.0.0.1:${world.ports.refused}${task.path}`).catch(() => {})
  }
}
