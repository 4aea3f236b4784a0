'use strict'

// Intercepting the HTTP data stream: the cost of a transform between the socket and the HTTP parser, and the
// correctness of its output no matter where a request is cut.
//
//     node bench/articles/01-intercept --answers             prints the server's answers
//     node bench/articles/01-intercept --json [--quick]      measures the claims once

const http = require('node:http')
const trace = require('../../..')
const { serve, cpuPerRequest, end, paired, digits, main } = require('../common/measure')
const { removeCustomHeader } = require('./remover')
const { answers } = require('./answers')
const [claim] = require('./claims.json')

const CONNECTIONS = 16
const REQUESTS = { full: 5_000, quick: 200 }

/** The measured server. @param {string} transform */
function serveHello (transform) {
  const server = http.createServer((request, response) => response.end('hello'))
  server.keepAliveTimeout = 120_000
  if (transform === 'viewer') trace.intercept(server, function viewer () {})
  if (transform === 'removing') trace.intercept(server, removeCustomHeader)
  serve(server)
}

/** @param {boolean} quick */
async function measure (quick) {
  const requests = REQUESTS[quick ? 'quick' : 'full']
  const cost = (/** @type {string} */ transform, /** @type {boolean} */ traced) =>
    cpuPerRequest(__filename, ['serve', transform], { traced, requests, connections: CONNECTIONS })
  const { off, on } = await paired((side, traced) => cost(side === 'a' ? 'none' : 'viewer', traced), quick)
  const removing = { off: await cost('removing', false), on: await cost('removing', true) }
  await end()
  const row = (/** @type {string} */ name, /** @type {number[]} */ ...values) => [name, ...values.map(digits)]
  return {
    claims: [{ ...claim, off, on }],
    tables: [{
      title: 'CPU µs a request of a hello server',
      heading: ['', 'no transform', 'only looks', 'removes the header'],
      rows: [row('tracing off', off.a, off.b, removing.off), row('tracing on', on.a, on.b, removing.on)]
    }]
  }
}

main({ answers, measure, roles: { serve: serveHello } })
