'use strict'

// Spans end, however a connection ends, and none is mistaken for another.

const path = require('node:path')
const test = require('ava')
const { node, root } = require('../helpers/run')
const { lines, story } = require('../helpers/web')

const MARGIN = 'longstack.end_margin_ms'

/** @param {any[]} spans @param {string} kind */
const of = (spans, kind) => spans.filter((span) => span.kind === kind)

test('a break on a reused agent connection is noticed when it occurs', async (t) => {
  const { spans } = await story(t, `
    const server = http.createServer((request, response) => {
      if (request.url === '/ok') return response.end('ok')
      response.writeHead(200)
      response.write('half')
      setTimeout(() => (request.url === '/socket' ? request.socket : response).destroy(), 1)
    })
    const port = await listen(server)
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = 0; i < 10; i++) {
      await ask({ port, agent, path: '/ok' })
      await ask({ port, agent, path: i % 2 === 0 ? '/socket' : '/response' })
    }`)
  t.is(spans.length, 40)
  for (const kind of ['SERVER', 'CLIENT']) {
    const cut = of(spans, kind).filter(({ attributes }) => attributes['longstack.end'] === 'aborted')
    t.is(cut.length, 10)
    t.true(cut.every(({ attributes }) => attributes['url.path'] !== '/ok' && attributes[MARGIN] === undefined))
  }
})

test('an error dropped by the program belongs to its request, even after its collection', async (t) => {
  const { spans } = await story(t, `
    require('node:v8').setFlagsFromString('--expose-gc')
    const gc = require('node:vm').runInNewContext('gc')
    async function render () {
      await new Promise((resolve) => setTimeout(resolve, 5))
      throw new TypeError('no template')
    }
    let dropped
    const isDropped = new Promise((resolve) => { dropped = resolve })
    const server = http.createServer((request, response) => { render().catch(() => dropped()) })
    const port = await listen(server)
    const asked = http.get({ port, path: '/page' }).on('error', () => {})
    await isDropped
    for (let i = 0; i < 4; i++) {
      await new Promise((resolve) => setTimeout(resolve, 30))
      gc()
    }
    asked.destroy()
    await new Promise((resolve) => asked.on('close', resolve))`)
  const [page] = of(spans, 'SERVER')
  t.is(page.attributes['longstack.end'], 'aborted')
  t.is(page.events.length, 1)
  const [{ timeUnixNano, attributes }] = page.events
  t.is(attributes['exception.type'], 'TypeError')
  t.regex(attributes['exception.stacktrace'], /^TypeError: no template\n +at render /)
  const left = Number(BigInt(page.endTimeUnixNano) - BigInt(timeUnixNano)) / 1e6
  t.true(left > 50, `${left} ms before the end`)
})

test('an upgrade and a CONNECT on a connection that has carried requests', async (t) => {
  const { spans } = await story(t, `
    const server = http.createServer((request, response) => response.end('ok'))
    const serve = (head) => (request, socket) => { socket.on('error', () => {}); socket.write(head + '\\r\\n\\r\\n'); setTimeout(() => socket.destroy(), 5) }
    server.on('upgrade', serve('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: x\\r\\nConnection: Upgrade'))
    server.on('connect', serve('HTTP/1.1 200 OK'))
    const port = await listen(server)
    const handed = (options) => new Promise((resolve) => {
      const request = http.request({ port, host: '127.0.0.1', ...options })
      for (const event of ['upgrade', 'connect']) request.on(event, (response, socket) => socket.on('error', () => {}).on('close', resolve).resume())
      request.end()
    })
    for (const options of [{ headers: { connection: 'Upgrade', upgrade: 'x' }, path: '/up' }, { method: 'CONNECT', path: 'there:443' }]) {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      await ask({ port, agent, path: '/rest' })
      await handed({ ...options, agent })
    }`)
  t.true(spans.every(({ attributes }) => attributes[MARGIN] === undefined))
  t.deepEqual(lines(spans).sort(), [
    'CLIENT CONNECT there:443 UNSET 200 upgraded',
    'CLIENT GET 127.0.0.1/rest UNSET 200', 'CLIENT GET 127.0.0.1/rest UNSET 200',
    'CLIENT GET 127.0.0.1/up UNSET 101 upgraded',
    'SERVER CONNECT there:443 UNSET upgraded',
    'SERVER GET /rest UNSET 200', 'SERVER GET /rest UNSET 200',
    'SERVER GET /up UNSET upgraded'
  ])
})

for (const [instant, later] of [['at once', '(act) => act()'], ['in a tick', 'process.nextTick'], ['in the next iteration', 'setImmediate']]) {
  test(`TLS destroyed ${instant}: no span stays open, and none belongs to an HTTP connection`, async (t) => {
    const { spans } = await story(t, `
      const deaf = net.createServer(() => {})
      const port = await listen(deaf)
      const later = ${later}
      const quiet = (emitter) => { emitter.on('error', () => {}); later(() => emitter.destroy()); return new Promise((resolve) => emitter.on('close', resolve)) }
      await quiet(tls.connect({ port, host: '127.0.0.1' }))
      await quiet(https.get({ port, host: '127.0.0.1', path: '/secure' }))`)
    const connects = spans.filter(({ name }) => name.startsWith('connect'))
    t.true(connects.length <= 1, 'on Node 20 such a connection has none before it is being made')
    t.true(connects.every(({ attributes }) => {
      const end = attributes['longstack.end']
      return end === 'cancelled' || (end === undefined && instant === 'in the next iteration') // TCP was there
    }))
    t.true(spans.every(({ attributes }) => attributes[MARGIN] === undefined))
    t.true(spans.filter(({ name }) => name === 'GET 127.0.0.1/secure').every(({ attributes }) => attributes['longstack.end'] === 'cancelled' && attributes['error.type'] === undefined))
  })
}

test('a request that waits for its agent\'s connection is destroyed', async (t) => {
  const { spans } = await story(t, `
    const port = await listen(net.createServer(() => {}))
    const agent = new http.Agent({ maxSockets: 1 })
    const requests = ['/first', '/waits'].map((path) => http.get({ port, host: '127.0.0.1', agent, path }).on('error', () => {}))
    await wait(20)
    for (const request of requests) request.destroy()`)
  t.true(spans.length >= 1)
  t.true(spans.every(({ name, attributes }) => name.startsWith('GET') && attributes['longstack.end'] === 'cancelled' && attributes['error.type'] === undefined))
})

test('a sweep ends an unreported span, says how late it may be, and guesses nothing', async (t) => {
  const { spans, saw } = await story(t, `
    const server = http.createServer((request, response) => {
      response.removeAllListeners('finish') // not even Node's own hears it
      response.end('ok')
    })
    const port = await listen(server)
    const agent = new http.Agent({ keepAlive: true })
    saw.answer = await ask({ port, agent, path: '/unheard' })
    trace.span('left', () => new Promise(() => {}))
    trace.span('left inside', async () => { await new Promise(() => {}) })
    const kept = []
    trace.span('kept', () => { const promise = new Promise(() => {}); kept.push(promise); return promise }).catch(() => {})
    for (let i = 0; i < 60 && trace.stats().spans.open > 1; i++) { gc(); await wait(100) }
    saw.open = trace.stats().spans.open
    saw.kept = kept.length`, { args: ['--expose-gc'], open: 1 })
  t.is(saw.open, 1, 'what somebody still holds is open')
  const [served] = of(spans, 'SERVER')
  t.is(served.attributes['http.response.status_code'], 200)
  t.is(served.attributes['longstack.end'], undefined)
  t.true(served.attributes[MARGIN] > 0)
  for (const name of ['left', 'left inside']) {
    const [left] = spans.filter((span) => span.name === name)
    t.is(left.attributes['longstack.end'], 'unknown')
    t.is(left.status.code, 'UNSET')
  }
  t.is(spans.find(({ name }) => name === 'kept').attributes['longstack.end'], 'open', 'the program ended first')
})

test('2,000 hostile exchanges at random instants: none stays open, each has its outcome', async (t) => {
  const { code, stdout, stderr } = await node([path.join(root, 'fuzz', 'exchanges.js'), '--count', '2000'])
  t.log(stdout.split('\n', 1)[0])
  t.is(code, 0, `${stderr}${stdout}`)
})
