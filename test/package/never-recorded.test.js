'use strict'

// SECURITY.md, "What is not recorded": a program with secrets in every possible place, and all of longstack's
// output on it.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register } = require('../helpers/run')

const program = `
  const { spawn } = require('node:child_process')
  const fs = require('node:fs')
  const http = require('node:http')
  const trace = require(${JSON.stringify(path.join(__dirname, '../..'))})
  const texts = []
  trace.on('span', (span) => texts.push(JSON.stringify(span)))

  const server = http.createServer((request, response) => {
    texts.push(trace.stack(), JSON.stringify(trace.chain()), new Error('x').stack)
    texts.push(String(trace.why(request.socket)))
    request.resume().on('end', () => {
      response.setHeader('set-cookie', 'SECRETsetCookie')
      response.end('SECRETanswer')
    })
  }).listen(0, '127.0.0.1', async () => {
    const { port } = server.address()
    const headers = { cookie: 'SECRETcookie', 'x-key': 'SECRETheader', 'user-agent': 'SECRETagent' }
    const options = { port, host: '127.0.0.1', method: 'POST', auth: 'SECRETuser:SECRETpassword', headers }
    await new Promise((resolve) => {
      const request = http.request({ ...options, path: '/path?token=SECRETquery#SECRETfragment' },
        (response) => response.resume().on('end', resolve))
      request.end('SECRETbody')
    })
    const url = 'http://127.0.0.1:' + port + '/path?token=SECRETfetchQuery'
    await (await fetch(url, { method: 'POST', body: 'SECRETfetchBody', headers })).text()
    spawn(process.execPath, ['-v', 'SECRETargument'], { env: { A: 'SECRETvariable' }, stdio: 'ignore' })
    fs.readFile('/tmp/SECRETfile', () => {
      texts.push(trace.stack(), JSON.stringify(trace.handles().map(String)))
      server.close()
      setTimeout(() => console.log(JSON.stringify(texts)), 100)
    })
  })`

test('no secret is in chains, reports, errors or spans', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-secrets-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'spans.jsonl')
  const env = { LONGSTACK_SPANS: file }
  const { code, stdout, stderr } = await node(['-r', register, '-e', program], { env })
  t.is(code, 0, stderr)
  const spans = fs.readFileSync(file, 'utf8')
  t.is(spans.match(/"url\.path":"\/path"/g)?.length, 4, 'two requests, a span on either side')
  t.deepEqual(`${stdout}${spans}${stderr}`.match(/SECRET\w+/g), null)
})

const targets = ['//SECRETu:SECRETp@host/x', '/fetch/https://SECRETu:SECRETp@host/x', '/fetch/https:/SECRETu@host/x', 'http://SECRETu:SECRETp@host/x',
  `/fetch/${encodeURIComponent('https://SECRETu:SECRETp@host/x')}`, '/x/SECRETu:SECRETp@db/y']

const urls = `
  const http = require('node:http')
  const http2 = require('node:http2')
  const net = require('node:net')
  const trace = require(${JSON.stringify(path.join(__dirname, '../..'))})
  const targets = ${JSON.stringify(targets)}
  const texts = []
  trace.on('span', (span) => texts.push(JSON.stringify(span)))
  function note (socket) {
    const why = trace.why(socket)
    texts.push(trace.stack(), new Error('x').stack, String(why), ...trace.handles().map(String))
    texts.push(JSON.stringify([trace.chain(), why, trace.request(), trace.metrics()]))
  }
  const done = (resolve) => (response) => { note(response.socket); response.resume().on('end', resolve) }
  const server = http.createServer((request, response) => {
    note(request.socket)
    setTimeout(() => { note(request.socket); response.end() }, 5)
  })
  server.on('connect', (request, socket) => { note(socket); socket.end('HTTP/1.1 200 OK\\r\\n\\r\\n') })
  const second = http2.createServer((request, response) => { note(request.stream.session.socket); response.end() })
  server.listen(0, () => second.listen(0, async () => {
    const { port } = server.address()
    for (const path of targets) {
      await new Promise((resolve, reject) => http.get({ port, path, agent: false }, done(resolve)).on('error', reject))
      const raw = net.connect(port, () => raw.write('GET ' + path + ' HTTP/1.1\\r\\nHost: SECRETu:SECRETp@h:80\\r\\nConnection: close\\r\\n\\r\\n'))
      await new Promise((resolve) => raw.resume().on('close', resolve))
    }
    await new Promise((resolve) => http.request({ port, method: 'CONNECT', path: 'SECRETu:SECRETp@db:443' })
      .on('connect', (response, socket) => { note(socket); socket.destroy(); resolve() }).end())
    await new Promise((resolve) => http.get({ host: 'SECRETu@db.invalid' }).on('error', (error) => {
      texts.push(JSON.stringify(trace.chain(error)))
      resolve()
    }))
    await trace.span('fails', () => fetch('http://SECRETu:SECRETp@127.0.0.1:1/x')).catch(() => {})
    const session = http2.connect('http://localhost:' + second.address().port)
    for (const path of targets) {
      const stream = session.request({ ':path': path })
      await new Promise((resolve) => stream.resume().on('close', resolve).on('error', resolve).end())
    }
    session.close()
    server.close()
    second.close()
    setTimeout(() => console.log(JSON.stringify(texts)), 100)
  }))`

test('no user and no password of a URL is in chains, reports, errors, metrics or spans', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-secrets-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'spans.jsonl')
  const { code, stdout, stderr } = await node(['-r', register, '-e', urls], { env: { LONGSTACK_SPANS: file } })
  t.is(code, 0, stderr)
  const spans = fs.readFileSync(file, 'utf8')
  t.true((spans.match(/"url\.path":"[^"]*\/fetch\//g)?.length ?? 0) >= 9, 'they are recorded')
  t.true(spans.includes('"url.path":"db:443"'))
  const told = `${stdout}${spans}${stderr}`.replaceAll('ENOTFOUND SECRETu@db.invalid', '') // the message of the error
  t.deepEqual(told.match(/.{0,50}SECRET\w+/g), null)
})
