'use strict'

// Prints the answers of a server whose transform removes a header: for each request in one piece, cut in two
// at many places, and byte by byte.

const http = require('node:http')
const net = require('node:net')
const trace = require('../../..')
const { removeCustomHeader } = require('./remover')

const CUT_STEP = 5 // bytes between cuts

/**
 * Builds the head of a request.
 * @param {string} line
 * @param {...string} headers
 */
const head = (line, ...headers) => `${line} HTTP/1.1\r\n${['Host: example', ...headers].join('\r\n')}\r\n\r\n`

const CLOSE = 'Connection: close'
const body = 'a body:\r\n\r\ncustomHeader: x\r\n\r\n'
const chunkSize = `${body.length.toString(16)};customHeader=x`
const chunks = [chunkSize, body, '13', 'customHeader: split', '0', 'after: kept', '', '']
const simple = head('GET /plain', 'customHeader: secret', 'Other: kept', CLOSE)
const pipelined = head('GET /1', 'customHeader: 1') +
  head('POST /2', 'Content-Length: 15', 'customHeader: 2') + 'customHeader: 2' + simple

/** isHeadOnly: cut only within the head; isWhole: never cut; endsInput: the client ends its side. */
const requests = [
  { name: 'a header', request: simple },
  { name: 'in capitals', request: head('GET /capitals', 'CUSTOMHEADER:x', CLOSE) },
  {
    name: 'as a part of other headers',
    request: head('GET /names', 'customHeaders: kept', 'x-customHeader: kept', 'Other: customHeader: kept',
      CLOSE)
  },
  {
    name: 'in a body of known length',
    request: head('POST /length', 'customHeader: x', `Content-Length: ${body.length}`, CLOSE) + body
  },
  {
    name: 'in a body in chunks',
    request: head('POST /chunks', 'customHeader: x', 'Transfer-Encoding: chunked', 'Trailer: after', CLOSE) +
      chunks.join('\r\n')
  },
  { name: 'in three requests at once', request: pipelined },
  {
    name: 'before another protocol, and after',
    request: head('GET /echo', 'customHeader: x', 'Connection: Upgrade', 'Upgrade: echo') +
      'customHeader: passes\r\n',
    isHeadOnly: true,
    endsInput: true
  },
  { name: 'in what is no request', request: 'GET\r\ncustomHeader: x\r\n\r\n', isWhole: true }
]

/** Echoes the received request as JSON. */
function createServer () {
  const server = http.createServer(async (request, response) => {
    let text = ''
    try {
      for await (const chunk of request) text += chunk
    } catch {
      return // the connection is closed
    }
    const { method, url, headers, trailers } = request
    response.sendDate = false
    response.setHeader('Content-Type', 'application/json')
    response.end(`${JSON.stringify({ method, url, headers, body: text, trailers })}\n`)
  })
  server.on('upgrade', (request, socket, firstBytes) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
    socket.write(`${JSON.stringify(request.headers)}\n${firstBytes}`)
    socket.on('data', (/** @type {Buffer} */ data) => socket.write(data))
    socket.on('end', () => socket.end())
  })
  return server
}

/**
 * Sends parts of a message, each after the server received the previous one.
 * @param {number} port
 * @param {string[]} parts
 * @param {{ received?: () => number, endsInput?: boolean }} [options] received: bytes received by the server
 * @returns {Promise<string>} everything received until the server closes the connection
 */
async function send (port, parts, { received = () => Infinity, endsInput = false } = {}) {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  let answer = ''
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.on('data', (data) => { answer += data.toString('latin1') })
  socket.on('end', () => socket.end())
  socket.on('error', () => {})
  for (const [index, part] of parts.entries()) {
    const expected = received() + part.length
    socket.write(part)
    if (index === parts.length - 1) break
    while (!socket.destroyed && received() < expected) await new Promise(setImmediate)
  }
  if (endsInput) socket.end()
  await closed
  return answer
}

async function answers () {
  const server = createServer()
  let count = 0
  trace.intercept(server, (chunk) => { count += chunk.length })
  trace.intercept(server, removeCustomHeader)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  const received = () => count
  for (const [index, { name, request, isHeadOnly, isWhole, endsInput }] of requests.entries()) {
    const answer = await send(port, [request], { endsInput })
    process.stdout.write(`## ${name}\n${answer}`)
    if (isWhole) continue
    const last = isHeadOnly ? request.indexOf('\r\n\r\n') : request.length - 1
    let cuts = 0
    let equal = 0
    for (let i = 1 + index % CUT_STEP; i <= last; i += CUT_STEP) {
      cuts++
      const again = await send(port, [request.slice(0, i), request.slice(i)], { received, endsInput })
      if (again === answer) equal++
    }
    const slow = await send(port, [...request.slice(0, last), request.slice(last)], { received, endsInput })
    const outcome = slow === answer ? 'equal' : slow
    process.stdout.write(`## cut at ${cuts} places: ${equal} answers equal; byte by byte: ${outcome}\n`)
  }
  server.close()
}

module.exports = { answers }
