'use strict'

// Servers and raw clients for the tests of trace.intercept.

const http = require('node:http')
const net = require('node:net')
const { once } = require('node:events')

/**
 * Responds to every request with the server's view of it.
 * @param {http.IncomingMessage} req
 * @param {http.ServerResponse} res
 */
async function tell (req, res) {
  let body = ''
  try {
    for await (const part of req) body += part.toString('latin1')
  } catch {
    return // the client is gone
  }
  const { host, connection, ...headers } = req.headers
  res.sendDate = false
  res.setHeader('Content-Type', 'text/plain')
  res.end(JSON.stringify({ method: req.method, url: req.url, headers, body, trailers: req.trailers }) + '\n')
}

/**
 * @template {net.Server} S
 * @param {import('ava').ExecutionContext} t
 * @param {S} server
 * @returns {Promise<S & { port: number }>}
 */
async function listening (t, server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close(); /** @type {any} */ (server).closeAllConnections?.() })
  return Object.assign(server, { port: /** @type {net.AddressInfo} */ (server.address()).port })
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {http.RequestListener} [handler]
 * @param {http.ServerOptions} [options]
 */
const serve = (t, handler = tell, options = {}) => listening(t, http.createServer(options, handler))

/**
 * A client that writes given bytes and keeps everything it receives.
 * @param {net.Socket} socket
 */
function clientOf (socket) {
  let got = ''
  const state = { over: false }
  socket.setNoDelay(true)
  socket.on('data', (data) => { got += data.toString('latin1') })
  socket.on('error', () => {})
  const closed = new Promise((resolve) => socket.on('close', () => { state.over = true; resolve(undefined) }))
  return {
    socket,
    closed,
    got: () => got,
    /** @param {string | Buffer} bytes */
    write: (bytes) => socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    /** Waits for the last lines of a number of responses, or for a text. @param {number | string} wanted */
    async until (wanted) {
      const there = () => typeof wanted === 'string' ? got.includes(wanted) : got.split('}\n').length > wanted
      for (const end = Date.now() + 20_000; !there() && !state.over;) {
        if (Date.now() > end) throw new Error(`no ${wanted} within 20 s, but ${JSON.stringify(got)}`)
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
      return got
    }
  }
}

/** @param {number} port */
const dial = (port) => clientOf(net.connect(port, '127.0.0.1'))

/** Parses the bodies of the responses. @param {string} text */
const told = (text) => [...text.matchAll(/^\{.*\}$/gm)].map(([line]) => JSON.parse(line))

/** Waits until a condition holds. @param {() => unknown} condition @param {string} what */
async function until (condition, what) {
  for (const end = Date.now() + 20_000; !condition();) {
    if (Date.now() > end) throw new Error(`not within 20 s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

module.exports = { clientOf, dial, listening, serve, tell, told, until }
