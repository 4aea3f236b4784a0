'use strict'

const http = require('node:http')
const net = require('node:net')
const test = require('ava')
const { ServedFigures } = require('../../../lib/top/served')

const ROUTES = ['/a', '/b', '/c', '/d']

function createFigures () {
  const figures = new ServedFigures()
  const listeners = new Map(figures.subscriptions)
  const socket = new net.Socket()
  return {
    figures,
    request (url, statusCode = 200) {
      const request = Object.assign(new http.IncomingMessage(socket), { method: 'GET', url })
      const response = Object.assign(new http.ServerResponse(request), { statusCode })
      listeners.get('http.server.request.start')({ request, socket })
      return () => listeners.get('http.server.response.finish')({ request, response })
    }
  }
}

test('at high rates, samples represent all requests, in any order', (t) => {
  const { figures, request } = createFigures()
  let samples = 0
  const add = figures.add.bind(figures)
  figures.add = (...args) => {
    samples++
    return add(...args)
  }
  const total = 400_000
  for (let i = 0; i < total; i++) {
    request(ROUTES[i % ROUTES.length], i % 8 === 0 ? 503 : 200)()
    if (i % 2000 === 0) figures.sweep()
  }
  t.true(samples < total / 4, `${samples}`)
  const { routes, inFlight } = figures.read()
  t.is(inFlight, 0)
  t.deepEqual(routes.map(({ name }) => name).sort(), ROUTES.map((url) => `GET ${url}`))
  const sum = routes.reduce((count, route) => count + route.count, 0)
  t.true(Math.abs(sum / total - 1) < 0.2, `${sum}`)
  for (const { name, count, errors, buckets } of routes) {
    t.true(Math.abs(count / (total / 4) - 1) < 0.6, `${name}: ${count}`)
    t.is(errors > 0, name === 'GET /a')
    t.is(buckets.reduce((all, value, i) => i % 2 === 1 ? all + value : all, 0), count)
  }
})

test('at low rates, each request is counted, including those in flight', (t) => {
  const { figures, request } = createFigures()
  const ends = ROUTES.map((url) => request(url))
  const { inFlight, oldest } = figures.read()
  t.is(inFlight, 4)
  t.is(oldest.name, 'GET /a')
  for (const end of ends) {
    end()
    end() // a second end is none
  }
  const after = figures.read()
  t.is(after.inFlight, 0)
  t.deepEqual(after.routes.map(({ name, count }) => [name, count]), ROUTES.map((url) => [`GET ${url}`, 1]))
})
