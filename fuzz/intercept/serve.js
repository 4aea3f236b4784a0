'use strict'

// A server that notes what its parser made of the bytes of a connection, and the client's end of connections.

const http = require('node:http')
const { Duplex } = require('node:stream')

const LARGE = Buffer.alloc(200_000, 'y')
const NEVER_MS = 1e9
const TURNS = 4 // of the event loop, until a chunk in memory has passed

/** Two ends of a connection in memory: what is written on one is read on the other at once. */
class End extends Duplex {
  /** @type {End | undefined} */
  other
  /** @type {(() => void) | undefined} */
  done

  _read () {
    const { done } = this
    this.done = undefined
    done?.()
  }

  /** @param {Buffer} chunk @param {string} encoding @param {() => void} done */
  _write (chunk, encoding, done) {
    if (this.other === undefined || this.other.destroyed || chunk.length === 0) return process.nextTick(done)
    this.other.done = done
    this.other.push(chunk)
  }

  /** @param {() => void} done */
  _final (done) {
    this.other?.push(null)
    done()
  }

  /** @param {Error | null} error @param {(error: Error | null) => void} done */
  _destroy (error, done) {
    const { other } = this
    process.nextTick(() => other?.destroy())
    done(error)
  }
}

function endsInMemory () {
  const [client, served] = [new End({ allowHalfOpen: true }), new End({ allowHalfOpen: true })]
  client.other = served
  served.other = client
  return { client, served }
}

/** @param {number} turns of the event loop */
async function pass (turns = TURNS) {
  for (let i = 0; i < turns; i++) await new Promise(setImmediate)
}

/** What a server has made of a connection. */
class Log {
  /** @type {string[]} */
  entries = []
  /** error codes of the socket @type {string[]} */
  errors = []
  /** what came after an upgrade */
  handedOver = ''

  /** @param {any} request @param {any} response */
  request (request, response) {
    const { method, url } = request
    const index = this.entries.push(`${method} ${url} not whole`) - 1
    let body = ''
    request.setEncoding('latin1').on('data', (/** @type {string} */ text) => { body += text })
    request.on('error', () => {}).on('end', () => {
      this.entries[index] = JSON.stringify([method, url, request.headers, body, request.trailers])
      if (url === '/slow') setImmediate(() => response.end('late'))
      else response.end(url === '/large' ? LARGE : 'ok')
    })
  }

  /** @param {any} request @param {any} socket @param {Buffer} head */
  hand (request, socket, head) {
    this.entries.push(`${request.method} ${request.url} handed over`)
    this.handedOver += head.toString('latin1')
    socket.on('data', (/** @type {Buffer} */ data) => { this.handedOver += data.toString('latin1') })
    socket.on('error', (/** @type {any} */ error) => { this.errors.push(error.code) })
    socket.on('end', () => socket.end()).resume()
  }

  toString () {
    return [...this.entries, ...new Set(this.errors), this.handedOver].join('\n')
  }
}

/** @param {(socket: any) => Log} logOf of a connection */
function createServer (logOf) {
  const server = http.createServer({ requestTimeout: 0, connectionsCheckingInterval: NEVER_MS })
  server.on('request', (request, response) => logOf(request.socket).request(request, response))
  for (const event of ['upgrade', 'connect']) {
    server.on(event, (request, socket, head) => logOf(socket).hand(request, socket, head))
  }
  server.on('clientError', (/** @type {any} */ error, socket) => {
    logOf(socket).errors.push(error.code)
    setImmediate(() => socket.destroy()) // whole requests come to their end
  })
  return server
}

module.exports = { Log, createServer, endsInMemory, pass }
