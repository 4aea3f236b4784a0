'use strict'

// The opener of a pooled connection and its current request are two separate facts.

const test = require('ava')
const { reports, functions } = require('../helpers/reports')

/** A server that answers when it is told to: `await arrived()` hands out the next response. */
const server = `
const waiting = []
const server = http.createServer((request, response) => waiting.push({ request, response }))
const arrived = async () => { await until(() => waiting.length > 0); return waiting.shift() }
const client = (name) => { const all = trace.handles(['TCP']).filter((one) => one.side === 'client'); say(name, { count: all.length, why: all[0], text: String(all[0]) }) }
server.listen(0, '127.0.0.1', () => setTimeout(function begin () { main().then(() => server.close()) }, 1))
`

const opener = (/** @type {any} */ why) => functions(why.opened)[0]
const user = (/** @type {any} */ why) => why.usedBy === undefined ? undefined : [why.usedBy.request.replace(/:\d+/, ''), functions(why.usedBy.chain)[0]]

test('http: a keep-alive connection in use, idle, and in use by another request; a queue with maxSockets 1', async (t) => {
  const { told, stderr, code } = await reports(`${server}
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    const get = (path) => http.get({ agent, host: '127.0.0.1', port: server.address().port, path: path + '?token=secret', headers: { 'x-secret': 'secret' } })
    function first () { return get('/first') }
    function second () { return get('/second') }
    function third () { return get('/third') }
    async function finish (request) { const [response] = await once(request, 'response'); ask('response', response); response.resume(); await once(response, 'end') }
    async function main () {
      const one = first()
      ask('before its socket', one)
      const two = second()
      await once(one, 'socket')
      const socket = one.socket
      ask('queued', two)
      const a = await arrived()
      ask('first', one); ask('server request', a.request); ask('server response', a.response); ask('server socket', a.request.socket)
      a.response.end('1'); await finish(one)
      const b = await arrived()
      ask('second', two); ask('socket, second', socket)
      b.response.end('2'); await finish(two)
      await until(() => socket._httpMessage === null)
      ask('idle', socket); ask('server idle', b.request.socket)
      const three = third()
      const c = await arrived()
      ask('third', socket)
      c.response.end('3'); await finish(three)
      agent.destroy()
      await until(() => socket.closed)
      ask('closed', socket)
    }`)
  t.is(stderr, '')
  t.is(code, 0)
  const why = (/** @type {string} */ name) => told[name].why

  t.like(why('before its socket'), { type: 'REQUEST', side: 'client', state: 'waiting for a connection' })
  t.like(why('queued'), { type: 'REQUEST', state: 'waiting for a connection', origin: 'registered' })
  t.regex(why('queued').what, /^HTTP request GET http:\/\/127\.0\.0\.1:\d+\/second, client$/)
  t.is(opener(why('queued')), 'get')
  t.is(functions(why('queued').opened)[1], 'second')

  const opened = functions(why('first').opened).slice(0, 4)
  t.deepEqual(opened.filter((name) => /first|main|begin/.test(name)), ['first', 'main', 'begin'])
  for (const name of ['first', 'response', 'second', 'socket, second', 'idle', 'third', 'closed']) {
    t.deepEqual(functions(why(name).opened).slice(0, 4), opened, `${name}: the opener stays`)
    t.is(why(name).type, 'TCPWRAP')
  }
  const by = (/** @type {string} */ name) => why(name).usedBy && [why(name).usedBy.request.replace(/:\d+/, ''), functions(why(name).usedBy.chain)[1]]
  t.deepEqual(by('first'), ['GET http://127.0.0.1/first', 'first'])
  t.deepEqual(by('second'), ['GET http://127.0.0.1/second', 'second'])
  t.deepEqual(by('socket, second'), by('second'))
  t.deepEqual(by('third'), ['GET http://127.0.0.1/third', 'third'])
  t.is(by('idle'), undefined)
  t.is(by('closed'), undefined)
  t.regex(told.idle.text, /not in use by a request/)
  t.regex(told.first.text, /used now by GET http:\/\/127\.0\.0\.1:\d+\/first, (for which it was opened|made by\n)/)
  t.regex(told.third.text, /used now by GET http:\/\/127\.0\.0\.1:\d+\/third, made by\n {2}── [^]*at third /)

  for (const name of ['server request', 'server response', 'server socket']) {
    t.like(why(name), { type: 'TCPWRAP', side: 'server', usedBy: { request: 'GET /first' } })
  }
  t.is(why('server idle').usedBy, undefined)
  t.false(Object.values(told).some((one) => JSON.stringify(one).includes('secret')), 'no query string, no header')
})

test('fetch: the opener and the current user of a pooled connection', async (t) => {
  const { told, stderr, code } = await reports(`${server}
    const get = (path) => fetch('http://127.0.0.1:' + server.address().port + path + '?token=secret').then((response) => response.text())
    function first () { return get('/first') }
    function second () { return get('/second') }
    async function main () {
      const one = first()
      const a = await arrived()
      client('first')
      a.response.end('1'); await one
      await wait(10)
      client('idle')
      const two = second()
      const b = await arrived()
      client('second')
      b.response.end('2'); await two
      server.closeAllConnections()
    }`)
  t.is(stderr, '')
  t.is(code, 0)
  const why = (/** @type {string} */ name) => told[name].why
  for (const name of ['first', 'idle', 'second']) {
    t.is(told[name].count, 1)
    t.deepEqual(functions(why(name).opened).slice(0, 3), ['get', 'first', 'main'], name)
  }
  t.is(why('first').asyncId, why('second').asyncId, 'one connection')
  t.deepEqual(user(why('first')), ['GET http://127.0.0.1/first', 'get'])
  t.is(functions(why('first').usedBy.chain)[1], 'first')
  t.is(user(why('idle')), undefined)
  t.regex(told.idle.text, /not in use by a request/)
  t.deepEqual(user(why('second')), ['GET http://127.0.0.1/second', 'get'])
  t.is(functions(why('second').usedBy.chain)[1], 'second')
  t.false(JSON.stringify(told).includes('secret'))
})

test('HTTP/2: sessions and streams, on both sides', async (t) => {
  const { told, stderr, code } = await reports(`
    const http2 = require('node:http2')
    let remote
    const server = http2.createServer().on('stream', (stream) => { remote = stream })
    function connect () { return http2.connect('http://127.0.0.1:' + server.address().port) }
    server.listen(0, '127.0.0.1', main)
    async function main () {
      const session = connect()
      ask('connecting', session)
      function request () { return session.request({ ':path': '/path?token=secret' }) }
      const early = request()
      ask('pending stream', early)
      await until(() => remote)
      ask('session', session); ask('stream', early); ask('remote stream', remote); ask('remote session', remote.session); ask('its socket', session.socket)
      remote.respond(); remote.end()
      await once(early.resume(), 'close')
      ask('stream closed', early)
      session.close(); server.close()
      await until(() => session.closed && session.destroyed)
      ask('session closed', session); 
    }`)
  t.is(stderr, '')
  t.is(code, 0)
  const why = (/** @type {string} */ name) => told[name].why
  t.like(why('connecting'), { type: 'HTTP2SESSION', side: 'client', state: 'connecting' })
  t.true(functions(why('connecting').opened).includes('connect'))
  t.like(why('session'), { type: 'HTTP2SESSION', side: 'client', state: 'open' })
  t.true(functions(why('session').opened).includes('connect'))
  t.like(why('pending stream'), { type: 'HTTP2STREAM', side: 'client', state: 'waiting for a connection' })
  t.true(functions(why('pending stream').opened).includes('request'))
  t.like(why('stream'), { type: 'HTTP2STREAM', side: 'client', state: 'open', remote: why('session').remote })
  t.regex(why('stream').what, /^HTTP\/2 stream 1, GET \/path, client to 127/)
  t.true(functions(why('stream').opened).includes('request'))
  t.like(why('remote stream'), { type: 'HTTP2STREAM', side: 'server', state: 'open', remote: why('session').local })
  t.deepEqual(why('remote stream').opened.map((/** @type {any} */ hop) => hop.label.replace(/:\d+/, '')), ['GET /path', 'HTTP/2 session accepted', 'server.listen(127.0.0.1)'])
  t.like(why('remote session'), { type: 'HTTP2SESSION', side: 'server', remote: why('session').local })
  t.like(why('its socket'), { type: 'TCPWRAP', side: 'client', local: why('session').local })
  t.is(why('its socket').bytesRead, why('session').bytesRead)
  t.is(why('stream closed').state, 'closed')
  t.like(why('session closed'), { state: 'closed', local: why('session').local })
  t.true(functions(why('session closed').opened).includes('connect'))
  t.false(JSON.stringify(told).includes('secret'))
})

test('an endless path is cut', async (t) => {
  const { told, stderr, code } = await reports(`${server}
    async function main () {
      const request = http.get({ host: '127.0.0.1', port: server.address().port, path: '/' + 'x'.repeat(8000), agent: false })
      request.on('response', (response) => response.resume())
      const { response } = await arrived()
      client('socket')
      response.end()
    }`)
  t.is(stderr, '')
  t.is(code, 0)
  t.regex(told.socket.text, /used now by GET http:\/\/127\.0\.0\.1:\d+\/x{50,300}\u2026/)
  t.false(JSON.stringify(told).includes('x'.repeat(400)))
})
