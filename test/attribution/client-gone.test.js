'use strict'

// A client that disconnects: the resulting error belongs to the request in flight on that connection.

const path = require('node:path')
const test = require('ava')
const { program, root } = require('../helpers/run')

const pem = path.join(root, 'test', 'fixtures', 'chains')
const common = `
  const fs = require('node:fs')
  const http = require('node:http')
  const https = require('node:https')
  const net = require('node:net')
  const { finished, pipeline, Readable } = require('node:stream')
  const pair = () => ({
    key: fs.readFileSync(${JSON.stringify(path.join(pem, 'key.pem'))}),
    cert: fs.readFileSync(${JSON.stringify(path.join(pem, 'cert.pem'))})
  })
  const nothing = () => {}
  let client // goes away when the server has its request
  const leave = () => setTimeout(() => client.resetAndDestroy?.() ?? client.destroy(), 20)
  function tell (stack) {
    console.log(stack)
    setTimeout(() => process.exit(), 10)
  }
  const head = (method, url) => method + ' ' + url + ' HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 9\\r\\n\\r\\n'
`

/**
 * A program; `names` are in what it prints, and no other request is.
 * @type {Record<string, { names: string[], source: string }>}
 */
const cases = {
  'an upload': {
    names: ['POST /import'],
    source: `
      const server = http.createServer((request) => {
        request.resume().on('error', (error) => tell(error.stack))
        leave()
      })
      server.listen(0, () => {
        client = net.connect(server.address().port).on('error', nothing)
        client.write(head('POST', '/import'))
      })`
  },
  'an upload over TLS': {
    names: ['POST /import'],
    source: `
      const server = https.createServer(pair(), (request) => {
        request.resume().on('error', (error) => tell(error.stack))
        leave()
      })
      server.listen(0, () => {
        const options = { port: server.address().port, method: 'POST', path: '/import', rejectUnauthorized: false }
        client = https.request(options).on('error', nothing)
        client.write('x')
      })`
  },
  'a download': {
    names: ['GET /export'],
    source: `
      async function * rows () {
        for (;;) yield await new Promise((resolve) => setTimeout(resolve, 5, 'x'.repeat(1e5)))
      }
      const server = http.createServer((request, response) => {
        pipeline(Readable.from(rows()), response, (error) => tell(error.stack))
      })
      server.listen(0, () => {
        client = http.get({ port: server.address().port, path: '/export' }, (response) => {
          response.on('error', nothing).resume()
          leave()
        })
        client.on('error', nothing)
      })`
  },
  'what waits for a response to finish': {
    names: ['GET /slow'],
    source: `
      const server = http.createServer((request, response) => {
        finished(response, (error) => tell(error.stack))
        leave()
      })
      server.listen(0, () => {
        client = http.get({ port: server.address().port, path: '/slow' }).on('error', nothing)
      })`
  },
  'the third request of a connection': {
    names: ['POST /third'],
    source: `
      const server = http.createServer((request, response) => {
        if (request.url !== '/third') return response.end('ok')
        request.resume().on('error', (error) => tell(error.stack))
        leave()
      })
      server.listen(0, () => {
        client = net.connect(server.address().port).on('error', nothing)
        const urls = ['/first', '/second', '/third']
        function ask () {
          const url = urls.shift()
          if (url === undefined) return
          client.write(head('POST', url) + (urls.length > 0 ? '123456789' : 'x'))
        }
        client.on('data', ask)
        ask()
      })`
  },
  'one of two that are pipelined': {
    names: [],
    source: `
      const server = http.createServer((request, response) => {
        if (request.url === '/a') request.socket.on('error', (error) => tell(error.stack))
        else leave()
      })
      server.listen(0, () => {
        client = net.connect(server.address().port).on('error', nothing)
        client.write(head('GET', '/a') + '123456789' + head('GET', '/b'))
      })`
  },
  'a connection without a request in flight': {
    names: [],
    source: `
      const server = http.createServer((request, response) => request.resume().on('end', () => response.end('ok')))
      server.on('clientError', (error) => tell(error.stack))
      server.listen(0, () => {
        client = net.connect(server.address().port).on('error', nothing)
        client.write(head('GET', '/a') + '123456789')
        client.once('data', leave)
      })`
  }
}

for (const [title, { names, source }] of Object.entries(cases)) {
  test(`the client of ${title} goes away`, async (t) => {
    const { stdout, stderr } = await program(common + source)
    t.regex(stdout, /^\w*Error/, stderr)
    const told = [...stdout.matchAll(/── (?:GET|POST) (\S+)/g)].map(([text]) => text.slice(3))
    t.deepEqual(told, names, stdout)
  })
}
