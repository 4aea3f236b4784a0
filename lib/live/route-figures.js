'use strict'

// Figures of requests by route, since they were read last. Bounded: the routes that come after MAX_ROUTES in
// an interval are added up under one name.

const { COUNT, bucketOf, pack } = require('../buckets')

const MAX_ROUTES = 300
const OTHER = '(other)'

/**
 * @typedef {object} RouteFigures as they are read
 * @property {string} name `GET /users/:id`
 * @property {number} count of finished responses
 * @property {number} errors of them with a status of 500 and above
 * @property {number} lost requests whose connection was closed before the response was finished
 * @property {number} sumUs
 * @property {number} maxUs
 * @property {number[]} buckets of the time from request to response, see lib/buckets.js
 */

class Route {
  count = 0
  errors = 0
  lost = 0
  sumUs = 0
  maxUs = 0
  buckets = new Uint32Array(COUNT)

  /** @param {number} us @param {unknown} status @param {number} weight for how many requests it stands */
  add (us, status, weight) {
    this.count += weight
    this.sumUs += us * weight
    if (us > this.maxUs) this.maxUs = us
    if (typeof status === 'number' && status >= 500) this.errors += weight
    this.buckets[bucketOf(us)] += weight
  }

  /** @param {string} name @returns {RouteFigures} */
  read (name) {
    const { count, errors, lost, sumUs, maxUs, buckets } = this
    const sums = { sumUs: Math.round(sumUs), maxUs: Math.round(maxUs) }
    return { name, count, errors, lost, ...sums, buckets: pack(buckets) }
  }
}

class RouteTable {
  /** @type {Map<string, Route>} */
  #routes = new Map()

  /** @param {string} name @returns {Route} */
  get (name) {
    const existing = this.#routes.get(name)
    if (existing !== undefined) return existing
    if (this.#routes.size >= MAX_ROUTES && name !== OTHER) return this.get(OTHER)
    const route = new Route()
    this.#routes.set(name, route)
    return route
  }

  /** Returns the figures since the last call. @returns {RouteFigures[]} */
  read () {
    const routes = this.#routes
    this.#routes = new Map()
    return [...routes].map(([name, route]) => route.read(name))
  }
}

module.exports = { RouteTable }
