'use strict'

// Exchanges that come to their end.

const http = require('node:http')
const { ask } = require('./client')

/** @type {Record<string, import('./world').Exchange>} */
module.exports = {
  plain (world, task) {
    task.truth.isGood = true
    return ask(world, task, {})
  },

  'new-connection' (world, task) {
    task.truth.isGood = true
    return ask(world, task, { agent: false })
  },

  slow (world, task) {
    task.truth.isGood = true
    return ask(world, task, { how: 'slow' })
  },

  secure (world, task) {
    task.truth.isGood = true
    return ask(world, task, { secure: true, how: world.below(2) === 0 ? 'slow' : '' })
  },

  head (world, task) {
    task.truth.isGood = true
    return ask(world, task, { method: 'HEAD', how: ['', 'big', 'slow'][world.below(3)] })
  },

  'no-body' (world, task) {
    task.truth.isGood = true
    return ask(world, task, { how: 'nothing' })
  },

  informational (world, task) {
    task.truth.isGood = true
    return ask(world, task, { how: 'early' })
  },

  failing: (world, task) => ask(world, task, { how: 'failing' }),

  big (world, task) {
    task.truth.isGood = true
    return ask(world, task, { how: 'big' })
  },

  upload (world, task) {
    task.truth.isGood = true
    return ask(world, task, { how: 'upload', method: 'POST' }, (request) => {
      request.write('x'.repeat(world.below(100_000)))
      world.sometime(() => request.end('y'))
    })
  },

  continue (world, task) {
    const headers = { expect: '100-continue', 'content-length': 5 }
    return ask(world, task, { method: 'POST', how: 'upload', headers }, (request) => {
      request.on('continue', () => request.end('hello'))
      request.on('response', (response) => { if (response.statusCode === 417) request.destroy() })
      request.flushHeaders()
    }, (response) => {
      response.resume()
      response.on('end', () => {})
    })
  },

  // Waits for a free connection with others, and gets one.
  async queue (world, task) {
    task.truth.isGood = true
    const agent = new http.Agent({ keepAlive: world.below(2) === 0, maxSockets: 1 })
    await Promise.all([1, 2, 3].map(() => ask(world, task, { agent, how: 'slow' })))
    agent.destroy()
  }
}
