'use strict'

// The client of the examples, a process of its own: so many kept connections, on each one request after another. It reads
// the length of every answer and checks its status, and keeps every latency. Started by measure.js.

const net = require('node:net')

const PATIENCE_MS = 30_000 // past the limit

/**
 * @typedef {object} Load
 * @property {number} port
 * @property {string[]} paths asked in turn
 * @property {number} connections
 * @property {number} requests at most so many
 * @property {number} limit ms, at most so long
 * @property {number} pause ms, of a connection between an answer and its next request
 */

/** Where an answer ends: bytes of head and body. @param {string} head with its empty line @param {number} size of the head */
function lengthOf (head, size) {
  if (/^HTTP\/1\.1 304/.test(head)) return size
  const body = /^content-length: *(\d+)\r$/im.exec(head)
  if (body === null) throw new Error(`an answer without a length: ${JSON.stringify(head.slice(0, 200))}`)
  return size + Number(body[1])
}

/** @param {Load} load */
function run ({ port, paths, connections, requests, limit, pause }) {
  return new Promise((resolve, reject) => {
    const latencies = /** @type {number[]} */ ([])
    const began = performance.now()
    const end = began + limit
    let started = 0
    let bytes = 0
    let open = connections
    let last = began
    const timer = setTimeout(() => reject(new Error(`no answer within ${limit + PATIENCE_MS} ms`)), limit + PATIENCE_MS)

    function finish () {
      clearTimeout(timer)
      resolve({ units: latencies.length, ms: last - began, bytes, latencies })
    }

    /** One connection, until nothing is left to ask. */
    function connect () {
      const socket = net.connect(port, '127.0.0.1')
      socket.setNoDelay(true)
      let asked = 0
      let left = 0 // bytes of the present answer, once its head is known
      let head = ''

      function send () {
        if (started >= requests || performance.now() > end) {
          socket.destroy()
          if (--open === 0) finish()
          return
        }
        const path = paths[started++ % paths.length]
        head = ''
        left = 0
        asked = performance.now()
        socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
      }

      /** @param {Buffer} data */
      function receive (data) {
        bytes += data.length
        if (left === 0) {
          head += data.toString('latin1')
          const size = head.indexOf('\r\n\r\n') + 4
          if (size < 4) return
          if (!/^HTTP\/1\.1 [23]/.test(head)) return reject(new Error(`the server answered ${JSON.stringify(head.slice(0, 200))}`))
          left = lengthOf(head.slice(0, size), size) - head.length
        } else {
          left -= data.length
        }
        if (left > 0) return
        last = performance.now()
        latencies.push(last - asked)
        if (pause > 0) setTimeout(send, pause)
        else send()
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
  if (message.ask === 'end') process.exit(0)
  try {
    process.send?.(await run(message.load))
  } catch (error) {
    process.send?.({ error: /** @type {Error} */ (error).message })
  }
})
process.on('disconnect', () => process.exit(0))
process.send?.({ ready: true })
