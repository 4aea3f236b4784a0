'use strict'

// Critical paths packed as numbers: thousands are kept, each for a while. As objects they would be most of
// what the garbage collector copies.

const { UNKNOWN, OTHER_SITES } = require('./sites')

/**
 * @typedef {import('./critical-paths').RequestPath} RequestPath
 * @typedef {import('../read/path-entries').PathEntry} PathEntry
 * @typedef {import('./sites').Places} Places
 */

const CHUNK = 64 // paths that are allocated together
const HEAD = 7 // numbers before the entries
const ENTRY = 4
const MAX_ENTRIES = 20
const LENGTH = HEAD + MAX_ENTRIES * ENTRY

class PackedPaths {
  /** @type {Float64Array[]} */
  #chunks = []
  #places

  /** @param {Places} places */
  constructor (places) {
    this.#places = places
  }

  /** @param {number} slot @param {RequestPath} path */
  set (slot, path) {
    const { waits, ran, beside, otherPlace, waited, delayed, run } = path
    const chunk = this.#chunks[Math.floor(slot / CHUNK)] ??= new Float64Array(CHUNK * LENGTH)
    const start = slot % CHUNK * LENGTH
    chunk[start] = beside
    chunk[start + 1] = waited
    chunk[start + 2] = delayed
    chunk[start + 3] = run
    chunk[start + 4] = otherPlace === UNKNOWN ? 1 : 0
    chunk[start + 5] = waits.length
    chunk[start + 6] = ran.length
    let index = start + HEAD
    for (let i = 0; i < waits.length + ran.length; i++) {
      const { place, ms, count, delayed } = i < waits.length ? waits[i] : ran[i - waits.length]
      chunk[index] = place.index
      chunk[index + 1] = ms
      chunk[index + 2] = count
      chunk[index + 3] = delayed
      index += ENTRY
    }
  }

  /** @param {number} slot @returns {RequestPath} */
  get (slot) {
    const chunk = this.#chunks[Math.floor(slot / CHUNK)]
    const start = slot % CHUNK * LENGTH
    const [beside, waited, delayed, run, isUnknown, waits, ran] = chunk.subarray(start, start + HEAD)
    const entry = (/** @type {number} */ i, /** @type {boolean} */ isRun) =>
      this.#entry(chunk, start + HEAD + i * ENTRY, isRun)
    return {
      waits: Array.from({ length: waits }, (_, i) => entry(i, false)),
      ran: Array.from({ length: ran }, (_, i) => entry(waits + i, true)),
      ...{ beside, waited, delayed, run },
      otherPlace: isUnknown === 1 ? UNKNOWN : OTHER_SITES
    }
  }

  /** @param {Float64Array} chunk @param {number} index @param {boolean} isRun @returns {PathEntry} */
  #entry (chunk, index, isRun) {
    const [place, ms, count, delayed] = chunk.subarray(index, index + ENTRY)
    const unknown = { sent: undefined, unsent: undefined, beside: undefined, on: undefined }
    return { ms, count, delayed, ...unknown, place: this.#places.at(place), isRun }
  }
}

module.exports = { PackedPaths }
