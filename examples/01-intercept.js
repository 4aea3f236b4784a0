'use strict'

// node examples/01-intercept.js
//
// trace.intercept(server, transform) puts a transform between a server's sockets and Node's HTTP parser. This
// one removes the header `customHeader`: no handler, module or field of the request will see it.
//
// A chunk may end anywhere, even in the middle of the header's name. So each connection has a generator that
// copies requests line by line, and yields when it needs more bytes.
//
// Based on "Intercepting the HTTP Data Stream" (Trevor Norris, 2014). Cost of a transform: docs/articles.md.

const { once } = require('node:events')
const http = require('node:http')
const net = require('node:net')
const { setTimeout: delay } = require('node:timers/promises')
const trace = require('longstack').enable()

/** Bytes of one connection: those still to be parsed, and those to pass on to Node's parser. */
class ByteQueue {
  pending = Buffer.alloc(0)
  copied = []

  /** Removes bytes from the front. @param {number} size */
  take (size) {
    const bytes = this.pending.subarray(0, size)
    this.pending = this.pending.subarray(size)
    return bytes
  }

  /** Removes a line from the front, with its line feed. */
  * takeLine () {
    while (!this.pending.includes('\n')) {
      // An error thrown by a transform closes only its own connection.
      if (this.pending.length > http.maxHeaderSize) throw new RangeError('a line is longer than Node accepts')
      yield
    }
    return this.take(this.pending.indexOf('\n') + 1)
  }

  /** @param {number} size in bytes */
  * copy (size) {
    while (size > 0) {
      if (this.pending.length === 0) yield
      const bytes = this.take(size)
      this.copied.push(bytes)
      size -= bytes.length
    }
  }
}

/** Copies the requests of a connection without the header. @param {ByteQueue} queue */
function * copyRequests (queue) {
  for (;;) {
    let line
    let bodySize = 0
    let isChunked = false
    let isRemoved = false
    do { // the head ends with an empty line
      line = yield * queue.takeLine()
      const [, name, value] = /^(\S*?)\s*:\s*(.*?)\s*$/.exec(line.toString('latin1').toLowerCase()) ?? []
      if (name === 'content-length') bodySize = Number(value)
      if (name === 'transfer-encoding') isChunked = value.endsWith('chunked')
      isRemoved = name === 'customheader'
      if (!isRemoved) queue.copied.push(line)
    } while (line.length > 2)

    yield * queue.copy(bodySize)
    for (let chunkSize = isChunked ? 1 : 0; chunkSize > 0;) {
      line = yield * queue.takeLine()
      queue.copied.push(line)
      chunkSize = Number.parseInt(line.toString('latin1'), 16)
      if (chunkSize > 0) yield * queue.copy(chunkSize + 2) // including its line end
      else while (line.length > 2) queue.copied.push(line = yield * queue.takeLine()) // trailers
    }
  }
}

const connections = new WeakMap()

/** The transform. @param {Buffer} chunk empty at the end of the input @param {net.Socket} socket */
function removeCustomHeader (chunk, socket) {
  if (!connections.has(socket)) {
    const queue = new ByteQueue()
    connections.set(socket, { queue, requests: copyRequests(queue) })
  }
  const { queue, requests } = connections.get(socket)
  if (chunk.length === 0) return queue.take(queue.pending.length) // flushes the buffered bytes
  queue.pending = Buffer.concat([queue.pending, chunk])
  requests.next()
  return Buffer.concat(queue.copied.splice(0))
}

const server = http.createServer(async function handle (request, response) {
  let body = ''
  for await (const chunk of request) body += chunk
  console.log(`${request.url}: ${Object.keys(request.headers).join(', ')}; body ${JSON.stringify(body)}`)
  response.end()
  if (request.url !== '/why') return
  console.log(`\n${trace.why(request.socket)}\n\n${new Error('an example').stack}\n`)
})

/** Sends a request in two parts, split inside the header's name. @param {string} path */
async function send (path) {
  const socket = net.connect(server.address().port, '127.0.0.1')
  socket.write(`POST ${path} HTTP/1.1\r\nHost: example\r\nConnection: close\r\nContent-Length: 18\r\ncustom`)
  await delay(10)
  socket.write('Header: secret\r\n\r\ncustomHeader: body')
  await once(socket.resume(), 'close')
}

server.listen(0, '127.0.0.1', async () => {
  await send('/before')
  const remove = trace.intercept(server, removeCustomHeader)
  await send('/during')
  await send('/why')
  remove()
  await send('/after')
  server.close()
})
