'use strict'

// Delays of a request by others: what these ran after the awaited event had arrived.

const SIZE = 1 << 15 // turns that are kept, a power of two
const MASK = SIZE - 1
const MAX_TURNS = 1 << 11 // the newest, of one span: each of many spans is delayed by all others
const MANY = 256 // of who delayed a span: then only those are told that made up
const MIN_SHARE = 1 / 1000 // of it

/**
 * @typedef {object} Delayer
 * @property {number} request number of the request whose code ran, 0: of none
 * @property {number} ms
 * @property {number} max ms, more than `ms` if it is not known when what was delayed had come
 * @property {number} start ms, of the longest turn
 * @property {number} longest ms
 */

/**
 * Who ran when: the slices of a recording, in order, those of one request that follow each other as one turn.
 * Apart from the other columns, for all turns of a wait are read at once.
 */
class Turns {
  #begin = new Float64Array(SIZE)
  #end = new Float64Array(SIZE)
  #request = new Int32Array(SIZE)
  /** how many there were */
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
      } else if (end[i] > at[i]) {
        const place = this.#count++ & MASK
        this.#begin[place] = at[i]
        this.#end[place] = end[i]
        this.#request[place] = outer[i]
      }
    }
    this.#next = until
  }

  /** The recording has dropped entries, after an update. */
  move () {
    this.#next = this.#until
  }

  /**
   * Notes that what a span ran since a time is a part of a request.
   * @param {number} span number
   * @param {number} request number
   * @param {number} since ms
   */
  rename (span, request, since) {
    const oldest = Math.max(0, this.#count - SIZE)
    for (let i = this.#count - 1; i >= oldest && this.#end[i & MASK] >= since; i--) {
      if (this.#request[i & MASK] === span) this.#request[i & MASK] = request
    }
  }

  get #until () {
    const { recording: { placed }, timeline: { open } } = this.#log
    return open === -1 ? placed : open
  }

  /**
   * Returns who delayed a request, longest first.
   * @param {import('./requests').Request} request
   * @param {import('./critical-path').Wait[]} waits newest first
   * @returns {Delayer[]}
   */
  delaysOf ({ outermost }, waits) {
    const oldest = Math.max(0, this.#count - SIZE)
    let next = this.#count - 1
    let left = MAX_TURNS
    let sum = 0
    for (let k = 0; k < waits.length; k++) {
      const { cameAfter, cameBy, delayedMax, until } = waits[k]
      if (delayedMax === 0) continue
      next = this.#before(until, next, oldest)
      for (let i = next; i >= oldest; i--) {
        const place = i & MASK
        const end = this.#end[place]
        if (end <= cameAfter || left-- === 0) break
        const request = this.#request[place]
        if (request === outermost) continue
        const begin = this.#begin[place]
        const stop = end < until ? end : until
        const start = begin > cameAfter ? begin : cameAfter
        const max = stop - start
        if (max <= 0) continue
        const certain = stop - (begin > cameBy ? begin : cameBy)
        delayers.add(request, certain > 0 ? certain : 0, max, start)
        sum += max
      }
    }
    return sum === 0 ? [] : delayers.take(sum * MIN_SHARE).sort((a, b) => b.max - a.max)
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

/** Delayers by request, in an open hash table. */
class Delayers {
  /** @type {Delayer[]} */
  #list = []
  #places = new Int32Array(256) // in the list, from 1

  /** @param {number} request @param {number} ms @param {number} max @param {number} start */
  add (request, ms, max, start) {
    const delayer = this.#get(request)
    delayer.ms += ms
    delayer.max += max
    if (max < delayer.longest) return
    delayer.longest = max
    delayer.start = start
  }

  /** Returns them, of many those that made up so much, and forgets all. @param {number} min ms */
  take (min) {
    const list = this.#list
    if (this.#places.length > 256) this.#places = new Int32Array(256)
    else this.#places.fill(0)
    this.#list = []
    return list.length > MANY ? list.filter(({ max }) => max >= min) : list
  }

  /** @param {number} request @returns {Delayer} */
  #get (request) {
    let slot = this.#slotOf(request)
    const place = this.#places[slot]
    if (place !== 0) return this.#list[place - 1]
    if (this.#list.length * 2 >= this.#places.length) {
      this.#grow()
      slot = this.#slotOf(request)
    }
    const delayer = { request, ms: 0, max: 0, start: 0, longest: 0 }
    this.#places[slot] = this.#list.push(delayer)
    return delayer
  }

  /** @param {number} request */
  #slotOf (request) {
    const places = this.#places
    const mask = places.length - 1
    let slot = Math.imul(request, 0x9e3779b1) >>> 7 & mask
    while (places[slot] !== 0 && this.#list[places[slot] - 1].request !== request) slot = (slot + 1) & mask
    return slot
  }

  #grow () {
    this.#places = new Int32Array(this.#places.length * 2)
    this.#list.forEach(({ request }, i) => { this.#places[this.#slotOf(request)] = i + 1 })
  }
}

const delayers = new Delayers()

module.exports = { Turns }
