'use strict'

// Requests over HTTP/2 that servers get: a stream is one. Node 20 reports none.

const { now } = require('../context/clock')
const { nameOfUrl } = require('../context/request-names')
const { hidden, isObject, own } = require('../objects')

/** @param {import('./route-figures').RouteTable} table */
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

module.exports = { createHttp2Figures }
