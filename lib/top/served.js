'use strict'

// Figures of served requests by route, since the last read, as Node reports requests through
// diagnostics_channel. An HTTP/2 stream is a request; Node 20 reports none of these. On a busy server
// requests over HTTP/1 are sampled at random, and each sample stands for several, so the cost stays below 1 %
// (bench/top.js). No object of the program is kept alive.

const { addCounts, bucketOf, newCounts, pack } = require('./buckets')
const { now } = require('../core/clock')
const requests = require('../core/request-names')
const { getOrAdd } = require('../group-by')
const { servedRequests } = require('../handles/requests-in-flight')
const { handleOf } = require('../node-objects')
const { hidden, isObject, own, textOf } = require('../objects')
const { routeTextOf } = require('../requests/frameworks')

const MAX_ROUTES = 300 // per interval; later ones are added up under one name
const OTHER = '(other)'
const MAX_RATE = 2000 // requests per second; of more, a part is sampled
const LOOKED_AT = 200 // requests per sweep, to see whether their connections are closed
const MIN_LOST_MS = 500 // age from which a sweep checks a request

/**
 * @typedef {object} Served a request in flight
 * @property {number} since ms of the clock
 * @property {number} weight number of requests that it stands for
 * @property {string} method
 * @property {string} url
 * @property {string} [route] that a framework reports
 * @property {WeakRef<object>} [request] of HTTP/1, like the next
 * @property {WeakRef<object>} [socket]
 *
 * @typedef {import('./buckets').RouteCounts} RouteCounts
 * @typedef {import('./buckets').PackedCounts & { name: string }} RouteFigures name: `GET /users/:id`
 */

/** Selects requests: all, or at random one of `weight` on average. */
class Choice {
  weight = 1
  #seen = 0
  #taken = 0 // number of the next request that is selected
  #random = 1 // of a separate generator: the program may have seeded that of V8
  #setAt = now()
  #setSeen = 0

  /** Whether the request that arrived is selected. */
  next () {
    if (++this.#seen < this.#taken) return false
    if (this.weight > 1) {
      this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0
      this.#taken = this.#seen + 1 + (this.#random >>> 8) % (2 * this.weight - 1)
    }
    return true
  }

  /** Adapts the weight to the rate of requests. @param {number} time ms of the clock */
  adapt (time) {
    const seconds = (time - this.#setAt) / 1000
    if (seconds > 0) this.weight = Math.max(1, Math.round((this.#seen - this.#setSeen) / seconds / MAX_RATE))
    if (this.weight === 1) this.#taken = 0
    this.#setAt = time
    this.#setSeen = this.#seen
  }
}

class ServedFigures {
  /** by request or stream @type {WeakMap<object, Served>} */
  #served = new WeakMap()
  /** oldest first, except those from before the start @type {Set<Served>} */
  #open = new Set()
  #unseen = this.#open.values()
  #inFlight = 0
  #choice = new Choice()
  /** @type {Map<string, RouteCounts>} */
  #routes = new Map()
  /** names with a route that a framework reported @type {Set<string>} */
  #reported = new Set()

  /** @type {Array<[string, (message: any) => void]>} */
  subscriptions = [
    ['http.server.request.start', ({ request, socket }) => {
      if (this.#choice.next()) this.adopt({ request, socket, time: now() })
    }],
    ['http.server.response.finish', ({ request, response }) => {
      const served = this.#served.get(request)
      if (served === undefined) return
      served.route ??= routeTextOf(request)
      this.#finish(served, own(response, 'statusCode'))
    }],
    ['tracing:fastify.request.handler:start', ({ request, route }) => {
      const raw = isObject(request) ? own(request, 'raw') : undefined
      const served = isObject(raw) ? this.#served.get(raw) : undefined
      const url = isObject(route) ? own(route, 'url') : undefined
      if (served !== undefined && typeof url === 'string') served.route = url
    }],
    ['http2.server.stream.start', ({ stream, headers }) => {
      const method = own(headers, ':method')
      if (typeof method !== 'string' || this.#served.has(stream)) return
      this.#begin(stream, { since: now(), weight: 1, method, url: textOf(own(headers, ':path')) ?? '' })
    }],
    ['http2.server.stream.close', ({ stream }) => this.#streamClosed(stream)],
    ['http2.server.stream.error', ({ stream }) => this.#streamClosed(stream)]
  ]

  /** Adds a request of HTTP/1. @param {{ socket: object, request: any, time: number }} begun */
  adopt ({ socket, request, time }) {
    if (this.#served.has(request)) return
    const method = String(own(request, 'method'))
    const url = textOf(own(request, 'url')) ?? ''
    const objects = { request: new WeakRef(request), socket: new WeakRef(socket) }
    this.#begin(request, { since: time, weight: this.#choice.weight, method, url, ...objects })
  }

  /** Adds the requests that are already in flight. @returns {Generator<undefined, void>} */
  * adoptOpen () {
    for (const served of servedRequests()) {
      if (served === undefined) yield undefined
      else if (served.time !== undefined) this.adopt({ ...served, time: served.time })
    }
  }

  /** @param {object} request @param {Served} served */
  #begin (request, served) {
    this.#served.set(request, served)
    this.#open.add(served)
    this.#inFlight += served.weight
  }

  /** @param {Served} served @returns {boolean} whether it was open */
  #forget (served) {
    if (!this.#open.delete(served)) return false
    this.#inFlight -= served.weight
    return true
  }

  /** @param {Served} served @param {unknown} status */
  #finish (served, status) {
    if (!this.#forget(served)) return
    const name = nameOf(served)
    if (served.route !== undefined && this.#reported.size < MAX_ROUTES) this.#reported.add(name)
    this.add(name, (now() - served.since) * 1000, status, served.weight)
  }

  /** @param {object} stream */
  #streamClosed (stream) {
    const served = this.#served.get(stream)
    if (served === undefined) return
    const state = hidden(stream, 'state')
    const headers = hidden(stream, 'sent-headers')
    if (isObject(state) && Number(/** @type {any} */ (state).rstCode) > 0) this.#lose(served)
    else this.#finish(served, isObject(headers) ? Number(own(headers, ':status')) : 0)
  }

  /** @param {Served} served */
  #lose (served) {
    if (this.#forget(served)) this.#routeNamed(nameOf(served)).lost += served.weight
  }

  /**
   * Adds a finished request.
   * @param {string} name
   * @param {number} us
   * @param {unknown} status
   * @param {number} weight
   */
  add (name, us, status, weight) {
    const errors = typeof status === 'number' && status >= 500 ? weight : 0
    const buckets = [bucketOf(us), weight]
    const counts = { count: weight, errors, lost: 0, sumUs: us * weight, maxUs: us, buckets }
    addCounts(this.#routeNamed(name), counts)
  }

  /** @param {string} name @returns {RouteCounts} */
  #routeNamed (name) {
    const isListed = this.#routes.has(name) || this.#routes.size < MAX_ROUTES
    return getOrAdd(this.#routes, isListed ? name : OTHER, newCounts)
  }

  /** Checks some requests in turn: those with a closed connection are lost. */
  sweep () {
    const time = now()
    this.#choice.adapt(time)
    for (let i = 0; i < LOOKED_AT; i++) {
      const { value: served, done } = this.#unseen.next()
      if (done || time - served.since < MIN_LOST_MS) { // later ones are younger
        this.#unseen = this.#open.values()
        return
      }
      if (served.socket === undefined) continue // Node reports the close of each stream
      const socket = served.socket.deref()
      if (socket === undefined || handleOf(socket) === undefined) this.#lose(served)
      else if (served.request?.deref() === undefined) this.#forget(served) // its end was not seen
    }
  }

  /** Forgets requests in flight: tracing was off, so they may have ended unseen. */
  forgetOpen () {
    this.#served = new WeakMap()
    this.#open.clear()
    this.#inFlight = 0
  }

  get inFlight () { return this.#inFlight }

  /**
   * Lists the counts since the last read; since the start if they are never read.
   * @returns {Array<{ name: string, isReported: boolean, counts: RouteCounts }>} isReported: by a framework
   */
  list () {
    return [...this.#routes].map(([name, counts]) =>
      ({ name, isReported: this.#reported.has(name), counts }))
  }

  /**
   * Returns the figures since the last call.
   * @returns {{ routes: RouteFigures[], inFlight: number, oldest: { ms: number, name: string } | undefined }}
   */
  read () {
    const routes = [...this.#routes].map(([name, { buckets, sumUs, maxUs, ...counts }]) =>
      ({ name, ...counts, sumUs: Math.round(sumUs), maxUs: Math.round(maxUs), buckets: pack(buckets) }))
    this.#routes = new Map()
    /** @type {Served | undefined} */
    let oldest
    for (const served of this.#open) if (oldest === undefined || served.since < oldest.since) oldest = served
    const first = oldest && { ms: now() - oldest.since, name: nameOf(oldest) }
    return { routes, inFlight: this.#inFlight, oldest: first }
  }
}

/** @param {Served} served */
function nameOf ({ method, route, url }) {
  return route === undefined ? requests.nameOfUrl(method, url) : requests.requestName(method, route)
}

module.exports = { ServedFigures }
