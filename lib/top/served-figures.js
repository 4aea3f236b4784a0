'use strict'

// Figures of the requests that servers get, by route, since they were read last, as Node reports them through
// diagnostics_channel. Bounded: the routes that come after MAX_ROUTES in an interval are added up under one
// name.

const { COUNT, bucketOf, pack } = require('../buckets')
const { now } = require('../context/clock')
const { nameOfUrl } = require('../context/request-names')
const { hidden, isObject, own } = require('../objects')
const { createHttp1Figures } = require('./http1-figures')

const MAX_ROUTES = 300
const OTHER = '(other)'

/**
 * @typedef {object} ServedFigures
 * @property {RouteFigures[]} routes
 * @property {number} inFlight
 * @property {{ ms: number, name: string } | undefined} oldest request in flight, of HTTP/1
 */

/** @param {(request: object) => string | undefined} routeOf the route that a framework found */
function createServedFigures (routeOf) {
  const table = new RouteTable()
  const http1 = createHttp1Figures(table, routeOf)
  const http2 = createHttp2Figures(table)

  return {
    subscriptions: [...http1.subscriptions, ...http2.subscriptions],
    sweep: http1.sweep,
    adopt: http1.adopt,

    forgetOpen () {
      http1.forgetOpen()
      http2.forgetOpen()
    },

    /** Returns the figures since the last call. @returns {ServedFigures} */
    read: () => ({
      routes: table.read(),
      inFlight: http1.inFlight() + http2.inFlight(),
      oldest: http1.oldest()
    })
  }
}

/**
 * Requests over HTTP/2: a stream is one. Node 20 reports none.
 * @param {RouteTable} table
 */
function createHttp2Figures (table) {
  /** @type {WeakMap<object, { since: number, name: string }>} */
  let streams = new WeakMap()
  let inFlight = 0

  /** @param {{ stream: object, headers: object }} message */
  function streamStarted ({ stream, headers }) {
    const method = own(headers, ':method')
    const path = own(headers, ':path')
    if (typeof method !== 'string' || streams.has(stream)) return
    const name = nameOfUrl(method, typeof path === 'string' ? path : '')
    streams.set(stream, { since: now(), name })
    inFlight++
  }

  /** @param {{ stream: object }} message */
  function streamClosed ({ stream }) {
    const begun = streams.get(stream)
    if (begun === undefined) return
    streams.delete(stream)
    inFlight--
    const state = hidden(stream, 'state')
    const headers = hidden(stream, 'sent-headers')
    const hasFailed = isObject(state) && Number(/** @type {any} */ (state).rstCode) > 0
    const route = table.get(begun.name)
    if (hasFailed) route.lost++
    else route.add((now() - begun.since) * 1000, isObject(headers) ? Number(own(headers, ':status')) : 0, 1)
  }

  return {
    /** @type {Array<[string, (message: any) => void]>} */
    subscriptions: [
      ['http2.server.stream.start', streamStarted],
      ['http2.server.stream.close', streamClosed],
      ['http2.server.stream.error', streamClosed]
    ],

    inFlight: () => inFlight,

    /** Tracing was off for a while. */
    forgetOpen () {
      streams = new WeakMap()
      inFlight = 0
    }
  }
}

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

module.exports = { RouteTable, createServedFigures }
