'use strict'

// The server that never comes back, and the one that is merely slow: a request in an endless loop takes the whole server
// with it, a slow one makes all others wait. What clients see of both, what longstack says on the server's side while it
// happens, and what helps: slices, a pool of worker threads, a cluster.
//
//     node examples/07-never-comes-back.js              the story
//     node examples/07-never-comes-back.js --keep       and keeps the spans for `longstack report`
//     node examples/07-never-comes-back.js --answers    what goes over the wire, however the work is done
//     node examples/07-never-comes-back.js --json       the claims measured, tracing off and on (--quick: roughly)
//
// After "Understanding the node.js event loop" (Mikito Takada, 2011) and "Understanding node.js" (Felix Geisendörfer, 2010).
//
// This file is all of it: clients and load (no role), the server (`serve WAY`), and a worker of its pool.

const { fork, spawn } = require('node:child_process')
const cluster = require('node:cluster')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const { Worker, isMainThread, parentPort } = require('node:worker_threads')
const { quartiles, median, digits, table, register, cleanEnvironment } = require('./common/measure')

const LIMIT = 600_000 // primes are counted below it: some 50 to 100 ms of work
const SLICE = 6_000 // numbers from one breath to the next
const DATABASE = 12 // ms that a cheap request waits for one, say
const PARTS = 2 // threads of the pool, processes of the cluster
const LATE = 30 // ms, above which a cheap request is late
const CLIENTS = 20 // of the cheap route, each on a kept connection
const LOAD = { cheap: 12, expensive: 180 } // ms between two requests, or from an answer to the next request; on average
const BLOCKED = 200 // ms, from which on longstack reports a run of the loop
const PATIENCE = 1_300 // ms that a client waits for what never comes
const HANGS = 60_000 // ms after which an answer that should come is missed

const ways = { atOnce: 'at once', slices: 'in slices', pool: 'worker pool', cluster: 'cluster' }

/** @typedef {keyof typeof ways} Way */

// ---- the server ----

/** How many primes are there from `from` up to `to`? @param {number} from @param {number} to */
function countPrimes (from, to) {
  let count = 0
  for (let n = Math.max(2, from); n < to; n++) {
    let prime = true
    for (let divisor = 2; divisor * divisor <= n && prime; divisor++) prime = n % divisor !== 0
    if (prime) count++
  }
  return count
}

/** The same, with room for others in between. */
async function countInSlices () {
  let count = 0
  for (let from = 0; from < LIMIT; from += SLICE) {
    count += countPrimes(from, Math.min(from + SLICE, LIMIT))
    await new Promise(setImmediate)
  }
  return count
}

/** Few threads, made once; what comes while all are busy waits in a line. */
function createPool () {
  const idle = Array.from({ length: PARTS }, () => new Worker(__filename))
  /** @type {Array<(count: number) => void>} */
  const line = []

  function next () {
    const worker = idle.pop()
    const resolve = worker && line.shift()
    if (worker === undefined) return
    if (resolve === undefined) return idle.push(worker)
    worker.once('message', (count) => {
      idle.push(worker)
      resolve(count)
      next()
    })
    worker.postMessage(LIMIT)
  }

  return () => new Promise((resolve) => {
    line.push(resolve)
    next()
  })
}

/** @param {number} ms */
function spin (ms) {
  const end = performance.now() + ms
  while (performance.now() < end);
}

function comeBackNever () {
  while (true);
}

/** @param {Way} way */
function createServer (way) {
  const count = { atOnce: () => countPrimes(0, LIMIT), slices: countInSlices, pool: way === 'pool' && createPool(), cluster: () => countPrimes(0, LIMIT) }[way]

  return http.createServer(async function answer (request, response) {
    const [, what, ms] = request.url.split('/')
    response.sendDate = false
    if (what === 'forever') comeBackNever()
    else if (what === 'busy') spin(Number(ms))
    else if (what === 'expensive') return response.end(`${await count()} primes\n`)
    else await delay(DATABASE)
    response.end(`${what}\n`)
  })
}

/** @param {Way} way */
async function serve (way) {
  if (way === 'cluster' && cluster.isPrimary) return lead()
  const server = createServer(way)
  server.keepAliveTimeout = HANGS
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
  process.once('message', () => process.exit(0))
  process.once('disconnect', () => process.exit(0))
}

/** The first process of the cluster: passes on what its parent says. */
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

/** No message reaches a loop that is stuck: if whoever started this process is gone, another thread ends it. */
function endWithParent () {
  const text = `const parent = ${process.ppid}; setInterval(() => { if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL') }, 500)`
  new Worker(text, { eval: true, execArgv: [] }).unref()
}

/**
 * Starts a server in a process of its own.
 * @param {Way | 'never'} way never: at once, and its loop may get stuck
 * @param {{ args: string[], env: Record<string, string | undefined>, stderr?: (text: string) => void }} how args: of Node
 */
async function start (way, { args, env, stderr }) {
  const child = fork(__filename, ['serve', way], { execArgv: args, env, stdio: ['ignore', 'ignore', stderr === undefined ? 'inherit' : 'pipe', 'ipc'] })
  const exit = once(child, 'exit')
  child.stderr?.setEncoding('utf8').on('data', stderr)
  const died = exit.then(([code, signal]) => { throw new Error(`the server ended by itself (${signal ?? code})`) })
  died.catch(() => {})
  const [{ port }] = await Promise.race([once(child, 'message'), died])
  return {
    port,
    died,
    /** @param {NodeJS.Signals} [signal] default: it is asked to */
    async end (signal) {
      if (signal !== undefined) child.kill(signal)
      else if (child.connected) child.send('end', () => {})
      await exit
    }
  }
}

// ---- its clients ----

/** A kept connection, and a second one where the first is busy: as a browser has. */
const createClient = () => new http.Agent({ keepAlive: true, maxSockets: Infinity })

/**
 * @param {http.Agent} agent
 * @param {number} port
 * @param {string} path
 * @returns {Promise<number>} ms from asking to the end of the answer
 */
async function ask (agent, port, path) {
  const began = performance.now()
  const [response] = await once(http.get({ agent, port, host: '127.0.0.1', path, signal: AbortSignal.timeout(HANGS) }), 'response')
  response.resume()
  await once(response, 'end')
  return performance.now() - began
}

/** Figures from 0 to 1, the same ones for the same seed: Mulberry32. @param {number} seed */
function random (seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let value = Math.imul(seed ^ (seed >>> 15), seed | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Asks at given times, whether the answers before have come or not: people do not wait for one another.
 * @param {number} length ms
 * @param {(i: number) => Promise<number>} request
 */
async function askAtTimes (length, request) {
  const next = random(7)
  const answers = []
  const began = performance.now()
  for (let at = 0; at < length; at += LOAD.cheap * 2 * next()) {
    await delay(Math.max(0, at - (performance.now() - began)))
    answers.push(request(answers.length))
  }
  return await Promise.all(answers)
}

/** One client, who thinks for a while after each answer. @param {number} length ms @param {() => Promise<number>} request */
async function askInTurn (length, request) {
  const next = random(11)
  const answers = []
  const end = performance.now() + length
  do {
    await delay(LOAD.expensive * 2 * next())
    answers.push(await request())
  } while (performance.now() < end)
  return answers
}

/**
 * The load, the same for all: cheap requests of many clients, expensive ones of another.
 * @param {number} port
 * @param {number} length ms
 */
async function load (port, length) {
  const clients = Array.from({ length: CLIENTS + 1 }, createClient)
  const [greedy, ...others] = clients
  try {
    await ask(greedy, port, '/expensive/warm')
    await Promise.all(others.map((client) => ask(client, port, '/warm')))
    const [cheap, expensive] = await Promise.all([
      askAtTimes(length, (i) => ask(others[i % CLIENTS], port, '/cheap')),
      askInTurn(length, () => ask(greedy, port, '/expensive'))
    ])
    return { cheap, expensive }
  } finally {
    for (const client of clients) client.destroy()
  }
}

/**
 * What a client sees on its socket: that it is connected, what comes, and that it gives up.
 * @param {number} port
 * @param {string} path
 * @param {number} patience ms
 * @param {(what: string) => void} say
 */
async function knock (port, path, patience, say) {
  let got = 0
  const socket = net.connect(port, '127.0.0.1', () => {
    say('connected')
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`, () => say(`sent GET ${path}`))
  })
  socket.on('data', (data) => { got += data.length })
  socket.on('error', () => {}) // its connection is reset when the server is killed
  await delay(patience)
  say(got === 0 ? `no answer in ${patience / 1000} s: gives up` : `got ${got} bytes`)
  socket.destroy()
}

// ---- the story ----

const traced = ['-r', register]
const say = (/** @type {string} */ text) => console.log(text)

/** @param {string} text */
const title = (text) => say(`\n${text}\n${'─'.repeat(text.length)}`)

/** @param {string[]} args of longstack report @returns {Promise<string>} */
async function report (...args) {
  const child = spawn(process.execPath, [path.join(__dirname, '..', 'lib', 'cli', 'main.js'), 'report', ...args],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...cleanEnvironment(), NO_COLOR: '1' } })
  let text = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) text += chunk
  return text
}

/** @param {string} spans file */
async function never (spans) {
  title('The server that never comes back')
  say('One route of this server is `while (true)`. What its clients see (ms since Ann connects), and what longstack says')
  say(`on the stderr of the server: LONGSTACK_BLOCKED=${BLOCKED} tells what takes longer when it is over, and what goes on after half a second more:\n`)
  let began = 0
  const line = (/** @type {string} */ who, /** @type {string} */ what) => say(`${String(Math.round(performance.now() - began)).padStart(6)}  ${who.padEnd(6)} │ ${what}`)
  /** @type {(value?: unknown) => void} */
  let told = () => {}
  const isTold = new Promise((resolve) => { told = resolve })
  const stderr = (/** @type {string} */ text) => {
    if (began === 0) return // of its start
    for (const one of text.trimEnd().split('\n')) line('server', one)
    if (text.includes('is blocked')) told()
  }

  const server = await start('never', { args: traced, env: { ...cleanEnvironment(), LONGSTACK_BLOCKED: `${BLOCKED}`, LONGSTACK_SPANS: spans }, stderr })
  try {
    const client = createClient()
    const hello = await ask(client, server.port, '/hello')
    client.destroy()
    began = performance.now()
    line('Zoe', `asked GET /hello before that, and was answered in ${ms(hello)}`)
    await Promise.all([
      knock(server.port, '/forever', PATIENCE, (what) => line('Ann', what)),
      delay(150).then(() => knock(server.port, '/hello', PATIENCE, (what) => line('Ben', what)))
    ])
    await Promise.race([isTold, delay(20_000)]) // on a machine with much else to do
  } finally {
    await server.end('SIGKILL')
  }
  line('server', 'is killed (SIGKILL)')
  say('\nBoth are connected at once: the system does that, the program need not know. Then there is silence, on every route;')
  say('that Ann hangs up stops nothing. The report has the line of the loop and the request, without which all would look idle.')
  say('longstack report, of the spans that the dead server has left behind:\n')
  const parts = (await report('--top', '1', spans)).split('\n\n')
  say(parts.filter((part) => /^(Blockers|Still open)/.test(part)).join('\n\n').trimEnd())
}

/** @param {Way} way @param {string} spans file */
async function underLoad (way, spans) {
  let complaints = ''
  const server = await start(way, {
    args: traced,
    env: { ...cleanEnvironment(), LONGSTACK_SPANS: spans, LONGSTACK_BLOCKED: '30' },
    stderr (text) { complaints = (complaints + text).slice(-2_000) }
  })
  try {
    return await Promise.race([load(server.port, 2_500), server.died])
  } catch (error) {
    throw new Error(`${/** @type {Error} */ (error).message}\n${complaints}`)
  } finally {
    await server.end()
  }
}

const ms = (/** @type {number} */ value) => `${digits(value)} ms`

/** @param {string} folder */
async function merelySlow (folder) {
  const { summaries, pictures } = require('./common/plots')
  title('The server that is merely slow')
  say(`GET /expensive counts primes, 50 to 100 ms of work, for one client; ${CLIENTS} others ask for GET /cheap, ${Math.round(1000 / LOAD.cheap)} times a second in all.`)
  say('The load is the same each time, and goes on whether answers come or not. GET /cheap as its clients saw it:\n')
  /** @type {Array<{ name: string, values: number[], expensive: number, spans: any[] }>} */
  const all = []
  for (const [way, name] of /** @type {Array<[Way, string]>} */ (Object.entries(ways))) {
    const spans = path.join(folder, `${way}.jsonl`)
    const { cheap, expensive } = await underLoad(way, spans)
    all.push({ name, values: cheap, expensive: median(expensive), spans: cheapSpans(spans) })
  }
  say(summaries(all))
  say(`\nDensity (above) and box plot (below) of each, on a logarithmic axis; ┃ is the median, ▒ the middle half, · an outlier:\n\n${pictures(all)}`)
  say('\nWhere there are processors enough, at once is a hill of those that met nobody, and a long one to its right of those that came')
  say('while primes were counted; slices and pool are one hill; cluster has the right one again, lower, of clients of the busy process.')

  say(`\nWhat it costs the expensive route; cheap requests that took more than ${LATE} ms; and what the server's spans say of GET /cheap:\n`)
  say(table(['', 'GET /expensive', 'late', 'late spans', 'delayed, mean', 'mostly by'], all.map(row)))
  say('\nAt once, fewer spans are late than requests were: what arrives while the loop is blocked is not seen by the server before')
  say('the block is over, so no span has that time. The block itself is recorded. Of the server that works at once, the first of longstack report:\n')
  const parts = (await report('--top', '3', path.join(folder, 'atOnce.jsonl'))).split('\n\n')
  say(parts.filter((part) => part.startsWith('Blockers')).join('\n\n').trimEnd())
}

/** The cheap requests, as the server wrote them. @param {string} file @returns {any[]} */
function cheapSpans (file) {
  return fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line)).filter(({ name }) => name === 'GET /cheap')
}

/** @param {any} span @returns {number} ms */
const lengthOf = ({ startTimeUnixNano, endTimeUnixNano }) => Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6

const mean = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0) / values.length

/** @param {number[]} values */
const late = (values) => `${(values.filter((value) => value > LATE).length / values.length * 100).toFixed(0)} %`

/** @param {{ name: string, values: number[], expensive: number, spans: any[] }} one */
function row ({ name, values, expensive, spans }) {
  const delayed = mean(spans.map(({ attributes }) => attributes['longstack.delayed_ms']))
  return [name, ms(expensive), late(values), late(spans.map(lengthOf)), ms(delayed), delayer(spans)]
}

/** Who delayed them most, by all that they tell; cheap requests that have waited in a queue delay one another. @param {any[]} spans */
function delayer (spans) {
  const sums = new Map()
  for (const { name = 'code outside of any request', ms } of spans.flatMap(({ attributes }) => attributes['longstack.delayed_by'])) sums.set(name, (sums.get(name) ?? 0) + ms)
  const [worst] = [...sums].sort((a, b) => b[1] - a[1])
  return worst === undefined ? 'nobody' : worst[0]
}

async function story () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'never-comes-back-'))
  try {
    await never(path.join(folder, 'never.jsonl'))
    await merelySlow(folder)
    if (process.argv.includes('--keep')) say(`\nlongstack report ${path.join(folder, '*.jsonl')}`)
  } finally {
    if (!process.argv.includes('--keep')) fs.rmSync(folder, { recursive: true, force: true })
  }
}

// ---- --answers ----

/** All bytes that come before the server hangs up. @param {number} port @param {string} path @returns {Promise<Buffer>} */
async function bytes (port, path) {
  const socket = net.connect(port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  const chunks = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Of each way the same requests, in a child that is started as this process was; then what comes of the request without end. */
async function answers () {
  const how = { args: process.execArgv, env: process.env }
  for (const way of /** @type {Way[]} */ (Object.keys(ways))) {
    const server = await start(way, how)
    for (const path of ['/cheap', '/expensive', '/busy/5']) process.stdout.write(await bytes(server.port, path))
    await server.end()
  }
  const server = await start('never', how)
  await knock(server.port, '/forever', 300, say)
  await knock(server.port, '/cheap', 300, say)
  await server.end('SIGKILL')
}

// ---- --json ----

/**
 * @typedef {object} Figures of one way
 * @property {number[]} cheap ms
 * @property {number[]} expensive ms
 * @property {number[]} alone ms of a cheap request beside nothing
 * @property {number[]} beside ms of one beside a busy loop
 * @property {number[]} one ms of an expensive request beside nothing
 * @property {number[]} two ms until both of two are answered
 */

/** @param {Way} way @param {boolean} on @param {boolean} quick @returns {Promise<Figures>} */
async function figuresOf (way, on, quick) {
  const server = await start(way, { args: on ? traced : [], env: cleanEnvironment() })
  const [first, second] = [createClient(), createClient()]
  const cheap = () => ask(second, server.port, '/cheap')
  const expensive = (client = first) => ask(client, server.port, '/expensive')
  const figures = /** @type {Figures} */ ({ ...await load(server.port, quick ? 400 : 3_000), alone: [], beside: [], one: [], two: [] })
  for (let i = 0; i < (quick ? 1 : 5); i++) {
    figures.one.push(await expensive())
    figures.two.push(Math.max(...await Promise.all([expensive(), expensive(second)])))
  }
  if (way === 'atOnce') {
    for (let i = 0; i < (quick ? 3 : 15); i++) figures.alone.push(await cheap())
    const busy = ask(first, server.port, `/busy/${quick ? 300 : 1000}`)
    await delay(10)
    figures.beside.push(await cheap())
    await busy
  }
  first.destroy()
  second.destroy()
  await server.end()
  return figures
}

/** All ways, tracing off and on: forth and back. @param {boolean} quick */
async function measure (quick) {
  /** @type {Record<'off' | 'on', Record<string, Figures>>} */
  const all = { off: {}, on: {} }
  const forth = /** @type {Way[]} */ (Object.keys(ways))
  for (const way of quick ? forth : [...forth, ...forth.toReversed()]) {
    for (const state of /** @type {const} */ (['off', 'on'])) {
      const figures = await figuresOf(way, state === 'on', quick)
      const before = all[state][way] ?? {}
      const both = Object.entries(figures).map(([key, values]) => [key, [...before[key] ?? [], ...values]])
      all[state][way] = /** @type {Figures} */ (Object.fromEntries(both))
    }
  }
  return all
}

const TAKADA = 'Understanding the node.js event loop (Mikito Takada, 2011)'
const GEISENDOERFER = 'Understanding node.js (Felix Geisendörfer, 2010)'
const OWN = 'The usual remedies, of no article (longstack, 2026)'

const p99 = (/** @type {number[]} */ values) => quartiles(values).p99
const slowest = 'ms, p99 of the cheap route'

/** What a and b are, of the figures of all ways. */
const claims = [
  {
    id: 'busy-loop',
    article: TAKADA,
    said: 'While a request keeps the loop busy for a second, no other one is answered.',
    a: 'a cheap request alone',
    b: 'beside a busy loop of 1 s',
    unit: 'ms until the answer',
    means: 'how many times longer a cheap request takes when it comes just after another one has begun to loop for a second',
    why: { 'as said': 'One thread runs the code of the program, and nothing interrupts it: the request lies in the kernel until the loop is over, all of the second.' },
    of: (/** @type {Record<string, Figures>} */ { atOnce }) => [median(atOnce.alone), median(atOnce.beside)]
  },
  {
    id: 'all-but-your-code',
    article: GEISENDOERFER,
    said: 'Everything runs in parallel except your code: one callback waits for the other.',
    a: 'one expensive request',
    b: 'two at the same time',
    unit: 'ms until all are answered',
    means: 'how much longer two take than one',
    why: { 'as said': 'The second one begins when the first is done: two take twice as long, whatever the number of processors.' },
    of: ({ atOnce }) => [median(atOnce.one), median(atOnce.two)]
  },
  {
    id: 'two-in-pool',
    article: OWN,
    said: 'Threads do side by side what the loop does one after the other.',
    a: 'worker pool',
    b: 'at once',
    unit: 'ms until two expensive requests are answered',
    means: 'how much longer two expensive requests take on the loop than on two threads',
    why: {
      'as said': 'Each thread has a loop of its own, and the system gives it a processor of its own while there is one; here are two.',
      'no difference': 'The machine has no processor to spare: what two threads do then takes as long as one after the other.'
    },
    of: ({ pool, atOnce }) => [median(pool.two), median(atOnce.two)]
  },
  {
    id: 'slices',
    article: OWN,
    said: 'Work in slices, with setImmediate between them, lets others in.',
    a: 'in slices',
    b: 'at once',
    unit: slowest,
    means: 'how much longer the slowest hundredth of the cheap requests takes when primes are counted at once',
    why: { 'as said': 'Between two slices the loop does all that has come meanwhile, so a cheap request waits for one slice or a few, and not for all hundred.' },
    of: ({ slices, atOnce }) => [p99(slices.cheap), p99(atOnce.cheap)]
  },
  {
    id: 'slices-price',
    article: OWN,
    said: 'Slices make the expensive request slower.',
    a: 'at once',
    b: 'in slices',
    unit: 'ms of an expensive request beside nothing',
    means: 'what the slices cost the one who is sliced',
    why: {
      'as said': 'Not for the turns of the loop, a hundred of some 5 µs: on Node 26 V8 comes to run the short calls in code of Maglev; with --no-maglev slices cost nothing.',
      'no difference': 'A hundred turns of the loop, a promise and an immediate each, take some 5 µs each, half a millisecond of all that.'
    },
    of: ({ atOnce, slices }) => [median(atOnce.one), median(slices.one)]
  },
  {
    id: 'pool',
    article: OWN,
    said: 'Work in a small pool of threads leaves the loop alone.',
    a: 'worker pool',
    b: 'at once',
    unit: slowest,
    means: 'how much longer the slowest hundredth of the cheap requests takes when primes are counted on the loop',
    why: { 'as said': 'The loop only passes a message on and waits for the answer, as for a database.' },
    of: ({ pool, atOnce }) => [p99(pool.cheap), p99(atOnce.cheap)]
  },
  {
    id: 'cluster',
    article: OWN,
    said: 'A cluster of two processes helps those who would have to wait.',
    a: 'cluster',
    b: 'at once',
    unit: slowest,
    means: 'how much longer the slowest hundredth of the cheap requests takes with one process than with two',
    why: {
      'as said': 'Half of the connections are with the other process, and fewer of the rest come at the wrong time.',
      'no difference': 'A connection stays with its process: whoever shares it with the expensive request waits as long as before. They are half as many, still more than a hundredth.',
      'other way round': 'Whoever shares a process with the expensive request waits as long as before, and three processes share two processors with their clients.'
    },
    of: ({ cluster, atOnce }) => [p99(cluster.cheap), p99(atOnce.cheap)]
  },
  {
    id: 'median',
    article: OWN,
    said: 'At once, half of the cheap requests take longer.',
    a: 'in slices',
    b: 'at once',
    unit: 'ms, median of the cheap route',
    means: 'how much longer the typical cheap request takes when primes are counted at once',
    why: {
      'as said': 'The loop is busy for a third of the time, which begins to show in the middle.',
      'no difference': 'The loop is free for two thirds of the time: the middle of all requests meets nobody. A median does not show what is wrong here.'
    },
    of: ({ slices, atOnce }) => [median(slices.cheap), median(atOnce.cheap)]
  }
]

/** @param {Record<'off' | 'on', Record<string, Figures>>} all */
function tables (all) {
  const rows = Object.entries(ways).flatMap(([way, name]) => ['off', 'on'].map((state) => {
    const { cheap, expensive } = all[/** @type {'off'} */ (state)][way]
    const { min, q1, median, mean, q3, p99, max } = quartiles(cheap)
    return [`${name}, tracing ${state}`, ...[min, q1, median, mean, q3, p99, max, quartiles(expensive).median].map(digits)]
  }))
  return [{
    title: 'A cheap route beside an expensive one, ms',
    heading: ['the work is done', 'Min.', '1st Qu.', 'Median', 'Mean', '3rd Qu.', 'p99', 'Max.', 'expensive, median'],
    rows
  }]
}

/** @param {boolean} quick */
async function json (quick) {
  const all = await measure(quick)
  const measured = claims.map(({ of, ...claim }) => {
    const [off, on] = [all.off, all.on].map((figures) => {
      const [a, b] = of(figures)
      return { a, b }
    })
    return { ...claim, saidRatio: null, off, on }
  })
  say(JSON.stringify({ claims: measured, tables: tables(all) }, undefined, 2))
}

// ---- which part is this? ----

const [role, way] = process.argv.slice(2)

if (!isMainThread) {
  parentPort.on('message', (limit) => parentPort.postMessage(countPrimes(0, limit)))
} else if (role === 'serve') {
  if (way === 'never') endWithParent()
  serve(way === 'never' ? 'atOnce' : way)
} else if (role === '--answers') {
  answers()
} else if (role === '--json') {
  json(process.argv.includes('--quick'))
} else {
  story()
}
