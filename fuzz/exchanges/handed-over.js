'use strict'

// Connections that are handed over to another protocol or to other code, and spans of the program's own.

const http = require('node:http')
const { Duplex } = require('node:stream')
const trace = require('../..')
const { ask } = require('./client')

/** What is never settled, as long as somebody holds it. */
const never = () => new Promise(() => {})

/** Two ends of a connection that has no handle. */
function duplexPair () {
  /** @type {Duplex[]} */
  const ends = [0, 1].map((i) => new Duplex({
    read () {},
    write (chunk, encoding, done) {
      setImmediate(() => {
        if (!ends[1 - i].destroyed) ends[1 - i].push(chunk)
        done()
      })
    },
    final (done) {
      if (!ends[1 - i].destroyed) ends[1 - i].push(null)
      done()
    },
    destroy (error, done) {
      setImmediate(() => ends[1 - i].destroy())
      done(error)
    }
  }))
  for (const end of ends) end.on('error', () => {})
  return ends
}

/**
 * Frees the parser of a connection when that is closed. Node frees the one that the connection has then, and
 * keeps for good the one of a server that had it before, with all that it holds (socketOnClose in
 * lib/_http_server.js): 8 KB, 15 with the records of longstack.
 * @param {any} socket
 */
function closeParser (socket) {
  const { parser } = socket
  socket.on('close', () => { if (socket.parser !== parser) setImmediate(() => parser.close()) })
}

/** @type {Record<string, import('./world').Exchange>} */
module.exports = {
  // A REST call, then another protocol on the same connection.
  async upgrade (world, task) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    if (world.below(3) > 0) await ask(world, task, { agent })
    await ask(world, task, { agent, headers: { connection: 'Upgrade', upgrade: 'echo' } }, (request) => {
      request.end()
      if (world.below(6) === 0) world.sometime(() => request.destroy())
    })
    agent.destroy()
  },

  async tunnel (world, task) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    if (world.below(3) > 0) await ask(world, task, { agent })
    await ask(world, task, { agent, method: 'CONNECT', path: `tunnel.${task.id}:443` })
    agent.destroy()
  },

  // A connection without a handle, on both sides.
  async duplex (world, task) {
    const [near, far] = duplexPair()
    world.server.emit('connection', far)
    const how = ['', 'slow', 'silent', 'cut-by-server'][world.below(4)]
    const createConnection = () => /** @type {any} */ (near)
    await ask(world, task, { how, agent: undefined, createConnection }, (request) => {
      request.end()
      if (how === 'silent') world.sometime(() => request.destroy())
    })
    near.destroy()
    far.destroy()
  },

  // The server's socket is given to another server in the midst of a request.
  async 'another-server' (world, task) {
    const other = http.createServer((request, response) => response.end('other'))
    other.on('connection', (socket) => socket.on('error', () => {}))
    const server = http.createServer((request, response) => {
      const side = { outcome: /** @type {'cut' | 'whole'} */ ('cut') }
      task.truth.served.push(side)
      response.on('finish', () => { side.outcome = 'whole' })
      const { socket } = request
      closeParser(socket)
      response.detachSocket(socket)
      socket.removeAllListeners('data')
      world.sometime(() => {
        other.emit('connection', socket)
        world.sometime(() => socket.destroy())
      })
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
    await ask(world, task, { port: /** @type {any} */ (server.address()).port, agent: false })
    await new Promise((resolve) => server.close(resolve))
  },

  async 'own-span' (world, task) {
    await trace.span('work', { id: task.id }, async () => {
      await world.instant()
      if (world.below(4) === 0) throw new Error('on purpose')
    }).catch(() => {})
  },

  // Its promise is never settled, and collected.
  async 'left-span' (world, task) {
    trace.span('left', { id: task.id }, never)
    if (world.below(2) === 0) trace.span('left', { id: task.id }, async () => { await never() })
  }
}
