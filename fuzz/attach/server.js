'use strict'

// The process that commands attach to: a service without longstack, or preloaded with it, that uses timers,
// fetch, await, sockets, files, streams, HTTP/2, vm and a worker. Its answers depend on the request alone.
// Its parent asks for its state. The same file is the worker.

const { AsyncLocalStorage } = require('node:async_hooks')
const crypto = require('node:crypto')
const fs = require('node:fs')
const http = require('node:http')
const http2 = require('node:http2')
const net = require('node:net')
const { monitorEventLoopDelay } = require('node:perf_hooks')
const { setTimeout: sleep } = require('node:timers/promises')
const vm = require('node:vm')
const { isMainThread, parentPort, Worker } = require('node:worker_threads')
const zlib = require('node:zlib')

const BLOCK_MS = 12
const KEEP_ALIVE_MS = 86_400_000 // a request on a connection that is just being closed fails
const storage = new AsyncLocalStorage()
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 })
const ports = { main: 0, echo: 0, http2: 0 }

/** @type {Worker} */
let worker
/** @type {Map<number, (value: any) => void>} */
const asked = new Map()
let lastId = 0

/** Asks the worker. @param {string} question @param {any} [argument] @returns {Promise<any>} */
function askWorker (question, argument) {
  const id = ++lastId
  worker.postMessage({ id, question, argument })
  return new Promise((resolve) => { asked.set(id, resolve) })
}

/** @param {number} ms */
function spin (ms) {
  for (const end = performance.now() + ms; performance.now() < end;);
}

/** @param {AsyncIterable<Buffer | string>} stream */
async function textOf (stream) {
  let text = ''
  for await (const part of stream) text += part
  return text
}

/** The order in which callbacks run. */
async function order () {
  /** @type {string[]} */
  const steps = []
  const step = (/** @type {string} */ name) => () => { steps.push(name) }
  process.nextTick(step('tick'))
  queueMicrotask(step('microtask'))
  Promise.resolve().then(step('then')).finally(step('finally'))
  Promise.reject(new Error('x')).catch(step('catch'))
  await null
  steps.push('await')
  await { then: (/** @type {() => void} */ resolve) => { steps.push('thenable'); resolve() } }
  process.nextTick(step('tick 2'))
  await new Promise((resolve) => setImmediate(resolve))
  steps.push('immediate')
  return steps.join()
}

/** @param {number} port @param {string} text */
function echoed (port, text) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => { socket.end(text) })
    textOf(socket.setEncoding('utf8')).then(resolve, reject)
  })
}

/** @param {string} path */
function requested (path) {
  return new Promise((resolve, reject) => {
    http.get({ port: ports.main, host: '127.0.0.1', path, agent }, (response) => {
      textOf(response.setEncoding('utf8')).then(resolve, reject)
    }).on('error', reject)
  })
}

/** @param {string} path */
async function requestedByHttp2 (path) {
  const session = http2.connect(`http://127.0.0.1:${ports.http2}`)
  session.on('error', () => {})
  const text = await textOf(session.request({ ':path': path }).setEncoding('utf8'))
  session.close()
  return text
}

/** @type {Record<string, (n: string) => unknown>} by the first part of the path */
const routes = {
  plain: (n) => n,
  closed: (n) => n, // the connection, too: those of fetch stay open for a while
  timer: (n) => sleep(Number(n) % 7, n),
  order,
  storage: (n) => storage.run(n, async () => {
    await sleep(1)
    await fs.promises.stat(__filename)
    return storage.getStore()
  }),
  echo: (n) => echoed(ports.echo, n),
  client: (n) => requested(`/plain/${n}`),
  fetch: async (n) => (await fetch(`http://127.0.0.1:${ports.main}/closed/${n}`)).text(),
  http2: (n) => requestedByHttp2(`/${n}`),
  file: async () => (await fs.promises.readFile(__filename, 'utf8')).length,
  hash: (n) => new Promise((resolve, reject) => {
    crypto.pbkdf2(n, 'salt', 2, 16, 'sha256', (error, key) => {
      if (error) reject(error)
      else resolve(key.toString('hex'))
    })
  }),
  zip: (n) => new Promise((resolve, reject) => {
    zlib.gzip(n.repeat(100), (error, bytes) => {
      if (error) reject(error)
      else resolve(zlib.gunzipSync(bytes).toString())
    })
  }),
  vm: (n) => vm.runInNewContext(`JSON.stringify({ n: ${Number(n)} })`, {}, { timeout: 1000 }),
  worker: (n) => askWorker('work', { n, port: ports.echo }),
  error: (n) => { throw new RangeError(`of ${n}`) },
  reject: async (n) => {
    await sleep(1)
    throw Object.assign(new TypeError(`of ${n}`), { code: 'ERR_SOME' })
  },
  inspect: () => {
    const error = new Error('seen')
    return `${Object.keys(error)} ${Object.getOwnPropertyNames(error)} ${typeof Error.prepareStackTrace} ` +
      `${Error.stackTraceLimit} ${error.stack?.split('\n', 1)[0]}`
  },
  stream: (n) => n,
  block: (n) => {
    spin(BLOCK_MS)
    return n
  }
}

/** @param {http.IncomingMessage} request @param {http.ServerResponse} response */
async function serve (request, response) {
  const [, route, n] = String(request.url).split('/')
  response.sendDate = false
  response.setHeader('X-Route', route)
  if (route === 'closed') response.setHeader('Connection', 'close')
  try {
    if (route === 'stream') {
      response.writeHead(200)
      for (let part = 0; part < 3; part++) {
        response.write(`${n} ${part}\n`)
        await sleep(1)
      }
      return response.end()
    }
    const text = String(await routes[route](n))
    response.setHeader('Content-Length', Buffer.byteLength(text))
    response.end(text)
  } catch (/** @type {any} */ error) {
    response.statusCode = 500
    const text = `${error.name}: ${error.message} ${error.code} ${Object.keys(error)}`
    response.setHeader('Content-Length', Buffer.byteLength(text))
    response.end(text)
  }
}

/** @param {net.Server} server @returns {Promise<number>} port */
function listen (server) {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => {
    resolve(/** @type {net.AddressInfo} */ (server.address()).port)
  }))
}

function startWorker () {
  worker = new Worker(__filename)
  worker.on('message', ({ id, value }) => {
    asked.get(id)?.(value)
    asked.delete(id)
  })
}

/** @type {import('./state') | undefined} loaded when first asked for: it loads built-ins */
let loaded
const state = () => (loaded ??= require('./state'))

/** @type {Record<string, (argument: any) => any>} what the parent asks */
const answers = {
  remember: async () => {
    state().remember()
    await askWorker('remember')
  },
  changes: async () => {
    const own = state().changes()
    return [...own, ...(await askWorker('changes')).map((/** @type {string} */ text) => `worker: ${text}`)]
  },
  tracing: async () => [state().tracing(), await askWorker('tracing')],
  isOff: async () => !state().tracing().enabled && !(await askWorker('tracing')).enabled,
  closeInspector: () => require('node:inspector').close(),
  memory: async () => ({ main: state().memory(), worker: await askWorker('memory') }),
  /** Calls trace.enable or trace.disable, as the program itself. */
  trace: ({ enable, options }) => {
    const trace = require('../..')
    if (enable) trace.enable(options)
    else trace.disable()
  },
  rest: async () => { // until connections of the program's own are idle or closed
    agent.destroy()
    await sleep(5)
  },
  delay: () => {
    const max = histogram.max / 1e6
    histogram.reset()
    return max
  }
}

const histogram = monitorEventLoopDelay({ resolution: 1 })

async function main () {
  startWorker()
  const server = http.createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, serve)
  ports.main = await listen(server)
  ports.echo = await listen(net.createServer((socket) => { socket.on('error', () => {}).pipe(socket) }))
  ports.http2 = await listen(http2.createServer((request, response) => { response.end(request.url) }))
  await askWorker('work', { n: '', port: ports.echo })
  process.on('message', async (/** @type {any} */ { id, question, argument }) => {
    const value = await answers[question](argument)
    process.send?.({ id, value })
  })
  process.on('disconnect', () => process.exit())
  histogram.enable()
  process.send?.({ ports })
}

if (isMainThread) {
  main()
} else {
  const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort)
  port.on('message', async ({ id, question, argument }) => {
    if (question === 'work') {
      await echoed(argument.port, 'x') // libuv keeps a file open for the first stream of an event loop
      return port.postMessage({ id, value: `${argument.n} of the worker` })
    }
    port.postMessage({ id, value: await /** @type {any} */ (state())[question]() })
  })
}
