'use strict'

// The server of the pictures: a cheap route that waits for a database (a timer here) and an expensive one
// that computes on the event loop. With a port as its argument it is the client instead, for three seconds.

const http = require('node:http')
const { setTimeout: sleep } = require('node:timers/promises')
const { fork } = require('node:child_process')

const LOAD_MS = 3000
const PRIMES = 8_000_000

async function loadUser () {
  await sleep(4)
  return 'Ada'
}

function countPrimes (limit) {
  const isComposite = new Uint8Array(limit)
  let count = 0
  for (let n = 2; n < limit; n++) {
    if (isComposite[n]) continue
    count++
    for (let multiple = 2 * n; multiple < limit; multiple += n) isComposite[multiple] = 1
  }
  return count
}

async function answer (request, response) {
  response.end(request.url === '/report' ? String(countPrimes(PRIMES)) : await loadUser())
}

async function requestRepeatedly (port, path, pauseMs) {
  const end = Date.now() + LOAD_MS
  while (Date.now() < end) {
    await fetch(`http://127.0.0.1:${port}${path}`).then((response) => response.text())
    await sleep(pauseMs)
  }
}

async function load (port) {
  const users = Array.from({ length: 4 }, () => requestRepeatedly(port, '/user', 15))
  await Promise.all([...users, requestRepeatedly(port, '/report', 250)])
}

if (process.argv[2] !== undefined) {
  load(process.argv[2])
} else {
  const server = http.createServer(answer).listen(0, '127.0.0.1', () => {
    const client = fork(__filename, [server.address().port], { execArgv: [], env: {} })
    client.on('exit', () => server.close())
  })
}
