'use strict'

// A server with a cheap route, an expensive one, a busy loop of some ms, and an endless loop. The way defines
// how it does its expensive work: at once, in slices, in a pool of worker threads, or in a cluster.

const { fork } = require('node:child_process')
const cluster = require('node:cluster')
const { once } = require('node:events')
const http = require('node:http')
const { setTimeout: delay } = require('node:timers/promises')
const { Worker, isMainThread, parentPort } = require('node:worker_threads')

const LIMIT = 600_000 // limit for counting primes: some 50 to 100 ms of work
const SLICES = 100 // separated by event loop iterations
const DATABASE_MS = 12 // simulated database wait of a cheap request
const PARTS = 2 // threads of the pool, processes of the cluster
const HANGS_MS = 60_000 // limit for an answer that is expected

const wayNames = { atOnce: 'at once', slices: 'in slices', pool: 'worker pool', cluster: 'cluster' }

/** @typedef {keyof typeof wayNames} Way */

/** Counts the primes of a range. @param {number} first @param {number} limit the first number beyond it */
function countPrimes (first, limit) {
  let count = 0
  for (let n = Math.max(2, first); n < limit; n++) {
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= n && isPrime; divisor++) isPrime = n % divisor !== 0
    if (isPrime) count++
  }
  return count
}

/** @param {number} limit */
async function countInSlices (limit) {
  let count = 0
  for (let first = 0; first < limit; first += limit / SLICES) {
    count += countPrimes(first, first + limit / SLICES)
    await new Promise(setImmediate)
  }
  return count
}

/** Creates a few threads; work is queued while all are busy. @param {number} limit */
function createPool (limit) {
  const idle = Array.from({ length: PARTS }, () => new Worker(__filename))
  /** @type {Array<(count: number) => void>} */
  const queue = []

  function next () {
    if (idle.length === 0 || queue.length === 0) return
    const worker = /** @type {Worker} */ (idle.pop())
    const resolve = /** @type {(count: number) => void} */ (queue.shift())
    worker.once('message', (count) => {
      idle.push(worker)
      resolve(count)
      next()
    })
    worker.postMessage(limit)
  }

  return () => new Promise((resolve) => {
    queue.push(resolve)
    next()
  })
}

/** Blocks the event loop. @param {number} ms */
function block (ms) {
  const end = performance.now() + ms
  while (performance.now() < end);
}

function comeBackNever () {
  while (true);
}

/** @param {Way} way @param {number} limit */
function createServer (way, limit) {
  const count = {
    atOnce: () => () => countPrimes(0, limit),
    slices: () => () => countInSlices(limit),
    pool: () => createPool(limit),
    cluster: () => () => countPrimes(0, limit)
  }[way]()

  return http.createServer(async function answer (request, response) {
    const [, route, ms] = request.url.split('/')
    response.sendDate = false
    if (route === 'forever') comeBackNever()
    else if (route === 'busy') block(Number(ms))
    else if (route === 'expensive') return response.end(`${await count()} primes\n`)
    else await delay(DATABASE_MS)
    response.end(`${route}\n`)
  })
}

/** @param {Way} way @param {number} limit */
async function serve (way, limit) {
  if (way === 'cluster' && cluster.isPrimary) return lead()
  const server = createServer(way, limit)
  server.keepAliveTimeout = HANGS_MS
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
  process.once('message', () => process.exit(0))
  process.once('disconnect', () => process.exit(0))
}

/** The primary process of the cluster: forwards messages of its parent. */
async function lead () {
  const workers = Array.from({ length: PARTS }, () => cluster.fork())
  const ports = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0].port))
  process.send({ port: ports[0] })
  await Promise.race([once(process, 'message'), once(process, 'disconnect')])
  await Promise.all(workers.map((worker) => {
    worker.process.send('end', () => {})
    return once(worker, 'exit')
  }))
  process.exit(0)
}

/** Kills this process from a thread once its parent is gone: no message reaches a stuck loop. */
function endWithParent () {
  const check = `process.ppid === ${process.ppid} || process.kill(process.pid, 'SIGKILL')`
  new Worker(`setInterval(() => ${check}, 500)`, { eval: true, execArgv: [] }).unref()
}

/**
 * Starts a server in its own process.
 * @param {Way} way
 * @param {{ args: string[], env: Record<string, string | undefined>, limit?: number }} options args: for Node
 */
async function start (way, { args, env, limit = LIMIT }) {
  const options = { execArgv: args, env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }
  const child = fork(__filename, [way, String(limit)], options)
  const exit = once(child, 'exit')
  const died = exit.then(([code, signal]) => {
    throw new Error(`the server ended by itself (${signal ?? code})`)
  })
  died.catch(() => {})
  const [{ port }] = await Promise.race([once(child, 'message'), died])
  return {
    port,
    /** @param {NodeJS.Signals} [signal] default: a message that ends it */
    async end (signal) {
      if (signal !== undefined) child.kill(signal)
      else if (child.connected) child.send('end', () => {})
      await exit
    }
  }
}

if (!isMainThread) {
  parentPort.on('message', (limit) => parentPort.postMessage(countPrimes(0, limit)))
} else if (require.main === module) {
  endWithParent()
  serve(/** @type {Way} */ (process.argv[2]), Number(process.argv[3]))
}

module.exports = { start, wayNames, HANGS_MS }
