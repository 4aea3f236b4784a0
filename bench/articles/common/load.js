'use strict'

// The client, in its own process: several keep-alive connections, with sequential requests on each. It reads
// the length of every answer, checks its status, and records every latency. Started by measure.js.

const net = require('node:net')

const PATIENCE_MS = 30_000 // ms beyond the limit

/**
 * @typedef {object} Load
 * @property {number} port
 * @property {string[]} paths requested in turn
 * @property {number} connections
 * @property {number} requests maximum
 * @property {number} limit ms, after which each connection sends at most its first request
 */

/**
 * Returns the length of an answer, head and body, in bytes.
 * @param {string} head including its empty line
 * @param {number} size of the head
 */
function lengthOf (head, size) {
  if (/^HTTP\/1\.1 304/.test(head)) return size
  const body = /^content-length: *(\d+)\r$/im.exec(head)
  if (body === null) throw new Error(`an answer without a length: ${JSON.stringify(head.slice(0, 200))}`)
  return size + Number(body[1])
}

/** Counts the bytes of one connection's answers to detect their ends. */
class AnswerReader {
  head = ''
  remaining = 0 // bytes of the current answer, once its head is complete

  /** Counts a chunk. @param {Buffer} data @returns {boolean} whether the answer is complete */
  read (data) {
    if (this.remaining > 0) {
      this.remaining -= data.length
      return this.remaining <= 0
    }
    this.head += data.toString('latin1')
    const size = this.head.indexOf('\r\n\r\n') + 4
    if (size < 4) return false
    const answer = JSON.stringify(this.head.slice(0, 200))
    if (!/^HTTP\/1\.1 [23]/.test(this.head)) throw new Error(`the server answered ${answer}`)
    this.remaining = lengthOf(this.head.slice(0, size), size) - this.head.length
    this.head = ''
    return this.remaining <= 0
  }
}

/** @param {Load} load */
function run ({ port, paths, connections, requests, limit }) {
  return new Promise((resolve, reject) => {
    const latencies = /** @type {number[]} */ ([])
    const began = performance.now()
    let started = 0
    let bytes = 0
    let open = connections
    let last = began
    const patience = limit + PATIENCE_MS
    const timer = setTimeout(() => reject(new Error(`no answer within ${patience} ms`)), patience)

    function finish () {
      clearTimeout(timer)
      resolve({ units: latencies.length, ms: last - began, bytes, latencies })
    }

    /** Opens one connection and uses it until no requests are left. */
    function connect () {
      const socket = net.connect(port, '127.0.0.1')
      socket.setNoDelay(true)
      const reader = new AnswerReader()
      let sent = 0 // time

      function send () {
        const isOver = sent > 0 && performance.now() > began + limit // each connection sends at least one
        if (started >= requests || isOver) {
          socket.destroy()
          if (--open === 0) finish()
          return
        }
        const path = paths[started++ % paths.length]
        sent = performance.now()
        socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
      }

      /** @param {Buffer} data */
      function receive (data) {
        bytes += data.length
        if (!reader.read(data)) return
        last = performance.now()
        latencies.push(last - sent)
        send()
      }

      socket.on('connect', send)
      socket.on('data', (data) => {
        try { receive(data) } catch (error) { reject(error) }
      })
      socket.on('error', reject)
      socket.on('end', () => reject(new Error('the server closed a connection')))
    }

    for (let i = 0; i < connections; i++) connect()
  })
}

process.on('message', async (/** @type {any} */ message) => {
  if (message.command === 'end') process.exit(0)
  try {
    process.send?.(await run(message.load))
  } catch (error) {
    process.send?.({ error: /** @type {Error} */ (error).message })
  }
})
process.on('disconnect', () => process.exit(0))
process.send?.({ ready: true })
