'use strict'

// node examples/07-never-comes-back.js          add --keep to keep the spans for `longstack report`
//
// A request that never returns blocks its whole server; a slow one delays the others. The server is a traced
// child: LONGSTACK_BLOCKED reports callbacks while they block the event loop. Slices are one remedy; a pool
// and a cluster are measured in docs/articles.md. Based on "Understanding the node.js event loop" (Mikito
// Takada, 2011) and "Understanding node.js" (Felix Geisendörfer, 2010).

const { fork } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const { Worker } = require('node:worker_threads')

const LIMIT = 600_000 // counts primes below it: some 50 ms of work
const PATIENCE = 1_300 // client timeout, ms
const CHEAP_REQUESTS = 60

/** Counts the primes of a range. @param {number} first @param {number} limit the first number beyond it */
function countPrimes (first, limit) {
  let count = 0
  for (let number = Math.max(first, 2); number < limit; number++) {
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= number && isPrime; divisor++) isPrime = number % divisor !== 0
    if (isPrime) count++
  }
  return count
}

const ways = { // ways of doing the expensive request's work
  'at-once': () => countPrimes(0, LIMIT),
  async 'in-slices' () {
    let count = 0
    for (let first = 0; first < LIMIT; first += LIMIT / 100) {
      count += countPrimes(first, first + LIMIT / 100)
      await new Promise(setImmediate)
    }
    return count
  }
}

function comeBackNever () {
  while (true);
}

function serve (way) {
  const server = http.createServer(async function answer (request, response) {
    if (request.url === '/forever') comeBackNever()
    if (request.url === '/expensive') response.end(String(await ways[way]()))
    else setTimeout(() => response.end('cheap'), 12) // simulates waiting for a database
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
  // A blocked loop handles no message and no signal: a thread ends the process when its parent is gone.
  const watch = `setInterval(() => process.ppid === ${process.ppid} || process.kill(process.pid, 9), 300)`
  new Worker(watch, { eval: true }).unref()
}

/** Starts a server that writes spans to a file, and reports callbacks that block for longer than some ms. */
async function start (way, spans, ms) {
  const env = { ...process.env, LONGSTACK_SPANS: spans, LONGSTACK_BLOCKED: String(ms) }
  const execArgv = ['-r', require.resolve('longstack/register')]
  const child = fork(__filename, ['serve', way], { env, execArgv, silent: true })
  return { child, port: (await once(child, 'message'))[0] }
}

/** @param {number} port @param {string} url @param {number} patience ms @returns {Promise<number>} ms */
async function get (port, url, patience = 60_000) {
  const began = performance.now()
  const options = { port, host: '127.0.0.1', path: url, agent: false, signal: AbortSignal.timeout(patience) }
  const [response] = await once(http.get(options), 'response')
  await once(response.resume(), 'end')
  return performance.now() - began
}

async function showStuckServer (spans) {
  const { child, port } = await start('at-once', spans, 200)
  await get(port, '/cheap')
  console.log('GET /cheap is answered. Now one client asks for /forever, another one for /cheap.\n')
  child.stderr.pipe(process.stdout)
  const isOnForever = (text) => text.includes('GET /forever')
  const report = new Promise((resolve) => child.stderr.on('data', (text) => isOnForever(text) && resolve()))
  const results = await Promise.allSettled(['/forever', '/cheap'].map((url) => get(port, url, PATIENCE)))
  await report
  console.log(`After ${PATIENCE} ms: ${results.map(({ reason }) => reason?.name ?? 'an answer').join(', ')}`)
  child.kill('SIGKILL')
}

async function showSlowServer (way, spans) {
  const { child, port } = await start(way, spans, 30)
  child.stderr.resume()
  const cheap = []
  const expensive = (async () => { while (cheap.length < CHEAP_REQUESTS) await get(port, '/expensive') })()
  for (; cheap.length < CHEAP_REQUESTS; await delay(12)) cheap.push(get(port, '/cheap'))
  const times = (await Promise.all(cheap)).sort((a, b) => a - b)
  await expensive
  child.kill()
  await once(child, 'exit')
  const blocks = fs.readFileSync(spans, 'utf8').match(/"longstack.blocked_by":"GET \/expensive"/g) ?? []
  const [median, slowest] = [times[CHEAP_REQUESTS >> 1], times.at(-1)].map(Math.round)
  console.log(`${way}: median ${median} ms, slowest ${slowest} ms`)
  console.log(`  GET /expensive blocked the event loop for 30 ms or more: ${blocks.length} times`)
}

async function main () {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'never-comes-back-'))
  await showStuckServer(path.join(directory, 'stuck.jsonl'))
  console.log(`\n${CHEAP_REQUESTS} requests GET /cheap beside GET /expensive, which counts primes`)
  for (const way of Object.keys(ways)) await showSlowServer(way, path.join(directory, `${way}.jsonl`))
  if (process.argv.includes('--keep')) console.log(`\nlongstack report ${path.join(directory, '*.jsonl')}`)
  else fs.rmSync(directory, { recursive: true })
}

if (process.argv[2] === 'serve') serve(process.argv[3])
else main()
