'use strict'

// Counts pending waits and open handles by the number of the chain that began them, at intervals. Names are
// made only for those that are read, and cached.

const { now } = require('../core/clock')
const { requestOf } = require('../core/request-of')
const { getOrAdd } = require('../group-by')
const { nounOf } = require('./describe')
const { isTraced, walk } = require('./list')
const { pendingNote, visitInnermost } = require('./pending')
const { keepsProcessAlive } = require('./state')
const { placeInMain, siteOf } = require('../spans/path-sites')
const { placeText } = require('../text')

const MAX_WAITS = 60 // sites per response, the largest ones
const MAX_GROUPS = 200 // of handles per response, the largest ones
const NAMES = 10 // made without a pause
const MAX_CHAINS = 2000 // of waits per interval
const MIN_HANDLES_MS = 1000 // between two counts of open handles
const REST = 1000 // ms of rest per ms of counting: each kind takes at most 0.1 % of the time

/**
 * @typedef {import('./subject').Subject} Subject
 *
 * @typedef {{ chain: number, isOfRequest: boolean, count: number }} CountedWait
 *
 * @typedef {object} WaitFigures a site at which something waits
 * @property {number} chain
 * @property {string} site the innermost frame of the program, or else the label
 * @property {string} label
 * @property {boolean} isOfRequest
 * @property {number} count mean number of waits there: their share of the time, by Little's law
 *
 * @typedef {object} HandleFigures handles of a type and a chain
 * @property {number} chain
 * @property {string} noun `TCP connection`
 * @property {string} site where they were opened
 * @property {number} count that are open
 * @property {number} keeping of them, which keep the process alive
 *
 * @typedef {object} OpenFigures
 * @property {number} count NaN if unknown
 * @property {HandleFigures[]} groups
 * @property {number} [agoMs] age of the count; undefined if it is new
 */

class SiteFigures {
  /** waits that were seen, with the keys of #countWaits @type {Map<number, CountedWait>} */
  #waits = new Map()
  #samples = 0
  #nextSample = 0
  #nextCount = 0
  #countMs = 0 // of the last count
  #rest
  /** mean number of waits at all sites, as last read */
  waiting = 0
  /** open handles, as last counted @type {OpenFigures} */
  open = { count: 0, groups: [] }

  /** @param {number} [rest] ms per ms of counting; 0 to count on every call */
  constructor (rest = REST) {
    this.#rest = rest
  }

  /** @param {number} chain */
  #nameOf (chain) {
    const { at: own, label = '' } = siteOf(chain)
    const place = own ?? placeInMain(chain)
    return { site: place === undefined ? label : placeText(place), label }
  }

  /**
   * Counts open handles if a count is due.
   * @returns {Generator<undefined, void>} with pauses, in which the event loop may go on
   */
  * countHandles () {
    if (now() < this.#nextCount) return
    const { ms, value } = yield * measured(this.#openGroups())
    this.open = value
    const minMs = this.#rest === 0 ? 0 : MIN_HANDLES_MS
    // A count may include loading, or wait for a CPU: the next one does not
    this.#nextCount = now() + Math.max(minMs, Math.min(ms, this.#countMs) * this.#rest)
    this.#countMs = ms
  }

  /** @returns {Generator<undefined, OpenFigures>} */
  * #openGroups () {
    /** @type {Map<string, { subject: Subject, chain: number, count: number, keeping: number }>} */
    const groups = new Map()
    let total = 0
    for (const subject of walk(isTraced)) {
      if (subject === undefined) {
        yield
        continue
      }
      total++
      const chain = subject.context?.chain ?? 0
      const first = () => ({ subject, chain, count: 0, keeping: 0 })
      const group = getOrAdd(groups, `${subject.type} ${chain}`, first)
      group.count++
      if (keepsProcessAlive(subject)) group.keeping++
    }
    /** @type {HandleFigures[]} */
    const named = []
    for (const { subject, chain, ...counts } of largest([...groups.values()], MAX_GROUPS)) {
      named.push({ chain, noun: nounOf(subject, undefined), site: this.#nameOf(chain).site, ...counts })
      if (named.length % NAMES === 0) yield
    }
    return { count: total, groups: named }
  }

  /**
   * Samples pending waits if a sample is due.
   * @returns {Generator<undefined, void>} with pauses, in which the event loop may go on
   */
  * sample () {
    if (now() < this.#nextSample || pendingNote() !== undefined) return
    const isFirst = this.#nextSample === 0 // includes loading
    const { ms, value } = yield * measured(this.#countWaits())
    for (const [key, wait] of value) {
      const known = this.#waits.get(key)
      if (known !== undefined) known.count += wait.count
      else if (this.#waits.size < MAX_CHAINS) this.#waits.set(key, wait)
    }
    this.#nextSample = now() + (isFirst ? 0 : ms * this.#rest)
    this.#samples++
  }

  /** @returns {Generator<void, Map<number, CountedWait>>} by chain and whether a request waits */
  * #countWaits () {
    /** @type {Map<number, CountedWait>} */
    const waits = new Map()
    const lookup = new Map()
    yield * visitInnermost(now(), (chain, ref) => {
      const isOfRequest = requestOf(ref, lookup) !== 0
      getOrAdd(waits, 2 * chain + Number(isOfRequest), () => ({ chain, isOfRequest, count: 0 })).count++
    })
    return waits
  }

  /**
   * Returns the waits since the last call.
   * @returns {WaitFigures[] | undefined} undefined if unknown
   */
  readWaits () {
    const samples = this.#samples
    this.waiting = [...this.#waits.values()].reduce((sum, { count }) => sum + count, 0) / samples
    const waits = largest([...this.#waits.values()], MAX_WAITS)
      .map((wait) => ({ ...wait, ...this.#nameOf(wait.chain), count: wait.count / samples }))
    this.#waits = new Map()
    this.#samples = 0
    return samples === 0 ? undefined : waits
  }
}

/**
 * Passes pauses through, and measures the time between them.
 * @template T
 * @param {{ next: () => IteratorResult<unknown, T> }} pieces
 * @returns {Generator<undefined, { ms: number, value: T }>}
 */
function * measured (pieces) {
  for (let ms = 0; ;) {
    const start = now()
    const { done, value } = pieces.next()
    ms += now() - start
    if (done) return { ms, value }
    yield
  }
}

/** @template {{ count: number }} T @param {T[]} items @param {number} max */
function largest (items, max) {
  return items.sort((a, b) => b.count - a.count).slice(0, max)
}

module.exports = { SiteFigures }
