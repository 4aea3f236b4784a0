'use strict'

// The totals of a profile per chain and route: how often the chain ran, how long it ran and how long it
// waited. Bounded: entries past MAX_TOTALS and MAX_ROUTES are added up as one.

const { NO_CHAIN } = require('../core/records')
const served = require('../core/served-requests')
const { BEGUN, IDLE, RESUMED } = require('./steps')

const MAX_TOTALS = 50_000 // pairs of chain and route
const MAX_ROUTES = 1_000
const OTHER_ROUTES = '(other requests)'

/**
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
  /** slots by chain, per route number @type {Array<Map<number, number>>} */
  slotMaps = [new Map()]
  /** by slot @type {Total[]} */
  list = []
  /** by name @type {Map<string, number>} */
  routeNumbers = new Map()
  /** names by number; 0 is no request @type {Array<string | undefined>} */
  routes = [undefined]
  /** by request; cleared after `add`, since routes become known late @type {Map<number, number>} */
  requestRoutes = new Map()
  lastRequest = 0
  lastRoute = 0
  idleMs = 0

  /**
   * Adds the first steps; each lasts until the next one.
   * @param {import('./steps').Steps} steps
   * @param {number} count fewer than there are
   */
  add ({ chains, requests, times, waits }, count) {
    for (let i = 0; i < count; i++) {
      const ms = (times[i + 1] - times[i]) / 1e3
      const chain = chains[i]
      if (chain === IDLE) {
        this.idleMs += ms
        continue
      }
      const total = this.list[this.slotOf(chain, requests[i])]
      total.ranMs += ms
      const waited = waits[i]
      if (waited === RESUMED) continue
      total.count++
      if (waited === BEGUN) total.requests++
      if (waited < 0) continue
      total.waits++
      total.waitedMs += waited / 1e3
    }
    this.requestRoutes = new Map()
    this.lastRequest = 0
  }

  /**
   * Returns the slot of a chain and the route of a request.
   * @param {number} chain
   * @param {number} request reference, 0 for none
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
    if (request === this.lastRequest) return this.lastRoute
    let number = this.requestRoutes.get(request)
    if (number === undefined) {
      const name = served.nameOf(request)
      number = name === undefined ? 0 : this.routeNumbers.get(name) ?? this.addRoute(name)
      this.requestRoutes.set(request, number)
    }
    this.lastRequest = request
    this.lastRoute = number
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
