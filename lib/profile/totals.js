'use strict'

// What a profile adds up: for each chain, and each route that it ran for, how often it ran, how long it ran
// and how long it waited. Bounded: what comes past MAX_TOTALS and MAX_ROUTES is added up as one.

const { NO_CHAIN } = require('../core/records')
const served = require('../core/served-requests')
const { BEGUN, IDLE, RESUMED } = require('./step-log')

const MAX_TOTALS = 50_000 // pairs of chain and route
const MAX_ROUTES = 1_000
const OTHER_ROUTES = '(other requests)'

/** @typedef {import('./step-log').StepLog} StepLog */

class Totals {
  constructor () {
    /** slots by chain, for each number of a route @type {Array<Map<number, number>>} */
    this.slotMaps = [new Map()]
    this.slotCount = 0
    /** by name @type {Map<string, number>} */
    this.routeNumbers = new Map()
    /** names by number; 0: no request @type {Array<string | undefined>} */
    this.routes = [undefined]
    /** of the entries that are added; emptied with each piece @type {Map<number, number>} */
    this.requestRoutes = new Map()
    this.lastChain = NaN
    this.lastRequest = 0
    this.lastSlot = 0
    this.idleMs = 0
    this.allocate(256)
  }

  /** @param {number} size slots */
  allocate (size) {
    const copy = (/** @type {Float64Array | undefined} */ array) => {
      const larger = new Float64Array(size)
      if (array !== undefined) larger.set(array)
      return larger
    }
    this.chains = copy(this.chains)
    this.routeOfSlot = copy(this.routeOfSlot)
    this.counts = copy(this.counts)
    this.waitCounts = copy(this.waitCounts)
    this.requestCounts = copy(this.requestCounts)
    this.ranMs = copy(this.ranMs)
    this.waitedMs = copy(this.waitedMs)
  }

  /**
   * Adds entries of a log; each lasts until the next one.
   * @param {StepLog} log
   * @param {number} start index
   * @param {number} end index of an entry that is there
   */
  add (log, start, end) {
    for (let i = start; i < end; i++) {
      const ms = (log.timeAt(i + 1) - log.timeAt(i)) / 1e3
      const chain = log.chainAt(i)
      if (chain === IDLE) {
        this.idleMs += ms
        continue
      }
      const slot = this.slotOf(chain, log.requestAt(i))
      this.ranMs[slot] += ms
      const waited = log.waitAt(i)
      if (waited === RESUMED) continue
      this.counts[slot]++
      if (waited === BEGUN) this.requestCounts[slot]++
      if (waited < 0) continue
      this.waitCounts[slot]++
      this.waitedMs[slot] += waited / 1e3
    }
    this.requestRoutes = new Map()
    this.lastChain = NaN
  }

  /**
   * Returns the slot of a chain and the route of a request.
   * @param {number} chain
   * @param {number} request reference, 0: none
   * @returns {number}
   */
  slotOf (chain, request) {
    if (chain === this.lastChain && request === this.lastRequest) return this.lastSlot
    const route = request === 0 ? 0 : this.routeNumber(request)
    const slot = this.slotMaps[route].get(chain) ?? this.addSlot(chain, route)
    this.lastChain = chain
    this.lastRequest = request
    this.lastSlot = slot
    return slot
  }

  /** @param {number} chain @param {number} route @returns {number} */
  addSlot (chain, route) {
    if (this.slotCount > MAX_TOTALS && chain !== NO_CHAIN) return this.slotOf(NO_CHAIN, 0)
    const slot = this.slotCount++
    if (slot === this.chains.length) this.allocate(2 * slot)
    this.slotMaps[route].set(chain, slot)
    this.chains[slot] = chain
    this.routeOfSlot[slot] = route
    return slot
  }

  /** @param {number} request reference @returns {number} */
  routeNumber (request) {
    const remembered = this.requestRoutes.get(request)
    if (remembered !== undefined) return remembered
    const name = served.nameOf(request)
    const number = name === undefined ? 0 : this.routeNumbers.get(name) ?? this.addRoute(name)
    this.requestRoutes.set(request, number)
    return number
  }

  /** @param {string} name @returns {number} */
  addRoute (name) {
    if (this.routes.length > MAX_ROUTES) return MAX_ROUTES
    const text = this.routes.length === MAX_ROUTES ? OTHER_ROUTES : name
    const number = this.routes.push(text) - 1
    this.slotMaps.push(new Map())
    this.routeNumbers.set(text, number)
    return number
  }
}

module.exports = { Totals }
