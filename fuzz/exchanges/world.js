'use strict'

// What exchanges need: servers, clients, chance, and the notes of what became of each. A request is known by
// its path, /KIND/ID.

const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const http2 = require('node:http2')
const https = require('node:https')
const net = require('node:net')
const path = require('node:path')
const { serve } = require('./serve')

const pem = (/** @type {string} */ name) => {
  return fs.readFileSync(path.join(__dirname, '..', '..', 'test', 'fixtures', 'chains', `${name}.pem`))
}

/**
 * @typedef {import('./judge').Truth} Truth
 * @typedef {Awaited<ReturnType<typeof createWorld>>} World
 * @typedef {{ id: number, path: string, truth: Truth }} Task
 * @typedef {(world: World, task: Task) => Promise<unknown>} Exchange
 */

/** A generator of numbers in [0, 1) that repeats itself for the same seed. @param {number} seed */
function createRandom (seed) {
  let state = (seed >>> 0) || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

/** @param {any} server @returns {Promise<number>} its port */
const listen = (server) => new Promise((resolve) => {
  server.listen(0, '127.0.0.1', () => resolve(server.address().port))
})

/**
 * Returns a port on which connections are refused: that of the client's end of a connection. A port that
 * nobody has could become that of a server of another exchange.
 * @returns {Promise<number>}
 */
async function occupyPort () {
  const server = net.createServer()
  const socket = net.connect(await listen(server), '127.0.0.1')
  await once(socket, 'connect')
  return /** @type {number} */ (socket.localPort)
}

/** @param {number} seed @param {ReturnType<typeof import('./judge').createJudge>} judge */
async function createWorld (seed, judge) {
  const random = createRandom(seed)
  const pair = { key: pem('key'), cert: pem('cert') }
  const below = (/** @type {number} */ n) => Math.floor(random() * n)
  let last = 0
  let closeTracked = () => {}

  /** Comes back at once, in this iteration of the loop, in the next, or later. @returns {Promise<void>} */
  function instant () {
    switch (below(6)) {
      case 0: return Promise.resolve()
      case 1: return new Promise((resolve) => process.nextTick(resolve))
      case 2: return new Promise((resolve) => setImmediate(resolve))
      case 3: return new Promise((resolve) => setTimeout(resolve, 1))
      default: return new Promise((resolve) => setTimeout(resolve, below(12)))
    }
  }

  /**
   * Calls a function at such an instant, or right now: a promise would already be a microtask later.
   * @param {() => void} fn
   */
  function sometime (fn) {
    if (below(5) === 0) fn()
    else instant().then(fn)
  }

  const world = {
    random,
    below,
    instant,
    sometime,
    judge,
    ports: { http: 0, https: 0, http2: 0, deaf: 0, rude: 0, refused: 0 },
    agent: new http.Agent({ keepAlive: true, maxSockets: 20 }),
    secureAgent: new https.Agent({ keepAlive: true, maxSockets: 10, rejectUnauthorized: false }),
    /** @type {http2.ClientHttp2Session | undefined} */
    session: undefined,
    server: http.createServer(),

    /** @param {string} kind @returns {Task} */
    begin (kind) {
      const id = ++last
      return { id, path: `/${kind}/${id}`, truth: judge.begin(id, kind) }
    },

    /** Closes what is kept alive, so that all can end. */
    async closeIdle () {
      world.agent.destroy()
      world.secureAgent.destroy()
      closeTracked()
      world.agent = new http.Agent({ keepAlive: true, maxSockets: 20 })
      world.secureAgent = new https.Agent({ keepAlive: true, maxSockets: 10, rejectUnauthorized: false })
      world.session?.destroy()
      world.session = undefined
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  const { server } = world
  const secure = https.createServer(pair)
  const h2 = http2.createSecureServer(pair)
  const deaf = net.createServer(() => {}) // accepts, and never says a word
  const rude = net.createServer()
  const sockets = new Set()
  for (const one of [server, secure, h2, deaf, rude]) {
    one.on('connection', (/** @type {net.Socket} */ socket) => {
      socket.on('error', () => {})
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
  }
  closeTracked = () => { for (const socket of sockets) socket.destroy() }
  for (const one of [server, secure]) Object.assign(one, { keepAliveTimeout: 30_000 })
  serve(world, { server, secure, h2, rude })
  world.ports = {
    http: await listen(server),
    https: await listen(secure),
    http2: await listen(h2),
    deaf: await listen(deaf),
    rude: await listen(rude),
    refused: await occupyPort()
  }
  return world
}

module.exports = { createWorld }
