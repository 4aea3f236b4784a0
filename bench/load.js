'use strict'

// Loads one server from its own process, with sequential requests on each connection. Response bytes are only
// counted, so that a request costs less here than in any server. Started by generator.js.

const net = require('node:net')

const REQUEST = Buffer.from('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
const READ_BYTES = 64 << 10
const GRACE_MS = 20_000

let port = 0
/** @type {Connection[]} */
let connections = []
/** @type {Load | undefined} */
let load

/** Sends requests for a time, and ends when all are answered. */
class Load {
  /** @param {number} ms @param {(error?: Error) => void} done */
  constructor (ms, done) {
    this.started = 0
    this.finished = 0
    this.end = performance.now() + ms
    this.limit = setTimeout(() => this.done(new Error(`no answer within ${ms + GRACE_MS} ms`)), ms + GRACE_MS)
    this.report = done
  }

  /** Reports the end of the load, only once. @param {Error} [error] */
  done (error) {
    if (load !== this) return
    clearTimeout(this.limit)
    load = undefined
    this.report(error)
  }

  /** Returns whether to send another request; ends the load after the last response. */
  next () {
    if (performance.now() < this.end) {
      this.started++
      return true
    }
    if (this.finished === this.started) this.done()
    return false
  }
}

/** A keep-alive connection. The first response determines the length of all responses. */
class Connection {
  /** @param {Buffer} buffer shared by all connections */
  constructor (buffer) {
    this.missing = 0
    this.length = 0
    const callback = (/** @type {number} */ size, /** @type {Uint8Array} */ bytes) => {
      this.receive(size, bytes)
      return true
    }
    this.socket = net.connect({ port, host: '127.0.0.1', onread: { buffer, callback } })
    this.socket.setNoDelay(true)
    this.socket.on('error', (error) => load?.done(error))
    this.socket.on('close', () => load?.done(new Error('the server closed a connection')))
  }

  /** Sends the next request of the load, if there is one. */
  send () {
    if (load?.next() !== true) return
    this.missing = this.length
    this.socket.write(REQUEST)
  }

  /** @param {number} size @param {Uint8Array} bytes overwritten after this call */
  receive (size, bytes) {
    if (this.length === 0) {
      const response = Buffer.from(bytes.buffer, bytes.byteOffset, size).toString('latin1')
      if (!response.startsWith('HTTP/1.1 200 ')) {
        return load?.done(new Error(`the server answered ${JSON.stringify(response.slice(0, 200))}`))
      }
      this.missing = this.length = lengthOf(response)
    } else if (this.missing === this.length && !is200(bytes)) {
      const response = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(size, 200)).toString('latin1')
      return load?.done(new Error(`the server answered ${JSON.stringify(response)}`))
    }
    this.missing -= size
    if (this.missing > 0 || load === undefined) return
    load.finished++
    this.send()
  }
}

/** @param {Uint8Array} bytes the start of a response */
function is200 (bytes) {
  return bytes[9] === 0x32 && bytes[10] === 0x30 && bytes[11] === 0x30
}

/** @param {string} response @returns {number} bytes of headers and body */
function lengthOf (response) {
  const headers = response.indexOf('\r\n\r\n') + 4
  const body = /^content-length: *(\d+)\r$/im.exec(response)
  if (headers < 4 || body === null) {
    throw new Error(`a response without a length: ${JSON.stringify(response.slice(0, 200))}`)
  }
  return headers + Number(body[1])
}

/** Opens a new connection per unit of the load, and waits until the server ends it. */
function connect () {
  const current = load
  if (current?.next() !== true) return
  const socket = net.connect(port, '127.0.0.1')
  let failed = false
  socket.on('error', (error) => {
    failed = true
    current.done(error)
  })
  socket.on('close', () => {
    if (failed) return
    current.finished++
    connect()
  })
  socket.resume()
}

/** @returns {number} µs of CPU time of this process */
function cpu () {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** @param {Connection} connection @returns {Promise<unknown>} settled when it is open or has failed */
function whenOpen ({ socket }) {
  return new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
}

/** @type {Record<string, (message: any) => unknown>} */
const answers = {
  async open (message) {
    port = message.port
    const buffer = Buffer.alloc(READ_BYTES)
    const count = message.fresh ? 0 : message.connections
    connections = Array.from({ length: count }, () => new Connection(buffer))
    await Promise.all(connections.map(whenOpen))
    return {}
  },

  load: ({ ms, connections: count }) => new Promise((resolve, reject) => {
    const began = cpu()
    const current = load = new Load(ms, (error) => {
      if (error === undefined) resolve({ units: current.finished, cpu: cpu() - began })
      else reject(error)
    })
    if (connections.length > 0) connections.forEach((connection) => connection.send())
    else for (let i = 0; i < count; i++) connect()
  }),

  async close () {
    load = undefined
    await Promise.all(connections.map(({ socket }) => new Promise((resolve) => {
      if (socket.closed) return resolve(undefined)
      socket.once('close', resolve).destroy()
    })))
    connections = []
    return {}
  }
}

process.on('message', async (/** @type {any} */ message) => {
  try {
    process.send?.(await answers[message.command](message))
  } catch (error) {
    process.send?.({ error: /** @type {Error} */ (error).message })
  }
})
process.on('disconnect', () => process.exit(0))
process.on('uncaughtException', (error) => {
  if (load === undefined) process.send?.({ error: error.message })
  else load.done(error)
})
process.send?.({ ready: true })
