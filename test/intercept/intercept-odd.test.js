'use strict'

// Unusual uses of trace.intercept: in handlers, in transforms, with the remover. Each runs in its own
// process, because faults here throw past all handlers.

const test = require('ava')
const { program, root } = require('../helpers/run')

const prelude = `
const trace = require(${JSON.stringify(root)})
const http = require('node:http'), net = require('node:net'), stream = require('node:stream')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const get = (url) => 'GET ' + url + ' HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'
const seen = []
const uncaught = []
process.on('uncaughtException', (error) => uncaught.push(error.message))
async function until (holds) { for (const end = Date.now() + 20_000; !holds() && Date.now() < end;) await wait(2) }
async function dial (server) {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = net.connect(server.address().port, '127.0.0.1').on('error', () => {})
  socket.text = ''
  socket.on('data', (data) => { socket.text += data })
  await once(socket, 'connect')
  return socket
}
/** Two ends of a connection without handles: what is written is read at once. */
function pair () {
  class End extends stream.Duplex {
    _read () { const { done } = this; this.done = undefined; done?.() }
    _write (chunk, encoding, done) { if (chunk.length === 0) return process.nextTick(done); this.other.done = done; this.other.push(chunk) }
  }
  const [here, there] = [new End(), new End()]
  here.other = there
  there.other = here
  return [here, there]
}
/** Passes on whole lines only. */
function lines () {
  const held = new WeakMap()
  return function lines (chunk, socket) {
    const all = Buffer.concat([held.get(socket) ?? Buffer.alloc(0), chunk])
    const end = chunk.length === 0 ? all.length : all.lastIndexOf(10) + 1
    held.set(socket, all.subarray(end))
    return all.subarray(0, end)
  }
}
`

/**
 * Runs a program that answers with `tell`.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {string[]} [args]
 */
async function answer (t, source, args = []) {
  const tell = 'const tell = (answer) => { console.log(JSON.stringify({ ...answer, seen, uncaught })); process.exit() }'
  const { stdout, stderr, code } = await program(`${prelude}${tell}\n;(async () => {${source}})()`, { preload: false, args })
  t.is(code, 0, stderr)
  return { stderr, ...JSON.parse(stdout) }
}

for (const event of ['upgrade', 'connect']) {
  test(`${event}: withheld bytes come after the head that the handler puts back into the socket`, async (t) => {
    const { text } = await answer(t, `
      const server = http.createServer()
      let text = ''
      server.on('${event}', (request, socket, head) => {
        socket.unshift(head)
        socket.write('HTTP/1.1 101 x\\r\\n\\r\\n')
        socket.on('data', (data) => { text += data }).on('end', () => tell({ text }))
      })
      trace.intercept(server, lines())
      const client = await dial(server)
      const head = ${event === 'upgrade' ? "'GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: Upgrade\\r\\nUpgrade: x\\r\\n\\r\\n'" : "'CONNECT a:1 HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'"}
      client.write(head + 'one\\ntwo')
      await until(() => client.text !== '')
      client.end(' three\\n')`)
    t.is(text, 'one\ntwo three\n')
  })
}

test('a stream without a handle keeps being read, whatever it pushes while its handler runs', async (t) => {
  const { count } = await answer(t, `
    const server = http.createServer((request, response) => response.end('ok'))
    trace.intercept(server, function see () {})
    const [here, there] = pair()
    server.emit('connection', there)
    let count = 0
    here.on('data', () => { if (++count < 50) here.write(get('/')) })
    here.write(get('/'))
    await until(() => count === 50)
    tell({ count })`)
  t.is(count, 50)
})

test('a chunk withheld by its only transform arrives after the removal', async (t) => {
  const { seen } = await answer(t, `
    const [here, there] = pair()
    const server = http.createServer((request, response) => {
      seen.push(request.url)
      response.end('ok')
      if (request.url !== '/1') return
      let held
      const remove = trace.intercept(server, function hold (chunk) {
        if (chunk.length === 0) return held
        held = chunk
        return Buffer.alloc(0)
      })
      here.write(get('/2'))
      remove()
      here.write(get('/3'))
    })
    trace.intercept(server, function see () {})
    server.emit('connection', there)
    here.resume().write(get('/1'))
    await until(() => seen.length === 3)
    tell({})`)
  t.deepEqual(seen, ['/1', '/2', '/3'])
})

test('a handler that throws during a transform\'s removal harms no other connection', async (t) => {
  const { seen, threw, texts } = await answer(t, `
    const server = http.createServer((request, response) => {
      seen.push(request.url)
      if (request.url === '/0') throw new Error('of the handler')
      response.end('done')
    })
    let taken = 0
    const held = new WeakMap()
    const remove = trace.intercept(server, function hold (chunk, socket) {
      if (chunk.length === 0) return held.get(socket)
      taken++
      held.set(socket, chunk)
      return Buffer.alloc(0)
    })
    const clients = []
    for (let i = 0; i < 3; i++) {
      clients.push(await dial(server))
      clients[i].write(get('/' + i))
      await until(() => taken === i + 1)
    }
    let threw
    try { remove() } catch (error) { threw = error.message }
    await until(() => clients[1].text.includes('done') && clients[2].text.includes('done'))
    tell({ threw, texts: clients.map(({ text }) => text.includes('done')) })`)
  t.deepEqual(seen, ['/0', '/1', '/2'])
  t.is(threw, 'of the handler')
  t.deepEqual(texts, [false, true, true])
})

for (const listens of [false, true]) {
  test(`bytes withheld while Node does not read arrive later${listens ? ", though the program listens to the socket's data" : ''}`, async (t) => {
    const { seen, paused } = await answer(t, `
      let socket, paused = false
      const server = http.createServer((request, response) => {
        seen.push(request.url)
        if (socket === undefined && ${listens}) request.socket.on('data', () => {})
        socket = request.socket
        if (request.url === '/0') setTimeout(() => response.end('first'), 200)
        else response.end(Buffer.alloc(10_000))
      })
      let held
      const remove = trace.intercept(server, function hold (chunk) {
        if (chunk.length === 0) return held
        const at = chunk.lastIndexOf('GET /last')
        if (at === -1) return
        held = chunk.subarray(at)
        return chunk.subarray(0, at)
      })
      const client = await dial(server)
      client.write(Array.from({ length: 200 }, (_, i) => get('/' + i)).join('') + get('/last'))
      await until(() => socket?._paused && held)
      paused = socket._paused
      remove()
      await until(() => seen.includes('/last'))
      tell({ paused })`)
    t.true(paused, 'the program did what it was to do')
    t.is(seen.length, 201)
    t.is(seen.at(-1), '/last')
  })
}

test('properties that a program sets on bytes, or on an empty chunk, are not read', async (t) => {
  const { seen, uncaught } = await answer(t, `
    const server = http.createServer((request, response) => { seen.push(request.url); response.end('ok') })
    const getters = Object.fromEntries(['length', 'buffer', 'byteLength', 'byteOffset'].map((name) => [name, { get () { throw new Error('of the program') } }]))
    trace.intercept(server, function marked (chunk) { Object.defineProperties(chunk, getters) })
    trace.intercept(server, function copied (chunk) { return Object.defineProperty(Buffer.from(chunk), 'length', { value: 3 }) })
    trace.intercept(server, function plain (chunk) { return Object.setPrototypeOf(Uint8Array.from(chunk), null) })
    for (let i = 0; i < 2; i++) {
      const client = await dial(server)
      client.end(get('/' + i))
      await once(client, 'close')
    }
    tell({})`)
  t.deepEqual(seen, ['/0', '/1'])
  t.deepEqual(uncaught, [])
})

test('a transform that destroys the socket when flushed is the last one called', async (t) => {
  const { calls, uncaught } = await answer(t, `
    const server = http.createServer((request, response) => response.end('ok'))
    const calls = []
    trace.intercept(server, function destroy (chunk, socket) { calls.push('first ' + chunk.length); if (chunk.length === 0) socket.destroy() })
    trace.intercept(server, function later (chunk) { calls.push('second ' + chunk.length) })
    const client = await dial(server)
    client.end('GET')
    await once(client, 'close')
    tell({ calls })`)
  t.deepEqual(calls, ['first 3', 'second 3', 'first 0'])
  t.deepEqual(uncaught, [])
})

test('transforms are flushed once, even if another protocol starts meanwhile', async (t) => {
  const { calls, text } = await answer(t, `
    const server = http.createServer()
    server.on('connect', (request, socket, head) => setImmediate(() => tell({ calls, text: String(head) })))
    let calls = 0
    let held = Buffer.alloc(0)
    trace.intercept(server, function whole (chunk) {
      if (chunk.length === 0) return held
      held = Buffer.concat([held, chunk])
      return Buffer.alloc(0)
    })
    trace.intercept(server, function last (chunk) { if (chunk.length === 0) { calls++; return Buffer.from('more') } })
    const client = await dial(server)
    client.end('CONNECT a:1 HTTP/1.1\\r\\nHost: a\\r\\n\\r\\none ')`)
  t.is(calls, 1)
  t.is(text, 'one more')
})

const odd = {
  'bytes that were transferred': ['const bytes = new Uint8Array(chunk); structuredClone(bytes, { transfer: [bytes.buffer] }); return bytes', /returned bytes that cannot be read/],
  'a revoked proxy': ['const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy', /returned a proxy/],
  'a revoked proxy, thrown': ['const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); throw proxy', /threw a proxy/]
}
for (const [what, [body, said]] of Object.entries(odd)) {
  test(`${what}: only its connection is closed, with an error message`, async (t) => {
    const { codes, uncaught, stderr } = await answer(t, `
      const codes = []
      const server = http.createServer((request, response) => response.end('never')).on('clientError', (error, socket) => { codes.push(error.code); socket.destroy() })
      trace.intercept(server, function odd (chunk) { ${body} })
      const client = await dial(server)
      client.write(get('/'))
      await once(client, 'close')
      tell({ codes, text: client.text })`)
    t.deepEqual(codes, ['LONGSTACK_ERR_INTERCEPT'])
    t.deepEqual(uncaught, [])
    t.regex(stderr, /** @type {RegExp} */ (said))
  })
}

test('a transform that fails in the body of an upgrade request causes no uncaught exception', async (t) => {
  const { codes, uncaught, seen } = await answer(t, `
    const codes = []
    const server = http.createServer().on('clientError', (error, socket) => { codes.push(error.code); socket.destroy() })
    server.on('upgrade', (request, socket) => {
      seen.push('upgrade')
      socket.write('HTTP/1.1 101 x\\r\\n\\r\\n')
      socket.on('data', () => {})
    })
    trace.intercept(server, function fail (chunk) { if (chunk.includes('zz')) throw new Error('bad') })
    const client = await dial(server)
    client.write('POST / HTTP/1.1\\r\\nHost: a\\r\\nConnection: Upgrade\\r\\nUpgrade: x\\r\\nContent-Length: 9\\r\\n\\r\\nab')
    await until(() => seen.length > 0)
    await wait(50)
    client.write('zz')
    await Promise.race([once(client, 'close'), wait(1000)])
    tell({ codes })`)
  t.deepEqual(uncaught, [])
  t.deepEqual(seen, ['upgrade'])
  if (Number(process.versions.node.split('.')[0]) >= 26) t.deepEqual(codes, ['LONGSTACK_ERR_INTERCEPT']) // before, the body is no request's
})

for (const others of [0, 1]) {
  test(`idle connections do not retain a removed transform, ${others} others left`, async (t) => {
    const { before, after } = await answer(t, `
      const server = http.createServer((request, response) => response.end('ok'))
      server.keepAliveTimeout = 60_000
      let ref
      function set () {
        const transform = () => {}
        ref = new WeakRef(transform)
        return trace.intercept(server, transform)
      }
      let remove = set()
      if (${others}) trace.intercept(server, function stays () {})
      const client = await dial(server)
      client.write(get('/'))
      await until(() => client.text.endsWith('ok'))
      const kept = async () => { for (let i = 0; i < 5; i++) { await wait(20); gc() } return ref.deref() !== undefined }
      const before = await kept()
      remove()
      remove = undefined
      tell({ before, after: await kept() })`, ['--expose-gc'])
    t.deepEqual([before, after], [true, false])
  })
}

test("a program's listener named like Node's does not hide Node's", async (t) => {
  const { chunks } = await answer(t, `
    const server = http.createServer((request, response) => response.end('ok'))
    server.prependListener('connection', function connectionListener () {})
    let chunks = 0
    trace.intercept(server, () => { chunks++ })
    const client = await dial(server)
    client.write(get('/'))
    await until(() => client.text.endsWith('ok'))
    tell({ chunks })`)
  t.is(chunks, 1)
})

test('a transform that destroys the socket is the last one to see the chunk', async (t) => {
  const { calls } = await answer(t, `
    const calls = []
    const server = http.createServer((request, response) => response.end('never'))
    trace.intercept(server, function first (chunk, socket) { calls.push('first'); socket.destroy() })
    trace.intercept(server, function second () { calls.push('second') })
    const client = await dial(server)
    client.write(get('/'))
    await once(client, 'close')
    tell({ calls })`)
  t.deepEqual(calls, ['first'])
})
