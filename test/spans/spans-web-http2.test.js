'use strict'

const test = require('ava')
const { lines, story } = require('../helpers/web')

// Spans over HTTP/2: streams and compatibility API, both sides, many streams on one session.

const session = `
const http2 = require('node:http2')
/** A stream's status, headers and body; or its error. */
const stream = (session, headers, act) => new Promise((resolve) => {
  const made = session.request(headers)
  const result = { body: '' }
  made.setEncoding('utf8').on('data', (text) => { result.body += text }).on('response', (answer) => { result.status = answer[':status'] })
  made.on('error', (error) => { result.error = error.code }).on('close', () => resolve(result))
  if (act === undefined) made.end()
  else act(made)
})
const streamed = (server) => new Promise((resolve) => server.once('stream', () => setImmediate(resolve)))
`

/** @param {any[]} spans @param {string} kind */
const of = (spans, kind) => spans.filter((span) => span.kind === kind && !span.name.startsWith('connect '))

/** @type {Array<[string, Record<string, string>]>} */
const modes = [['full', {}], ['the js engine', { LONGSTACK_CAPTURE: 'js' }]]

for (const [mode, env] of modes) {
  for (const secure of [false, true]) {
    test(`concurrent streams of a session stay separate${secure ? ', over TLS' : ''}: ${mode}`, async (t) => {
      const { spans, one } = await story(t, `${session}
        const server = ${secure ? 'http2.createSecureServer(pair)' : 'http2.createServer()'}
        server.on('stream', async (stream, headers) => {
          const name = headers[':path'].slice(1, 2)
          await wait(name === 'a' ? 20 : 1)
          await trace.span('work ' + name, () => wait(1))
          stream.on('data', (data) => trace.span('data ' + name, () => {}))
          stream.on('end', () => { stream.respond({ ':status': 200 }); stream.end(name) })
        })
        const port = await listen(server)
        const client = http2.connect('${secure ? 'https' : 'http'}://127.0.0.1:' + port, { rejectUnauthorized: false })
        await Promise.all(Array.from('abcdef', (name) => trace.span('caller ' + name, () =>
          stream(client, { ':path': '/' + name + '?token=s3cret', ':method': 'POST' }, (made) => setTimeout(() => made.end('body'), 5)))))
        await new Promise((resolve) => client.close(resolve))
      `, { env })
      for (const name of 'abcdef') {
        const span = one(`POST /${name}`, 'SERVER')
        for (const inner of ['work', 'data']) t.is(one(`${inner} ${name}`).parentSpanId, span.spanId, `${inner} ${name}`)
        const { attributes } = span
        t.deepEqual([attributes['http.response.status_code'], attributes['url.path'], attributes['url.scheme'], attributes['network.protocol.version']],
          [200, `/${name}`, secure ? 'https' : 'http', '2'])
        t.is(attributes['network.peer.address'], '127.0.0.1')
        const call = one(`POST 127.0.0.1/${name}`, 'CLIENT')
        t.is(call.parentSpanId, one(`caller ${name}`).spanId)
        t.deepEqual([call.attributes['http.response.status_code'], call.attributes['url.path']], [200, `/${name}`])
        t.true(call.attributes['server.port'] > 0)
        t.regex(call.attributes['code.stacktrace'], /\bstream\b/)
      }
      t.is(of(spans, 'SERVER').length, 6)
      t.is(of(spans, 'CLIENT').length, 6)
      t.false(JSON.stringify(spans).includes('s3cret'))
    })
  }
}

test('the compatibility API, HTTP/1 on the same server, HEAD, and response errors', async (t) => {
  const { spans, one } = await story(t, `${session}
    const server = http2.createSecureServer({ ...pair, allowHTTP1: true }, async (req, res) => {
      await wait(1)
      trace.span('in ' + req.url, () => {})
      res.statusCode = req.url === '/broken' ? 503 : 200
      res.end('x')
    })
    const port = await listen(server)
    const client = http2.connect('https://127.0.0.1:' + port, { rejectUnauthorized: false })
    await stream(client, { ':path': '/compat' })
    await stream(client, { ':path': '/broken' })
    await stream(client, { ':path': '/head', ':method': 'HEAD' })
    await new Promise((resolve) => client.close(resolve))
    await ask({ port, path: '/one', agent: new https.Agent({ ALPNProtocols: ['http/1.1'] }) }, undefined, https)
  `)
  t.deepEqual(lines(of(spans, 'SERVER')), ['SERVER GET /compat UNSET 200', 'SERVER GET /broken ERROR 503', 'SERVER HEAD /head UNSET 200', 'SERVER GET /one UNSET 200'])
  t.deepEqual(lines(of(spans, 'CLIENT')), [
    'CLIENT GET 127.0.0.1/compat UNSET 200', 'CLIENT GET 127.0.0.1/broken ERROR 503', 'CLIENT HEAD 127.0.0.1/head UNSET 200', 'CLIENT GET 127.0.0.1/one UNSET 200'
  ])
  for (const name of ['compat', 'broken', 'one']) t.is(one(`in /${name}`).parentSpanId, one(`GET /${name}`, 'SERVER').spanId)
})

test('streams that are cancelled, reset, refused; sessions that are destroyed', async (t) => {
  const { spans } = await story(t, `${session}
    const server = http2.createServer()
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      if (headers[':path'] === '/reset') stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR)
      if (headers[':path'] === '/half') { stream.respond(); stream.write('half'); setTimeout(() => stream.destroy(new Error('on purpose')), 5) }
    })
    server.on('session', (session) => session.on('error', () => {}))
    const port = await listen(server)
    let socket
    const connect = () => http2.connect('http://127.0.0.1:' + port, { createConnection: () => (socket = net.connect(port, '127.0.0.1')) }).on('error', () => {})
    const client = connect()
    await stream(client, { ':path': '/cancelled' }, (made) => { made.end(); streamed(server).then(() => made.close(http2.constants.NGHTTP2_CANCEL)) })
    await stream(client, { ':path': '/reset' })
    await stream(client, { ':path': '/half' })
    const hangs = stream(client, { ':path': '/session' })
    await streamed(server)
    client.destroy()
    await hangs
    const other = connect()
    const gone = stream(other, { ':path': '/socket' })
    await streamed(server)
    socket.destroy()
    await gone
    const controller = new AbortController()
    const third = connect()
    await new Promise((resolve) => third.request({ ':path': '/signal' }, { signal: controller.signal }).on('error', resolve) && streamed(server).then(() => controller.abort()))
    third.destroy()
    await wait(20)
  `)
  const ends = (/** @type {string} */ kind) => Object.fromEntries(of(spans, kind).map(({ attributes, status }) => [attributes['url.path'], status.code]))
  const all = Object.fromEntries(['/cancelled', '/reset', '/half', '/session', '/socket', '/signal'].map((path) => [path, 'ERROR']))
  t.deepEqual(ends('SERVER'), all)
  t.deepEqual(ends('CLIENT'), { ...all, '/signal': 'UNSET' })
  for (const span of spans) if (span.attributes['url.path'] === '/cancelled') t.is(span.attributes['longstack.end'], 'aborted')
  const signal = of(spans, 'CLIENT').find(({ attributes }) => attributes['url.path'] === '/signal')
  t.is(signal.attributes['longstack.end'], 'cancelled')
  const half = of(spans, 'SERVER').find(({ attributes }) => attributes['url.path'] === '/half')
  t.is(half.events[0].attributes['exception.message'], 'on purpose')
})

test('a session that cannot connect, a request to a server that is gone', async (t) => {
  const { spans, saw, one } = await story(t, `${session}
    const other = net.createServer()
    const closed = await listen(other)
    await new Promise((resolve) => other.close(resolve))
    const client = http2.connect('http://127.0.0.1:' + closed).on('error', () => {})
    saw.error = (await stream(client, { ':path': '/refused' })).error
    saw.port = closed
    await wait(10)
  `)
  const call = of(spans, 'CLIENT')[0]
  t.is(of(spans, 'CLIENT').length, 1)
  t.deepEqual([call.status.code, call.attributes['error.type']], ['ERROR', 'ERR_HTTP2_STREAM_CANCEL'])
  t.is(one('connect 127.0.0.1:' + saw.port).attributes['error.type'], 'ECONNREFUSED')
})

test('a tunnel by CONNECT, a push, informational headers and trailers', async (t) => {
  const { spans, one } = await story(t, `${session}
    const server = http2.createServer()
    server.on('stream', (stream, headers) => {
      if (headers[':method'] === 'CONNECT') {
        stream.respond({ ':status': 200 })
        return stream.on('data', () => { trace.span('tunnelled', () => {}); stream.end() })
      }
      stream.additionalHeaders({ ':status': 103, link: '</a>' })
      stream.pushStream({ ':path': '/pushed' }, (error, pushed) => { if (!error) { pushed.respond(); pushed.end('p') } })
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ a: 'b' }))
      stream.end('x')
    })
    const port = await listen(server)
    const client = http2.connect('http://127.0.0.1:' + port)
    client.on('stream', (pushed) => pushed.resume())
    await stream(client, { ':path': '/trailers' })
    await stream(client, { ':method': 'CONNECT', ':authority': 'db.internal:5432' }, (made) => made.on('end', () => made.end()).write('hello'))
    await new Promise((resolve) => client.close(resolve))
  `)
  t.deepEqual(lines(of(spans, 'SERVER')), ['SERVER GET /trailers UNSET 200', 'SERVER CONNECT UNSET 200 upgraded'])
  t.deepEqual(lines(of(spans, 'CLIENT')).map((line) => line.replace(/db.internal:\\d+/, 'DB')), ['CLIENT GET 127.0.0.1/trailers UNSET 200', 'CLIENT CONNECT UNSET 200 upgraded'])
  t.is(one('tunnelled').parentSpanId, one('CONNECT', 'SERVER').spanId)
})

test('traceparent over HTTP/2 is read, and sent if the program wants it', async (t) => {
  const own = '00-11111111111111111111111111111111-2222222222222222-01'
  const { spans, saw } = await story(t, `${session}
    const server = http2.createServer((req, res) => { saw[req.url] = req.headers.traceparent ?? null; res.end() })
    const port = await listen(server)
    const client = http2.connect('http://127.0.0.1:' + port)
    const headers = { ':path': '/sent' }
    await stream(client, headers)
    saw.given = Object.keys(headers)
    await stream(client, { ':path': '/own', TraceParent: '${own}' })
    await stream(client, undefined)
    await new Promise((resolve) => client.close(resolve))
    try { client.request({ ':path': '/closed' }).on('error', () => {}) } catch {}
    trace.enable({ propagate: false })
    const silent = http2.connect('http://127.0.0.1:' + port)
    await stream(silent, { ':path': '/silent' })
    await new Promise((resolve) => silent.close(resolve))
    await wait(10)
  `, { env: { LONGSTACK_PROPAGATE: '1' } })
  const served = of(spans, 'SERVER')
  for (const path of ['/sent', '/']) {
    const call = of(spans, 'CLIENT').find(({ attributes }) => attributes['url.path'] === path)
    t.is(saw[path], `00-${call.traceId}-${call.spanId}-01`)
    t.is(served.find(({ attributes }) => attributes['url.path'] === path).parentSpanId, call.spanId)
  }
  t.deepEqual([saw['/own'], saw['/silent'], saw.given], [own, null, [':path']])
  t.is(served.find(({ attributes }) => attributes['url.path'] === '/own').parentSpanId, '2222222222222222')
})

test('fetch by undici over HTTP/2 is one span, not two', async (t) => {
  const { spans } = await story(t, `${session}
    const { Agent, fetch } = need('undici')
    const server = http2.createSecureServer(pair, (req, res) => res.end('x'))
    const port = await listen(server)
    const dispatcher = new Agent({ allowH2: true, connect: { rejectUnauthorized: false } })
    await Promise.all(['/a', '/b'].map(async (path) => (await fetch('https://127.0.0.1:' + port + path, { dispatcher })).text()))
    await dispatcher.close()
  `)
  t.deepEqual(lines(of(spans, 'CLIENT')).sort(), ['CLIENT GET 127.0.0.1/a UNSET 200', 'CLIENT GET 127.0.0.1/b UNSET 200'])
  t.deepEqual(of(spans, 'SERVER').map(({ attributes }) => attributes['network.protocol.version']), ['2', '2'])
})
