'use strict'

// What a profile adds up: for each chain, and each route that it ran for, how often it ran, how long it ran
// and how long it waited. Bounded: what comes past MAX_TOTALS and MAX_ROUTES is added up as one.

const { NO_CHAIN } = require('../core/records')
const served = require('../core/served-requests')
const { BEGUN, ENTRY_CHAIN, ENTRY_REQUEST, ENTRY_TIME, ENTRY_WAIT, IDLE, RESUMED } = require('./step-log')

const MAX_TOTALS = 50_000 // pairs of chain and route
const MAX_ROUTES = 1_000
const OTHER_ROUTES = '(other requests)'

/**
 * @typedef {import('./step-log').StepLog} StepLog
 *
 * @typedef {object} Total of one chain and route, see ProfileChain
 * @property {number} chain
 * @property {string | undefined} route
 * @property {number} count
 * @property {number} requests
 * @property {number} ranMs
 * @property {number} waitedMs
 * @property {number} waits
 */

class Totals {
  constructor () {
    /** slots by chain, for each number of a route @type {Array<Map<number, number>>} */
    this.slotMaps = [new Map()]
    /** by slot @type {Total[]} */
    this.list = []
    /** by name @type {Map<string, number>} */
    this.routeNumbers = new Map()
    /** names by number; 0: no request @type {Array<string | undefined>} */
    this.routes = [undefined]
    /** of the entries that are added; emptied with each piece @type {Map<number, number>} */
    this.requestRoutes = new Map()
    this.idleMs = 0
  }

  /**
   * Adds entries of a log; each lasts until the next one.
   * @param {StepLog} log
   * @param {number} start index
   * @param {number} end index of an entry that is there
   */
  add (log, start, end) {
    for (let i = start; i < end; i++) {
      const ms = (log.at(i + 1, ENTRY_TIME) - log.at(i, ENTRY_TIME)) / 1e3
      const chain = log.at(i, ENTRY_CHAIN)
      if (chain === IDLE) {
        this.idleMs += ms
        continue
      }
      const total = this.list[this.slotOf(chain, log.at(i, ENTRY_REQUEST))]
      total.ranMs += ms
      const waited = log.at(i, ENTRY_WAIT)
      if (waited === RESUMED) continue
      total.count++
      if (waited === BEGUN) total.requests++
      if (waited < 0) continue
      total.waits++
      total.waitedMs += waited / 1e3
    }
    this.requestRoutes = new Map()
  }

  /**
   * Returns the slot of a chain and the route of a request.
   * @param {number} chain
   * @param {number} request reference, 0: none
   * @returns {number}
   */
  slotOf (chain, request) {
    const route = request === 0 ? 0 : this.routeNumber(request)
    return this.slotMaps[route].get(chain) ?? this.addSlot(chain, this.routes[route], this.slotMaps[route])
  }

  /**
   * @param {number} chain
   * @param {string | undefined} route
   * @param {Map<number, number>} slots of the route
   * @returns {number}
   */
  addSlot (chain, route, slots) {
    if (this.list.length > MAX_TOTALS && chain !== NO_CHAIN) return this.slotOf(NO_CHAIN, 0)
    const slot = this.list.push({ chain, route, count: 0, requests: 0, ranMs: 0, waitedMs: 0, waits: 0 }) - 1
    slots.set(chain, slot)
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
