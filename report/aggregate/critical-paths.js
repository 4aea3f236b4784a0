'use strict'

// Critical paths of requests: their waits and runs, summed by site for each route. The parts of a request add
// up to its breakdown into run, waited and delayed.

const { amount, list } = require('../read/values')
const { getOrCreate } = require('./lists')
const { Numbers, insert, isLarge } = require('./numbers')
const { BESIDE, OTHER_SITES, UNKNOWN } = require('./sites')

/**
 * @typedef {import('./sites').Place} Place
 * @typedef {import('./digest').Split} Split
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} PathEntry one or several equal waits or runs
 * @property {number} ms
 * @property {number} count
 * @property {number} delayed ms in which the loop ran other code
 * @property {number | undefined} sent
 * @property {number | undefined} unsent
 * @property {number | undefined} jobs
 * @property {number | undefined} opening
 * @property {number | undefined} beside
 * @property {number[] | undefined} on asyncIds of connections
 * @property {Place} place
 *
 * @typedef {number[]} RequestPath flat rows of place and figures: thousands of paths are kept for a while,
 *   and as objects they would be most of what the garbage collector copies
 *
 * @typedef {{ ms: number, traceId: string }} Example
 */

const MAX_ENTRIES = 10 // per list
const MAX_CONNECTIONS = 4
const ROUNDING_MS = 0.0005 // rounding error of a time with three decimals
const MAX_EXAMPLES = 3
/** Figures summed per place; the first TIMED ones also over time. */
const FIGURES = /** @type {const} */ (['waited', 'waits', 'delayed', 'ran', 'delays', 'callbacks'])
const TIMED = 4
const ROW = 1 + FIGURES.length

/** @param {unknown} value */
const isAmount = (value) => amount(value) !== undefined

/**
 * Reads the waits or runs of a path.
 * @template P
 * @param {unknown} entries
 * @param {(entry: Record<string, any>) => P} placeOf
 * @returns {Array<Omit<PathEntry, 'place'> & { place: P }>}
 */
function entriesOf (entries, placeOf) {
  const valid = list(entries, MAX_ENTRIES).filter((entry) => isAmount(entry?.ms))
  return valid.map((entry) => ({
    ms: entry.ms,
    count: Number.isSafeInteger(entry.count) && entry.count > 0 ? entry.count : 1,
    delayed: amount(entry.delayed) ?? 0,
    sent: amount(entry.sent),
    unsent: amount(entry.unsent),
    jobs: amount(entry.jobs),
    opening: amount(entry.opening),
    beside: amount(entry.beside),
    on: Array.isArray(entry.on) ? list(entry.on, MAX_CONNECTIONS).filter(isAmount) : undefined,
    place: placeOf(entry)
  }))
}

/**
 * @param {Span} span
 * @param {Split} split
 * @param {import('./sites').Places} places
 * @returns {{ waits: PathEntry[], path: RequestPath }}
 */
function pathOf ({ attributes }, split, places) {
  const waits = entriesOf(attributes['longstack.waits'], places.placeOf)
  const ran = entriesOf(attributes['longstack.ran'], places.placeOf)
  const beside = amount(attributes['longstack.beside_ms']) ?? 0
  /** @type {RequestPath} */
  const path = []
  let [waited, delayed, run] = [0, 0, beside]
  for (const { place, ms, count, delayed: late } of waits) {
    path.push(place.index, ms, count, late, 0, late > 0 ? count : 0, 0)
    waited += ms
    delayed += late
  }
  for (const { place, ms, count } of ran) {
    path.push(place.index, 0, 0, 0, ms, 0, count)
    run += ms
  }
  const other = (waits.length > 0 ? OTHER_SITES : UNKNOWN).index
  waited = remainderOf(split.waited, waited, waits.length)
  delayed = remainderOf(split.delayed, delayed, waits.length)
  run = remainderOf(split.run, run, ran.length + 1)
  if (beside > 0) path.push(BESIDE.index, 0, 0, 0, beside, 0, 1)
  if (run > 0) path.push(other, 0, 0, 0, run, 0, 1)
  if (waited > 0 || delayed > 0) path.push(other, waited, waited > 0 ? 1 : 0, delayed, 0, 0, 0)
  return { waits, path }
}

/**
 * Returns the part of a total that a list leaves out, or 0 if it is only a rounding error.
 * @param {number} total
 * @param {number} listed ms
 * @param {number} count of the list
 */
function remainderOf (total, listed, count) {
  const remainder = total - listed
  return remainder > ROUNDING_MS * (count + 1) ? remainder : 0
}

/** Weighted sums of a route's requests at one place. */
class SiteSums {
  waited = 0 // ms
  waits = 0
  spans = 0
  lines = 0 // lines with a wait there
  delayed = 0 // ms
  delays = 0
  ran = 0 // ms
  callbacks = 0
  sample = new Numbers() // wait per request
  /** longest first @type {Example[]} */
  examples = []

  /** @param {Place} place @param {import('./time-axis').Times} [times] waited, waits, delayed and ran */
  constructor (place, times) {
    this.place = place
    this.times = times
  }
}

/** Sums of a route, by site. */
class CriticalPaths {
  /** @type {Map<Place, SiteSums>} */
  #sums = new Map()
  #places
  #samples
  #createTimes

  /**
   * @param {import('./sites').Places} places
   * @param {import('./numbers').Samples} [samples] no quartiles without it
   * @param {() => import('./time-axis').Times | undefined} [createTimes] no sums over time without it
   */
  constructor (places, samples, createTimes) {
    this.#places = places
    this.#samples = samples
    this.#createTimes = createTimes
  }

  /**
   * @param {RequestPath} path of one request
   * @param {number} weight
   * @param {string} traceId
   * @param {number} [bucket] of its start, for sums over time
   */
  add (path, weight, traceId, bucket = 0) {
    for (let start = 0; start < path.length; start += ROW) {
      const place = this.#places.at(path[start])
      const sums = getOrCreate(this.#sums, place, () => new SiteSums(place, this.#createTimes?.()))
      for (let i = 0; i < FIGURES.length; i++) sums[FIGURES[i]] += path[start + 1 + i] * weight
      const [waited, waits, delayed, ran] = path.slice(start + 1, start + ROW)
      sums.times?.add(bucket, waited * weight, waits * weight, delayed * weight, ran * weight)
      addExample(sums.examples, waited + delayed + ran, traceId)
      if (!place.isListed || waited === 0) continue
      sums.spans += weight
      this.#samples?.add(sums.sample, ++sums.lines, waited, weight)
    }
  }

  list () {
    return [...this.#sums.values()]
  }
}

/**
 * Keeps the longest traces, each once, longest first.
 * @param {Example[]} examples
 * @param {number} ms
 * @param {string} traceId
 */
function addExample (examples, ms, traceId) {
  if (!isLarge(examples, MAX_EXAMPLES, ms)) return
  const previous = examples.findIndex((example) => example.traceId === traceId)
  if (previous !== -1 && examples[previous].ms >= ms) return
  if (previous !== -1) examples.splice(previous, 1)
  insert(examples, MAX_EXAMPLES, { ms, traceId })
}

const PART = 0.01
const MIN_KEPT = 1000
const SPARE = 1.25 // factor on the 1 %, since a run may start slower than it ends
const MAX_KEPT = 50_000 // for all routes, approximately

/** Keeps the slowest requests of a route, enough for the slowest 1 % once all are read. */
class SlowestRequests {
  /** @type {Array<{ ms: number, weight: number, traceId: string, path: RequestPath }>} */
  #kept = []
  #count = 0
  #weight = 0
  #slowestLoss = -Infinity // ms of the slowest discarded request
  #budget
  #places

  /** @param {{ kept: number }} budget shared by all routes @param {import('./sites').Places} places */
  constructor (budget, places) {
    this.#budget = budget
    this.#places = places
  }

  /** @param {number} ms @param {number} weight @param {string} traceId @param {RequestPath} path */
  add (ms, weight, traceId, path) {
    this.#count++
    this.#weight += weight
    if (ms <= this.#slowestLoss) return
    this.#budget.kept++
    const { length } = this.#kept
    const max = Math.max(MIN_KEPT, Math.ceil(this.#count * PART * SPARE))
    const isFull = this.#budget.kept > MAX_KEPT && length > 1
    // The copy has no spare capacity.
    if (this.#kept.push({ ms, weight, traceId, path: path.slice() }) >= 2 * max) this.#keep(max)
    else if (isFull) this.#keep(Math.ceil(length / 2))
  }

  /** @param {number} count of the slowest that stay */
  #keep (count) {
    const discarded = this.#kept.sort((a, b) => b.ms - a.ms).splice(count)
    this.#budget.kept -= discarded.length
    this.#slowestLoss = Math.max(this.#slowestLoss, discarded[0].ms)
  }

  /**
   * Returns the slowest 1 %, at least one.
   * @returns {{ paths: CriticalPaths, weight: number, isExact: boolean }}
   */
  list () {
    const paths = new CriticalPaths(this.#places)
    let weight = 0
    let threshold = Infinity
    for (const request of this.#kept.sort((a, b) => b.ms - a.ms)) {
      if (weight > 0 && weight + request.weight > this.#weight * PART * (1 + 1e-9)) break
      weight += request.weight
      threshold = request.ms
      paths.add(request.path, request.weight, request.traceId)
    }
    return { paths, weight, isExact: this.#slowestLoss <= threshold }
  }
}

module.exports = { CriticalPaths, FIGURES, SiteSums, SlowestRequests, TIMED, addExample, entriesOf, pathOf }
