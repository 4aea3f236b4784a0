'use strict'

// trace.intercept on real sockets: the data passed through, with no other changes. Tracing is off here and on
// in test/intercept-traced.test.js.

const fs = require('node:fs')
const http = require('node:http')
const http2 = require('node:http2')
const https = require('node:https')
const path = require('node:path')
const tls = require('node:tls')
const { createHash, randomBytes } = require('node:crypto')
const { once } = require('node:events')
const { Duplex, duplexPair } = require('node:stream')
const test = require('ava')
const trace = require('../..')
const { program } = require('../helpers/run')
const { clientOf, dial, listening, serve, tell, told, until } = require('../helpers/intercept')

const keys = path.join(__dirname, '..', 'fixtures', 'handles')
const pair = { key: fs.readFileSync(path.join(keys, 'key.pem')), cert: fs.readFileSync(path.join(keys, 'cert.pem')) }
const get = (/** @type {string} */ url, more = '') => `GET ${url} HTTP/1.1\r\nHost: a\r\n${more}\r\n`

/** Takes a header out of heads that come in one piece or in several; for GET alone. */
function removing () {
  const held = new WeakMap()
  return function removeCustomHeader (/** @type {Buffer} */ chunk, /** @type {object} */ socket) {
    if (chunk.length === 0) return Buffer.from(held.get(socket) ?? '', 'latin1')
    const heads = ((held.get(socket) ?? '') + chunk.toString('latin1')).split('\r\n\r\n')
    held.set(socket, heads.pop())
    return Buffer.from(heads.map((head) => `${head.replace(/\r\ncustomHeader:[^\r]*/i, '')}\r\n\r\n`).join(''), 'latin1')
  }
}

test('a header split at any byte is removed', async (t) => {
  const server = await serve(t)
  let seen = 0
  trace.intercept(server, (chunk) => { seen += chunk.length })
  trace.intercept(server, removing())
  const request = get('/x', 'customHeader: secret\r\nOther: kept\r\n')
  const client = dial(server.port)
  for (let i = 1; i < request.length; i++) {
    const before = seen
    client.write(request.slice(0, i))
    await until(() => seen === before + i, 'the first part')
    client.write(request.slice(i))
    await client.until(i)
  }
  const answers = told(client.got())
  t.is(answers.length, request.length - 1)
  for (const answer of answers) t.deepEqual(answer.headers, { other: 'kept' })
})

test('requests in one packet, or one packet per byte, come out in order', async (t) => {
  const server = await serve(t)
  let seen = 0
  trace.intercept(server, (chunk) => { seen += chunk.length })
  trace.intercept(server, removing())
  const client = dial(server.port)
  client.write(['/1', '/2', '/3'].map((url) => get(url, `customHeader: ${url}\r\n`)).join(''))
  await client.until(3)
  const before = seen
  const request = get('/4', 'customHeader: x\r\n')
  for (let i = 0; i < request.length; i++) {
    client.write(request[i])
    await until(() => seen === before + i + 1, 'a byte')
  }
  t.deepEqual(told(await client.until(4)).map(({ url, headers }) => [url, headers]), [['/1', {}], ['/2', {}], ['/3', {}], ['/4', {}]])
})

test('transforms work over TLS and for HTTP/1 connections of an HTTP/2 server; HTTP/2 is untouched', async (t) => {
  const secure = await listening(t, https.createServer(pair, tell))
  const both = await listening(t, http2.createSecureServer({ ...pair, allowHTTP1: true }, (req, res) => {
    if (req.httpVersionMajor === 1) return tell(/** @type {any} */ (req), /** @type {any} */ (res))
    res.end('two')
  }))
  let chunks = 0
  for (const server of [secure, both]) {
    trace.intercept(server, (chunk) => { chunks += Math.sign(chunk.length) })
    trace.intercept(server, removing())
    const client = clientOf(tls.connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }))
    client.write(get('/1', 'customHeader: x\r\n') + get('/2', 'customHeader: x\r\nOther: y\r\n'))
    t.deepEqual(told(await client.until(2)).map(({ headers }) => headers), [{}, { other: 'y' }])
    client.socket.destroy()
  }
  const before = chunks
  t.true(before >= 2)
  const session = http2.connect(`https://127.0.0.1:${both.port}`, { rejectUnauthorized: false })
  const stream = session.request({ ':path': '/' })
  stream.setEncoding('utf8')
  let text = ''
  for await (const part of stream) text += part
  session.close()
  t.is(text, 'two')
  t.is(chunks, before)
})

test('several transforms run in the order of registration, and can be removed one by one', async (t) => {
  const server = await serve(t)
  const put = (/** @type {string} */ letter) => trace.intercept(server, (chunk) => Buffer.from(chunk.toString().replace(/\/x\w*/, (url) => url + letter)))
  const [a, b, c] = ['a', 'b', 'c'].map(put)
  const client = dial(server.port)
  const ask = async (/** @type {number} */ count) => {
    client.write(get('/x'))
    return told(await client.until(count)).map(({ url }) => url).pop()
  }
  t.is(await ask(1), '/xabc')
  b()
  b()
  t.is(await ask(2), '/xac')
  a()
  c()
  t.is(await ask(3), '/x')
  put('d')
  t.is(await ask(4), '/xd')
  const other = dial(server.port)
  other.write(get('/x'))
  t.is(told(await other.until(1))[0].url, '/xd')
})

test('a transform may return a Uint8Array, a slice, or nothing yet; it is flushed at the end', async (t) => {
  const server = await serve(t, tell)
  const flushed = /** @type {number[]} */ ([])
  /** @type {Buffer[]} */
  const held = []
  trace.intercept(server, function whole (chunk) {
    if (chunk.length > 0) return held.push(chunk) && new Uint8Array(0)
    flushed.push(held.length)
    const all = Buffer.concat([Buffer.from('??'), ...held, Buffer.from('??')])
    return new Uint8Array(all.buffer, all.byteOffset + 2, all.length - 4)
  })
  trace.intercept(server, (chunk) => chunk)
  const client = clientOf(require('node:net').connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true }))
  server.httpAllowHalfOpen = true
  client.write(get('/late').slice(0, 5))
  await until(() => held.length === 1, 'a part')
  client.socket.end(get('/late').slice(5))
  await client.closed
  t.deepEqual(told(client.got()).map(({ url }) => url), ['/late'])
  t.deepEqual(flushed, [2])
})

test('a removed transform releases the bytes it withheld, at once and in order', async (t) => {
  const server = await serve(t)
  let held = ''
  const last = trace.intercept(server, function keepLine (chunk) {
    const text = held + chunk.toString('latin1')
    held = chunk.length === 0 ? '' : text
    return chunk.length === 0 ? Buffer.from(text) : Buffer.alloc(0)
  })
  trace.intercept(server, (chunk) => Buffer.from(chunk.toString('latin1').replace('Old', 'New')))
  const client = dial(server.port)
  client.write(get('/held', 'Old: x\r\n'))
  await until(() => held !== '', 'the chunk')
  t.is(client.got(), '')
  last()
  t.deepEqual(told(await client.until(1))[0].headers, { new: 'x' }, 'what was held back goes through the others')
  client.write(get('/next', 'Old: y\r\n'))
  t.deepEqual(told(await client.until(2))[1].headers, { new: 'y' })
})

test('a transform may be removed in itself or in a handler, also of another connection', async (t) => {
  const removers = /** @type {Array<() => void>} */ ([])
  const server = await serve(t, (req, res) => {
    if (req.url === '/remove') removers.shift()?.()
    tell(req, res)
  })
  let calls = 0
  const self = trace.intercept(server, (chunk) => {
    calls++
    if (chunk.length > 0) self()
    return chunk.length === 0 ? Buffer.from(get('/flushed')) : chunk
  })
  const client = dial(server.port)
  client.write(get('/1'))
  t.deepEqual(told(await client.until(2)).map(({ url }) => url), ['/1', '/flushed'])
  t.is(calls, 2)

  let held = 0
  const hold = () => trace.intercept(server, (chunk, socket) => {
    if (chunk.length === 0) return held-- > 0 ? Buffer.from(get(`/held-${socket.remotePort}`)) : chunk
    if (!chunk.includes('/hold')) return
    held++
    return Buffer.alloc(0)
  })
  removers.push(hold())
  const other = dial(server.port)
  other.write(get('/hold'))
  await until(() => held === 1, 'something held')
  client.write(get('/hold'))
  await until(() => held === 2, 'both')
  client.write(get('/remove') + get('/after'))
  t.deepEqual(told(await client.until(5)).map(({ url }) => url).slice(2), ['/remove', '/after', `/held-${client.socket.localPort}`])
  t.is(told(await other.until(1))[0].url, `/held-${other.socket.localPort}`)
})

test('existing connections are transformed, also in the middle of a message', async (t) => {
  const server = await serve(t)
  const idle = dial(server.port)
  const busy = dial(server.port)
  busy.write(get('/before'))
  await busy.until(1)
  busy.write('POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc')
  await until(() => /** @type {any} */ (server)._connections === 2, 'both')
  await new Promise((resolve) => setTimeout(resolve, 50))
  trace.intercept(server, (chunk) => Buffer.from(chunk.toString('latin1').toUpperCase()))
  busy.write('def')
  idle.write(get('/idle'))
  t.deepEqual(told(await busy.until(2)).map(({ body }) => body), ['', 'abcDEF'])
  t.is(told(await idle.until(1))[0].url, '/IDLE')
})

test('handed-over connections are transformed: a stream without a handle, and a socket of a CONNECT', async (t) => {
  const server = http.createServer(tell)
  const remove = trace.intercept(server, removing())
  const [ours, theirs] = duplexPair === undefined ? pairOfStreams() : duplexPair()
  server.emit('connection', theirs)
  let got = ''
  ours.on('data', (data) => { got += data })
  ours.write(get('/1', 'customHeader: x\r\nOther: y\r\n'))
  await until(() => got.includes('}\n'), 'the answer')
  t.deepEqual(told(got)[0].headers, { other: 'y' })
  remove()
  ours.write(get('/2', 'customHeader: x\r\n'))
  await until(() => got.split('}\n').length === 3, 'the second')
  t.deepEqual(told(got)[1].headers, { customheader: 'x' })

  const proxy = await serve(t)
  const seen = /** @type {string[]} */ ([])
  trace.intercept(proxy, (chunk) => { seen.push(chunk.toString('latin1').split(' ')[0]) })
  proxy.on('connect', (req, socket, head) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    if (head.length > 0) socket.unshift(head)
    proxy.emit('connection', socket)
  })
  const client = dial(proxy.port)
  client.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')
  await client.until('200 OK')
  client.write(get('/inside'))
  await client.until('/inside')
  client.write(get('/again'))
  await client.until('/again')
  t.deepEqual(seen, ['CONNECT', '', 'GET', 'GET'], 'the end of HTTP is told, and its beginning anew')
})

function pairOfStreams () {
  /** @type {Duplex[]} */
  const ends = [0, 1].map((i) => new Duplex({
    read () {},
    write (chunk, _, done) { ends[1 - i].push(chunk); done() },
    final (done) { ends[1 - i].push(null); done() }
  }))
  return ends
}

for (const [event, request] of Object.entries({
  upgrade: 'GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\ncustomHeader: x\r\n\r\n',
  connect: 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\ncustomHeader: x\r\n\r\n'
})) {
  test(`${event}: the head passes the transforms, later bytes do not, and withheld bytes are not lost`, async (t) => {
    const server = await serve(t)
    const seen = /** @type {string[]} */ ([])
    trace.intercept(server, (chunk) => {
      const text = chunk.toString('latin1')
      seen.push(text)
      if (chunk.length === 0) return Buffer.from('[rest]')
      return Buffer.from(text.replace('customHeader: x\r\n', ''), 'latin1')
    })
    server.on(event, (req, socket, head) => {
      t.is(req.headers.customheader, undefined)
      t.deepEqual(socket.listeners('data'), [])
      socket.write(`HTTP/1.1 101 OK\r\n\r\n<${head}>`)
      socket.on('data', (/** @type {Buffer} */ data) => socket.write(`(${data})`))
      socket.on('end', () => socket.end('bye'))
    })
    const client = dial(server.port)
    client.write(get('/first') + request + 'head')
    await client.until('<head>')
    await client.until('([rest])')
    client.write('customHeader: x\r\n')
    await client.until('(customHeader: x\r\n)')
    client.socket.end()
    await client.closed
    t.regex(client.got(), /<head>\(\[rest\]\)[^]*\/first[^]*\(customHeader: x\r\n\)bye$/)
    t.deepEqual(seen, [get('/first') + request + 'head', ''])
  })
}

test('20 MB to a slow reader: no byte is lost, and the client has to wait', async (t) => {
  const body = randomBytes(20 << 20)
  let most = 0
  const server = await serve(t, async (req, res) => {
    const hash = createHash('sha256')
    let done = 0
    for await (const part of req) {
      hash.update(part)
      done += part.length
      most = Math.max(most, req.socket.bytesRead - done)
      if (Math.random() < 0.1) await new Promise((resolve) => setTimeout(resolve, 2))
    }
    res.end(hash.digest('hex'))
  })
  trace.intercept(server, () => {})
  trace.intercept(server, (chunk) => Buffer.from(chunk))
  const request = http.request({ port: server.port, host: '127.0.0.1', method: 'POST', headers: { 'Content-Length': body.length } })
  request.end(body)
  const [response] = await once(request, 'response')
  let text = ''
  for await (const part of response) text += part
  t.is(text, createHash('sha256').update(body).digest('hex'))
  t.true(most < 2 << 20, `${most} bytes were taken ahead of the reader`)
})

test('a program\'s listener sees the raw bytes, and the socket shows only Node\'s listeners', async (t) => {
  const raw = /** @type {string[]} */ ([])
  let listeners
  const server = await serve(t, (req, res) => {
    const { socket } = req
    listeners = ['data', 'end', 'resume'].map((event) => socket.listeners(event).map(({ name }) => name).join())
    if (req.url === '/1') socket.on('data', (data) => raw.push(data.toString('latin1')))
    tell(req, res)
  })
  trace.intercept(server, removing())
  t.deepEqual(server.listeners('connection').map(({ name }) => name), ['connectionListener'])
  const client = dial(server.port)
  client.write(get('/1', 'customHeader: x\r\n'))
  await client.until(1)
  const [data, end, resume] = /** @type {string[]} */ (/** @type {unknown} */ (listeners))
  t.is(data, 'bound socketOnData')
  t.true(end.endsWith('bound socketOnEnd'))
  t.is(resume, 'onSocketResume')
  const request = get('/2', 'customHeader: y\r\n')
  client.write(request)
  t.deepEqual(told(await client.until(2)).map(({ headers }) => headers), [{}, {}])
  t.deepEqual(raw, [request])
})

/** @type {Record<string, (chunk: Buffer) => any>} */
const wrong = {
  'threw an error: boom': () => { throw new Error('boom') },
  'threw 42': () => { throw 42 }, // eslint-disable-line no-throw-literal
  'returned "text"': () => 'text',
  'returned 7': () => 7,
  'returned null': () => null,
  'returned false': () => false,
  'returned an array': () => [1],
  'returned an object': () => ({ length: 3 }),
  'returned a promise': async () => { throw new Error('later') }
}

test('a transform that throws or returns nonsense closes only its connection, with an error that says so', async (t) => {
  const server = await serve(t)
  const errors = /** @type {any[]} */ ([])
  const warnings = /** @type {any[]} */ ([])
  const uncaught = /** @type {unknown[]} */ ([])
  const note = (/** @type {unknown} */ error) => uncaught.push(error)
  process.on('uncaughtExceptionMonitor', note)
  t.teardown(() => process.off('uncaughtExceptionMonitor', note))
  t.teardown(trace.on('warning', (warning) => warnings.push(warning)))
  server.on('clientError', (error, socket) => { errors.push([error, socket.destroyed]) })
  const cases = Object.entries(wrong)
  let last = 0
  trace.intercept(server, function faulty (/** @type {Buffer} */ chunk) {
    const number = /\/case-(\d)/.exec(chunk.toString('latin1'))
    if (number !== null) return cases[Number(number[1])][1](chunk)
  })
  trace.intercept(server, () => { last++ })
  const good = dial(server.port)
  for (const [i, [words]] of cases.entries()) {
    const client = dial(server.port)
    client.write(get(`/case-${i}`))
    await client.closed
    t.is(client.got(), '')
    await until(() => errors.length === i + 1, 'clientError')
    const [error, destroyed] = errors[i]
    t.is(error.code, 'LONGSTACK_ERR_INTERCEPT')
    t.true(error instanceof TypeError)
    t.true(error.message.startsWith(`The transform "faulty" of trace.intercept ${words}`), error.message)
    t.is(destroyed, true)
    t.false(Object.keys(error).includes('cause'))
    good.write(get(`/good-${i}`))
    await good.until(i + 1)
  }
  t.is(errors[0][0].cause.message, 'boom')
  t.is(errors[1][0].cause, 42)
  t.false('cause' in errors[2][0])
  t.is(last, cases.length, 'the good connection went through both, the others not')
  t.deepEqual(warnings.map(({ code }) => code), ['LONGSTACK_WARN_INTERCEPT'])
  t.regex(warnings[0].message, /The transform "faulty" of trace\.intercept threw an error: boom\..*connection was closed/)
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.deepEqual(uncaught, [])
})

test('a failing transform without a listener prints one line, and the program runs; also at the end and upgrades', async (t) => {
  const { stdout, stderr, code } = await program(`
    const trace = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const http = require('http'), net = require('net')
    const server = http.createServer((req, res) => res.end('fine'))
    trace.intercept(server, (chunk) => { if (chunk.length === 0 || chunk.includes('/now')) throw new Error('boom') })
    server.on('upgrade', (req, socket) => { console.log('upgrade'); socket.resume() })
    const ask = (request, end) => new Promise((resolve) => {
      const socket = net.connect({ port: server.address().port, host: '127.0.0.1', allowHalfOpen: true })
      let got = ''
      socket.on('data', (data) => { got += data; if (end === 'answer') { end = ''; socket.end() } })
      socket.on('end', () => socket.end())
      socket.on('error', () => {})
      socket.on('close', () => { console.log(got.slice(0, 15)); resolve() })
      socket.write(request)
    })
    server.listen(0, '127.0.0.1', async () => {
      await ask('GET /now HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
      await ask('GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: Upgrade\\r\\nUpgrade: x\\r\\n\\r\\n')
      await ask('GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n', 'answer')
      await ask('GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n')
      server.close()
    })`, { preload: false })
  t.is(stdout, '\nupgrade\n\nHTTP/1.1 200 OK\nHTTP/1.1 200 OK\n')
  t.regex(stderr, /^longstack: The transform "an anonymous transform" of trace\.intercept threw an error: boom\. [^\n]*\n$/)
  t.is(code, 0)
})

test('mistakes of the caller are rejected', async (t) => {
  const server = http.createServer()
  /** @param {any} given @param {any} [transform] */
  const codeOf = (given, transform = () => {}) =>
    /** @type {any} */ (t.throws(() => trace.intercept(given, transform), { instanceOf: TypeError }))
  for (const one of [undefined, null, 'http', {}, require('node:net').createServer(), tls.createServer(), http2.createServer(), http2.createSecureServer(pair), new Proxy(server, {})]) {
    t.is(codeOf(one).code, 'LONGSTACK_ERR_INVALID_SERVER')
  }
  t.regex(codeOf(42).message, /^trace\.intercept takes an HTTP\/1 server.*\. Received 42\.$/)
  t.is(codeOf(server, 'x').code, 'LONGSTACK_ERR_INVALID_HANDLER')
  t.is(codeOf(server, 'x').message, 'The transform of trace.intercept must be a function. Received "x".')
  t.is(codeOf(server, null).code, 'LONGSTACK_ERR_INVALID_HANDLER')
  class Own extends http.Server {}
  for (const one of [
    new Own(),
    https.createServer(pair),
    http2.createSecureServer({ ...pair, allowHTTP1: true })
  ]) {
    trace.intercept(one, () => {})()
  }
  t.deepEqual(server.rawListeners('connection'), server.listeners('connection'))
})

test('a collected server frees its transforms, a socket its own, and removers retain nothing', async (t) => {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const http = require('http'), net = require('net')
    const watched = {}
    const removers = []
    async function use (server) {
      const big = { name: 'big' }
      watched.server = new WeakRef(server)
      watched.transform = new WeakRef(removers[removers.push(trace.intercept(server, (chunk, socket) => { watched.socket = new WeakRef(socket); return big && undefined })) - 1])
      watched.big = new WeakRef(big)
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
      await new Promise((resolve) => http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, (res) => res.resume().on('close', resolve)))
      await new Promise((resolve) => server.close(resolve))
    }
    const turn = () => new Promise((resolve) => setTimeout(resolve, 20))
    use(http.createServer((req, res) => res.end())).then(async () => {
      for (let i = 0; i < 30 && (watched.server.deref() || watched.socket.deref()); i++) { await turn(); gc() }
      console.log(watched.server.deref() === undefined, watched.socket.deref() === undefined)
      removers.pop()()
      for (let i = 0; i < 30 && watched.big.deref(); i++) { await turn(); gc() }
      console.log(watched.big.deref() === undefined)
    })`, { preload: false, args: ['--expose-gc'] })
  t.is(stderr, '')
  t.is(stdout, 'true true\ntrue\n')
})
