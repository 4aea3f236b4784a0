'use strict'

// Clients of the server, and the load of many clients.

const { once } = require('node:events')
const http = require('node:http')
const net = require('node:net')
const { setTimeout: delay } = require('node:timers/promises')
const { HANGS_MS } = require('./server')

const CLIENTS = 20 // clients of the cheap route, each on a keep-alive connection
const LOAD = { cheap: 12, expensive: 180 } // mean ms: between requests; after an answer

/** Creates a keep-alive client that opens a second connection if the first is busy, like a browser. */
const createClient = () => new http.Agent({ keepAlive: true, maxSockets: Infinity })

/**
 * Sends a request and reads the answer.
 * @param {http.Agent} agent
 * @param {number} port
 * @param {string} path
 * @returns {Promise<number>} ms
 */
async function get (agent, port, path) {
  const began = performance.now()
  const request = http.get({ agent, port, host: '127.0.0.1', path, signal: AbortSignal.timeout(HANGS_MS) })
  const [response] = await once(request, 'response')
  response.resume()
  await once(response, 'end')
  return performance.now() - began
}

/**
 * Creates a deterministic generator of numbers from 0 to 1, by seed: Mulberry32.
 * @param {number} seed
 */
function random (seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let value = Math.imul(seed ^ (seed >>> 15), seed | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Sends requests at scheduled times, without waiting for responses: people do not wait for one another.
 * @param {number} length ms
 * @param {(i: number) => Promise<number>} request
 */
async function askAtTimes (length, request) {
  const next = random(7)
  const answers = []
  const began = performance.now()
  for (let time = 0; time < length; time += LOAD.cheap * 2 * next()) {
    await delay(Math.max(0, time - (performance.now() - began)))
    answers.push(request(answers.length))
  }
  return await Promise.all(answers)
}

/** Sends requests as one client, who pauses after each answer. */
async function askInTurn (/** @type {number} */ length, /** @type {() => Promise<number>} */ request) {
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
 * Loads a server, identically each time: cheap requests from many clients, expensive ones from another.
 * @param {number} port
 * @param {number} length ms
 */
async function load (port, length) {
  const clients = Array.from({ length: CLIENTS + 1 }, createClient)
  const [greedy, ...others] = clients
  try {
    await get(greedy, port, '/expensive/warm')
    await Promise.all(others.map((client) => get(client, port, '/warm')))
    const [cheap, expensive] = await Promise.all([
      askAtTimes(length, (i) => get(others[i % CLIENTS], port, '/cheap')),
      askInTurn(length, () => get(greedy, port, '/expensive'))
    ])
    return { cheap, expensive }
  } finally {
    for (const client of clients) client.destroy()
  }
}

/**
 * Prints a client's view of its socket: connected, received data, giving up.
 * @param {number} port
 * @param {string} path
 * @param {number} patience ms
 */
async function knock (port, path, patience) {
  let received = 0
  const socket = net.connect(port, '127.0.0.1', () => {
    console.log('connected')
    const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
    socket.write(request, () => console.log(`sent GET ${path}`))
  })
  socket.on('data', (data) => { received += data.length })
  socket.on('error', () => {}) // the connection is reset when the server is killed
  await delay(patience)
  console.log(received === 0 ? `no answer in ${patience / 1000} s: gives up` : `got ${received} bytes`)
  socket.destroy()
}

/** Returns all bytes received until the server closes the connection. */
async function bytes (/** @type {number} */ port, /** @type {string} */ path) {
  const socket = net.connect(port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  const chunks = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks)
}

module.exports = { createClient, get, load, knock, bytes }
