'use strict'

// How far `longstack.own_cost.estimate` (lib/metrics/own-cost.js) is from the truth: servers that do a lot
// of one thing are run bare and traced at the same time, on one core, under the same load; the CPU that a
// traced one takes more is what longstack costs. With --spans also writes spans.
//
//   node bench/own-cost.js [--spans] [WORKLOAD…]

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const machine = require('./machine')

const root = path.join(__dirname, '..')
const CONNECTIONS = 16
const WARM_MS = 3000
const MEASURED_MS = 4000

/** @type {Record<string, (request: any, response: any) => void>} */
const workloads = {
  hello: (request, response) => response.end('hello world'),
  async real (request, response) {
    await sleep(1)
    const { length } = await fs.promises.readFile(__filename)
    await new Promise((resolve) => setImmediate(resolve))
    const numbers = await Promise.all([1, 2, 3].map(async (number) => {
      await null
      return number * 2
    }))
    response.end(`ok ${length}${numbers}`)
  },
  async awaits (request, response) {
    for (let i = 0; i < 300; i++) await null
    response.end()
  },
  timers: (request, response) => times(20, (done, i) => setTimeout(done, 1 + i % 5), response),
  files: (request, response) => times(8, (done) => fs.readFile(__filename, done), response),
  ticks (request, response) {
    let left = 50
    const tick = () => --left === 0 ? response.end() : process.nextTick(tick)
    tick()
  },
  client (request, response) {
    if (request.url === '/inner') return response.end()
    const { port } = request.socket.server.address()
    get(port, '/inner', () => response.end())
  }
}
const agent = new http.Agent({ keepAlive: true })

/** @param {number} port @param {string} url @param {() => void} done */
function get (port, url, done) {
  const request = http.get({ port, host: '127.0.0.1', path: url, agent })
  request.on('response', (answer) => answer.resume().on('end', done)).on('error', done)
}

/** @param {number} count @param {(done: () => void, i: number) => void} work @param {any} response */
function times (count, work, response) {
  let left = count
  for (let i = 0; i < count; i++) work(() => { if (--left === 0) response.end() }, i)
}

/** The server: tells the CPU and the estimate since the last question. @param {string} name */
function serve (name) {
  const trace = process.env.TRACED === undefined ? undefined : require(root)
  const estimate = () => trace?.metrics().metrics['longstack.own_cost.estimate']?.points[0].value ?? NaN
  let before = { cpu: process.cpuUsage(), ms: estimate(), requests: 0 }
  let requests = 0
  process.on('message', () => {
    const { user, system } = process.cpuUsage(before.cpu)
    const ms = estimate()
    process.send?.({ us: (user + system) / requests, estimatedUs: (ms - before.ms) * 1000 / requests })
    requests = 0
    before = { cpu: process.cpuUsage(), ms, requests }
  })
  const server = http.createServer((request, response) => {
    if (request.url !== '/inner') requests++
    workloads[name](request, response)
  }).listen(0, '127.0.0.1', () => process.send?.(server.address()))
}

/** @param {string} name @param {boolean} isTraced @param {boolean} spans */
async function start (name, isTraced, spans) {
  const file = path.join(os.tmpdir(), `own-cost-${process.pid}.jsonl`)
  const args = [...isTraced ? ['-r', path.join(root, 'lib', 'register.js')] : [], __filename, name]
  const traced = isTraced && { TRACED: '1', ...spans && { LONGSTACK_SPANS: file } }
  const env = { ...process.env, SERVE: '1', ...traced }
  const [command, ...before] = [...machine.pins()?.subject ?? [], process.execPath]
  const child = spawn(command, [...before, ...args], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const [{ port }] = await once(child, 'message')
  const load = { isOver: false }
  const ask = () => { if (!load.isOver) get(port, '/', ask) }
  for (let i = 0; i < CONNECTIONS; i++) ask()
  return {
    async read () {
      child.send('read')
      return (await once(child, 'message'))[0]
    },
    async stop () {
      load.isOver = true
      await sleep(100)
      child.kill()
      fs.rmSync(file, { force: true })
    }
  }
}

async function main () {
  const words = process.argv.slice(2)
  const spans = words.includes('--spans')
  const names = words.filter((word) => word !== '--spans')
  for (const name of names.length > 0 ? names : Object.keys(workloads)) {
    const servers = [await start(name, false, spans), await start(name, true, spans)]
    await sleep(WARM_MS)
    for (const server of servers) await server.read()
    await sleep(MEASURED_MS)
    const [bare, traced] = await Promise.all(servers.map((server) => server.read()))
    for (const server of servers) await server.stop()
    const truth = traced.us - bare.us
    const error = (traced.estimatedUs / truth - 1) * 100
    console.log(`${name.padEnd(8)} bare ${bare.us.toFixed(1)} us, longstack ${truth.toFixed(1)} us, ` +
      `estimated ${traced.estimatedUs.toFixed(1)} us: ${error > 0 ? '+' : ''}${error.toFixed(0)} %`)
  }
  process.exit()
}

if (process.env.SERVE === undefined) main()
else serve(process.argv[2])
