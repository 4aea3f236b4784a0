'use strict'

// One expensive request makes every cheap one wait. A server with both is put under the same load three times: with the
// work done at once, cut into slices, and in a worker thread. longstack writes the spans, and its report names who
// delayed whom, and by how much:
//
//     node examples/blocked-server.js            the story in a quarter of a minute
//     node examples/blocked-server.js --keep     and keeps the spans for `longstack report`
//
// This file is all of it: the load (no arguments), the server (`serve WAY`) and the worker.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads')

const LIMIT = 1_000_000 // primes are counted below it: some 150 ms of work
const SLICE = 10_000 // numbers from one breath to the next
const TIMES = 6 // the expensive route is asked
const CHEAP = 5 // clients of the cheap route
const PAUSES = { cheap: 20, expensive: 200 } // ms, of a client between two requests

const ways = {
  atOnce: 'at once',
  slices: 'in slices',
  worker: 'in a worker'
}

/** How many primes are there from `from` up to `to`? */
function countPrimes (from, to) {
  let count = 0
  for (let n = Math.max(2, from); n < to; n++) {
    let prime = true
    for (let divisor = 2; divisor * divisor <= n && prime; divisor++) prime = n % divisor !== 0
    if (prime) count++
  }
  return count
}

const expensive = {
  async atOnce () {
    return countPrimes(0, LIMIT)
  },

  async slices () {
    let count = 0
    for (let from = 0; from < LIMIT; from += SLICE) {
      count += countPrimes(from, from + SLICE)
      await new Promise(setImmediate) // others may run
    }
    return count
  },

  async worker () {
    const [count] = await once(new Worker(__filename, { workerData: LIMIT }), 'message')
    return count
  }
}

/** @param {keyof typeof expensive} way */
function serve (way) {
  const server = http.createServer(async function answer (request, response) {
    if (request.url === '/expensive') return response.end(`${await expensive[way]()} primes\n`)
    await delay(10) // asks a database, say
    response.end('cheap\n')
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
  process.once('message', () => {
    server.close()
    server.closeAllConnections()
    process.disconnect()
  })
}

/** Asks again and again; after each answer it thinks for some ms. */
async function client (agent, port, path, pause, goesOn) {
  while (goesOn()) {
    const [response] = await once(http.get({ agent, port, host: '127.0.0.1', path }), 'response')
    response.resume()
    await once(response, 'end')
    await delay(pause)
  }
}

/** Runs the server in a process of its own, traced, under load. */
async function measure (way, spans) {
  const server = spawn(process.execPath, ['-r', require.resolve('longstack/register'), __filename, 'serve', way],
    { stdio: ['inherit', 'inherit', 'ignore', 'ipc'], env: { ...process.env, LONGSTACK_SPANS: spans, LONGSTACK_BLOCKED: '50' } })
  const [port] = await once(server, 'message')
  const agent = new http.Agent({ keepAlive: true })
  let left = TIMES
  await Promise.all([
    client(agent, port, '/expensive', PAUSES.expensive, () => left-- > 0),
    ...Array.from({ length: CHEAP }, () => client(agent, port, '/cheap', PAUSES.cheap, () => left >= 0))
  ])
  agent.destroy()
  server.send('end')
  await once(server, 'exit')
}

/** The model that `longstack report --json` prints. */
async function report (spans) {
  const child = spawn(process.execPath, [path.join(__dirname, '..', 'lib', 'cli', 'main.js'), 'report', '--json', spans], { stdio: ['ignore', 'pipe', 'inherit'] })
  let json = ''
  for await (const chunk of child.stdout) json += chunk
  return JSON.parse(json)
}

const ms = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`.padStart(9)

async function main (folder) {
  console.log(`GET /cheap, asked by ${CHEAP} clients, while GET /expensive counts primes for another:\n`)
  console.log('the work is done 1st Qu.   Median  3rd Qu.     Max   delayed on average')
  for (const [way, name] of Object.entries(ways)) {
    const spans = path.join(folder, `${way}.jsonl`)
    await measure(way, spans)
    const { routes } = await report(spans)
    const cheap = routes.find((route) => route.name === 'GET /cheap')
    const { q1, median, q3, max } = cheap.summary
    console.log(`${name.padEnd(14)}${[q1, median, q3, max].map(ms).join('')}   ${ms(cheap.split.delayed)}, mostly by ${worstDelayer(spans)}`)
  }
}

/** Who delayed the cheap requests most, by all that their spans tell. */
function worstDelayer (spans) {
  const sums = new Map()
  for (const line of fs.readFileSync(spans, 'utf8').trim().split('\n')) {
    const { name, attributes } = JSON.parse(line)
    if (name !== 'GET /cheap') continue
    for (const one of attributes['longstack.delayed_by']) sums.set(one.name, (sums.get(one.name) ?? 0) + one.ms)
  }
  const [worst] = [...sums].sort((a, b) => b[1] - a[1])
  return worst === undefined ? 'nobody' : worst[0] ?? 'code outside of any request'
}

if (!isMainThread) {
  parentPort.postMessage(countPrimes(0, workerData))
} else if (process.argv[2] === 'serve') {
  serve(process.argv[3])
} else {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'blocked-server-'))
  main(folder).finally(() => {
    if (process.argv.includes('--keep')) console.log(`\nlongstack report ${path.join(folder, '*.jsonl')}`)
    else fs.rmSync(folder, { recursive: true })
  })
}
