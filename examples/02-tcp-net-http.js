'use strict'

// node examples/02-tcp-net-http.js
//
// The same constant response from three servers: on Node's bare TCP handle, on `net` and on `http`. A hook
// counts the async resources that each creates per connection and per request: it follows each new context's
// parents, and counts the context if it reaches the listening server. Then trace.handles explains the
// connection.
//
// Based on programs of Trevor Norris (2013, 2014). CPU cost of each layer: docs/articles.md.

const { once } = require('node:events')
const http = require('node:http')
const net = require('node:net')
const trace = require('longstack').enable()

const BODY = 'Hello, world\n'
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n' +
  'Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n'
const REQUEST = 'GET / HTTP/1.1\r\nHost: example\r\n\r\n'
const REQUESTS = 10

/** Class of Node's write requests. No module exports it: a socket passes one to its handle. */
let WriteWrap

async function findWriteWrap () {
  const server = net.createServer((socket) => {
    const handle = socket._handle
    handle.writeLatin1String = function (request, text) {
      WriteWrap = request?.constructor // on Node 26 the handle creates the request itself
      delete handle.writeLatin1String
      return handle.writeLatin1String(request, text)
    }
    socket.resume().end('.', 'latin1')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  await once(net.connect(server.address().port, '127.0.0.1').resume(), 'close')
  await once(server.close(), 'close')
}

/** Responds on the handles that the kernel accepts, without a socket, stream or parser. */
function createRawServer () {
  function accept (status, handle) {
    handle.onread = function (bytes) {
      if (bytes === undefined) return handle.close()
      handle.writeLatin1String(WriteWrap === undefined ? null : new WriteWrap(), HEAD + BODY)
    }
    handle.readStart()
  }
  return net.createServer().on('listening', function () { this._handle.onconnection = accept })
}

/** Treats every chunk as a request, which is true of this client. */
function createNetServer () {
  return net.createServer((socket) => {
    socket.on('data', () => socket.write(HEAD + BODY, 'latin1'))
  })
}

function createHttpServer () {
  return http.createServer((request, response) => {
    response.sendDate = false
    response.setHeader('Content-Length', BODY.length)
    response.end(BODY)
  })
}

/** @type {Map<string, number>} counts by type, of the measured server */
let counts = new Map()

trace.hook({
  init (context) {
    for (let ancestor = context.parent; ancestor !== undefined; ancestor = ancestor.parent) {
      if (ancestor.type !== 'TCPSERVERWRAP') continue
      counts.set(context.type, (counts.get(context.type) ?? 0) + 1)
      return
    }
  }
})

/** Sends a request and waits for the whole response. @param {net.Socket} socket */
async function exchange (socket) {
  socket.write(REQUEST)
  for (let size = 0; size < HEAD.length + BODY.length;) size += (await once(socket, 'data'))[0].length
}

/** @param {string} layer @param {() => net.Server} createServer */
async function show (layer, createServer) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()

  counts = new Map()
  const socket = net.connect(port, '127.0.0.1')
  await exchange(socket)
  const first = new Map(counts)
  for (let i = 0; i < REQUESTS; i++) await exchange(socket)

  console.log(`${layer}: resources for a connection and its first request, and for each further request`)
  for (const [type, count] of counts) {
    const further = (count - (first.get(type) ?? 0)) / REQUESTS
    console.log(`  ${type.padEnd(20)} ${first.get(type) ?? 0}, ${further.toFixed(1)}`)
  }
  const local = `127.0.0.1:${port}`
  const accepted = trace.handles(['TCP']).find((handle) => handle.side === 'server' && handle.local === local)
  console.log(`\n${accepted}\n`)
  socket.end()
  await once(socket, 'close')
  server.close()
}

async function main () {
  await findWriteWrap()
  await show('raw', createRawServer)
  await show('net', createNetServer)
  await show('http', createHttpServer)
}

main()
