'use strict'

// Figures of the requests that servers get, since they were read last, as Node reports them through
// diagnostics_channel.

const { createHttp1Figures } = require('./http1-figures')
const { createHttp2Figures } = require('./http2-figures')
const { RouteTable } = require('./route-figures')

/**
 * @typedef {object} ServedFigures
 * @property {import('./route-figures').RouteFigures[]} routes
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

module.exports = { createServedFigures }
