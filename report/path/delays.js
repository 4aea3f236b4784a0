'use strict'

// Who ran while a request was late: exactly the slices of others after what it waited for had come.

const { outermostOf } = require('./requests')
const { countBelow } = require('./timeline')

/**
 * @typedef {object} Delayer
 * @property {number} request number of the request whose code ran, 0: of none
 * @property {number} chain of the run
 * @property {number} ms
 * @property {number} max ms, more than `ms` if it is not known when what was delayed had come
 * @property {number} start ms, of the longest run
 * @property {number} longest ms
 */

/**
 * Returns who delayed a request, longest first.
 * @param {import('./entries').Recording} recording
 * @param {import('./requests').Request} request
 * @param {import('./critical-path').Wait[]} waits
 * @returns {Delayer[]}
 */
function delaysOf (recording, request, waits) {
  const { chain, timeline: { slices } } = recording
  /** @type {Map<number, Map<number, Delayer>>} */
  const delayers = new Map()
  /** @param {number} i of a slice @param {import('./critical-path').Wait} wait */
  function add (i, { cameAfter, cameBy, until }) {
    const end = Math.min(slices.end[i], until)
    const start = Math.max(slices.start[i], cameAfter)
    const max = end - start
    const number = outermostOf(recording, slices.owner[i])
    if (max <= 0 || number === request.outermost) return
    const byChain = delayers.get(number) ?? new Map()
    if (byChain.size === 0) delayers.set(number, byChain)
    const place = chain[slices.run[i]]
    let delayer = byChain.get(place)
    if (delayer === undefined) {
      byChain.set(place, delayer = { request: number, chain: place, ms: 0, max: 0, start, longest: 0 })
    }
    delayer.ms += Math.max(0, end - Math.max(slices.start[i], cameBy))
    delayer.max += max
    if (max <= delayer.longest) return
    delayer.longest = max
    delayer.start = start
  }
  for (const wait of waits) {
    if (wait.delayedMax === 0) continue
    const first = Math.max(0, countBelow(slices.start, wait.cameAfter, slices.count) - 1)
    for (let i = first; i < slices.count && slices.start[i] < wait.until; i++) add(i, wait)
  }
  return [...delayers.values()].flatMap((byChain) => [...byChain.values()]).sort((a, b) => b.max - a.max)
}

module.exports = { delaysOf }
