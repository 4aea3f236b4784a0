'use strict'

// What the critical paths of a route's requests consist of: waits, delays and runs by site. The parts of one
// request add up to its breakdown into run, waited and delayed.

const { amount } = require('../read/span-line')
const { entriesOf } = require('../read/path-entries')
const { BESIDE, OTHER_SITES, SiteSums, UNKNOWN } = require('./sites')

/**
 * @typedef {import('./sites').Place} Place
 * @typedef {import('./digest').Split} Split
 * @typedef {import('../read/path-entries').PathEntry} PathEntry
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} RequestPath
 * @property {PathEntry[]} waits
 * @property {PathEntry[]} ran
 * @property {number} beside ms
 * @property {Place} otherPlace of what the lists leave out
 * @property {number} waited ms that they leave out
 * @property {number} delayed
 * @property {number} run
 */

const ROUNDING_MS = 0.0005 // of a time with three decimals
const MAX_EXAMPLES = 3
const TIMED_FIGURES = 4 // waited, waits, delayed, ran

/**
 * @param {Span} span
 * @param {Split} split
 * @param {import('./sites').Places} places
 * @returns {RequestPath}
 */
function pathOf ({ attributes }, split, places) {
  const waits = entriesOf(attributes['longstack.waits'], false, places.placeOf)
  const ran = entriesOf(attributes['longstack.ran'], true, places.placeOf)
  const beside = amount(attributes['longstack.beside_ms']) ?? 0
  let [waited, delayed, run] = [0, 0, beside]
  for (const entry of waits) {
    waited += entry.ms
    delayed += entry.delayed
  }
  for (const { ms } of ran) run += ms
  return {
    waits,
    ran,
    beside,
    otherPlace: waits.length > 0 ? OTHER_SITES : UNKNOWN,
    waited: remainderOf(split.waited, waited, waits.length),
    delayed: remainderOf(split.delayed, delayed, waits.length),
    run: remainderOf(split.run, run, ran.length + 1)
  }
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
  #samples
  #timesBudget
  #bucket = 0 // of the request that is added

  /**
   * @param {import('./sample').Samples} [samples] without it there are no quartiles
   * @param {import('./times').TimesBudget} [timesBudget] without it there are no sums along time
   */
  constructor (samples, timesBudget) {
    this.#samples = samples
    this.#timesBudget = timesBudget
  }

  /**
   * @param {RequestPath} path of one request
   * @param {number} weight
   * @param {string} traceId
   * @param {number} [bucket] of its start, if sums along time are wanted
   */
  add ({ waits, ran, beside, otherPlace, waited, delayed, run }, weight, traceId, bucket = 0) {
    this.#bucket = bucket
    for (let i = 0; i < waits.length; i++) this.#addWait(waits[i], weight, traceId)
    for (let i = 0; i < ran.length; i++) this.#addRun(ran[i].place, ran[i].ms, ran[i].count, weight, traceId)
    if (beside > 0) this.#addRun(BESIDE, beside, 1, weight, traceId)
    if (run > 0) this.#addRun(otherPlace, run, 1, weight, traceId)
    if (waited === 0 && delayed === 0) return
    const sums = this.#find(otherPlace)
    sums.waited += waited * weight
    sums.delayed += delayed * weight
    if (waited > 0) sums.waits += weight
    sums.times?.add(bucket, waited * weight, waited > 0 ? weight : 0, delayed * weight)
    addExample(sums.examples, waited + delayed, traceId)
  }

  /** @param {PathEntry} entry @param {number} weight @param {string} traceId */
  #addWait ({ place, ms, count, delayed }, weight, traceId) {
    const sums = this.#find(place)
    if (ms > 0) {
      sums.spans += weight
      sums.sample?.add(ms, weight)
    }
    sums.waited += ms * weight
    sums.waits += count * weight
    if (delayed > 0) {
      sums.delayed += delayed * weight
      sums.delays += count * weight
    }
    sums.times?.add(this.#bucket, ms * weight, count * weight, delayed * weight)
    addExample(sums.examples, ms + delayed, traceId)
  }

  /**
   * @param {Place} place
   * @param {number} ms
   * @param {number} count
   * @param {number} weight
   * @param {string} traceId
   */
  #addRun (place, ms, count, weight, traceId) {
    const sums = this.#find(place)
    sums.ran += ms * weight
    sums.callbacks += count * weight
    sums.times?.add(this.#bucket, 0, 0, 0, ms * weight)
    addExample(sums.examples, ms, traceId)
  }

  /** @param {Place} place @returns {SiteSums} */
  #find (place) {
    let sums = this.#sums.get(place)
    if (sums === undefined) {
      sums = new SiteSums(place, this.#samples?.create(), this.#timesBudget?.create())
      this.#sums.set(place, sums)
    }
    return sums
  }

  list () {
    return [...this.#sums.values()]
  }
}

/** @param {SiteSums['examples']} examples @param {number} ms @param {string} traceId */
function addExample (examples, ms, traceId) {
  const { length } = examples
  if (length === MAX_EXAMPLES && ms <= examples[MAX_EXAMPLES - 1].ms) return
  const index = examples.findIndex((example) => example.ms < ms)
  examples.splice(index === -1 ? length : index, 0, { ms, traceId })
  if (examples.length > MAX_EXAMPLES) examples.pop()
}

module.exports = { CriticalPaths, TIMED_FIGURES, pathOf }
