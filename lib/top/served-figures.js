'use strict'

// Figures of the requests that servers get, since they were read last, as Node reports them through
// diagnostics_channel.

const { createHttp1Figures } = require('./http1-figures')
const { createHttp2Figures } = require('./http2-figures')
const { RouteTable } = require('./route-figures')
const { createRouteNames } = require('./route-names')

/**
 * @typedef {object} ServedFigures
 * @property {import('./route-figures').RouteFigures[]} routes
 * @property {number} inFlight
 * @property {{ ms: number, name: string } | undefined} oldest request in flight, of HTTP/1
 */

/** @param {Parameters<typeof createRouteNames>[0]} frameworks */
function createServedFigures (frameworks) {
  const table = new RouteTable()
  const names = createRouteNames(frameworks)
  const http1 = createHttp1Figures(table, names)
  const http2 = createHttp2Figures(table, names)

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

module.exports = { createServedFigures }
