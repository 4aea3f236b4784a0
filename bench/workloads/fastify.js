'use strict'

// A framework with a few middlewares, like most servers.

const { obey } = require('../child')
const app = require('fastify')({ keepAliveTimeout: 120_000 })

/** @type {Map<string, { name: string }>} */
const users = new Map([['1', { name: 'Ada' }]])
const find = async (/** @type {string} */ id) => users.get(id)

app.decorateRequest('user', null)
app.addHook('onRequest', (request, reply, done) => {
  reply.header('x-request', request.id)
  done()
})
app.addHook('preHandler', async (request) => { request.user = await find('1') })
app.get('/', async (request) => {
  await null
  return { hello: request.user.name }
})

app.listen({ port: 0, host: '127.0.0.1' }).then(() => obey({ port: app.server.address().port }))
