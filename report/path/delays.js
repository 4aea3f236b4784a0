'use strict'

// Delays of a request by others: the slices of other requests after the awaited event had arrived.

const { NONE } = require('./entries')
const { entryBefore } = require('./timeline')

const MAX_SLICES = 1 << 12 // the newest of one span: each of many spans is delayed by all others
const MIN_SHARE = 1 / 1000 // of these, of who is told

/**
 * @typedef {object} Delayer
 * @property {number} request number of the request whose code ran, 0: of none
 * @property {number} chain of the run
 * @property {number} ms
 * @property {number} max ms, more than `ms` if it is not known when what was delayed had come
 * @property {number} start ms, of the longest run
 * @property {number} longest ms
 */

/** Delayers by request and chain, in an open hash table. */
class Delayers {
  /** @type {Delayer[]} */
  list = []
  #places = new Int32Array(256) // in the list, from 1

  /** @param {number} request @param {number} chain @returns {Delayer} */
  get (request, chain) {
    let slot = this.#slotOf(request, chain)
    const place = this.#places[slot]
    if (place !== 0) return this.list[place - 1]
    if (this.list.length * 2 >= this.#places.length) {
      this.#grow()
      slot = this.#slotOf(request, chain)
    }
    const delayer = { request, chain, ms: 0, max: 0, start: 0, longest: 0 }
    this.#places[slot] = this.list.push(delayer)
    return delayer
  }

  /** Returns all of them. */
  take () {
    const { list } = this
    this.list = []
    this.#places.fill(0)
    return list
  }

  /** @param {number} request @param {number} chain */
  #slotOf (request, chain) {
    const places = this.#places
    const mask = places.length - 1
    let slot = (Math.imul(request, 0x9e3779b1) ^ Math.imul(chain, 0x85ebca6b)) >>> 7 & mask
    while (places[slot] !== 0) {
      const delayer = this.list[places[slot] - 1]
      if (delayer.chain === chain && delayer.request === request) break
      slot = (slot + 1) & mask
    }
    return slot
  }

  #grow () {
    this.#places = new Int32Array(this.#places.length * 2)
    this.list.forEach(({ request, chain }, i) => { this.#places[this.#slotOf(request, chain)] = i + 1 })
  }
}

const delayers = new Delayers()

/**
 * Returns who delayed a request for a noticeable part, longest first.
 * @param {import('./entries').Recording} recording
 * @param {import('./requests').Request} request
 * @param {import('./critical-path').Wait[]} waits newest first
 * @returns {Delayer[]}
 */
function delaysOf (recording, { outermost }, waits) {
  const { at, chain, end, outer, placed, run, slice } = recording
  let hint = placed - 1
  let left = MAX_SLICES
  let sum = 0
  for (const { cameAfter, cameBy, delayedMax, until } of waits) {
    if (delayedMax === 0) continue
    hint = entryBefore(recording, until, hint)
    let i = hint === NONE ? NONE : slice[hint]
    for (; i !== NONE && end[i] > cameAfter; i = i === 0 ? NONE : slice[i - 1]) {
      if (outer[i] === outermost) continue
      if (left-- === 0) break
      const stop = Math.min(end[i], until)
      const start = Math.max(at[i], cameAfter)
      const max = stop - start
      if (max <= 0) continue
      const delayer = delayers.get(outer[i], chain[run[i]])
      delayer.ms += Math.max(0, stop - Math.max(at[i], cameBy))
      delayer.max += max
      sum += max
      if (max < delayer.longest) continue
      delayer.longest = max
      delayer.start = start
    }
  }
  return delayers.take().filter(({ max }) => max >= sum * MIN_SHARE).sort((a, b) => b.max - a.max)
}

module.exports = { delaysOf }
