'use strict'

// Exchanges that do not come to their end: who breaks them off, and when.

const http = require('node:http')
const net = require('node:net')
const tls = require('node:tls')
const { ask, sendRaw } = require('./client')

/** @typedef {import('./world').World} World */

/** @param {any} emitter */
const quiet = (emitter) => emitter.on('error', () => {})

/** @param {any} emitter @returns {Promise<void>} */
const closed = (emitter) => new Promise((resolve) => {
  emitter.on('close', () => resolve())
  setTimeout(resolve, 1000).unref()
})

/** @type {Record<string, import('./world').Exchange>} */
module.exports = {
  'cut-by-server' (world, task) {
    return ask(world, task, { how: 'cut-by-server', secure: world.below(4) === 0 })
  },

  'cut-by-client' (world, task) {
    const how = ['', 'slow', 'silent', 'half', 'big'][world.below(5)]
    return ask(world, task, { how, secure: world.below(4) === 0 }, (request) => {
      if (world.below(4) > 0) request.end()
      world.sometime(() => {
        if (world.below(3) === 0) request.abort()
        else request.destroy(world.below(2) === 0 ? undefined : new Error('on purpose'))
      })
    })
  },

  'cut-response' (world, task) {
    const how = ['half', 'big', 'slow'][world.below(3)]
    return ask(world, task, { how }, undefined, (response) => world.sometime(() => response.destroy()))
  },

  'cut-upload' (world, task) {
    const how = world.below(2) === 0 ? 'upload' : 'refused'
    return ask(world, task, { how, method: 'POST' }, (request) => {
      request.write('x'.repeat(1 + world.below(200_000)))
      world.sometime(() => request.destroy())
    })
  },

  // The body is never read; the request is destroyed later on, or left until its connection is closed.
  unread (world, task) {
    return ask(world, task, { how: 'big', agent: false }, undefined, (response) => {
      setTimeout(() => response.destroy(), 20)
    })
  },

  // Waiting for a free connection of the agent, some or all are destroyed.
  async 'cut-queue' (world, task) {
    const agent = new http.Agent({ maxSockets: 1, keepAlive: world.below(2) === 0 })
    const how = world.below(2) === 0 ? 'slow' : 'silent'
    await Promise.all([1, 2, 3].map((i) => ask(world, task, { agent, how }, (request) => {
      request.end()
      if (i > 1 || how === 'silent') world.sometime(() => request.destroy())
    })))
    if (how === 'silent') agent.destroy()
  },

  // An agent whose only connection never comes free: nobody says that the second request is over.
  'left-in-queue' (world) {
    const agent = new http.Agent({ maxSockets: 1 })
    const options = { port: world.ports.deaf, host: '127.0.0.1', agent, path: '/x' }
    const requests = [1, 2].map(() => quiet(http.get(options)))
    return new Promise((resolve) => {
      setTimeout(() => {
        for (const request of world.below(2) === 0 ? requests : requests.reverse()) request.destroy()
        resolve(undefined)
      }, world.below(20))
    })
  },

  aborted (world, task) {
    const controller = new AbortController()
    const signal = world.below(2) === 0 ? controller.signal : AbortSignal.timeout(1 + world.below(5))
    world.sometime(() => controller.abort())
    return ask(world, task, { how: ['slow', 'silent', 'half'][world.below(3)], signal }, (request) => {
      request.end()
      setTimeout(() => request.destroy(), 100)
    })
  },

  'client-timeout' (world, task) {
    return ask(world, task, { how: ['silent', 'half'][world.below(2)], timeout: 5 }, (request) => {
      request.on('timeout', () => request.destroy())
      request.end()
    })
  },

  'server-timeout': (world, task) => ask(world, task, { how: 'server-timeout' }),

  rude (world, task) {
    task.truth.made.length = 0
    return ask(world, task, { port: world.ports.rude, agent: world.below(2) === 0 ? false : undefined })
  },

  async refused (world, task) {
    await ask(world, task, { port: world.ports.refused })
    const socket = quiet(net.connect(world.ports.refused, '127.0.0.1'))
    if (world.below(2) === 0) world.sometime(() => socket.destroy())
    await closed(socket)
  },

  async 'cut-connect' (world) {
    const socket = quiet(net.connect(world.ports.deaf, world.below(2) === 0 ? '127.0.0.1' : 'localhost'))
    world.sometime(() => socket.destroy())
    await closed(socket)
  },

  async 'cut-tls' (world) {
    const port = world.below(2) === 0 ? world.ports.deaf : world.ports.https
    const host = world.below(2) === 0 ? '127.0.0.1' : 'localhost'
    const socket = quiet(tls.connect({ port, host, rejectUnauthorized: world.below(2) === 0 }))
    if (world.below(3) === 0) socket.destroy()
    else world.sometime(() => socket.destroy())
    await closed(socket)
  },

  async 'cut-https' (world, task) {
    const port = world.below(2) === 0 ? world.ports.deaf : world.ports.https
    const agent = world.below(2) === 0 ? false : undefined
    await ask(world, task, { port, host: 'localhost', secure: true, agent }, (request) => {
      request.end()
      if (world.below(3) === 0) request.destroy()
      else world.sometime(() => request.destroy())
    })
  },

  // Several requests at once on one connection, which is closed in the midst of them.
  async pipelined (world, task) {
    const hows = [1, 2, 3].map(() => ['', 'slow', 'silent', 'half', 'cut-by-server'][world.below(5)])
    const text = hows.map((how) => `GET ${task.path}/${how} HTTP/1.1\r\nHost: x\r\n\r\n`).join('')
    await sendRaw(world, text, (socket) => world.below(2) === 0 ? socket.end() : socket.destroy())
  },

  async 'half-open' (world, task) {
    const how = ['', 'slow'][world.below(2)]
    await sendRaw(world, `GET ${task.path}/${how} HTTP/1.1\r\nHost: x\r\n\r\n`, (socket) => socket.end())
  },

  async malformed (world, task) {
    const head = `POST ${task.path}/upload HTTP/1.1\r\nHost: x\r\n`
    const text = [
      'GET / HTTP/1.1\r\nbad header\r\n\r\n',
      `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`,
      `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
      `${head}Content-Length: 10\r\n\r\nshort`,
      `${head}X: ${'x'.repeat(20_000)}\r\n\r\n`,
      `GET ${task.path}/slow HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/9.9\r\n\r\n`,
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      `GET ${task.path} HTTP/1.0\r\n\r\n`,
      '\u0016\u0003\u0001'
    ][world.below(9)]
    await sendRaw(world, text, (socket) => world.below(2) === 0 ? socket.end() : socket.destroy())
  },

  // A server of its own that closes all connections.
  async 'closed-by-all' (world, task) {
    const server = http.createServer((request, response) => {
      const side = { outcome: /** @type {'cut' | 'whole'} */ ('cut') }
      task.truth.served.push(side)
      response.on('finish', () => { side.outcome = 'whole' })
      if (world.below(2) === 0) response.write('half')
      world.sometime(() => server.closeAllConnections())
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
    const { port } = /** @type {net.AddressInfo} */ (server.address())
    await Promise.all([1, 2].map(() => ask(world, task, { port })))
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  },

  // Not even Node's own listener hears that the answer is finished.
  unheard (world, task) {
    return ask(world, task, { how: 'unheard', agent: false })
  }
}
