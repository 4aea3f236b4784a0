'use strict'

const test = require('ava')
const { lines, story } = require('../helpers/web')

// Spans of HTTP/1 servers in all edge cases: none is open at the end.

/** @param {any[]} spans */
const served = (spans) => spans.filter(({ kind }) => kind === 'SERVER')

const modes = [
  ['full', {}],
  ['the js engine', { LONGSTACK_CAPTURE: 'js' }],
  ['a filter', { LONGSTACK: 'TIMER' }]
]

for (const [mode, env] of /** @type {Array<[string, Record<string, string>]>} */ (modes)) {
  test(`a request's details, and the nesting of spans: ${mode}`, async (t) => {
    const { spans, one } = await story(t, `
      const backend = http.createServer((req, res) => setTimeout(() => res.end('b'), 2))
      const behind = await listen(backend)
      const server = http.createServer(async (req, res) => {
        await wait(2)
        await trace.span('work ' + req.url.slice(1, 4), async () => { await wait(1); await ask({ port: behind, path: '/inner' + req.url.slice(1, 4) }) })
        res.end('ok')
      })
      const port = await listen(server)
      await Promise.all(['/one?key=s3cret', '/two', '/six'].map((path) => ask({ port, path, headers: { 'x-secret': 's3cret' } })))
    `, { env })
    for (const path of ['one', 'two', 'six']) {
      const span = one(`GET /${path}`, 'SERVER')
      const { attributes } = span
      t.is(attributes['http.request.method'], 'GET')
      t.is(attributes['url.path'], `/${path}`)
      t.is(attributes['url.scheme'], 'http')
      t.is(attributes['server.address'], '127.0.0.1')
      t.true(attributes['server.port'] > 0 && attributes['network.peer.port'] > 0)
      t.is(attributes['network.peer.address'], '127.0.0.1')
      t.is(attributes['network.protocol.version'], '1.1')
      t.is(attributes['http.response.status_code'], 200)
      const work = one(`work ${path}`)
      const call = one(`GET 127.0.0.1/inner${path}`, 'CLIENT')
      t.is(work.parentSpanId, span.spanId)
      t.is(call.parentSpanId, work.spanId)
      t.is(call.traceId, span.traceId)
      t.is(call.attributes['http.response.status_code'], 200)
      t.is(span.parentSpanId, undefined)
      t.is(one(`GET /inner${path}`, 'SERVER').parentSpanId, undefined, 'no header is sent unless asked for')
    }
    t.is(new Set(served(spans).map(({ traceId }) => traceId)).size, 6)
    t.false(JSON.stringify(spans).includes('s3cret'))
  })
}

test('https: the same, over TLS', async (t) => {
  const { one } = await story(t, `
    const server = https.createServer(pair, async (req, res) => { await wait(2); trace.span('inner', () => {}); res.end('ok') })
    const port = await listen(server)
    await ask({ port, path: '/tls' }, undefined, https)
  `)
  const span = one('GET /tls', 'SERVER')
  t.deepEqual([span.attributes['url.scheme'], span.attributes['http.response.status_code']], ['https', 200])
  const call = one('GET 127.0.0.1/tls', 'CLIENT')
  t.is(call.attributes['url.scheme'], 'https')
  t.regex(call.attributes['code.stacktrace'], /\bask\b/)
})

test('either side disconnects, before or during the response', async (t) => {
  const { spans, one } = await story(t, `
    const server = http.createServer((req, res) => {
      if (req.url === '/destroyed') return res.destroy()
      if (req.url === '/socket') return req.socket.destroy()
      if (req.url === '/half' || req.url === '/cut') res.write('half')
      if (req.url === '/cut') setTimeout(() => res.destroy(new Error('on purpose')), 5)
      if (req.url === '/late') req.socket.on('close', () => setTimeout(() => res.end('nobody hears that'), 5))
    })
    const port = await listen(server)
    await ask({ port, path: '/silent' }, (request) => { request.end(); got(server).then(() => request.destroy()) })
    await ask({ port, path: '/half' }, (request) => { request.end(); request.on('response', () => request.destroy()) })
    await ask({ port, path: '/late' }, (request) => { request.end(); got(server).then(() => request.destroy()) })
    for (const path of ['/destroyed', '/socket', '/cut']) await ask({ port, path })
    const all = ask({ port, path: '/all' })
    await got(server)
    server.closeAllConnections()
    await all
    await wait(50)
  `)
  for (const path of ['silent', 'late', 'destroyed', 'socket', 'all']) {
    const { attributes, status } = one(`GET /${path}`, 'SERVER')
    t.deepEqual([status.code, attributes['longstack.end'], attributes['http.response.status_code']], ['ERROR', 'aborted', undefined], path)
    const call = one(`GET 127.0.0.1/${path}`, 'CLIENT')
    const end = path === 'silent' || path === 'late' ? ['UNSET', 'cancelled', undefined] : ['ERROR', 'aborted', 'ECONNRESET']
    t.deepEqual([call.status.code, call.attributes['longstack.end'], call.attributes['error.type']], end, path)
    t.regex(call.events[0].attributes['exception.stacktrace'], /socket hang up[^]* ── [^]*\bask\b/, path)
  }
  for (const path of ['half', 'cut']) {
    const { attributes, status } = one(`GET /${path}`, 'SERVER')
    t.deepEqual([status.code, attributes['longstack.end'], attributes['http.response.status_code']], ['ERROR', 'aborted', 200], path)
    const end = path === 'half' ? 'UNSET 200 cancelled' : 'ERROR 200 aborted'
    t.deepEqual(lines([one(`GET 127.0.0.1/${path}`, 'CLIENT')]), [`CLIENT GET 127.0.0.1/${path} ${end}`])
  }
  t.is(spans.length, 14)
})

test('timeouts of the server: requestTimeout and an idle socket, but not a handled one', async (t) => {
  const { one, spans } = await story(t, `
    const server = http.createServer({ requestTimeout: 1500, headersTimeout: 1200, connectionsCheckingInterval: 50 }, (req, res) => {
      if (req.url === '/silent') req.setTimeout(20)
      if (req.url === '/later') setTimeout(() => res.setTimeout(20), 5)
      if (req.url === '/answered') res.setTimeout(20, () => res.writeHead(503).end())
    })
    const port = await listen(server)
    const slow = [raw(port, 'POST /body HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 10\\r\\n\\r\\nhalf'), raw(port, 'GET /head HTTP/1.1\\r\\nHost: a\\r\\n')]
    for (const path of ['/silent', '/answered']) await ask({ port, path })
    await Promise.all(slow)
  `)
  for (const name of ['POST /body', 'GET /silent']) {
    const { attributes, status } = one(name, 'SERVER')
    t.deepEqual([status.code, attributes['longstack.end'], attributes['error.type']], ['ERROR', 'timeout', 'timeout'], name)
    t.regex(status.message, /timeout/)
  }
  t.deepEqual(lines([one('GET /answered', 'SERVER')]), ['SERVER GET /answered ERROR 503'])
  t.is(served(spans).length, 3)
})

test('an upgraded connection belongs to its request until it closes, as does a tunnel', async (t) => {
  for (const [client, from] of [['http', 'http.createServer()'], ['https', 'https.createServer(pair)']]) {
    const { one, spans } = await story(t, `
      const server = ${from}
      const serve = (req, socket) => {
        socket.write('HTTP/1.1 ' + (req.method === 'CONNECT' ? '200 OK' : '101 Switching Protocols\\r\\nUpgrade: echo\\r\\nConnection: Upgrade') + '\\r\\n\\r\\n')
        socket.on('data', (data) => { trace.span('message ' + data, () => {}); setTimeout(() => trace.span('later ' + data, () => socket.end()), 2) })
      }
      server.on('upgrade', serve).on('connect', serve)
      const port = await listen(server)
      const use = (word, options) => new Promise((resolve) => {
        const request = ${client}.request({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
        const used = (response, socket) => { socket.write(word); socket.resume().on('close', resolve) }
        request.on('upgrade', used).on('connect', used).end()
      })
      await use('one', { path: '/ws', headers: { connection: 'upgrade', upgrade: 'echo' } })
      await use('two', { method: 'CONNECT', path: 'db.internal:5432' })
    `)
    for (const [name, word] of [['GET /ws', 'one'], ['CONNECT db.internal:5432', 'two']]) {
      const span = one(name, 'SERVER')
      t.deepEqual([span.status.code, span.attributes['longstack.end']], ['UNSET', 'upgraded'])
      for (const inner of ['message', 'later']) t.is(one(`${inner} ${word}`).parentSpanId, span.spanId, `${inner} ${word}`)
      t.true(BigInt(span.endTimeUnixNano) >= BigInt(one(`later ${word}`).endTimeUnixNano))
    }
    const calls = spans.filter(({ kind }) => kind === 'CLIENT')
    t.deepEqual(calls.map(({ attributes }) => [attributes['http.request.method'], attributes['http.response.status_code'], attributes['longstack.end']]),
      [['GET', 101, 'upgraded'], ['CONNECT', 200, 'upgraded']])
  }
})

test('a rejected upgrade is an ordinary request', async (t) => {
  const { spans } = await story(t, `
    const server = http.createServer((req, res) => res.end('plain'))
    const port = await listen(server)
    saw.status = (await ask({ port, path: '/ws', headers: { connection: 'upgrade', upgrade: 'echo' } })).status
    await ask({ port, method: 'CONNECT', path: 'a:1' })
  `)
  t.deepEqual(lines(served(spans)), ['SERVER GET /ws UNSET 200', 'SERVER CONNECT a:1 ERROR aborted'])
})

test('pipelined requests stay separate; their responses are in order', async (t) => {
  const { one, saw } = await story(t, `
    const server = http.createServer(async (req, res) => {
      await wait(req.url === '/first' ? 30 : 1)
      trace.span('for ' + req.url, () => {})
      res.end(req.url)
    })
    const port = await listen(server)
    saw.got = await raw(port, ['first', 'second', 'third'].map((name, i) => 'GET /' + name + ' HTTP/1.1\\r\\nHost: a\\r\\n' + (i === 2 ? 'Connection: close\\r\\n' : '') + '\\r\\n').join(''))
  `)
  for (const name of ['first', 'second', 'third']) t.is(one(`for /${name}`).parentSpanId, one(`GET /${name}`, 'SERVER').spanId)
  t.regex(saw.got, /\/first[^]*\/second[^]*\/third/)
})

test('a broken connection ends all of its requests', async (t) => {
  const { spans } = await story(t, `
    let seen = 0
    const server = http.createServer(() => { seen++ })
    const port = await listen(server)
    const socket = net.connect(port, '127.0.0.1', () => socket.write(['a', 'b', 'c'].map((name) => 'GET /' + name + ' HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n').join('')))
    while (seen < 3) await wait(2)
    socket.destroy()
    await wait(10)
  `)
  t.deepEqual(lines(served(spans)), ['a', 'b', 'c'].map((name) => `SERVER GET /${name} ERROR aborted`))
})

test('keep-alive: one connection, a separate span for each request', async (t) => {
  const { spans, one } = await story(t, `
    const server = http.createServer(async (req, res) => { await wait(1); trace.span('in ' + req.url, () => {}); req.resume(); res.end() })
    const port = await listen(server)
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    for (const name of ['a', 'b', 'c']) await ask({ port, path: '/' + name, agent })
    await Promise.all(['d', 'e', 'f'].map((name) => ask({ port, path: '/' + name, agent, method: 'POST' }, (request) => request.end('body'))))
    agent.destroy()
  `)
  t.is(new Set(served(spans).map(({ attributes }) => attributes['network.peer.port'])).size, 1)
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
    t.is(one(`in /${name}`).parentSpanId, one(`${name < 'd' ? 'GET' : 'POST'} /${name}`, 'SERVER').spanId)
    t.is(one(`${name < 'd' ? 'GET' : 'POST'} 127.0.0.1/${name}`, 'CLIENT').attributes['http.response.status_code'], 200)
  }
})

test('100-continue, 1xx, HEAD, 204, 304, a response before the body, a slow body', async (t) => {
  const { spans, saw } = await story(t, `
    const server = http.createServer((req, res) => {
      if (req.url === '/hints') res.writeEarlyHints({ link: '</a>; rel=preload' })
      if (req.url === '/204') res.statusCode = 204
      if (req.url === '/304') res.statusCode = 304
      if (req.url === '/early') return res.end('done')
      req.resume().on('end', () => res.end('x'))
    })
    const port = await listen(server)
    const slowly = (request) => { request.write('half'); setTimeout(() => request.end('rest'), 20) }
    saw.continued = false
    const continues = (request) => request.on('continue', () => { saw.continued = true; request.end('x') })
    await ask({ port, path: '/expect', method: 'PUT', headers: { expect: '100-continue' } }, continues)
    await ask({ port, path: '/hints' })
    await ask({ port, path: '/head', method: 'HEAD' })
    for (const path of ['/204', '/304']) await ask({ port, path })
    await ask({ port, path: '/early', method: 'POST' }, slowly)
    await ask({ port, path: '/slow', method: 'POST' }, slowly)
    await ask({ port, path: '/refused', headers: { expect: 'magic' } })
  `)
  t.deepEqual(lines(served(spans)), [
    'SERVER PUT /expect UNSET 200', 'SERVER GET /hints UNSET 200', 'SERVER HEAD /head UNSET 200', 'SERVER GET /* UNSET 204', 'SERVER GET /* UNSET 304',
    'SERVER POST /early UNSET 200', 'SERVER POST /slow UNSET 200', 'SERVER GET /refused UNSET 417'
  ])
  t.deepEqual(lines(spans.filter(({ kind }) => kind === 'CLIENT')).filter((line) => !/UNSET 20[04]|UNSET 304/.test(line)), ['CLIENT GET 127.0.0.1/refused ERROR 417'])
  t.true(saw.continued)
})

test('input that the parser rejects makes no span, and ends the request that it was the body of', async (t) => {
  const { spans, saw } = await story(t, `
    const server = http.createServer((req, res) => req.on('end', () => res.end()).on('error', () => {}).resume())
    const port = await listen(server)
    saw.bad = await raw(port, 'NONSENSE\\r\\n\\r\\n')
    saw.host = await raw(port, 'GET /nohost HTTP/1.1\\r\\n\\r\\n')
    await raw(port, 'POST /chunks HTTP/1.1\\r\\nHost: a\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nnot a length\\r\\n')
    await raw(port, 'GET /good HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nNONSENSE\\r\\n\\r\\n')
  `)
  t.regex(saw.bad, /^HTTP\/1.1 400/)
  t.regex(saw.host, /^HTTP\/1.1 400/)
  const all = Object.fromEntries(served(spans).map((span) => [span.attributes['url.path'], span]))
  t.deepEqual(Object.keys(all).sort(), ['/chunks', '/good', '/nohost'])
  t.is(all['/nohost'].attributes['http.response.status_code'], 400)
  t.deepEqual([all['/chunks'].attributes['longstack.end'], all['/chunks'].attributes['error.type']], ['aborted', 'HPE_INVALID_CHUNK_SIZE'])
})

test('a valid traceparent is read, an invalid one ignored', async (t) => {
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const { spans } = await story(t, `
    const port = await listen(http.createServer((req, res) => res.end()))
    const send = (path, ...headers) => raw(port, 'GET /' + path + ' HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n' +
      headers.map((value) => 'TraceParent: ' + value + '\\r\\n').join('') + '\\r\\n')
    await send('good', '00-${trace}-b7ad6b7169203331-01')
    await send('unsampled', '00-${trace}-b7ad6b7169203331-00')
    await send('future', 'cc-${trace}-b7ad6b7169203331-01-what-comes')
    await send('upper', '00-${trace.toUpperCase()}-b7ad6b7169203331-01')
    await send('zero', '00-00000000000000000000000000000000-b7ad6b7169203331-01')
    await send('nospan', '00-${trace}-0000000000000000-01')
    await send('short', '00-${trace}-b7ad6b71-01')
    await send('version', 'ff-${trace}-b7ad6b7169203331-01')
    await send('tail', '00-${trace}-b7ad6b7169203331-01-x')
    await send('twice', '00-${trace}-b7ad6b7169203331-01', '00-${trace}-b7ad6b7169203331-01')
    await send('empty', '')
  `)
  for (const span of served(spans)) {
    const good = ['/good', '/unsampled', '/future'].includes(span.attributes['url.path'])
    t.is(span.parentSpanId, good ? 'b7ad6b7169203331' : undefined, span.name)
    t.is(span.traceId === trace, good, span.name)
  }
  t.is(served(spans).length, 11)
})

test('an uncaught error is an event of its request, whether or not the program survives', async (t) => {
  const survives = await story(t, `
    process.on('uncaughtException', (error) => { saw.error = error.message })
    const server = http.createServer((req, res) => {
      if (req.url === '/throws') { setTimeout(function thrower () { res.statusCode = 500; res.end(); throw new Error('thrown') }, 1) } else res.end('fine')
    })
    const port = await listen(server)
    await ask({ port, path: '/throws' })
    await ask({ port, path: '/fine' })
  `)
  t.is(survives.saw.error, 'thrown')
  const span = survives.one('GET /throws', 'SERVER')
  t.is(span.status.code, 'ERROR')
  t.regex(span.events[0].attributes['exception.stacktrace'], /thrower[^]* ── setTimeout/)
  t.deepEqual(lines([survives.one('GET /fine', 'SERVER')]), ['SERVER GET /fine UNSET 200'])
})

test('unanswered requests are written as open when the program ends', async (t) => {
  const { spans, one } = await story(t, `
    const server = http.createServer(() => {})
    const port = await listen(server)
    http.get({ port, host: '127.0.0.1', path: '/never' }).on('error', () => {})
    await got(server)
    fetch('http://127.0.0.1:' + port + '/fetched').catch(() => {})
    await got(server)
    fs.writeSync(1, JSON.stringify({ open: trace.stats().spans.open, fault: trace.stats().fault, saw }) + '\\n')
    process.exit()
  `, { open: 4 })
  t.deepEqual(lines(spans).sort(), ['CLIENT GET 127.0.0.1/fetched UNSET open', 'CLIENT GET 127.0.0.1/never UNSET open', 'SERVER GET /fetched UNSET open', 'SERVER GET /never UNSET open'])
  t.true(BigInt(one('GET /never').endTimeUnixNano) > BigInt(one('GET /never').startTimeUnixNano))
})

test('servers in a cluster and in worker threads write their own spans', async (t) => {
  const cluster = await story(t, `
    const cluster = require('node:cluster')
    if (cluster.isPrimary) {
      const workers = [cluster.fork(), cluster.fork()]
      const ports = await Promise.all(workers.map((worker) => new Promise((resolve) => worker.on('listening', ({ port }) => resolve(port)))))
      for (let i = 0; i < 8; i++) await ask({ port: ports[0], path: '/of-cluster', agent: false })
      await wait(50)
      await Promise.all(workers.map((worker) => new Promise((resolve) => { worker.on('exit', resolve); worker.disconnect() })))
    } else {
      await listen(http.createServer((req, res) => res.end(String(process.pid))))
      await new Promise((resolve) => process.on('disconnect', resolve))
      await settled()
      process.exit()
    }
  `)
  const all = served(cluster.spans)
  t.is(all.length, 8)
  t.true(all.every(({ resource }) => resource['process.pid'] !== undefined))
  t.is(new Set(all.map(({ resource }) => resource['process.pid'])).size, 2)

  const thread = await story(t, `
    const { Worker } = require('node:worker_threads')
    const worker = new Worker("const http = require('node:http'); const server = http.createServer((req, res) => res.end('x'));" +
      "const { parentPort } = require('node:worker_threads'); server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));" +
      "parentPort.once('message', () => { server.close(); server.closeAllConnections() })", { eval: true })
    const port = await new Promise((resolve) => worker.on('message', resolve))
    await ask({ port, path: '/of-thread' })
    worker.postMessage('end')
    await new Promise((resolve) => worker.on('exit', resolve))
  `)
  const span = thread.one('GET /of-thread', 'SERVER')
  t.is(span.resource['longstack.thread'], 1)
  t.is(thread.one('GET 127.0.0.1/of-thread', 'CLIENT').resource['longstack.thread'], undefined)
})

test('a server on a stream without a system socket has requests', async (t) => {
  const { spans } = await story(t, `
    const { Duplex } = require('node:stream')
    const server = http.createServer((req, res) => { if (req.url !== '/hangs') res.end('x') })
    const connect = () => {
      const sides = [0, 1].map((i) => new Duplex({ read () {}, write (chunk, encoding, next) { sides[1 - i].push(chunk); next() } }))
      server.emit('connection', sides[0])
      return sides
    }
    const one = connect()
    one[1].resume().write('GET /stream HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
    const two = connect()
    two[1].write('GET /hangs HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
    await got(server)
    two[0].destroy()
    await wait(5)
    one[1].write('GET /again HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
    await wait(20)
  `)
  t.deepEqual(lines(served(spans)).sort(), ['SERVER GET /again UNSET 200', 'SERVER GET /hangs ERROR aborted', 'SERVER GET /stream UNSET 200'])
})

test('nothing of the program is kept alive or changed', async (t) => {
  const { saw } = await story(t, `
    const refs = []
    const classes = [http.IncomingMessage, http.ServerResponse, http.ClientRequest, http.OutgoingMessage, net.Socket]
    const shape = () => classes.map(({ prototype }) => Reflect.ownKeys(prototype).length).join()
    const before = shape()
    const server = http.createServer((req, res) => {
      for (const one of [req, res, req.socket]) refs.push(new WeakRef(one))
      saw.keys ??= [req, res].map((one) => [...Object.keys(one), ...Object.getOwnPropertySymbols(one).map(String)].filter((key) => /longstack|span|trace/i.test(key)))
      saw.listeners ??= [req, res, req.socket].map((one) => one.eventNames().map((name) => one.listenerCount(name)))
      if (req.url !== '/gone') res.end('x')
    })
    const port = await listen(server)
    for (let i = 0; i < 20; i++) await ask({ port, path: '/kept', agent: false })
    const leave = (request) => { refs.push(new WeakRef(request)); request.end(); got(server).then(() => request.destroy()) }
    for (let i = 0; i < 5; i++) await ask({ port, path: '/gone', agent: false }, leave)
    await settled()
    for (let i = 0; i < 10; i++) { global.gc(); await wait(20) }
    saw.alive = refs.filter((ref) => ref.deref() !== undefined).length
    saw.of = refs.length
    trace.disable()
    saw.same = before === shape()
    saw.name = http.IncomingMessage.prototype._addHeaderLines.name
    trace.enable()
  `, { args: ['--expose-gc'] })
  t.deepEqual(saw.keys, [[], []])
  t.true(saw.same)
  t.is(saw.of, 80)
  t.true(saw.alive <= 6, `${saw.alive} of ${saw.of} objects are alive`) // V8 and the keep-alive of Node hold the last
})

test('longstack\'s own work has no span: the exporter, a listener, a hook', async (t) => {
  const { spans } = await story(t, `
    const port = await listen(http.createServer((req, res) => res.end('x')))
    let asked = 0
    trace.on('span', () => { if (asked++ < 3) ask({ port, path: '/from-listener' }); })
    const remove = trace.hook({ init (context) { if (context.type === 'Timeout' && asked++ < 6) ask({ port, path: '/from-hook' }) } })
    await ask({ port, path: '/plain' })
    await wait(20)
    remove()
  `)
  t.deepEqual(spans.filter(({ kind }) => kind === 'CLIENT').map(({ name }) => name), ['GET 127.0.0.1/plain'])
})

test('an endless keep-alive connection does not grow: watchers go with their requests', async (t) => {
  const { saw } = await story(t, `
    const port = await listen(http.createServer((req, res) => { req.setTimeout(1000); res.end() }))
    const agent = new http.Agent({ keepAlive: true, maxSockets: 4 })
    const some = (count) => Promise.all(Array.from({ length: count }, () => ask({ port, path: '/k', agent })))
    for (let i = 0; i < 20; i++) await some(200)
    await wait(200)
    global.gc()
    const { heapUsed } = process.memoryUsage()
    for (let i = 0; i < 80; i++) await some(200)
    await settled()
    await wait(200)
    global.gc()
    saw.grown = process.memoryUsage().heapUsed - heapUsed
    agent.destroy()
  `, { args: ['--expose-gc'], env: { LONGSTACK_SPANS: '/dev/null' } })
  t.true(saw.grown < 25e6, `${saw.grown} bytes for 16,000 requests; the map of older records takes up to 15 MB while it grows`)
})
