'use strict'

// Delays of a request by others: the code they ran after the awaited event had arrived.

const SIZE = 1 << 15 // turns kept, a power of two
const MASK = SIZE - 1
const REQUESTS = 1 << 12 // requests with a known run time, a power of two
const LOST = 1e-6 // ms, more than rounding errors
const MAX_TURNS = 1 << 11 // newest turns per span: each of many spans is delayed by all others

/**
 * @typedef {object} Delayer
 * @property {number} request number of the request whose code ran, 0 for none
 * @property {number} ms
 * @property {number} max ms, more than `ms` if the arrival time of the awaited event is unknown
 * @property {number} start of the longest turn, ms
 * @property {number} longest ms
 */

/**
 * Turns on the event loop: the slices of a recording in order, consecutive ones of one request as one turn.
 * Stored apart from the other columns, since all turns of a wait are read at once.
 */
class Turns {
  #begin = new Float64Array(SIZE)
  #end = new Float64Array(SIZE)
  #request = new Int32Array(SIZE)
  /** newest request of those with the same place, and the ms that it ran, Infinity if unknown */
  #newest = new Int32Array(REQUESTS)
  #sums = new Float64Array(REQUESTS)
  /** total number of turns */
  #count = 0
  /** index of the next entry in the recording */
  #next = 0
  #log

  /** @param {{ recording: import('./entries').Recording, timeline: import('./timeline').Timeline }} log */
  constructor (log) {
    this.#log = log
  }

  /** Adds the slices that have ended since. */
  update () {
    const { at, end, outer, slice } = this.#log.recording
    const until = this.#until
    for (let i = this.#next; i < until; i++) {
      if (slice[i] !== i) continue
      const last = (this.#count - 1) & MASK
      if (this.#count > 0 && this.#request[last] === outer[i] && this.#end[last] === at[i]) {
        this.#end[last] = end[i]
        this.#add(outer[i], end[i] - at[i])
      } else if (end[i] > at[i]) {
        const place = this.#count++ & MASK
        this.#begin[place] = at[i]
        this.#end[place] = end[i]
        this.#request[place] = outer[i]
        this.#add(outer[i], end[i] - at[i])
      }
    }
    this.#next = until
  }

  /** Adds to the run time of a request. @param {number} request @param {number} ms */
  #add (request, ms) {
    const place = request & (REQUESTS - 1)
    if (request > this.#newest[place]) {
      this.#newest[place] = request // runs for the first time
      this.#sums[place] = 0
    }
    if (request === this.#newest[place]) this.#sums[place] += ms
  }

  /** Follows a recording that has dropped entries, after an update. */
  move () {
    this.#next = this.#until
  }

  /**
   * Notes that the runs of a span since a time are part of a request.
   * @param {number} span number
   * @param {number} request number
   * @param {number} since ms
   */
  rename (span, request, since) {
    const oldest = Math.max(0, this.#count - SIZE)
    for (let i = this.#count - 1; i >= oldest && this.#end[i & MASK] >= since; i--) {
      if (this.#request[i & MASK] === span) this.#request[i & MASK] = request
    }
    this.#add(request, Infinity)
  }

  get #until () {
    const { recording: { placed }, timeline: { open } } = this.#log
    return open === -1 ? placed : open
  }

  /**
   * Returns the delayers of a request, longest first.
   * @param {import('./requests').Request} request
   * @param {import('./critical-path').Wait[]} waits newest first
   * @param {number} min ms of a reported delayer
   * @returns {Delayer[]}
   */
  delaysOf ({ outermost }, waits, min) {
    let late = 0 // upper bound
    for (const { cameAfter, delayedMax, until } of waits) if (delayedMax > 0) late += until - cameAfter
    if (late === 0 || late < min) return []
    /** @type {Map<number, Delayer>} */
    const delayers = new Map()
    const [begins, ends, requests] = [this.#begin, this.#end, this.#request]
    const [newest, sums] = [this.#newest, this.#sums]
    const least = min - LOST
    const oldest = Math.max(0, this.#count - SIZE)
    let next = this.#count - 1
    let left = MAX_TURNS
    for (let k = 0; k < waits.length; k++) {
      const { cameAfter, cameBy, delayedMax, until } = waits[k]
      if (delayedMax === 0) continue
      next = this.#before(until, next, oldest)
      for (let i = next; i >= oldest; i--) {
        const place = i & MASK
        const end = ends[place]
        if (end <= cameAfter || left-- <= 0) break
        const request = requests[place]
        if (request === outermost) continue
        const slot = request & (REQUESTS - 1)
        if (newest[slot] === request && sums[slot] < least) continue // too little to report
        const begin = begins[place]
        const stop = end < until ? end : until
        const start = begin > cameAfter ? begin : cameAfter
        const max = stop - start
        if (max <= 0) continue
        const delayer = delayers.get(request) ?? { request, ms: 0, max: 0, start, longest: 0 }
        if (delayer.max === 0) delayers.set(request, delayer)
        delayer.ms += Math.max(0, stop - Math.max(begin, cameBy))
        delayer.max += max
        if (max < delayer.longest) continue
        delayer.start = start
        delayer.longest = max
      }
    }
    return [...delayers.values()].filter(({ max }) => max >= min).sort((a, b) => b.max - a.max)
  }

  /**
   * Returns the last turn that began before a time.
   * @param {number} time
   * @param {number} newest
   * @param {number} oldest
   */
  #before (time, newest, oldest) {
    let low = oldest - 1
    let high = newest
    for (let step = 8; high - step > low && this.#begin[(high - step) & MASK] >= time; step *= 2) high -= step
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#begin[middle & MASK] < time) low = middle
      else high = middle - 1
    }
    return low
  }
}

module.exports = { Turns }
