'use strict'

// Requests over HTTP/1 that servers get. Of many, some are taken at random, each of which stands for several:
// what a busy server pays stays below 1 % (bench/top.js). No object of the program is held.

const requests = require('../context/request-names')
const { now } = require('../context/clock')
const { handleOf } = require('../node-objects')
const { isObject, own } = require('../objects')

const MAX_RATE = 2000 // requests per second; of more, a part is taken
const LOOKED_AT = 200 // requests at a time, whether their connections are closed
const MIN_LOST_MS = 500 // a request is looked at when it is open for as long

class Served {
  /** that Fastify reports @type {string | undefined} */
  route

  /**
   * @param {object} request
   * @param {object} socket
   * @param {{ since: number, weight: number, method: string, url: string }} facts since: ms of the clock;
   *   weight: for how many requests it stands
   */
  constructor (request, socket, { since, weight, method, url }) {
    this.request = new WeakRef(request)
    this.socket = new WeakRef(socket)
    this.since = since
    this.weight = weight
    this.method = method
    this.url = url
  }

  get name () {
    const { method, route, url } = this
    return route === undefined ? requests.nameOfUrl(method, url) : requests.requestName(method, route)
  }
}

/** Which requests are taken: all, or at random one of `weight` on the average. */
class Choice {
  weight = 1
  #seen = 0
  #taken = 0 // the number of the next one that is taken
  #random = 1
  #setAt = now()
  #setSeen = 0

  /** Whether the request that came is taken. */
  next () {
    if (++this.#seen < this.#taken) return false
    if (this.weight > 1) this.#taken = this.#seen + 1 + this.#nextRandom() % (2 * this.weight - 1)
    return true
  }

  /** A generator of its own: the program may have seeded that of V8. @returns {number} an integer from 0 */
  #nextRandom () {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0
    return this.#random >>> 8
  }

  /** Takes as many as their rate allows. @param {number} time ms of the clock */
  adapt (time) {
    const seconds = (time - this.#setAt) / 1000
    if (seconds > 0) this.weight = Math.max(1, Math.round((this.#seen - this.#setSeen) / seconds / MAX_RATE))
    if (this.weight === 1) this.#taken = 0
    this.#setAt = time
    this.#setSeen = this.#seen
  }
}

/**
 * @param {import('./served-figures').RouteTable} table
 * @param {(request: object) => string | undefined} routeOf the route that a framework found
 */
function createHttp1Figures (table, routeOf) {
  /** by request @type {WeakMap<object, Served>} */
  let byRequest = new WeakMap()
  /** that are not answered, oldest first but for those from before @type {Set<Served>} */
  const open = new Set()
  let unseen = open.values()
  let inFlight = 0
  const choice = new Choice()

  /** @param {{ request: any, socket: any }} message */
  function requestStarted ({ request, socket }) {
    if (choice.next()) begin(request, socket, now())
  }

  /** @param {any} request @param {object} socket @param {number} since */
  function begin (request, socket, since) {
    const isPlain = requests.hasNodePrototype(request)
    const method = String(isPlain ? request.method : own(request, 'method'))
    const path = isPlain ? request.url : own(request, 'url')
    const url = typeof path === 'string' ? path : ''
    const { weight } = choice
    const served = new Served(request, socket, { since, weight, method, url })
    byRequest.set(request, served)
    open.add(served)
    inFlight += weight
  }

  /** @param {{ request: object, response: object }} message */
  function responseFinished ({ request, response }) {
    const served = byRequest.get(request)
    if (served === undefined || !forget(served)) return
    const us = (now() - served.since) * 1000
    const status = own(response, 'statusCode')
    served.route ??= routeOf(request)
    table.get(served.name).add(us, status, served.weight)
  }

  /** Notes the route when Fastify runs a handler. @param {{ request: any, route: any }} message */
  function routed ({ request, route }) {
    const raw = isObject(request) ? own(request, 'raw') : undefined
    const served = isObject(raw) ? byRequest.get(raw) : undefined
    const url = isObject(route) ? own(route, 'url') : undefined
    if (served !== undefined && typeof url === 'string') served.route = url
  }

  /** @param {Served} served @returns {boolean} whether it was open */
  function forget (served) {
    if (!open.delete(served)) return false
    inFlight -= served.weight
    return true
  }

  /** Looks whether a request is still open. @param {Served} served */
  function check (served) {
    const socket = served.socket.deref()
    if (socket === undefined || handleOf(socket) === undefined) {
      table.get(served.name).lost += served.weight
      forget(served)
    } else if (served.request.deref() === undefined) forget(served) // its end was not seen
  }

  return {
    /** @type {Array<[string, (message: any) => void]>} */
    subscriptions: [
      ['http.server.request.start', requestStarted],
      ['http.server.response.finish', responseFinished],
      ['tracing:fastify.request.handler:start', routed]
    ],

    inFlight: () => inFlight,

    /** Adds a request that began before. @param {{ socket: object, request: object, time: number }} before */
    adopt ({ socket, request, time }) {
      if (!byRequest.has(request)) begin(request, socket, time)
    },

    /** Returns the request that is in flight for the longest time. */
    oldest () {
      /** @type {Served | undefined} */
      let oldest
      for (const served of open) if (oldest === undefined || served.since < oldest.since) oldest = served
      return oldest === undefined ? undefined : { ms: now() - oldest.since, name: oldest.name }
    },

    /** Looks at some requests in turn: where the connection is closed, they are lost. */
    sweep () {
      const time = now()
      choice.adapt(time)
      for (let i = 0; i < LOOKED_AT; i++) {
        const { value: served, done } = unseen.next()
        if (!done && time - served.since >= MIN_LOST_MS) {
          check(served)
          continue
        }
        unseen = open.values() // later ones are younger
        break
      }
    },

    /** Tracing was off for a while: what began before may have ended unseen. */
    forgetOpen () {
      byRequest = new WeakMap()
      open.clear()
      inFlight = 0
    }
  }
}

module.exports = { createHttp1Figures }
