'use strict'

// The process that is observed: a service of Express, Fastify, HTTP/2 and WebSocket, with an upstream,
// workers, child processes, streams, blocking callbacks, and errors that are read. Its parent asks for
// samples. The same file is its child process and its worker: both ask the upstream once.

/** Spans of its own, blocking callbacks, and those that were reported. @type {Record<string, number>} */
const made = { jobs: 0, blocks: 0, reported: 0 }

// Blocking callbacks are counted, not printed; the modules below block, too.
if (process.env.SOAK_BARE === undefined) require('../..').on('blocked', () => { made.reported++ })

const { fork } = require('node:child_process')
const crypto = require('node:crypto')
const fs = require('node:fs')
const http = require('node:http')
const http2 = require('node:http2')
const { pipeline } = require('node:stream/promises')
const { setTimeout: sleep } = require('node:timers/promises')
const { isMainThread, Worker, workerData } = require('node:worker_threads')
const zlib = require('node:zlib')

const BLOCK_MS = 40 // above the threshold of `blocked` in soak.js
const KEEP_ALIVE_MS = 86_400_000 // a request on a connection that is just being closed fails
const SESSION_MS = 5000 // for the streams that it has
const FILE = require.resolve('express/package.json')

const keepAlive = new http.Agent({ keepAlive: true, maxSockets: 4 })

/** @type {{ http: number, http2: number }} ports of the upstream */
let upstream

/** @param {string} route @returns {Promise<number>} bytes */
async function fetched (route) {
  const response = await fetch(`http://127.0.0.1:${upstream.http}/${route}`)
  return (await response.text()).length
}

/** @param {AsyncIterable<Buffer>} stream @returns {Promise<number>} bytes */
async function lengthOf (stream) {
  let bytes = 0
  for await (const chunk of stream) bytes += chunk.length
  return bytes
}

/** @param {string} route @returns {Promise<number>} bytes */
function requested (route) {
  return new Promise((resolve, reject) => {
    const options = { port: upstream.http, host: '127.0.0.1', path: `/${route}`, agent: keepAlive }
    http.get(options, (response) => {
      resolve(lengthOf(response))
    }).on('error', reject)
  })
}

/** @type {http2.ClientHttp2Session | undefined} */
let session
let streams = 0

/** @param {http2.ClientHttp2Session} session all its streams have ended */
const closeSession = (session) => session.close()

/** A session for twenty requests. @param {string} route @returns {Promise<number>} bytes */
function requestedByHttp2 (route) {
  if (session === undefined || session.closed || ++streams % 20 === 0) {
    if (session !== undefined) setTimeout(closeSession, SESSION_MS, session)
    session = http2.connect(`http://127.0.0.1:${upstream.http2}`).on('error', () => {})
  }
  return lengthOf(session.request({ ':path': `/${route}` }))
}

async function work () {
  await sleep(2)
  const random = new Promise((resolve) => crypto.randomBytes(64, (_, bytes) => resolve(bytes)))
  const [text, bytes] = await Promise.all([fs.promises.readFile(FILE, 'utf8'), random])
  await new Promise((resolve) => setImmediate(resolve))
  return { characters: text.length, bytes: bytes.length }
}

async function failing () {
  await sleep(1)
  try {
    await fs.promises.readFile(`${FILE}/missing`)
  } catch (cause) {
    throw new Error('the work failed', { cause })
  }
}

/** @param {any} error @returns {number} */
const readError = (error) => `${error.stack}${error.cause?.stack}`.length

/** Express takes a function of four parameters for errors. @type {(...args: any[]) => void} */
function answerError (error, request, response, next) {
  response.status(500).json(readError(error))
}

function block () {
  made.blocks++
  const end = performance.now() + BLOCK_MS
  while (performance.now() < end);
}

/** @param {any} thread with the events message and exit @returns {Promise<void>} */
const exited = (thread) => new Promise((resolve, reject) => {
  thread.on('exit', () => resolve()).on('error', reject)
})

const job = () => {
  made.jobs++
  return require('../..').span('job', { kind: 'soak' }, work)
}

function expressServer () {
  const express = require('express')
  const { WebSocketServer } = require('ws')
  const app = express()
  app.use(express.json())
  app.get('/express/plain', (request, response) => { response.send('plain') })
  app.get('/express/work', async (request, response) => { response.json(await work()) })
  app.get('/express/job', async (request, response) => { response.json(await job()) })
  app.post('/express/post', (request, response) => { response.json(request.body) })
  app.get('/express/fetch', async (request, response) => { response.json(await fetched('fetch')) })
  app.get('/express/http2', async (request, response) => { response.json(await requestedByHttp2('http2')) })
  app.get('/express/error', async () => { await failing() })
  app.get('/express/block', (request, response) => { block(); response.send('blocked') })
  app.get('/express/slow', async (request, response) => {
    response.write('begins')
    await sleep(200)
    response.end('ends')
  })
  app.get('/express/stream', async (request, response) => {
    await pipeline(fs.createReadStream(FILE), zlib.createGzip(), response)
  })
  app.get('/express/worker', async (request, response) => {
    await exited(new Worker(__filename, { workerData: upstream }))
    response.send('worked')
  })
  app.get('/express/fork', async (request, response) => {
    const child = fork(__filename, [JSON.stringify(upstream)])
    await exited(child)
    response.send('forked')
  })
  app.use(answerError)
  const server = http.createServer(app)
  const sockets = new WebSocketServer({ server, path: '/ws' })
  sockets.on('connection', (socket) => {
    socket.on('message', async (data) => {
      await work()
      socket.send(data)
    })
  })
  return server
}

async function fastifyServer () {
  const fastify = require('fastify')()
  fastify.get('/fastify/json', async () => work())
  fastify.get('/fastify/upstream', async () => ({ bytes: await requested('http') }))
  fastify.get('/fastify/undici', async () => {
    const { body } = await require('undici').request(`http://127.0.0.1:${upstream.http}/undici`)
    return { bytes: (await body.text()).length }
  })
  fastify.get('/fastify/error', async () => failing())
  fastify.setErrorHandler((error, request, reply) => { reply.code(500).send({ length: readError(error) }) })
  await fastify.ready()
  return fastify.server
}

function http2Server () {
  return http2.createServer((request, response) => {
    if (request.url === '/h2/stream') fs.createReadStream(FILE).pipe(response)
    else work().then((answer) => response.end(JSON.stringify(answer)))
  })
}

/** @param {any} server @returns {Promise<number>} its port */
const listening = (server) => new Promise((resolve) => {
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(0, '127.0.0.1', () => resolve(server.address().port))
})

/** @param {string} directory @returns {number} entries, 0 where there is no /proc */
function entries (directory) {
  try {
    return fs.readdirSync(directory).length
  } catch {
    return 0
  }
}

/** @returns {number} bytes of memory that is no file's, 0 where there is no /proc */
function anonymousBytes () {
  try {
    const text = fs.readFileSync('/proc/self/smaps_rollup', 'latin1')
    return Number(/^Anonymous: +(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

async function sample () {
  const { gc } = /** @type {any} */ (globalThis)
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    gc()
  }
  const { heapUsed, heapTotal, external, arrayBuffers, rss } = process.memoryUsage()
  const anonymous = anonymousBytes()
  const stats = process.env.SOAK_BARE === undefined ? require('../..').stats() : {}
  const descriptors = entries('/proc/self/fd')
  const threads = entries('/proc/self/task')
  return { heapUsed, heapTotal, external, arrayBuffers, rss, anonymous, descriptors, threads, stats, made }
}

async function main () {
  const servers = [expressServer(), await fastifyServer(), http2Server()]
  process.on('disconnect', process.exit) // the command was ended
  const [express, fastify, h2] = await Promise.all(servers.map(listening))
  process.on('message', async (/** @type {any} */ message) => {
    if (message.upstream) upstream = message.upstream
    if (message.question === 'sample') process.send?.({ sample: await sample() })
    if (message.question === 'end') {
      process.off('disconnect', process.exit)
      session?.close()
      for (const server of servers) server.close()
      process.disconnect()
    }
  })
  process.send?.({ ports: { express, fastify, h2 } })
}

if (!isMainThread) {
  upstream = workerData
  fetched('worker')
} else if (process.argv[2] !== undefined) {
  upstream = JSON.parse(process.argv[2])
  fetched('fork').then(() => process.disconnect())
} else {
  main()
}
