'use strict'

// node examples/08-where-time-goes.js           add --keep to keep the spans for `longstack report --html`
//
// Latency breakdown of a service with three faults: a pool of three connections for five clients, a report
// that awaits its queries one after another, and a price computed on the event loop. It is a traced child;
// `longstack report` names each fault, its place and its cost.

const { fork, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')

const QUERY_MS = 40
const PRICE_MS = 60

/** Responds to each line after some ms, like a database. */
function serveDatabase () {
  const server = net.createServer((socket) => {
    socket.setNoDelay().on('error', () => {})
    socket.on('data', () => setTimeout(() => socket.writable && socket.write('row\n'), QUERY_MS))
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
}

class Pool {
  constructor (port, size) {
    Object.assign(this, { port, size, opened: 0, free: [], waiting: [] })
  }

  async acquire () {
    if (this.free.length > 0) return this.free.pop()
    if (this.opened++ < this.size) {
      const socket = net.connect(this.port, '127.0.0.1').setNoDelay()
      await once(socket, 'connect')
      return socket
    }
    return await new Promise((resolve) => { this.waiting.push(resolve) }) // the pool
  }

  async query (sql) {
    const socket = await this.acquire()
    socket.write(`${sql}\n`)
    const [row] = await once(socket, 'data')
    const next = this.waiting.shift()
    if (next === undefined) this.free.push(socket)
    else next(socket)
    return row
  }
}

function computePrice () {
  const end = performance.now() + PRICE_MS
  while (performance.now() < end); // the blocker
}

function serve (port) {
  const pool = new Pool(port, 3)

  async function loadReport () {
    const rows = []
    for (const month of ['January', 'February', 'March', 'April', 'May', 'June']) {
      rows.push(await pool.query(`select sum(amount) from orders where month = '${month}'`)) // the sequence
    }
    return rows
  }

  const routes = {
    '/report': loadReport,
    '/item': () => pool.query('select name from items where id = 1'),
    '/price': computePrice
  }
  const server = http.createServer(async function answer (request, response) {
    response.end(String(await routes[request.url]()))
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
  process.on('disconnect', () => process.exit())
}

async function start (part, port, options) {
  const child = fork(__filename, [part, port], options)
  return { child, port: (await once(child, 'message'))[0] }
}

/** Sends requests one after another, each after the previous response. */
async function send (port, url, count, pause = 0) {
  for (let i = 0; i < count; i++) {
    const [response] = await once(http.get({ port, path: url, host: '127.0.0.1', agent: false }), 'response')
    await once(response.resume(), 'end')
    await delay(pause)
  }
}

async function main () {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'where-time-goes-'))
  const spans = path.join(directory, 'spans.jsonl')
  const database = await start('database', 0)
  const service = await start('service', database.port, {
    env: { ...process.env, LONGSTACK_SPANS: spans, LONGSTACK_BLOCKED: '20' },
    execArgv: ['-r', require.resolve('longstack/register')],
    stdio: ['ignore', 'inherit', 'ignore', 'ipc'] // standard error reports each blocking callback
  })
  const get = (...load) => send(service.port, ...load)
  const clients = [get('/report', 6), get('/report', 6), get('/item', 25), get('/item', 25), get('/item', 25)]
  await Promise.all([...clients, get('/price', 6, 250)])
  service.child.disconnect()
  await once(service.child, 'exit')
  database.child.kill()
  const command = path.join(path.dirname(require.resolve('longstack/register')), 'cli', 'main.js')
  spawnSync(process.execPath, [command, 'report', spans], { stdio: 'inherit' })
  if (process.argv.includes('--keep')) console.log(`\nlongstack report --html page.html ${spans}`)
  else fs.rmSync(directory, { recursive: true })
}

const part = { database: serveDatabase, service: serve }[process.argv[2]] ?? main
part(Number(process.argv[3]))
