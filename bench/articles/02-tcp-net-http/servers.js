'use strict'

// Three servers with the same constant answer: on Node's bare TCP handle (raw), on `net` and on `http`. Each
// comes in two styles: hoisted callbacks, declared once with their state on the handle; and closures, created
// per connection and request.

const { once } = require('node:events')
const http = require('node:http')
const net = require('node:net')

const SERVER = 1 // role of a TCP handle in Node's constants
const BACKLOG = 511

const HEAD = { 'Content-Type': 'text/plain', 'Content-Length': 13 }
const BODY = 'Hello, world\n'
// http's output for HEAD and BODY, except for the date
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n' +
  `Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n${BODY}`

/**
 * Matches the empty line that ends a request.
 * @param {number} matched matched bytes so far
 * @param {number} byte
 */
function emptyLine (matched, byte) {
  if (byte === (matched % 2 === 0 ? 13 : 10)) return matched + 1
  return byte === 13 ? 1 : 0
}

/** Number of net and http answers not written yet. */
const pending = { count: 0 }

/**
 * Node's TCP handle and its write request. process.binding() has both, but warns under --pending-deprecation
 * and throws under --permission, so they are taken from a listening server and a writing socket.
 * @type {{ TCP: any, WriteWrap: any }}
 */
const handles = { TCP: undefined, WriteWrap: undefined }

async function findHandles () {
  const server = net.createServer((socket) => {
    const handle = socket._handle
    handles.TCP = handle.constructor
    handle.writeLatin1String = function (request, text) {
      handles.WriteWrap = request?.constructor // Node 26 creates the request itself if a write has to wait
      delete handle.writeLatin1String
      return handle.writeLatin1String(request, text)
    }
    socket.resume().end('.', 'latin1')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  await once(net.connect(server.address().port, '127.0.0.1').resume(), 'close')
  await once(server.close(), 'close')
}

/** Opens a server without `net`. @param {(status: number, client: any) => void} accept */
function openRaw (accept) {
  const server = new handles.TCP(SERVER)
  const address = {}
  const status = server.bind('127.0.0.1', 0) || server.listen(BACKLOG) || server.getsockname(address)
  if (status !== 0) throw new Error(`a TCP handle does not listen: ${status}`)
  server.onconnection = accept
  return { port: address.port, close: () => server.close() }
}

/** Writes the answer to a handle. A write that has to wait calls `written` when done. */
function writeRaw (client, written) {
  const request = handles.WriteWrap === undefined ? null : new handles.WriteWrap()
  if (request !== null) request.oncomplete = written
  const result = client.writeLatin1String(request, ANSWER)
  if (request !== null || typeof result === 'number') return
  result.oncomplete = written
  if (result.writeStatus !== null) result.oncomplete(result.writeStatus, client) // already done
}

/** Returns the bytes of a read. Node 26 does not shorten a buffer that is nearly full. */
function readBytes (bytes, length) {
  return new Uint8Array(bytes, 0, length)
}

// Hoisted: every function is declared once, with its state on the handle, the socket or the response

function acceptRaw (status, client) {
  if (status !== 0) return
  client.matched = 0
  client.read = 0
  client.hasEnded = false
  client.onread = readRaw
  client.readStart()
}

function readRaw (bytes) {
  if (bytes === undefined) {
    this.hasEnded = true
    return writtenRaw(0, this)
  }
  let { matched } = this
  const { bytesRead } = this
  for (const byte of readBytes(bytes, bytesRead - this.read)) {
    matched = emptyLine(matched, byte)
    if (matched === 4) {
      matched = 0
      writeRaw(this, writtenRaw)
    }
  }
  this.matched = matched
  this.read = bytesRead
}

/** Closes a connection once both sides have sent everything. */
function writtenRaw (status, client) {
  if (client.hasEnded && client.writeQueueSize === 0) client.close()
}

function acceptNet (socket) {
  socket.matched = 0
  socket.on('data', readNet)
  socket.on('error', ignore)
}

function readNet (chunk) {
  let { matched } = this
  for (const byte of chunk) {
    matched = emptyLine(matched, byte)
    if (matched === 4) {
      matched = 0
      pending.count++
      this.write(ANSWER, 'latin1', writtenNet)
    }
  }
  this.matched = matched
}

function writtenNet () {
  pending.count--
}

function ignore () {} // a leaving client destroys its socket; nothing else to do

function answerHttp (request, response) {
  pending.count++
  response.sendDate = false
  response.writeHead(200, HEAD)
  response.on('finish', writtenHttp)
  response.end(BODY)
}

function writtenHttp () {
  pending.count--
  if (!this.req.complete) this.req.resume()
}

const hoisted = {
  raw: () => openRaw(acceptRaw),
  net: () => open(net.createServer(acceptNet)),
  http: () => open(http.createServer(answerHttp))
}

// Closures: each function is created on demand for one connection or request, around its variables

const closures = {
  raw: () => openRaw(function (status, client) {
    if (status !== 0) return
    let matched = 0
    let read = 0
    let hasEnded = false
    const close = function () {
      if (hasEnded && client.writeQueueSize === 0) client.close()
    }
    client.onread = function (bytes) {
      if (bytes === undefined) {
        hasEnded = true
        return close()
      }
      const { bytesRead } = client
      for (const byte of readBytes(bytes, bytesRead - read)) {
        matched = emptyLine(matched, byte)
        if (matched === 4) {
          matched = 0
          writeRaw(client, function () { close() })
        }
      }
      read = bytesRead
    }
    client.readStart()
  }),

  net: () => open(net.createServer(function (socket) {
    let matched = 0
    socket.on('data', function (chunk) {
      for (const byte of chunk) {
        matched = emptyLine(matched, byte)
        if (matched === 4) {
          matched = 0
          pending.count++
          socket.write(ANSWER, 'latin1', function (error) {
            pending.count--
            if (error) socket.destroy()
          })
        }
      }
    })
    socket.on('error', function () {})
  })),

  http: () => open(http.createServer(function (request, response) {
    pending.count++
    response.sendDate = false
    response.writeHead(200, HEAD)
    response.on('finish', function () {
      pending.count--
      if (!request.complete) request.resume()
    })
    response.end(BODY)
  }))
}

const styles = { hoisted, closures }

/** @param {net.Server} server */
async function open (server) {
  server.keepAliveTimeout = 5_000 // same timeout as in the answer
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { port: server.address().port, close: () => once(server.close(), 'close') }
}

/**
 * Opens the server of a layer.
 * @param {string} layer
 * @param {string} style of its callbacks
 */
async function openServer (layer, style) {
  if (layer === 'raw') await findHandles()
  return styles[style][layer]()
}

module.exports = { ANSWER, openServer, pending, LAYERS: Object.keys(hoisted), STYLES: Object.keys(styles) }
