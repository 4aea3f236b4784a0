'use strict'

// What the critical paths of a route's requests consist of: waits, delays and runs by site. The parts of one
// request add up to its breakdown into run, waited and delayed.

const { amount } = require('../read/span-line')
const { ranOf } = require('./digest')
const { BESIDE, OTHER_SITES, SiteSums, UNKNOWN } = require('./sites')

/**
 * @typedef {import('./sites').Place} Place
 * @typedef {import('./digest').Split} Split
 *
 * @typedef {object} Part of the time of one request, at one place; in ms, not weighted
 * @property {Place} place
 * @property {number} waited
 * @property {number} waits
 * @property {number} delayed
 * @property {number} ran
 * @property {number} callbacks
 */

const ROUNDING_MS = 0.0005 // of a time with three decimals
const MAX_EXAMPLES = 3
const TIMED_FIGURES = 4 // waited, waits, delayed, ran

/**
 * @param {Record<string, any>} attributes
 * @param {Split} split
 * @param {import('./digest').Wait[]} waits of these attributes
 * @param {import('./sites').Places} places
 * @returns {Part[]} first those of the waits, in their order
 */
function partsOf (attributes, split, waits, places) {
  /** @type {Part[]} */
  const parts = []
  let [waited, delayed, ran] = [0, 0, 0]
  for (const { ms, count, at: frame, callers, until, label, delayed: delay = 0 } of waits) {
    const place = places.find(frame, callers, until, label)
    parts.push({ ...noPart(place), waited: ms, waits: count, delayed: delay })
    waited += ms
    delayed += delay
  }
  const runs = ranOf(attributes['longstack.ran'])
  for (const { ms, count, at: frame, callers, label } of runs) {
    const place = places.find(frame, callers, undefined, label)
    parts.push({ ...noPart(place), ran: ms, callbacks: count })
    ran += ms
  }
  const beside = amount(attributes['longstack.beside_ms']) ?? 0
  if (beside > 0) parts.push({ ...noPart(BESIDE), ran: beside, callbacks: 1 })
  const remainder = noPart(waits.length > 0 ? OTHER_SITES : UNKNOWN)
  remainder.waited = remainderOf(split.waited, waited, waits.length)
  remainder.delayed = remainderOf(split.delayed, delayed, waits.length)
  remainder.ran = remainderOf(split.run, ran + beside, runs.length + 1)
  if (remainder.waited + remainder.delayed + remainder.ran > 0) {
    remainder.waits = remainder.waited > 0 ? 1 : 0
    remainder.callbacks = remainder.ran > 0 ? 1 : 0
    parts.push(remainder)
  }
  return parts
}

/** @param {Place} place @returns {Part} */
function noPart (place) {
  return { place, waited: 0, waits: 0, delayed: 0, ran: 0, callbacks: 0 }
}

/**
 * Returns what a list leaves out, without what is only rounding.
 * @param {number} total
 * @param {number} listed ms
 * @param {number} count of the list
 */
function remainderOf (total, listed, count) {
  const remainder = total - listed
  return remainder > ROUNDING_MS * (count + 1) ? remainder : 0
}

/** The sums of a route. */
class CriticalPaths {
  /** @type {Map<Place, SiteSums>} */
  #sums = new Map()
  #budget

  /** @param {import('./times').TimesBudget} [budget] without it there are no sums along time */
  constructor (budget) {
    this.#budget = budget
  }

  /**
   * @param {Part[]} parts of one request
   * @param {number} weight
   * @param {string} traceId
   * @param {number} [bucket] of its start
   */
  add (parts, weight, traceId, bucket) {
    for (const part of parts) {
      const sums = this.#find(part.place)
      if (part.waits > 0 && part.waited > 0) {
        sums.spans += weight
        sums.sample.add(part.waited, weight)
      }
      sums.waited += part.waited * weight
      sums.waits += part.waits * weight
      sums.delayed += part.delayed * weight
      sums.ran += part.ran * weight
      sums.callbacks += part.callbacks * weight
      if (bucket === undefined) sums.times = undefined
      else if (sums.times !== undefined) addTimes(sums.times, bucket, part, weight)
      addExample(sums.examples, part.waited + part.delayed + part.ran, traceId)
    }
  }

  /** @param {Place} place @returns {SiteSums} */
  #find (place) {
    let sums = this.#sums.get(place)
    if (sums === undefined) {
      sums = new SiteSums(place)
      sums.times = this.#budget?.create()
      this.#sums.set(place, sums)
    }
    return sums
  }

  list () {
    return [...this.#sums.values()]
  }
}

/**
 * @param {import('./times').Times} times
 * @param {number} bucket
 * @param {Part} part
 * @param {number} weight
 */
function addTimes (times, bucket, { waited, waits, delayed, ran }, weight) {
  times.add(bucket, waited * weight, waits * weight, delayed * weight, ran * weight)
}

/** @param {SiteSums['examples']} examples @param {number} ms @param {string} traceId */
function addExample (examples, ms, traceId) {
  if (examples.length === MAX_EXAMPLES && ms <= examples[MAX_EXAMPLES - 1].ms) return
  const index = examples.findIndex((example) => example.ms < ms)
  examples.splice(index === -1 ? examples.length : index, 0, { ms, traceId })
  if (examples.length > MAX_EXAMPLES) examples.pop()
}

module.exports = { CriticalPaths, TIMED_FIGURES, partsOf }
