'use strict'

const test = require('ava')
const { lines, story } = require('../helpers/web')

// Spans of outgoing calls: http, https, fetch, undici from npm, plain connections; and the header that
// propagates them, if the program enables it.

const clients = /** @param {any[]} spans */ (spans) => spans.filter(({ kind }) => kind === 'CLIENT')
const { engines } = require('undici/package.json')

for (const from of ['fetch', 'undici']) {
  const prelude = from === 'fetch' ? '' : "const { fetch, request, Agent, setGlobalDispatcher } = need('undici')\n"

  test(`${from}: pooled requests belong to their own callers; responses, errors, bodies`, async (t) => {
    const { spans, one } = await story(t, `${prelude}
      const server = http.createServer((req, res) => setTimeout(() => { res.statusCode = req.url === '/404' ? 404 : 200; res.end(req.url) }, 3))
      const port = await listen(server)
      const url = 'http://127.0.0.1:' + port
      await (await fetch(url + '/opens')).text()
      await Promise.all(Array.from('abcdefgh', (name) => trace.span('caller ' + name, async () => { await wait(1); await (await fetch(url + '/' + name + '?token=s3cret')).text() })))
      await (await fetch(url + '/posted', { method: 'POST', body: 'body' })).text()
      await (await fetch(url + '/404')).text()
      await (await fetch(url + '/head', { method: 'HEAD' })).text()
    `)
    for (const name of 'abcdefgh') {
      const call = one(`GET 127.0.0.1/${name}`, 'CLIENT')
      t.is(call.parentSpanId, one(`caller ${name}`).spanId)
      t.is(call.attributes['http.response.status_code'], 200)
      t.is(call.attributes['url.path'], `/${name}`)
      t.true(call.attributes['server.port'] > 0)
      t.regex(call.attributes['code.stacktrace'], / ── /)
    }
    t.deepEqual(lines([one('POST 127.0.0.1/posted'), one('HEAD 127.0.0.1/head')]), ['CLIENT POST 127.0.0.1/posted UNSET 200', 'CLIENT HEAD 127.0.0.1/head UNSET 200'])
    t.is(spans.find(({ kind, attributes }) => kind === 'CLIENT' && attributes['url.path'] === '/404').status.code, 'ERROR')
    t.false(JSON.stringify(spans).includes('s3cret'))
    t.is(clients(spans).length, 12, 'no span of connections that requests made')
  })

  test(`${from}: aborted, timed out, refused, interrupted`, async (t) => {
    const { one } = await story(t, `${prelude}
      const server = http.createServer((req, res) => {
        if (req.url === '/broken') { res.write('half'); setTimeout(() => res.destroy(), 5) }
        if (req.url === '/closed') req.socket.destroy()
      })
      const port = await listen(server)
      const url = 'http://127.0.0.1:' + port
      const fails = async (path, options) => { try { await (await fetch(url + path, options)).text() } catch (error) { saw[path] = error.name } }
      const controller = new AbortController()
      const aborted = fails('/aborted', { signal: controller.signal })
      await got(server)
      controller.abort()
      await aborted
      await fails('/late', { signal: AbortSignal.timeout(1500) })
      await fails('/broken')
      await fails('/closed')
      const other = net.createServer()
      const closed = await listen(other)
      await new Promise((resolve) => other.close(resolve))
      await trace.span('caller', () => fetch('http://127.0.0.1:' + closed + '/refused')).catch((error) => { saw.cause = error.cause.code })
    `)
    const of = (/** @type {string} */ name) => {
      const { status, attributes } = one(`GET 127.0.0.1/${name}`, 'CLIENT')
      return [status.code, attributes['longstack.end'], attributes['error.type']]
    }
    t.deepEqual(of('aborted').slice(0, 2), ['UNSET', 'cancelled'])
    t.deepEqual(of('late'), ['ERROR', 'timeout', 'TimeoutError'])
    t.deepEqual(of('broken').slice(0, 2), ['ERROR', 'aborted'])
    t.deepEqual(of('closed').slice(0, 2), ['ERROR', 'aborted'])
    t.deepEqual(of('refused'), ['ERROR', undefined, 'ECONNREFUSED'])
    const refused = one('GET 127.0.0.1/refused')
    t.is(refused.parentSpanId, one('caller').spanId)
    t.regex(refused.events[0].attributes['exception.stacktrace'], /ECONNREFUSED[^]* ── /)
    t.deepEqual(one('GET /late', 'SERVER').attributes['longstack.end'], 'aborted')
  })
}

test('undici: request(), a tunnel by CONNECT, an upgrade', async (t) => {
  const { spans } = await story(t, `
    const { request, Client } = need('undici')
    const server = http.createServer((req, res) => res.end('x'))
    server.on('upgrade', (req, socket) => socket.end('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: echo\\r\\nConnection: Upgrade\\r\\n\\r\\n'))
    server.on('connect', (req, socket) => socket.end('HTTP/1.1 200 OK\\r\\n\\r\\n'))
    const url = 'http://127.0.0.1:' + await listen(server)
    await (await request(url + '/request')).body.text()
    const client = new Client(url)
    const over = ({ socket }) => new Promise((resolve) => socket.resume().on('close', resolve).end())
    await over(await client.upgrade({ path: '/up', protocol: 'echo' }))
    await over(await client.connect({ path: 'a:1' }))
    await client.close()
  `)
  t.deepEqual(lines(clients(spans)), ['CLIENT GET 127.0.0.1/request UNSET 200', 'CLIENT GET 127.0.0.1/up UNSET 101 upgraded', 'CLIENT CONNECT a:1 UNSET 200 upgraded'])
})

test('http: timeouts, signals, a refused connection, an unknown host, a truncated response', async (t) => {
  const { one } = await story(t, `
    const server = http.createServer((req, res) => {
      if (req.url !== '/broken') return
      res.writeHead(200, { 'content-length': 100 }).write('half')
      setTimeout(() => res.destroy(), 5)
    })
    const port = await listen(server)
    await ask({ port, path: '/late', timeout: 100 }, (request) => request.on('timeout', () => request.destroy()).end())
    await ask({ port, path: '/later' }, (request) => request.setTimeout(100, () => request.destroy(new Error('too slow'))).end())
    await ask({ port, path: '/signal', signal: AbortSignal.timeout(100) })
    const controller = new AbortController()
    const aborted = ask({ port, path: '/aborted', signal: controller.signal })
    await got(server)
    controller.abort()
    await aborted
    await ask({ port, path: '/broken' })
    const other = net.createServer()
    const closed = await listen(other)
    await new Promise((resolve) => other.close(resolve))
    await trace.span('caller', async function caller () { await wait(1); saw.refused = await ask({ port: closed, path: '/refused' }) })
    await ask({ host: 'nobody.invalid', path: '/name' })
    await ask({ port, path: '/never' }, (request) => request.destroy())
  `)
  const of = (/** @type {string} */ name, host = '127.0.0.1') => {
    const { status, attributes } = one(`GET ${host}/${name}`, 'CLIENT')
    return [status.code, attributes['longstack.end'], attributes['error.type']]
  }
  t.deepEqual(of('late'), ['ERROR', 'timeout', 'ECONNRESET'])
  t.deepEqual(of('later'), ['ERROR', 'timeout', 'Error'])
  t.deepEqual(of('signal'), ['ERROR', 'timeout', 'ABORT_ERR'])
  t.deepEqual(of('aborted').slice(0, 2), ['UNSET', 'cancelled'])
  t.deepEqual(of('broken').slice(0, 2), ['ERROR', 'aborted'])
  t.deepEqual(of('refused'), ['ERROR', undefined, 'ECONNREFUSED'])
  t.deepEqual(of('name', 'nobody.invalid').slice(0, 2), ['ERROR', undefined])
  t.deepEqual(of('never').slice(0, 2), ['UNSET', 'cancelled'])
  t.regex(one('GET 127.0.0.1/refused').events[0].attributes['exception.stacktrace'], /ECONNREFUSED[^]*\bcaller\b/)
  t.is(one('GET 127.0.0.1/refused').parentSpanId, one('caller').spanId)
})

test('http: requests that wait for a connection of their agent begin when they are made', async (t) => {
  const { spans } = await story(t, `
    const port = await listen(http.createServer((req, res) => setTimeout(() => res.end(), 30)))
    const agent = new http.Agent({ maxSockets: 1 })
    await Promise.all(['a', 'b', 'c'].map((name) => trace.span(name, () => ask({ port, path: '/' + name, agent }))))
  `)
  const [a, , c] = ['a', 'b', 'c'].map((name) => spans.find((span) => span.name === `GET 127.0.0.1/${name}`))
  for (const name of ['a', 'b', 'c']) {
    const call = spans.find((span) => span.name === `GET 127.0.0.1/${name}`)
    t.is(call.parentSpanId, spans.find((span) => span.name === name).spanId)
  }
  if (Number(process.versions.node.split('.')[0]) >= 22) t.true(BigInt(c.startTimeUnixNano) < BigInt(a.endTimeUnixNano)) // Node 20 tells of them when they are sent
})

test('non-HTTP connections: opened, refused, unknown, to a path, over TLS, destroyed earlier', async (t) => {
  const { spans, one } = await story(t, `
    const server = net.createServer((socket) => socket.end('x'))
    const port = await listen(server)
    const over = (socket) => new Promise((resolve) => socket.on('error', () => {}).on('close', resolve).resume())
    await trace.span('caller', async function caller () { await wait(1); await over(net.connect(port, '127.0.0.1')) })
    await over(new net.Socket().connect(port, 'localhost'))
    const secure = await listen(tls.createServer(pair, (socket) => socket.end('x')))
    await over(tls.connect({ port: secure, host: '127.0.0.1', rejectUnauthorized: false }))
    const path = require('node:path').join(fs.mkdtempSync(require('node:path').join(require('node:os').tmpdir(), 'longstack-')), 'socket')
    await listen(net.createServer((socket) => socket.end('x')), path).catch(() => {})
    saw.path = path
    await over(net.connect(path))
    await new Promise((resolve) => server.close(resolve))
    await over(net.connect(port, '127.0.0.1'))
    await over(net.connect(5432, 'nobody.invalid'))
    const early = net.connect(port, '127.0.0.1')
    early.destroy()
    await over(early)
    fs.rmSync(require('node:path').dirname(path), { recursive: true })
  `)
  const calls = clients(spans)
  t.deepEqual(lines(calls).map((line) => line.replace(/\/\S*longstack-\S+/, 'PATH')), [
    'CLIENT connect 127.0.0.1:PORT UNSET',
    'CLIENT connect localhost:PORT UNSET',
    'CLIENT connect 127.0.0.1:PORT UNSET',
    'CLIENT connect PATH UNSET',
    'CLIENT connect 127.0.0.1:PORT ERROR',
    'CLIENT connect nobody.invalid ERROR',
    'CLIENT connect UNSET cancelled'
  ])
  t.is(calls[0].parentSpanId, one('caller').spanId)
  t.regex(calls[0].attributes['code.stacktrace'], /\bcaller\b/)
  t.deepEqual(calls.map(({ attributes }) => attributes['network.transport']), ['tcp', 'tcp', 'tcp', 'unix', 'tcp', 'tcp', 'tcp'])
  t.regex(calls[4].events[0].attributes['exception.stacktrace'], /ECONNREFUSED[^]* ── net\.connect/)
})

const propagates = { LONGSTACK_PROPAGATE: '1' }

test('traceparent is sent once if the program wants it, and its own header is kept', async (t) => {
  const { saw, spans } = await story(t, `
    const own = '00-11111111111111111111111111111111-2222222222222222-01'
    const server = http.createServer((req, res) => {
      (saw[req.url] ??= []).push(req.rawHeaders.filter((_, i) => i % 2 === 1 && /^traceparent$/i.test(req.rawHeaders[i - 1])))
      res.end()
    })
    const port = await listen(server)
    const secure = await listen(https.createServer(pair, (req, res) => server.emit('request', req, res)))
    const url = 'http://127.0.0.1:' + port
    await ask({ port, path: '/http', headers: { a: 'b' } }, (request) => { saw.visible = request.getHeaderNames(); request.setHeader('late', '1'); request.end() })
    await ask({ port, path: '/own', headers: { TraceParent: own } })
    await ask({ port, path: '/set' }, (request) => { request.setHeader('traceparent', own); request.end() })
    await ask({ port, path: '/list', headers: ['Host', 'a', 'b', 'c'] })
    await ask({ port, path: '/pairs', headers: [['Host', 'a'], ['b', 'c']] })
    await ask({ port, path: '/ownlist', headers: ['Host', 'a', 'traceparent', own] })
    await ask({ port, path: '/expect', method: 'POST', headers: { expect: '100-continue' } }, (request) => request.on('continue', () => request.end('x')))
    await ask({ port, path: '/body', method: 'POST' }, (request) => { request.write('a'); request.end('b') })
    await ask({ port: secure, path: '/https' }, undefined, https)
    const agent = new http.Agent({ maxSockets: 1 })
    await Promise.all([1, 2, 3].map(() => ask({ port, path: '/queued', agent })))
    await (await fetch(url + '/fetch')).text()
    await (await fetch(url + '/fetchown', { headers: { traceparent: own } })).text()
    await (await need('undici').request(url + '/undici')).body.text()
    await (await need('undici').request(url + '/undiciown', { headers: { TraceParent: own } })).body.text()
  `, { env: propagates })
  const { visible, ...headers } = saw
  t.deepEqual(visible, ['a', 'host'])
  for (const [path, seen] of Object.entries(headers)) {
    for (const values of /** @type {string[][]} */ (seen)) {
      t.is(values.length, 1, path)
      if (/own|set/.test(path)) {
        t.is(values[0], '00-11111111111111111111111111111111-2222222222222222-01', path)
        continue
      }
      const [, traceId, spanId] = values[0].split('-')
      const call = spans.find((span) => span.spanId === spanId)
      t.deepEqual([call?.kind, call?.traceId, call?.attributes['url.path']], ['CLIENT', traceId, path])
      t.true(spans.some((span) => span.kind === 'SERVER' && span.parentSpanId === spanId && span.traceId === traceId), path)
    }
  }
  t.is(saw['/queued'].length, 3)
  t.is(Object.keys(headers).length, 14)
})

test('no traceparent is sent unless it is wanted', async (t) => {
  const { saw } = await story(t, `
    const port = await listen(http.createServer((req, res) => { saw[req.url] = Object.keys(req.headers).includes('traceparent'); res.end() }))
    await ask({ port, path: '/http' })
    await (await fetch('http://127.0.0.1:' + port + '/fetch')).text()
  `)
  t.deepEqual(saw, { '/http': false, '/fetch': false })
})

test('a global WebSocket of Node is one request, upgraded', async (t) => {
  if (typeof WebSocket === 'undefined') return t.pass('this Node has none')
  const { spans } = await story(t, `
    const { createHash } = require('node:crypto')
    const server = http.createServer()
    server.on('upgrade', (req, socket) => {
      const accept = createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
      socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n')
      setTimeout(() => socket.end(Buffer.from([0x88, 0x00])), 20)
      socket.on('error', () => {}).resume()
    })
    const url = 'ws://127.0.0.1:' + await listen(server)
    await new Promise((resolve) => { new WebSocket(url + '/ws').onclose = resolve })
  `)
  t.deepEqual(lines(spans.filter(({ kind }) => kind === 'SERVER')), ['SERVER GET /ws UNSET upgraded'])
  t.deepEqual(lines(clients(spans)).map((line) => line.replace(' 101', '')), ['CLIENT GET 127.0.0.1/ws UNSET upgraded']) // not all tell the status
})

test('the tested undici runs on all tested versions', (t) => t.regex(engines.node, />=20/))
