'use strict'

// Figures of longstack top in a process: exact counts for real servers, latencies within the width of their
// buckets, and nothing left behind when it stops.

const path = require('node:path')
const process = require('node:process')
const test = require('ava')
const { program, root } = require('../helpers/run')
const { isEmulated } = require('../helpers/time-factor')

const hasThreadCpu = 'threadCpuUsage' in process
const hasHttp2Channels = Number(process.versions.node.split('.')[0]) >= 22

const PRELUDE = `
  const http = require('node:http')
  const net = require('node:net')
  const { once } = require('node:events')
  const { setTimeout: sleep } = require('node:timers/promises')
  const { trace } = require(${JSON.stringify(path.join(root, 'lib', 'shared'))})
  const { Session } = require(${JSON.stringify(path.join(root, 'lib', 'ask', 'session'))})
  const asker = () => {
    const calls = new Map()
    const write = (line) => {
      const { id, part, value, error } = JSON.parse(line)
      if (part !== undefined) return
      if (error === undefined) calls.get(id).resolve(value)
      else calls.get(id).reject(error)
    }
    const session = new Session({ write, writableLength: 0 })
    const ask = (name) => (argument) => new Promise((resolve, reject) => {
      const id = calls.size
      calls.set(id, { resolve, reject })
      session.answer(JSON.parse(JSON.stringify({ id, name, argument })))
    })
    const [start, read, stop, describe] = ['startTop', 'readTop', 'stopTop', 'describeChain'].map(ask)
    return { start, read, stop, describe, leave: () => session.end() }
  }
  const top = asker()
  const { startOf } = require(${JSON.stringify(path.join(root, 'lib', 'top', 'buckets'))})
  const express = require(${JSON.stringify(path.join(root, 'node_modules', 'express'))})
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 })
  const serve = async (listener) => {
    const server = http.createServer(listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return server
  }
  async function get (server, path, options) {
    const request = http.get({ port: server.address().port, host: '127.0.0.1', path, agent, ...options })
    const [response] = await once(request, 'response')
    response.resume()
    await once(response, 'close')
    return response.statusCode
  }
  // The client may have read all before the server has noted the end of the response.
  async function until (condition) {
    while (!condition()) await sleep(5)
  }
  const report = (value) => console.log(JSON.stringify(value))
`

/** @param {{ routes: any[] }} figures @param {...string} keys @returns {any[]} */
const routesOf = ({ routes }, ...keys) => routes.map((route) => keys.map((key) => route[key]))

/** Runs a program of an async body, and returns what it reported. @param {string} body */
async function run (body, options = {}) {
  const { stdout, stderr, code } = await program(`${PRELUDE}
    const alive = setInterval(() => {}, 1e6) // answers keep no process
    void (async () => { ${body}\n agent.destroy(); clearInterval(alive) })()`, options)
  if (code !== 0) throw new Error(`${code}\n${stdout}\n${stderr}`)
  return { reports: stdout.trim().split('\n').map((line) => JSON.parse(line)), stderr }
}

test('requests of Express are counted by route, with errors; those of a plain server by path', async (t) => {
  const { reports: [express, plain] } = await run(`
    const app = express()
    app.set('env', 'test')
    app.get('/users/:id', (request, response) => response.send('user'))
    const router = express.Router()
    router.get('/:item', (request, response) => response.status(503).end())
    app.use('/shop/:shop', router)
    const server = await serve(app)
    await top.start()
    await Promise.all(Array.from({ length: 40 }, (_, i) => get(server, '/users/' + i + '?secret=1')))
    await Promise.all(Array.from({ length: 7 }, (_, i) => get(server, '/shop/' + i + '/x')))
    await get(server, '/none')
    await sleep(20)
    report(await top.read())
    server.close()
    const plain = await serve((request, response) => { response.statusCode = 500; response.end() })
    for (let i = 0; i < 5; i++) await get(plain, '/files/12345' + i)
    await sleep(20)
    report(await top.read())
    plain.close()
    await top.stop()`)
  t.deepEqual(routesOf(express, 'name', 'count', 'errors', 'lost'), [
    ['GET /users/:id', 40, 0, 0], ['GET /shop/:shop/:item', 7, 7, 0], ['GET /none', 1, 0, 0]
  ])
  t.is(express.inFlight, 0)
  t.is(express.oldest, undefined)
  t.deepEqual(routesOf(plain, 'name', 'count', 'errors'), [['GET /files/*', 5, 5]])
})

test('a request\'s time is in its bucket; one in flight is listed with its age', async (t) => {
  const { reports: [figures, times, open] } = await run(`
    let release
    const times = []
    const server = await serve((request, response) => {
      const start = performance.now()
      if (request.url === '/held') release = () => response.end()
      else setTimeout(() => response.end(() => times.push(performance.now() - start)), 30)
    })
    await top.start()
    for (let i = 0; i < 8; i++) await get(server, '/timed')
    const held = get(server, '/held')
    await until(() => release !== undefined && times.length === 8)
    await sleep(60)
    const figures = await top.read()
    const [{ buckets }] = figures.routes
    const bounds = []
    for (let i = 0; i < buckets.length; i += 2) {
      bounds.push({ from: startOf(buckets[i]) / 1000, to: startOf(buckets[i] + 1) / 1000, count: buckets[i + 1] })
    }
    report({ ...figures, bounds })
    report(times.sort((a, b) => a - b))
    release()
    await held
    await sleep(20)
    report(await top.read())
    server.close()
    await top.stop()`)
  t.is(figures.routes.length, 1)
  const [{ count, sumUs, maxUs }] = figures.routes
  t.is(count, 8)
  // What the server sees of a response lies within what longstack measures of it, but for some ms
  const sum = times.reduce((/** @type {number} */ total, /** @type {number} */ ms) => total + ms, 0)
  t.true(sumUs / 1000 > 8 * 29 && Math.abs(sumUs / 1000 - sum) < 8 * 20, `${sumUs} ${times}`)
  const { bounds } = figures
  t.true(bounds[0].from >= 27, JSON.stringify(bounds))
  t.true(bounds.at(-1).from * 1000 <= maxUs && bounds.at(-1).to * 1000 >= maxUs, JSON.stringify(bounds))
  t.is(bounds.reduce((/** @type {number} */ total, /** @type {any} */ bound) => total + bound.count, 0), 8)
  t.is(figures.inFlight, 1)
  t.is(figures.oldest.name, 'GET /held')
  t.true(figures.oldest.ms >= 59)
  t.deepEqual([open.inFlight, open.routes[0].name, open.routes[0].count], [0, 'GET /held', 1])
})

test('requests in flight at the start are listed with their age, and counted when they end', async (t) => {
  const { reports: [open, ended] } = await run(`
    const release = []
    const server = await serve((request, response) => { release.push(() => response.end()) })
    const held = ['/first', '/second'].map((path) => get(server, path))
    await until(() => release.length === 2)
    await sleep(60)
    await top.start()
    report(await top.read())
    for (const end of release) end()
    await Promise.all(held)
    await sleep(20)
    report(await top.read())
    server.close()
    await top.stop()`)
  t.is(open.inFlight, 2)
  t.is(open.oldest.name, 'GET /first')
  t.true(open.oldest.ms >= 59, JSON.stringify(open.oldest))
  t.is(ended.inFlight, 0)
  t.deepEqual(routesOf(ended, 'name', 'count'), [['GET /first', 1], ['GET /second', 1]])
  t.true(ended.routes[0].maxUs >= 59_000)
})

test('lost connections and pipelined requests are counted', async (t) => {
  const { reports: [pipelined, lost] } = await run(`
    const server = await serve((request, response) => {
      if (request.url.startsWith('/p')) setTimeout(() => response.end('x'), request.url === '/p1' ? 300 : 1)
    })
    await top.start()
    const socket = net.connect(server.address().port, '127.0.0.1')
    const ask = (path, more = '') => 'GET ' + path + ' HTTP/1.1\\r\\nhost: x\\r\\n' + more + '\\r\\n'
    socket.write(ask('/p1') + ask('/p2') + ask('/p3', 'connection: close\\r\\n'))
    socket.resume()
    await once(socket, 'close')
    await sleep(20)
    report(await top.read())
    const hung = net.connect(server.address().port, '127.0.0.1')
    hung.write('GET /hang HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')
    await once(server, 'request')
    hung.destroy()
    let figures
    while (!(figures = await top.read()).routes.length) await sleep(50)
    report(figures)
    server.close()
    await top.stop()`)
  t.deepEqual(routesOf(pipelined, 'name', 'count'), [['GET /p1', 1], ['GET /p2', 1], ['GET /p3', 1]])
  t.true(pipelined.routes.every((/** @type {any} */ { sumUs }) => sumUs > 100_000), 'each waited for the first')
  t.is(pipelined.inFlight, 0)
  t.deepEqual(routesOf(lost, 'name', 'count', 'lost'), [['GET /hang', 0, 1]])
  t.is(lost.inFlight, 0)
})

test('routes of Fastify and Koa are counted', async (t) => {
  const { reports: [figures] } = await run(`
    const fastify = require(${JSON.stringify(path.join(root, 'node_modules', 'fastify'))})()
    fastify.get('/f/:id', async () => 'x')
    await fastify.listen({ port: 0, host: '127.0.0.1' })
    const Koa = require(${JSON.stringify(path.join(root, 'node_modules', 'koa'))})
    const Router = require(${JSON.stringify(path.join(root, 'node_modules', '@koa', 'router'))})
    const router = new (Router.default ?? Router)()
    router.get('/k/:id', (context) => { context.body = 'x' })
    const koa = await serve(new (Koa.default ?? Koa)().use(router.routes()).callback())
    await top.start()
    for (let i = 0; i < 3; i++) await get(fastify.server, '/f/' + i)
    for (let i = 0; i < 4; i++) await get(koa, '/k/' + i)
    await sleep(20)
    report(await top.read())
    agent.destroy()
    await fastify.close()
    koa.close()
    await top.stop()`)
  t.deepEqual(routesOf(figures, 'name', 'count'), [['GET /f/:id', 3], ['GET /k/:id', 4]])
})

if (hasHttp2Channels) {
  test('streams of HTTP/2 are requests', async (t) => {
    const { reports: [figures] } = await run(`
      const http2 = require('node:http2')
      const server = http2.createServer((request, response) => {
        response.statusCode = request.url === '/bad' ? 500 : 200
        response.end('x')
      }).listen(0)
      await once(server, 'listening')
      await top.start()
      const session = http2.connect('http://127.0.0.1:' + server.address().port)
      for (const path of ['/a', '/a', '/bad']) {
        const stream = session.request({ ':path': path }).resume()
        await once(stream, 'close')
      }
      session.close()
      await sleep(20)
      report(await top.read())
      server.close()
      await top.stop()`)
    t.deepEqual(routesOf(figures, 'name', 'count', 'errors'), [['GET /a', 2, 0], ['GET /bad', 1, 1]])
    t.is(figures.inFlight, 0)
  })
}

test('routes beyond the limit are summed', async (t) => {
  const { reports: [{ routes }] } = await run(`
    const app = express()
    const pathOf = (i) => '/' + 'abcdefghijklmnopqrstuvwxyz'[i % 26] + '/' + 'x'.repeat(i / 26)
    for (let i = 0; i < 320; i++) app.get(pathOf(i), (request, response) => response.end())
    const server = await serve(app)
    await top.start()
    for (let i = 0; i < 320; i++) await get(server, pathOf(i))
    await sleep(20)
    report(await top.read())
    server.close()
    await top.stop()`)
  t.is(routes.length, 301)
  t.deepEqual([routes.at(-1).name, routes.at(-1).count], ['(other)', 20])
})

const whereWatched = process.env.ENGINE === 'js' ? test.skip : test

whereWatched('blocking callbacks are reported meanwhile, by place; the option keeps its own setting', async (t) => {
  const body = `
    const spin = (ms) => { const end = performance.now() + ms; while (performance.now() < end); }
    const { blockedMs } = await top.start({ blockedMs: 30 })
    await sleep(20)
    setTimeout(function blocking () { spin(400) }, 1)
    let figures
    while (!(figures = await top.read()).blockers.some(({ stack }) => stack.includes('blocking'))) await sleep(20)
    report({ blockedMs, ...figures })
    await top.stop()
    await sleep(20)
    setTimeout(function later () { spin(400) }, 1)
    await sleep(500)
    report({ blocked: trace.stats().spans?.open ?? 'no spans' })`
  const { reports: [figures, after], stderr } = await run(body)
  t.is(figures.blockedMs, 30)
  const isSpin = (/** @type {any} */ { site }) => /^spin \(.*program\.cjs:\d+:\d+\)$/.test(site)
  const blocker = figures.blockers.find(isSpin)
  t.truthy(blocker, JSON.stringify(figures.blockers))
  t.true(blocker.worstMs >= 395 && blocker.count === 1, JSON.stringify(blocker))
  t.regex(blocker.stack, /at blocking[^]*── setTimeout\(1\)/)
  t.is(stderr, '', 'nothing is printed for the program')
  t.is(after.blocked, 'no spans')
  const own = await run(body, { env: { LONGSTACK_BLOCKED: '50' } })
  t.is(own.reports[0].blockedMs, 50)
  t.regex(own.stderr, /blocking[^]*later/, 'still reported on stderr, before and after')
})

test('figures of the thread and of open handles are right', async (t) => {
  const { reports: [figures, chain] } = await run(`
    function leak () { return setInterval(() => {}, 1e6) }
    await top.start()
    const timers = Array.from({ length: 12 }, leak)
    await sleep(1100)
    const end = performance.now() + 200
    while (performance.now() < end);
    await sleep(50)
    const figures = await top.read()
    report(figures)
    const group = figures.handles.groups.find(({ site }) => site.startsWith('leak '))
    report(await top.describe({ chain: group.chain }))
    timers.forEach(clearInterval)
    await top.stop()`)
  const { loop, cpuMs, process: own, heap } = figures.thread
  t.true(loop.share > 0.05 && loop.share < 1, JSON.stringify(loop))
  t.true(loop.maxMs > 150 && loop.p50Ms < loop.maxMs, JSON.stringify(loop))
  t.true(own.cpuMs > 5 && (own.rss > 1e7 || isEmulated) && heap.used > 1e6)
  t.is(typeof cpuMs, hasThreadCpu ? 'number' : 'undefined')
  const group = figures.handles.groups.find((/** @type {any} */ { site }) => site.startsWith('leak '))
  t.deepEqual([group.noun, group.count], ['timer', 12])
  t.regex(chain, /^ {2}── setInterval\(1000000\) ──\n {4}at leak /)
})

test('stopping restores subscriptions, listeners and timers; a process may end while watched', async (t) => {
  const { reports: [before, during, after] } = await run(`
    const channels = require('node:diagnostics_channel')
    const names = ['http.server.request.start', 'http.server.response.finish', 'http2.server.stream.start']
    const state = () => ({
      subscribed: names.map((name) => channels.hasSubscribers(name)),
      listeners: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
      resources: process.getActiveResourcesInfo().filter((name) => name !== 'PipeWrap')
    })
    await top.start({ blockedMs: 1000 })
    await top.stop()
    const before = state()
    const others = Array.from({ length: 20 }, asker)
    for (const other of others) await other.start({ blockedMs: 500 })
    report(before)
    report(state())
    for (const other of others) other.leave()
    report(state())
    void top.start()`)
  t.deepEqual(after, before)
  t.deepEqual(before.subscribed, [true, true, false])
  t.deepEqual(during.subscribed, [true, true, true])
  t.deepEqual(during.resources, before.resources, 'no timer keeps the process')
})

test('watching survives a disable and enable, and ends by itself if nobody polls', async (t) => {
  const { reports: [off, on] } = await run(`
    let held
    const server = await serve((request, response) => {
      if (request.url === '/held') held = response
      else response.end()
    })
    await top.start()
    const pending = get(server, '/held')
    await until(() => held)
    trace.disable()
    held.end()
    await pending
    await get(server, '/unseen')
    await sleep(600)
    report(await top.read())
    trace.enable()
    await sleep(600)
    for (let i = 0; i < 3; i++) await get(server, '/seen')
    await sleep(20)
    report(await top.read())
    server.close()
    await top.stop()`)
  t.is(off.enabled, false)
  t.deepEqual(routesOf(on, 'name', 'count'), [['GET /seen', 3]])
  t.deepEqual([on.enabled, on.inFlight], [true, 0])
})
