'use strict'

// Makes the load, and is the upstream of the service that is observed. Counts what was answered.

const http = require('node:http')
const http2 = require('node:http2')
const { setTimeout: sleep } = require('node:timers/promises')

const KEEP_ALIVE_MS = 86_400_000 // a request on a connection that is just being closed fails
const TICK_MS = 20
const MAX_IN_FLIGHT = 60
const SOCKETS = 8 // WebSocket connections at a time
const SOCKET_MESSAGES = 20

/** In a thousand; what is left over goes to /express/plain. @type {Record<string, number>} */
const shares = {
  '/express/work': 100,
  '/express/job': 60,
  '/express/post': 100,
  '/express/fetch': 80,
  '/express/http2': 60,
  '/express/error': 60,
  '/express/block': 2,
  '/express/slow': 20,
  '/express/stream': 40,
  '/express/worker': 2,
  '/express/fork': 1,
  '/fastify/json': 100,
  '/fastify/upstream': 80,
  '/fastify/undici': 60,
  '/fastify/error': 40,
  '/h2/work': 80,
  '/h2/stream': 40
}

/** By route, those of the upstream too; upgrades; failed. @type {Record<string, number>} */
const answered = { upgrades: 0, failed: 0 }
const state = { inFlight: 0, isOver: false }
/** @type {{ express: number, fastify: number, h2: number }} */
let ports
/** @type {http2.ClientHttp2Session | undefined} */
let session
const agent = new http.Agent({ keepAlive: true, maxSockets: 20 })

function route () {
  let left = Math.random() * 1000
  for (const [path, share] of Object.entries(shares)) {
    left -= share
    if (left < 0) return path
  }
  return '/express/plain'
}

/** @param {string} path @returns {Promise<void>} */
function overHttp2 (path) {
  if (session === undefined || session.closed || session.destroyed) {
    session = http2.connect(`http://127.0.0.1:${ports.h2}`).on('error', () => {})
  }
  const stream = session.request({ ':path': path })
  return new Promise((resolve, reject) => { stream.on('error', reject).on('end', resolve).resume() })
}

/** @param {string} path @param {number} port @returns {Promise<void>} */
function overHttp1 (path, port) {
  const isPost = path === '/express/post'
  const headers = isPost ? { 'content-type': 'application/json' } : {}
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, agent, method: isPost ? 'POST' : 'GET', headers }
    const request = http.request(options, (response) => {
      response.on('error', reject).on('end', resolve).resume()
      const status = path.endsWith('/error') ? 500 : 200
      if (response.statusCode !== status) reject(new Error(`status ${response.statusCode}`))
    })
    request.on('error', reject).end(isPost ? JSON.stringify({ list: [1, 2, 3] }) : undefined)
  })
}

async function ask () {
  const path = route()
  state.inFlight++
  try {
    if (path.startsWith('/h2')) await overHttp2(path)
    else await overHttp1(path, path.startsWith('/express') ? ports.express : ports.fastify)
    answered[path] = (answered[path] ?? 0) + 1
  } catch (error) {
    answered.failed++
    console.error(`load: ${path}: ${/** @type {Error} */ (error).message}`)
  }
  state.inFlight--
}

async function speak () {
  const { WebSocket } = require('ws')
  while (!state.isOver) {
    const socket = new WebSocket(`ws://127.0.0.1:${ports.express}/ws`)
    await new Promise((resolve, reject) => { socket.on('open', resolve).on('error', reject) })
    answered.upgrades++
    for (let i = 0; i < SOCKET_MESSAGES && !state.isOver; i++) {
      const echo = new Promise((resolve) => { socket.once('message', resolve) })
      socket.send('x'.repeat(200))
      await echo
      await sleep(250 + Math.random() * 250)
    }
    const closed = new Promise((resolve) => { socket.on('close', resolve) })
    socket.close()
    await closed
  }
}

/** @param {any} server @returns {Promise<number>} its port */
const listening = (server) => new Promise((resolve) => {
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(0, '127.0.0.1', () => resolve(server.address().port))
})

const upstreamAnswer = (/** @type {any} */ request, /** @type {any} */ response) => {
  const name = `upstream ${request.url}`
  answered[name] = (answered[name] ?? 0) + 1
  setTimeout(() => response.end('x'.repeat(500)), Math.random() * 5)
}

/** @param {number} rate requests a second @param {number} seconds */
async function load (rate, seconds) {
  const sockets = Array.from({ length: SOCKETS }, speak)
  let due = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    due = Math.min(due + (now - last) * rate / 1000, MAX_IN_FLIGHT)
    last = now
    for (; due >= 1 && state.inFlight < MAX_IN_FLIGHT; due--) ask()
  }, TICK_MS)
  await sleep(seconds * 1000)
  clearInterval(timer)
  state.isOver = true
  await Promise.all(sockets)
  while (state.inFlight > 0) await sleep(TICK_MS)
  session?.close()
  agent.destroy()
}

async function main () {
  process.on('disconnect', () => process.exit()) // the command was ended
  const servers = [http.createServer(upstreamAnswer), http2.createServer(upstreamAnswer)]
  const [first, second] = await Promise.all(servers.map(listening))
  process.on('message', async (/** @type {any} */ message) => {
    if (message.question === 'count') process.send?.({ answered })
    if (message.question === 'end') process.exit()
    if (message.ports === undefined) return
    ports = message.ports
    await load(message.rate, message.seconds)
    process.send?.({ answered, isOver: true })
  })
  process.send?.({ upstream: { http: first, http2: second } })
}

main()
