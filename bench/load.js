'use strict'

// The load generator, a process of its own: one request after another on each of so many connections, answered
// bytes only counted. Latency is that of a server kept busy all the time. Started by generator.js.

const net = require('node:net')

const REQUEST = Buffer.from('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
const GRACE_MS = 10_000

let port = 0
/** @type {Connection[]} */
let connections = []
/** @type {Load | undefined} */
let load

/** A number of units that is being worked off. */
class Load {
  /** @param {number} units @param {number} limit ms @param {(error?: Error) => void} done */
  constructor (units, limit, done) {
    this.latencies = new Float64Array(units)
    this.started = 0
    this.finished = 0
    this.units = units
    this.end = performance.now() + limit
    this.limit = setTimeout(() => done(new Error(`no answer within ${limit + GRACE_MS} ms`)), limit + GRACE_MS)
    /** @param {Error} [error] */
    this.done = (error) => {
      clearTimeout(this.limit)
      if (load === this) load = undefined
      done(error)
    }
  }

  /** Whether one more unit is to be started. */
  next () {
    if (this.started >= this.units || performance.now() > this.end) return false
    this.started++
    return true
  }

  /** @param {number} began */
  finish (began) {
    this.latencies[this.finished++] = performance.now() - began
  }

  /** All that was started is answered. */
  idle () {
    if (this.finished === this.started) this.done()
  }

  figures () {
    const sorted = this.latencies.subarray(0, this.finished).sort()
    const at = (/** @type {number} */ share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
    return { units: this.finished, p50: at(0.5), p99: at(0.99) }
  }
}

/** One kept connection; the first answer tells how long all are. */
class Connection {
  constructor () {
    this.began = 0
    this.left = 0
    this.length = 0
    this.socket = net.connect(port, '127.0.0.1')
    this.socket.setNoDelay(true)
    this.socket.on('data', (data) => this.receive(data))
    this.socket.on('error', (error) => load?.done(error))
    this.socket.on('close', () => load?.done(new Error('the server closed a connection')))
  }

  send () {
    const present = load
    if (present === undefined) return
    if (!present.next()) return present.idle()
    this.began = performance.now()
    this.left = this.length
    this.socket.write(REQUEST)
  }

  /** @param {Buffer} data */
  receive (data) {
    if (this.left === this.length && data.toString('latin1', 0, 13) !== 'HTTP/1.1 200 ') {
      return load?.done(new Error(`the server answered ${JSON.stringify(data.toString('latin1', 0, 200))}`))
    }
    if (this.length === 0) {
      this.length = lengthOf(data.toString('latin1'))
      this.left = this.length
    }
    this.left -= data.length
    if (this.left > 0) return
    load?.finish(this.began)
    this.send()
  }
}

/** @param {string} answer @returns {number} bytes of headers and body */
function lengthOf (answer) {
  const headers = answer.indexOf('\r\n\r\n') + 4
  const body = /^content-length: *(\d+)\r$/im.exec(answer)
  if (headers < 4 || body === null) throw new Error(`an answer without a length: ${JSON.stringify(answer.slice(0, 200))}`)
  return headers + Number(body[1])
}

/** A new connection per unit, until the server ends it. */
function connect () {
  const present = load
  if (present === undefined) return
  if (!present.next()) return present.idle()
  const began = performance.now()
  const socket = net.connect(port, '127.0.0.1')
  let failed = false
  socket.on('error', (error) => {
    failed = true
    present.done(error)
  })
  socket.on('close', () => {
    if (failed) return
    present.finish(began)
    connect()
  })
  socket.resume()
}

/** @type {Record<string, (message: any) => unknown>} */
const answers = {
  open (message) {
    port = message.port
    connections = message.fresh ? [] : Array.from({ length: message.connections }, () => new Connection())
    return Promise.all(connections.map(({ socket }) => new Promise((resolve) => socket.once('connect', resolve).once('close', resolve)))).then(() => ({}))
  },

  load: ({ units, limit, connections: count }) => new Promise((resolve, reject) => {
    const present = load = new Load(units, limit, (error) => error === undefined ? resolve(present.figures()) : reject(error))
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
    process.send?.(await answers[message.ask](message))
  } catch (error) {
    process.send?.({ error: /** @type {Error} */ (error).message })
  }
})
process.on('disconnect', () => process.exit(0))
process.on('uncaughtException', (error) => load === undefined ? process.send?.({ error: error.message }) : load.done(error))
process.send?.({ ready: true })
