'use strict'

// trace.why of connections: TCP, TLS, unix sockets, UDP, both sides, from connecting to closed.

const test = require('ava')
const { reports, functions } = require('../helpers/reports')
const { patient } = require('../helpers/starved')

const patiently = patient(test)

const address = /^127\.0\.0\.1:\d+$/

test('TCP: both ends, from connecting to closed, and after disable', async (t) => {
  const { told, stderr, code } = await reports(`
    let accepted
    function open () { return net.connect(server.address().port, '127.0.0.1') }
    const server = net.createServer((socket) => { accepted = socket.on('data', () => {}) })
    function start () { server.listen(0, '127.0.0.1', () => setTimeout(function later () { main() }, 1)) }
    start()
    async function main () {
      const socket = open()
      ask('connecting', socket)
      await once(socket, 'connect')
      await until(() => accepted)
      socket.write('hello')
      await once(accepted, 'data')
      accepted.write('welcome!')
      await once(socket, 'data')
      ask('client', socket); ask('client again', socket); ask('accepted', accepted); ask('server', server)
      accepted.end()
      await once(socket.resume(), 'end').catch(() => {})
      ask('accepted, half', accepted)
      socket.destroy(); server.close()
      await until(() => accepted.closed && socket.closed)
      ask('client closed', socket); ask('accepted closed', accepted); ask('server closed', server)
      trace.disable()
      ask('client disabled', socket); ask('accepted disabled', accepted)
    }`)
  t.is(stderr, '')
  t.is(code, 0)
  const why = (/** @type {string} */ name) => told[name].why

  t.is(why('connecting').state, 'connecting')
  for (const name of ['connecting', 'client', 'client closed', 'client disabled']) {
    const { what, type, side, origin, opened } = why(name)
    t.like({ type, side, origin }, { type: 'TCPWRAP', side: 'client', origin: 'registered' }, name)
    t.regex(what, /^TCP connection, client/)
    t.deepEqual(functions(opened).filter((one) => /open|later|start/.test(one)), ['open', 'later', 'start'], name)
  }
  for (const name of ['accepted', 'accepted, half', 'accepted closed', 'accepted disabled']) {
    const { type, side, opened } = why(name)
    t.like({ type, side }, { type: 'TCPWRAP', side: 'server' }, name)
    t.true(functions(opened).includes('start'), name)
    t.false(functions(opened).includes('open'), name)
  }
  t.like(why('server'), { type: 'TCPSERVERWRAP', state: 'listening', side: undefined, referenced: true })
  t.is(why('server closed').state, 'closed')
  t.is(why('server closed').local, why('server').local)
  t.true(functions(why('server closed').opened).includes('start'))

  const { local, remote } = why('client')
  t.regex(local, address)
  t.is(remote, why('server').local)
  t.is(why('accepted').local, remote)
  t.is(why('accepted').remote, local)
  t.deepEqual(why('client again').opened.map((hop) => hop.label), why('client').opened.map((hop) => hop.label))

  t.is(why('client').state, 'open')
  t.is(why('accepted, half').state, 'half-open')
  for (const name of ['client closed', 'client disabled']) {
    t.like(why(name), { state: 'closed', local, remote, bytesRead: 8, bytesWritten: 5, asyncId: why('client').asyncId })
  }
  for (const name of ['accepted closed', 'accepted disabled']) {
    t.like(why(name), { state: 'closed', local: remote, remote: local, bytesRead: 5, bytesWritten: 8 })
  }
  t.true(why('client').ageMs > 0)
  t.true(why('client closed').ageMs > why('client').ageMs)
  t.regex(why('client').hint, /socket\.end\(\)/)
  t.is(why('client closed').hint, undefined)
  t.is(why('client').usedBy, undefined)

  t.regex(told.client.text, /^TCP connection, client to 127.*, from 127.* · TCPWRAP\n {2}open, .* old, idle for .*, 8 bytes in, 5 bytes out, keeps the process alive\n {2}opened by\n/)
  t.regex(told['client closed'].text, /\n {2}closed, made .* ago, 8 bytes in, 5 bytes out\n/)
})

test('idle time grows without traffic, and restarts with a write or a read', async (t) => {
  const { told } = await reports(`
    const server = net.createServer(async (socket) => {
      const client = peer
      await once(client, 'connect').catch(() => {})
      await wait(150); ask('idle', client)
      let before = performance.now()
      client.write('x'); ask('written', client)
      const max = { written: performance.now() - before }
      await wait(150); ask('idle again', client)
      before = performance.now()
      socket.write('y'); await once(client, 'data'); ask('read', client)
      max.read = performance.now() - before
      say('max', max)
      await wait(150); ask('idle at last', client); ask('sender', socket)
      client.destroy(); server.close()
    }).listen(0, '127.0.0.1', () => { peer = net.connect(server.address().port, '127.0.0.1').on('data', () => {}) })
    let peer`)
  const idle = (/** @type {string} */ name) => told[name].why.idleMs
  for (const name of ['idle', 'idle again', 'idle at last', 'sender']) t.true(idle(name) >= 140, `${name}: ${idle(name)}`)
  for (const name of ['written', 'read']) t.true(idle(name) <= told.max[name] + 1, `${name}: ${idle(name)} of ${told.max[name]}`)
  t.true(idle('idle again') < told['idle again'].why.ageMs - 100)
})

test('IPv6 addresses have brackets', async (t) => {
  const { told, code } = await reports(`
    const server = net.createServer((socket) => { ask('accepted', socket); socket.destroy(); server.close() })
    server.on('error', () => {}).listen(0, '::1', () => { net.connect(server.address().port, '::1').on('error', () => {}); ask('server', server) })`)
  t.is(code, 0)
  t.regex(told.server.why.local, /^\[::1\]:\d+$/)
  t.regex(told.accepted.why.remote, /^\[::1\]:\d+$/)
})

test('unix sockets: the path is shown on both sides if known', async (t) => {
  const { told, code } = await reports(`
    const file = require('node:path').join(fs.mkdtempSync(require('node:os').tmpdir() + '/longstack-'), 'a\\u202eb')
    const server = net.createServer((socket) => {
      socket.on('data', () => {
        ask('accepted', socket); ask('client', client); ask('server', server)
        client.destroy(); server.close(() => { ask('server closed', server); ask('client closed', client); fs.rmdirSync(require('node:path').dirname(file)) })
      })
    })
    let client
    function listen () { server.listen(file, function dial () { client = net.connect(file); client.write('abc') }) }
    listen()`)
  t.is(code, 0)
  const { server, client, accepted } = told
  t.regex(server.why.local, /\/a\?b$/, 'a bidi character in a path is not shown')
  t.like(server.why, { type: 'PIPESERVERWRAP', state: 'listening' })
  t.like(client.why, { type: 'PIPEWRAP', side: 'client', remote: server.why.local, bytesWritten: 3, state: 'open' })
  t.like(accepted.why, { type: 'PIPEWRAP', side: 'server', local: server.why.local, bytesRead: 3 })
  t.true(functions(client.why.opened).some((one) => one.includes('dial')))
  t.true(functions(accepted.why.opened).includes('listen'))
  t.like(told['server closed'].why, { state: 'closed', local: server.why.local })
  t.like(told['client closed'].why, { state: 'closed', remote: server.why.local, bytesWritten: 3 })
  t.false(Object.values(told).some(({ text, why }) => (text + JSON.stringify(why)).includes('\u202e')))
})

test('UDP sockets: figures that Node does not count are omitted', async (t) => {
  const { told, code } = await reports(`
    const dgram = require('node:dgram')
    function bind () { return dgram.createSocket('udp4').bind(0, '127.0.0.1') }
    const socket = bind()
    socket.on('listening', () => {
      ask('bound', socket)
      socket.connect(socket.address().port, '127.0.0.1', () => { ask('connected', socket); socket.close(() => ask('closed', socket)) })
    })`)
  t.is(code, 0)
  const { local } = told.bound.why
  t.regex(local, address)
  t.like(told.bound.why, { type: 'UDPWRAP', state: 'open', bytesRead: undefined, idleMs: undefined, referenced: true })
  t.is(told.connected.why.remote, local)
  t.like(told.closed.why, { state: 'closed', local })
  for (const name of ['bound', 'connected', 'closed']) t.is(functions(told[name].why.opened)[0], 'bind')
})

test('TLS: one connection with its own bytes; the TCP connection below is available', async (t) => {
  const { told, stderr, code } = await reports(`
    const tls = require('node:tls')
    const options = { key: fs.readFileSync(fixtures + '/key.pem'), cert: fs.readFileSync(fixtures + '/cert.pem') }
    let accepted
    const server = tls.createServer(options, (socket) => { accepted = socket; socket.on('error', () => {}).on('data', () => {}); socket.write('hello!') })
    function dial () { return tls.connect({ port: server.address().port, host: '127.0.0.1', rejectUnauthorized: false }) }
    function serve () { server.listen(0, '127.0.0.1', main) }
    serve()
    async function main () {
      const socket = dial()
      ask('connecting', socket)
      await once(socket, 'secureConnect')
      await until(() => accepted)
      socket.write('hey')
      await Promise.all([once(accepted, 'data'), once(socket, 'data')])
      ask('client', socket); ask('accepted', accepted); ask('server', server)
      list('all'); list('TCP', ['TCP', '-TCPSERVERWRAP'])
      socket.destroy(); server.close()
      await until(() => socket.closed && accepted.closed)
      ask('closed', socket); ask('accepted closed', accepted); list('none')
    }`)
  t.is(stderr, '')
  t.is(code, 0)
  const why = (/** @type {string} */ name) => told[name].why
  t.is(why('connecting').state, 'connecting')
  t.like(why('client'), { type: 'TLSWRAP', side: 'client', state: 'open', bytesRead: 6, bytesWritten: 3, referenced: true })
  t.like(why('accepted'), { type: 'TLSWRAP', side: 'server', state: 'open', bytesRead: 3, bytesWritten: 6 })
  t.is(why('client').local, why('accepted').remote)
  t.is(why('client').remote, why('server').local)
  t.regex(why('server').what, /^TLS server at 127/)
  t.true(functions(why('client').opened).includes('dial'))
  t.true(functions(why('accepted').opened).includes('serve'))
  t.deepEqual(told.all.all.map((one) => one.type).sort(), ['TCPSERVERWRAP', 'TLSWRAP', 'TLSWRAP'])
  t.deepEqual(told.TCP.all.map((one) => [one.type, one.side, one.state]).sort(), [['TCPWRAP', 'client', 'open'], ['TCPWRAP', 'server', 'open']])
  t.true(told.TCP.all.every((one) => one.bytesRead > 100 && /under TLS/.test(one.what)), 'what goes over the wire')
  t.like(why('closed'), { state: 'closed', local: why('client').local, remote: why('client').remote, bytesRead: 6, bytesWritten: 3 })
  t.like(why('accepted closed'), { state: 'closed', local: why('accepted').local, remote: why('accepted').remote })
  t.deepEqual(told.none.all, [])
})

patiently('one event has one age, and the first query makes nothing older', async (t) => {
  const { told } = await reports(`
    const server = net.createServer((socket) => {
      const before = performance.now() - began
      ask('accepted', socket)
      say('times', { before, after: performance.now() - began })
      socket.end()
      server.close()
    })
    let began
    server.listen(0, '127.0.0.1', () => {
      began = performance.now()
      net.connect(server.address().port, '127.0.0.1').resume()
    })`)
  const { ageMs, opened: [hop] } = told.accepted.why
  t.is(hop.label, 'connection accepted')
  t.is(hop.ageMs, ageMs)
  t.true(ageMs <= told.times.before + (told.times.after - told.times.before) / 5, `${ageMs} of ${JSON.stringify(told.times)}`)
})
