'use strict'

const test = require('ava')
const { lines, story } = require('../helpers/web')

// Frameworks from npm: the route template is the name, even with nested routers, and the errors that they
// answer for are recorded on the span.

/** @param {any} outcome */
const served = ({ spans }) => lines(spans.filter((/** @type {any} */ { kind }) => kind === 'SERVER'))

/** @param {any} span */
const errors = (span) => (span.events ?? []).map((/** @type {any} */ { attributes }) => attributes['exception.message'])

for (const express of ['express', 'express4']) {
  test(`${express}: route templates include those of the surrounding routers`, async (t) => {
    const outcome = await story(t, `
      const express = need('${express}')
      const app = express()
      app.use((req, res, next) => setImmediate(next))
      app.get('/', (req, res) => res.send('home'))
      app.get('/users/:id', async (req, res) => { await wait(2); res.send(req.params.id) })
      app.get(['/a/:x', '/b/:x'], (req, res) => res.send('a or b'))
      app.get(/^\\/re(x+)$/, (req, res) => res.send('regular'))
      const orders = express.Router({ mergeParams: true })
      orders.get('/', (req, res) => res.send('orders'))
      orders.get('/:order', async (req, res) => { await wait(2); res.send(req.params.order) })
      const inner = express.Router()
      inner.post('/deep/:thing', express.json(), (req, res) => res.status(201).json(req.body))
      orders.use('/:order/items', inner)
      app.use('/shops/:shop/orders', orders)
      app.use('/plain', orders)
      app.use(inner)
      const api = express()
      api.get('/things/:id', (req, res) => res.send('thing'))
      api.use('/more', inner)
      app.use('/api/:version', api)
      app.use((req, res) => res.status(404).send('none'))
      const port = await listen(http.createServer(app))
      const paths = ['/', '/users/7?token=s3cret', '/a/1', '/rexx', '/shops/4/orders', '/shops/4/orders/5', '/plain/5', '/api/v1/things/3', '/nothing/here']
      for (const path of paths) await ask({ port, path })
      for (const path of ['/shops/4/orders/9/items/deep/2', '/deep/2', '/api/v2/more/deep/1']) {
        saw[path] = (await ask({ port, path, method: 'POST', headers: { 'content-type': 'application/json' } }, (request) => request.end('{"a":1}'))).body
      }
    `)
    t.deepEqual(served(outcome), [
      'SERVER GET / UNSET 200',
      'SERVER GET /users/:id UNSET 200',
      'SERVER GET /a/:x|/b/:x UNSET 200',
      'SERVER GET /^\\/re(x+)$/ UNSET 200',
      'SERVER GET /shops/:shop/orders UNSET 200',
      'SERVER GET /shops/:shop/orders/:order UNSET 200',
      'SERVER GET /plain/:order UNSET 200',
      'SERVER GET /api/:version/things/:id UNSET 200',
      'SERVER GET /nothing/here UNSET 404',
      'SERVER POST /shops/:shop/orders/:order/items/deep/:thing UNSET 201',
      'SERVER POST /deep/:thing UNSET 201',
      'SERVER POST /api/:version/more/deep/:thing UNSET 201'
    ])
    t.deepEqual(new Set(Object.values(outcome.saw)), new Set(['{"a":1}']))
    t.false(JSON.stringify(outcome.spans).includes('s3cret'))
    t.is(outcome.one('GET /users/:id').attributes['http.route'], '/users/:id')
    t.is(outcome.one('GET /users/:id').attributes['url.path'], '/users/7')
  })
}

test('Express 5: a thrown or rejected error belongs to the span, with its long stack', async (t) => {
  const { one } = await story(t, `
    const express = need('express')
    const app = express()
    app.set('env', 'test')
    app.get('/thrown', function thrower (req, res) { throw new Error('thrown') })
    app.get('/rejected', async function rejecter (req, res) { await wait(2); throw new Error('rejected') })
    app.get('/next', (req, res, next) => setTimeout(function later () { next(new Error('passed on')) }, 2))
    app.get('/caught', async (req, res) => { try { await Promise.reject(new Error('caught')) } catch { res.send('fine') } })
    const port = await listen(http.createServer(app))
    for (const path of ['/thrown', '/rejected', '/next', '/caught']) await ask({ port, path })
  `)
  for (const [name, message, frame] of [['GET /thrown', 'thrown', 'thrower'], ['GET /rejected', 'rejected', 'rejecter'], ['GET /next', 'passed on', 'later']]) {
    const span = one(name)
    t.is(span.status.code, 'ERROR')
    t.deepEqual(errors(span), [message])
    t.regex(span.events[0].attributes['exception.stacktrace'], new RegExp(`\\b${frame}\\b[^]* ── `))
  }
  t.deepEqual([one('GET /caught').status.code, errors(one('GET /caught'))], ['UNSET', []])
})

test('Fastify 5: templates with prefixes, errors, rejected requests, and inject()', async (t) => {
  const { spans, one, saw } = await story(t, `
    const app = need('fastify')()
    app.get('/users/:id', async (request) => { await wait(2); return { id: request.params.id } })
    app.register(async (inner) => {
      inner.get('/things/:id', (request, reply) => { reply.send('thing') })
      inner.post('/things', { schema: { body: { type: 'object', required: ['a'] } } }, async () => 'made')
    }, { prefix: '/api/:version' })
    app.get('/rejected', async function rejecter () { await wait(1); throw new Error('rejected') })
    app.get('/thrown', function thrower () { throw new Error('thrown') })
    app.get('/files/*', async () => 'file')
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address()
    for (const path of ['/users/7', '/api/v1/things/3', '/rejected', '/thrown', '/files/a/b', '/nothing']) await ask({ port, path })
    saw.refused = (await ask({ port, path: '/api/v1/things', method: 'POST', headers: { 'content-type': 'application/json' } }, (request) => request.end('{}'))).status
    saw.injected = (await app.inject('/users/8')).json()
    await app.close()
  `)
  t.deepEqual(served({ spans }), [
    'SERVER GET /users/:id UNSET 200',
    'SERVER GET /api/:version/things/:id UNSET 200',
    'SERVER GET /rejected ERROR 500',
    'SERVER GET /thrown ERROR 500',
    'SERVER GET /files/* UNSET 200',
    'SERVER GET /nothing UNSET 404',
    'SERVER POST /api/v1/things UNSET 400'
  ])
  t.deepEqual(saw, { refused: 400, injected: { id: '8' } })
  for (const [name, message, frame] of [['GET /rejected', 'rejected', 'rejecter'], ['GET /thrown', 'thrown', 'thrower']]) {
    t.deepEqual(errors(one(name)), [message])
    t.true(one(name).events[0].attributes['exception.stacktrace'].includes(frame))
  }
})

test('Koa 3: templates of @koa/router, nested and prefixed; invisible to the program', async (t) => {
  const { spans, one, saw } = await story(t, `
    const Koa = need('koa')
    const Router = need('@koa/router')
    const app = new Koa()
    app.silent = true
    app.use(async (ctx, next) => { await next(); saw.keys ??= Object.keys(ctx).sort(); saw.route ??= Object.getOwnPropertyDescriptor(ctx, '_matchedRoute') })
    const inner = new Router({ prefix: '/things' })
    inner.get('/:thing', async (ctx) => { await wait(2); ctx.body = ctx.params.thing })
    const router = new Router()
    router.get('/users/:id', async (ctx) => { await wait(2); ctx.body = ctx.params.id })
    router.get('/rejected', async function rejecter () { await wait(1); throw new Error('rejected') })
    router.use('/api/:version', inner.routes(), inner.allowedMethods())
    app.use(router.routes()).use(router.allowedMethods())
    app.on('error', (error) => { saw.error = error.message })
    const port = await listen(http.createServer(app.callback()))
    for (const path of ['/users/7', '/api/v1/things/3', '/rejected', '/nothing']) await ask({ port, path })
    trace.disable()
    saw.left = '_matchedRoute' in app.context
    trace.enable()
  `)
  t.deepEqual(served({ spans }), [
    'SERVER GET /users/:id UNSET 200',
    'SERVER GET /api/:version/things/:thing UNSET 200',
    'SERVER GET /rejected ERROR 500',
    'SERVER GET /nothing UNSET 404'
  ])
  t.deepEqual(saw.route, { value: '/users/:id', writable: true, enumerable: true, configurable: true })
  t.deepEqual([saw.left, saw.error], [false, 'rejected'])
  t.true(saw.keys.includes('_matchedRoute') && saw.keys.includes('params'))
  if (process.env.ENGINE !== 'js') t.deepEqual(errors(one('GET /rejected')), ['rejected'])
})

test('ES modules import Koa and Express', async (t) => {
  const { spans } = await story(t, `
    const [{ default: Koa }, { default: Router }, { default: express }] =
      await Promise.all(['koa', '@koa/router', 'express'].map((name) => import(need('node:url').pathToFileURL(need.resolve(name)))))
    const router = new Router()
    router.get('/koa/:id', (ctx) => { ctx.body = 'x' })
    const koa = await listen(http.createServer(new Koa().use(router.routes()).callback()))
    const app = express().get('/express/:id', (req, res) => res.send('x'))
    const other = await listen(http.createServer(app))
    await ask({ port: koa, path: '/koa/1' })
    await ask({ port: other, path: '/express/1' })
  `)
  t.deepEqual(served({ spans }), ['SERVER GET /koa/:id UNSET 200', 'SERVER GET /express/:id UNSET 200'])
})
