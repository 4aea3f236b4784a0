'use strict'

// The hop of a server request identifies it: method and path, with the route if a framework reported
// it.

const test = require('ava')
const { story } = require('../helpers/web')
const { program } = require('../helpers/run')

const hops = 'const labels = (target) => trace.chain(target).map(({ label }) => label.replace(/:\\d+\\)/, ")"));'
const modes = [{}, { LONGSTACK_CAPTURE: 'js' }]
const nameOf = (/** @type {object} */ env) => Object.values(env).join() || 'full'

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Record<string, string>} [env]
 * @returns {Promise<any>} what the program put in `saw`
 */
async function told (t, source, env = {}) {
  const { stdout, stderr, code } = await program(`${prelude}\n${hops}\n;(async () => { ${source}\n finish() })()`, { env })
  t.is(stderr, '')
  t.is(code, 0)
  const { saw, fault } = JSON.parse(stdout)
  t.is(fault, undefined)
  return saw
}

const interrupted = require.resolve('../fixtures/chains/interrupted')
const root = JSON.stringify(require('node:path').resolve(__dirname, '..', '..'))
const prelude = `
const { createRequire } = require('node:module')
const need = createRequire(${root} + '/package.json')
const fs = require('node:fs'), http = require('node:http'), http2 = require('node:http2'), https = require('node:https'), net = require('node:net')
const trace = require(${root})
const saw = {}
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const listen = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))
const pem = (name) => fs.readFileSync(${root} + '/test/fixtures/chains/' + name + '.pem')
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
const ask = (port, path, { method = 'GET', body, from = http, ...more } = {}) => new Promise((resolve) => {
  from.request({ host: '127.0.0.1', port, path, method, agent, rejectUnauthorized: false, ...more }, (response) => response.resume().on('close', resolve)).end(body)
})
/** What a connection answers to bytes, until it is closed. */
const raw = (port, ...texts) => new Promise((resolve) => {
  const socket = net.connect(port, '127.0.0.1', async () => { for (const text of texts) { socket.write(text); await wait(30) } })
  socket.resume().on('error', () => {}).on('close', resolve)
})
const finish = () => { fs.writeSync(1, JSON.stringify({ saw, fault: trace.stats().fault })); process.exit() }
`

for (const env of modes) {
  test(`each request of a connection has its own label, without a query string (${nameOf(env)})`, async (t) => {
    const saw = await told(t, `
      const server = http.createServer(function handle (req, res) {
        const { url } = req
        const note = (when) => { (saw[url] ??= {})[when] = labels() }
        note('at once')
        setTimeout(() => note('timer'), 1)
        setTimeout(() => note('late'), 150)
        req.on('data', () => note('data')).on('end', async () => {
          note('end')
          await wait(5)
          note('await')
          res.end()
        })
      })
      const port = await listen(server)
      await ask(port, '/one?token=secret')
      await ask(port, '/two#secret', { method: 'POST', body: 'text' })
      await ask(port, '/three?a/b?c', { method: 'PUT', body: 'text' })
      await wait(200)`, env)
    for (const [url, request] of Object.entries({ '/one?token=secret': 'GET /one', '/two#secret': 'POST /two', '/three?a/b?c': 'PUT /three' })) {
      const { data, ...others } = saw[url]
      for (const [when, chain] of Object.entries(data === undefined ? others : saw[url])) {
        const at = chain.indexOf(request)
        t.true(at !== -1, `${url}, ${when}: ${chain}`)
        t.deepEqual(chain.slice(at + 1)[0], 'server.listen(127.0.0.1)', `${url}, ${when}`)
        t.is(chain.filter((/** @type {string} */ label) => /^(GET|POST|PUT) /.test(label)).length, 1)
      }
      t.deepEqual(Object.keys(others).sort(), ['at once', 'await', 'end', 'late', 'timer'])
    }
    t.false(JSON.stringify(Object.values(saw)).includes('secret'))
  })

  test(`an error that is kept belongs to its own request (${nameOf(env)})`, async (t) => {
    const saw = await told(t, `
      const kept = []
      const server = http.createServer(async function handle (req, res) {
        await null
        try { await Promise.reject(new Error(req.url)) } catch (error) { kept.push(error) }
        setTimeout(function answer () { res.end() }, 1)
      })
      const port = await listen(server)
      for (const path of ['/a', '/b', '/c']) await ask(port, path)
      saw.kept = kept.map((error) => [error.message, trace.chain(error).filter(({ type }) => type === 'HTTPINCOMINGMESSAGE').map(({ label, origin }) => label + ' ' + origin)])`, env)
    for (const [path, requests] of saw.kept) {
      for (const one of requests) t.regex(one, new RegExp(`^GET ${path} | reader$`), 'its own, or said to be the reader\'s')
    }
  })

  test(`streams of HTTP/2 have their own labels (${nameOf(env)})`, async (t) => {
    const saw = await told(t, `
      const server = http2.createServer().on('stream', (stream, headers) => {
        const note = (when) => { (saw[headers[':path']] ??= {})[when] = labels().slice(0, 3) }
        note('stream')
        stream.on('data', () => note('data')).on('end', () => {
          note('end')
          setTimeout(() => { note('timer'); stream.respond(); stream.end() }, 5)
        })
      })
      const port = await listen(server)
      const session = http2.connect('http://127.0.0.1:' + port)
      await Promise.all(['/one?token=secret', '/two'].map((path) => new Promise((resolve) => {
        const stream = session.request({ ':path': path, ':method': 'POST' })
        stream.on('close', resolve).resume().end('text')
      })))`, env)
    for (const [path, label] of [['/one?token=secret', 'POST /one'], ['/two', 'POST /two']]) {
      t.deepEqual(Object.keys(saw[path]).sort(), ['data', 'end', 'stream', 'timer'])
      for (const [when, chain] of Object.entries(saw[path])) t.true(chain.includes(label) && !chain.some((one) => one !== label && one.startsWith('POST')), `${path}, ${when}: ${chain}`)
    }
  })

  test(`https requests and HTTP/2 request handlers have labels (${nameOf(env)})`, async (t) => {
    const saw = await told(t, `
      const pair = { key: pem('key'), cert: pem('cert') }
      const port = await listen(https.createServer(pair, (req, res) => { saw.https = labels(); res.end() }))
      await ask(port, '/safe?x', { from: https, agent: false })
      const both = await listen(http2.createSecureServer({ ...pair, allowHTTP1: true }, (req, res) => { saw[req.httpVersion] = labels(); res.end() }))
      await ask(both, '/old', { from: https, agent: false })
      const session = http2.connect('https://127.0.0.1:' + both, { rejectUnauthorized: false })
      await new Promise((resolve) => session.request({ ':path': '/new' }).on('close', resolve).resume())`, env)
    t.is(saw.https[0], 'GET /safe')
    t.is(saw['1.1'][0], 'GET /old')
    t.is(saw['2.0'][0], 'GET /new')
  })
}

test('an interruption while longstack starts does not separate the clocks of JavaScript and the addon', async (t) => {
  const saw = await told(t, `
    const server = http.createServer((req, res) => setTimeout(() => { saw[req.url] = labels(); res.end() }, 1))
    const port = await listen(server)
    await ask(port, '/one')
    await ask(port, '/two')`, { NODE_OPTIONS: `-r ${interrupted}` })
  t.true(saw['/one'].includes('GET /one'), saw['/one'].join())
  t.true(saw['/two'].includes('GET /two'), saw['/two'].join())
})

test('traffic other than requests has the plain label', async (t) => {
  const saw = await told(t, `
    const server = http.createServer((req, res) => res.end())
    server.on('upgrade', (req, socket) => { saw.upgrade = labels(); socket.end() })
    server.on('clientError', (error, socket) => { saw.broken = labels(); socket.destroy() })
    const port = await listen(server)
    const head = (path, more = '') => 'GET ' + path + ' HTTP/1.1\\r\\nHost: a\\r\\n' + more + '\\r\\n'
    await raw(port, head('/first'), head('/second', 'Connection: Upgrade\\r\\nUpgrade: other\\r\\n'))
    await raw(port, head('/first'), 'no request\\r\\n\\r\\n')`)
  t.false(JSON.stringify(saw).includes('GET'), JSON.stringify(saw))
  t.true(saw.upgrade.includes('http connection accepted'))
})

test('pipelined requests, proxy requests, * and long paths have labels', async (t) => {
  const saw = await told(t, `
    saw.labels = []
    const server = http.createServer((req, res) => {
      saw.labels.push(labels()[0])
      setTimeout(() => { saw.labels.push('later ' + labels()[1]); res.end() }, 5)
    })
    const port = await listen(server)
    const head = (line) => line + ' HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'
    const socket = net.connect(port, '127.0.0.1').resume()
    const send = async (text, count) => { socket.write(text); while (saw.labels.length < count) await wait(5) }
    await send(head('GET /p1?x') + head('GET /p2?y'), 4)
    await send(head('GET http://user:secret@other.example:80/far/away?z'), 6)
    await send(head('OPTIONS *'), 8)
    await send(head('GET http://other.example'), 10)
    await send(head('GET /' + 'x'.repeat(5000) + '?secret'), 12)`)
  const short = saw.labels.map((/** @type {string} */ label) => label.length > 100 ? `${label.length}` : label)
  t.deepEqual(short, ['GET /p1', 'GET /p2', 'later GET /p1', 'later GET /p2', 'GET /far/away', 'later GET /far/away', 'OPTIONS *', 'later OPTIONS *', 'GET /', 'later GET /',
    '205', '211'])
})

test('the label has the framework\'s route', async (t) => {
  for (const env of modes) {
    const saw = await told(t, `
      for (const name of ['express', 'express4']) {
        const express = need(name)
        const app = express()
        app.use((req, res, next) => { saw[name + ' before'] ??= labels(); setImmediate(next) })
        const router = express.Router()
        router.get('/orders/:order', async (req, res) => { await wait(1); saw[name] = labels(); res.send('x') })
        app.use('/users/:id', router)
        app.get(['/odd', '/\\u001b31m'], (req, res) => { saw.odd = new Error('x').stack; res.send('x') })
        await ask(await listen(http.createServer(app)), '/users/7/orders/8?token=secret')
        await ask(await listen(http.createServer(app)), '/odd')
      }
      const fastify = need('fastify')()
      fastify.get('/things/:thing', async () => { await wait(1); saw.fastify = labels(); return 'x' })
      await fastify.listen({ port: 0, host: '127.0.0.1' })
      await ask(fastify.server.address().port, '/things/9')
      const Koa = need('koa'), Router = need('@koa/router')
      const router = new (Router.Router ?? Router)()
      router.get('/cats/:cat', async (ctx) => { await wait(1); saw.koa = labels(); ctx.body = 'x' })
      const koa = new Koa().use(router.routes())
      await ask(await listen(http.createServer(koa.callback())), '/cats/tom')
      trace.disable()
      saw.left = Object.keys(Object.getOwnPropertyDescriptors(Koa.prototype)).length > 0 && '_matchedRoute' in new Koa().context`, env)
    const has = (/** @type {string} */ name, /** @type {string} */ label) => t.true(saw[name].includes(label), `${name}: ${saw[name]}`)
    for (const name of ['express', 'express4']) {
      has(`${name} before`, 'GET /users/7/orders/8')
      has(name, 'GET /users/:id/orders/:order')
    }
    has('fastify', 'GET /things/:thing')
    has('koa', 'GET /cats/:cat')
    t.regex(saw.odd, /── GET \/odd\|\/\?31m/)
    t.false(saw.left, 'what was put into Koa is gone')
  }
})

test('labels are the same with spans', async (t) => {
  const outcome = await story(t, `
    ${hops}
    const express = need('express')
    const app = express()
    app.get('/users/:id', async (req, res) => { await wait(1); saw.route = labels(); trace.span('inner', () => { saw.inner = labels() }); res.send('x') })
    app.post('/plain/17', (req, res) => req.on('end', () => { saw.end = labels(); res.send('x') }).resume())
    const port = await listen(http.createServer(app))
    await ask({ port, path: '/users/7?token=secret' })
    await ask({ port, path: '/plain/17', method: 'POST' }, (request) => request.end('body'))`)
  t.true(outcome.saw.route.includes('GET /users/:id'), String(outcome.saw.route))
  t.true(outcome.saw.inner.includes('GET /users/:id'))
  t.true(outcome.saw.end.includes('POST /plain/17'), String(outcome.saw.end))
  t.deepEqual(outcome.spans.filter((/** @type {any} */ { kind }) => kind === 'SERVER').map((/** @type {any} */ { name }) => name), ['GET /users/:id', 'POST /plain/17'])
})

test('after very many labels the plain one is used, and nothing is retained', async (t) => {
  const saw = await told(t, `
    let first
    const server = http.createServer((req, res) => {
      if (req.url === '/first') first = trace.bind(() => labels())
      res.end()
    })
    const port = await listen(server)
    const heads = (from, count) => Array.from({ length: count }, (_, i) => 'GET /n' + (from + i) + ' HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n').join('')
    await ask(port, '/first')
    saw.before = first()
    const socket = net.connect(port, '127.0.0.1').resume()
    for (let i = 0; i < 9000; i += 500) { socket.write(heads(i, 500)); await wait(20) }
    saw.after = first()
    saw.bytes = trace.stats().contextBytes
    socket.destroy()`)
  t.true(saw.before.includes('GET /first'), String(saw.before))
  t.true(saw.after.includes('http connection accepted'), String(saw.after))
  t.false(saw.after.some((/** @type {string} */ label) => label.startsWith('GET')))
  t.true(saw.bytes < 16 << 20)
})

test('requests that came while tracing was off stay unknown', async (t) => {
  const saw = await told(t, `
    saw['/one'] = []
    saw['/two'] = []
    let heads = 0
    const server = http.createServer((req, res) => { heads++; req.on('data', () => saw[req.url].push(labels())).on('end', () => res.end()) })
    const port = await listen(server)
    const until = async (is) => { while (!is()) await wait(5) }
    const head = (path) => 'POST ' + path + ' HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 2\\r\\n\\r\\n'
    const socket = net.connect(port, '127.0.0.1').resume()
    socket.write(head('/one') + 'a')
    await until(() => saw['/one'].length === 1)
    socket.write('b')
    await until(() => saw['/one'].length === 2)
    trace.disable()
    socket.write(head('/two'))
    await until(() => heads === 2)
    trace.enable()
    socket.write('ab')
    await until(() => saw['/two'].length > 0)
    socket.destroy()`)
  for (const chain of saw['/one']) t.true(chain.includes('POST /one'), String(chain))
  t.false(JSON.stringify(saw['/two']).includes('POST'), String(saw['/two']))
})

test('a filter without HTTP has no request hop', async (t) => {
  const saw = await told(t, `
    const port = await listen(http.createServer((req, res) => setTimeout(() => { saw.chain = labels(); res.end() }, 1)))
    await ask(port, '/x')`, { LONGSTACK: 'TIMER,TCP' })
  t.is(saw.chain[0], 'setTimeout(1)')
  t.false(JSON.stringify(saw.chain).includes('GET'))
})

test('little client input is kept: paths are cut, and keys have no query strings', (t) => {
  const requests = require('../../lib/core/request-names')
  t.is(requests.numberOf('GET', '/config?token=secret'), requests.numberOf('GET', '/config?token=other'))
  t.is(requests.numberOf('GET', '/config#part'), requests.numberOf('GET', '/config'))
  t.not(requests.numberOf('GET', '/config'), requests.numberOf('PUT', '/config'))
  const long = requests.textAt(requests.numberOf('M'.repeat(30_000), `/${'p'.repeat(30_000)}`))
  t.is(long, `${'M'.repeat(32)}\u2026 /${'p'.repeat(199)}\u2026`)
  const first = requests.numberOf('GET', '/first')
  for (let i = 0; i < 20_000; i++) requests.numberOf('GET', `/${i}`)
  t.is(requests.textAt(first), undefined, 'what came long ago is forgotten')
  t.is(requests.textAt(requests.numberOf('GET', '/first')), 'GET /first')
})

test('an invented HTTP/2 method is cut in the hop and in the span', async (t) => {
  const { label, name } = await told(t, `
    const method = 'X'.repeat(3000)
    trace.on('span', ({ kind, name }) => { if (kind === 'SERVER') saw.name = name })
    const server = http2.createServer((request, response) => {
      saw.label = labels(new Error('here')).find((text) => text.startsWith('X'))
      response.end()
    })
    const port = await listen(server)
    const session = http2.connect('http://127.0.0.1:' + port)
    const stream = session.request({ ':method': method, ':path': '/made?up=1' })
    await new Promise((resolve) => stream.resume().on('close', resolve).end())
    session.close()
    await wait(50)
    server.close()`)
  t.is(label, `${'X'.repeat(32)}\u2026 /made`)
  t.is(name, 'HTTP /made', 'as OpenTelemetry names methods that HTTP does not know')
})

test('a request of a session that is still connecting has one hop', async (t) => {
  const { stdout } = await program(`
    const http2 = require('node:http2')
    const server = http2.createServer().on('stream', (stream) => {
      stream.on('error', () => {}).close(http2.constants.NGHTTP2_INTERNAL_ERROR)
    })
    server.listen(0, function ready () {
      let session
      function notify () {
        session = http2.connect('http://127.0.0.1:' + server.address().port)
        session.request({ ':path': '/' }).on('error', ({ stack }) => {
          console.log(stack)
          process.exit()
        })
      }
      setTimeout(notify, 1)
    })
  `)
  t.is(stdout.split('── session.request').length, 2, stdout)
  t.regex(stdout, /── session\.request · \d+ ms earlier (?:· reader.* )?──\n {4}at .*notify .*\n {2}── setTimeout\(1\)/)
})
