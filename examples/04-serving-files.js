'use strict'

// node examples/04-serving-files.js
//
// Time breakdown of a served file. A server sends 500 KiB in three ways to several clients at once, and
// trace.on('span') splits the duration of each request into three parts: its own code ran (run), it waited
// for a subsystem (wait), other code ran (delayed). Then a client that reads late, and one that disconnects.
//
// Based on "Node File Read Performance" and "Node.js Can Really Scale" (Andrew Cholakian, 2010). Their
// claims, measured again under load: docs/articles.md.

const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { pipeline } = require('node:stream/promises')
const { setTimeout: delay } = require('node:timers/promises')
const trace = require('longstack').enable()

const KIB = 1024
const CLIENTS = 8
const LATE = 300 // ms before the late client starts to read

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'serving-files-'))
const page = path.join(directory, 'page.txt')
const film = path.join(directory, 'film.bin')
fs.writeFileSync(page, Buffer.alloc(500 * KIB, 'A line of the file that is sent.\n'))
fs.writeFileSync(film, Buffer.alloc(16 * KIB * KIB)) // more than the kernel buffers before a client reads

/**
 * Sends a file in chunks of one size.
 * @param {http.ServerResponse} response
 * @param {string} file
 * @param {number} size in bytes
 */
async function sendChunks (response, file, size) {
  const handle = await fs.promises.open(file)
  await pipeline(handle.createReadStream({ highWaterMark: size }), response)
}

/** Ways to send a file. @type {Record<string, (response: http.ServerResponse) => unknown>} */
const routes = {
  '/chunks-of-4-KiB': (response) => sendChunks(response, page, 4 * KIB),
  '/chunks-of-64-KiB': (response) => sendChunks(response, page, 64 * KIB),
  '/whole': async (response) => response.end(await fs.promises.readFile(page)),
  '/film': (response) => sendChunks(response, film, 64 * KIB)
}

const server = http.createServer(async function serve (request, response) {
  try {
    await routes[request.url](response)
  } catch (error) {
    console.log(`GET ${request.url} failed: ${error.message}.`)
  }
})

/** Ended spans of the server, by name. @type {Map<string, any[]>} */
const spans = new Map()

trace.on('span', (span) => {
  if (span.kind !== 'SERVER') return
  if (!spans.has(span.name)) spans.set(span.name, [])
  spans.get(span.name).push(span.attributes)
})

/** Waits for spans of a number of requests of a route. @param {string} route @param {number} count */
async function spansOf (route, count) {
  while ((spans.get(`GET ${route}`)?.length ?? 0) < count) await delay(5)
  return spans.get(`GET ${route}`)
}

/** Connects and requests a file. @param {string} route @returns {net.Socket} not reading yet */
function sendRequest (route) {
  const socket = net.connect(server.address().port, '127.0.0.1')
  socket.pause().write(`GET ${route} HTTP/1.1\r\nHost: files\r\nConnection: close\r\n\r\n`)
  return socket
}

/** @param {any[]} list of attributes @param {string} name */
const mean = (list, name) => list.reduce((sum, attributes) => sum + attributes[name], 0) / list.length

async function main () {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  console.log(`Means of ${CLIENTS} requests at once, ms:`)
  for (const route of Object.keys(routes).filter((name) => name !== '/film')) {
    await Promise.all(Array.from({ length: CLIENTS }, () => once(sendRequest(route).resume(), 'close')))
    const list = await spansOf(route, CLIENTS)
    const part = (name) => mean(list, `longstack.${name}_ms`).toFixed(1)
    console.log(`  ${route}: run ${part('run')}, waited ${part('waited')}, delayed ${part('delayed')}`)
  }

  const late = sendRequest('/film')
  await delay(LATE)
  await once(late.resume(), 'close')
  const [span] = await spansOf('/film', 1)
  const waits = JSON.stringify(span['longstack.wait_ms'])
  console.log(`\nA client reads nothing for ${LATE} ms: run ${span['longstack.run_ms']}, wait ${waits}\n`)

  const leaving = sendRequest('/film')
  await delay(LATE)
  console.log(`Open files while a client waits: ${trace.handles(['FS']).length}. Then the client leaves.`)
  leaving.destroy()
  const [, aborted] = await spansOf('/film', 2)
  await delay(20)
  const open = trace.handles(['FS']).length
  console.log(`Its span ended as "${aborted['longstack.end']}". Open files now: ${open}.`)
  server.close()
  fs.rmSync(directory, { recursive: true })
}

main()
