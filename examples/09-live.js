'use strict'

// node examples/09-live.js                      add a number of seconds until it ends; default 300
//
// A service that leaks: each GET /report opens a database connection that nobody closes, each GET /prices
// starts an interval that nobody clears, and every fourth report waits for a response that never comes. It
// prints its PID; from another terminal, `longstack top`, `why` and `diff` query it and name function and
// line. The database, and the clients that send some requests per second, run in a separate process.

const trace = require('longstack').enable()
const { fork } = require('node:child_process')
const { once } = require('node:events')
const http = require('node:http')
const net = require('node:net')

const SECONDS = 300
const PAUSE_MS = 100 // between requests
const SILENT = 4 // every fourth query gets no response

let databasePort = 0

async function queryDatabase (sql) {
  const connection = net.connect(databasePort, '127.0.0.1') // the connection: never closed
  connection.write(`${sql}\n`)
  const [row] = await once(connection, 'data') // the wait: may never end
  return row
}

async function loadReport () {
  return await queryDatabase('select sum(amount) from orders')
}

function watchPrices () {
  let price = 100
  setInterval(function updatePrice () { price += Math.random() - 0.5 }, 1_000) // the interval: never cleared
  return price
}

function serve () {
  const routes = { '/report': loadReport, '/prices': watchPrices, '/health': () => 'fine' }
  const server = http.createServer(async function answer (request, response) {
    response.end(String(await routes[request.url]()))
  })
  return server.listen(0, '127.0.0.1')
}

/** Responds to each line, except on every fourth connection. */
function serveDatabase () {
  let connections = 0
  const server = net.createServer((socket) => {
    const isSilent = ++connections % SILENT === 0
    socket.on('error', () => {}).on('data', () => isSilent || socket.write('row\n'))
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
}

/** Sends requests like clients, until the service is gone. @param {number} port */
function sendRequests (port) {
  const agent = new http.Agent({ keepAlive: true })
  const urls = ['/report', '/health', '/prices', '/health']
  let sent = 0
  setInterval(() => {
    const url = urls[sent++ % urls.length]
    const request = http.get({ port, path: url, host: '127.0.0.1', agent }, (response) => response.resume())
    request.on('error', () => {})
  }, PAUSE_MS)
}

async function main (seconds) {
  const others = fork(__filename, ['others'])
  const [port] = await once(others, 'message')
  databasePort = port
  const server = serve()
  await once(server, 'listening')
  others.send(server.address().port)
  const { pid } = process
  const url = `http://127.0.0.1:${server.address().port}/report`
  console.log(`The service is process ${pid}, at ${url}. It ends in ${seconds} s, or with Ctrl-C.
Ask it from another terminal:

  npx --no -- longstack top --no-children ${pid}      live: what grows, what waits
  npx --no -- longstack why --no-children ${pid}      what is open, in flight and awaited now
  npx --no -- longstack diff --no-children ${pid}     what was opened in ten seconds and not closed
`)
  setTimeout(() => process.exit(), seconds * 1000)
}

if (process.argv[2] === 'others') {
  trace.disable() // they are not part of the service
  serveDatabase()
  process.once('message', sendRequests)
  process.on('disconnect', () => process.exit())
} else {
  main(Number(process.argv[2] ?? SECONDS))
}
