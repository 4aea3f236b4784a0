'use strict'

// Unanswered requests and their waits, for commands that query a live process.

const test = require('ava')
const { program } = require('../helpers/run')

const source = `
  require(${JSON.stringify(require.resolve('../../lib/start'))})
  const guard = require(${JSON.stringify(require.resolve('../../lib/core/guard'))})
  const { requestsInFlight } = require(${JSON.stringify(require.resolve('../../lib/handles/requests-in-flight'))})
  const { formatHops } = require(${JSON.stringify(require.resolve('../../lib/format/hops'))})
  const http = require('node:http'), http2 = require('node:http2'), net = require('node:net')
  const { setTimeout: wait } = require('node:timers/promises')
  const arrived = []
  const backend = http.createServer(({ url }) => arrived.push(url))
  const database = net.createServer((socket) => socket.on('data', () => arrived.push('data')))
  const get = (path) => new Promise((resolve) => http.get({ port: backend.address().port, path }, resolve))
  async function viaHttp () { await get('/stock?secret=1') }
  async function viaFetch () { await fetch('http://127.0.0.1:' + backend.address().port + '/price?secret=1') }
  async function viaSocket () {
    const socket = net.connect(database.address().port, '127.0.0.1')
    await require('node:events').once(socket, 'connect')
    socket.write('select')
    await require('node:events').once(socket, 'data')
  }
  const routes = {
    '/http': viaHttp, '/fetch': viaFetch, '/socket': viaSocket,
    '/both': () => Promise.all([viaHttp(), viaFetch()]),
    '/begun': (response) => { response.write('x'); return new Promise(() => {}) },
    '/done': () => {}
  }
  async function handle ({ url }, response) {
    await wait(1)
    await routes[url.split('?')[0]](response)
    response.end('done')
  }
  const server = http.createServer(handle), server2 = http2.createServer(handle)
  async function until (condition) { while (!condition()) await wait(5) }
  const listening = [backend, database, server, server2].map((one) => new Promise((resolve) => one.listen(0, '127.0.0.1', resolve)))
  Promise.all(listening).then(async () => {
    let done = 0
    for (const path of Object.keys(routes)) http.get({ port: server.address().port, path: path + '?secret=1' }, (answer) => answer.resume().on('end', () => done++))
    const client = http2.connect('http://127.0.0.1:' + server2.address().port)
    for (const path of ['/http', '/done']) client.request({ ':path': path }).on('end', () => done++).resume().end()
    await until(() => done === 2 && arrived.length === 6)
    const isHttp2 = ({ hops }) => hops.some(({ type }) => type === 'HTTP2SESSION')
    const slices = requestsInFlight()
    let slice
    let count = 0
    while (!(slice = guard.run(() => slices.next())).done) count++
    const { requests } = JSON.parse(JSON.stringify(slice.value))
    const own = requests.filter(({ request }) => !/stock|price/.test(request)).sort((a, b) => a.request.localeCompare(b.request) || isHttp2(a) - isHttp2(b))
    console.log(JSON.stringify({ isSliced: count > requests.length, length: slice.value.count, own, text: formatHops(own[0].hops) }))
    process.exit()
  })`

test('each request has its waits and its outgoing requests', async (t) => {
  const { stdout, stderr } = await program(source)
  t.is(stderr, '')
  const { own, text, length, isSliced } = JSON.parse(stdout)
  t.true(isSliced)
  t.is(length, 11)
  const stock = 'GET http://localhost/stock'
  const expected = [
    ['GET /begun', true, [], ['handle']],
    ['GET /both', false, ['GET http://127.0.0.1/price', stock], ['viaFetch', 'viaHttp']],
    ['GET /fetch', false, ['GET http://127.0.0.1/price'], ['viaFetch']],
    ['GET /http', false, [stock], ['viaHttp']],
    ['GET /http', false, [stock], ['viaHttp']], // over HTTP/2
    ['GET /socket', false, ['TCP 127.0.0.1'], ['viaSocket']]
  ]
  t.deepEqual(own.map(({ request, answering, uses, waits }) => [
    request,
    answering,
    uses.map(({ what }) => what.replace(/:\d+/, '')).sort(),
    waits.map(({ at }) => at.split(' ')[0]).sort()
  ]), expected)
  t.regex(text, /── GET \/begun · .+ earlier ──$/m)
  t.notRegex(text, /server\.listen/, 'a chain ends at its request')
  t.true(own.every(({ ageMs }) => ageMs >= 0))
})

test('a busy server lists requests although the records of their waits are overwritten', async (t) => {
  const { stdout, stderr } = await program(`
    const { shared } = require(${JSON.stringify(require.resolve('../../lib/start'))})
    const guard = require(${JSON.stringify(require.resolve('../../lib/core/guard'))})
    const { requestsInFlight } = require(${JSON.stringify(require.resolve('../../lib/handles/requests-in-flight'))})
    const http = require('node:http')
    const queue = []
    async function connect () { await new Promise((resolve) => queue.push(resolve)) }
    const server = http.createServer(async function handle ({ url }, response) {
      await null
      if (url.startsWith('/report')) await connect()
      for (let i = 0; i < 200; i++) await null
      response.end('done')
    })
    server.listen(0, '127.0.0.1', async () => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 10 })
      const get = (path) => new Promise((resolve) => http.get({ port: server.address().port, path, agent }, (answer) => answer.resume().on('end', resolve)))
      for (let i = 0; i < 3; i++) get('/report?secret=' + i)
      for (let i = 0; i < 600; i++) await get('/quick/' + i)
      const [waits] = shared.trace.pending()
      const slices = requestsInFlight()
      let slice
      while (!(slice = guard.run(() => slices.next())).done);
      const { requests } = slice.value
      console.log(JSON.stringify([waits.requests, waits.chain.map(({ label }) => label), requests.map(({ request, ageMs, waits }) => [request, ageMs >= 0, waits.length])]))
      process.exit()
    })`)
  t.is(stderr, '')
  const [names, labels, requests] = JSON.parse(stdout)
  t.deepEqual(names, [{ request: 'GET /report', count: 3 }])
  t.true(labels.includes('GET /report'), labels.join())
  t.deepEqual(requests, Array(3).fill(['GET /report', true, 1]))
})
