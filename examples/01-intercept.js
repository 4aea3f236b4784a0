'use strict'

// Intercepting the HTTP data stream: between the socket and the HTTP parser a transform takes the request header `customHeader` away,
// and no handler, no module and no field of the request's socket can tell. The header may be cut at any byte; bodies are not touched.
//
//     node examples/01-intercept.js              the story
//     node examples/01-intercept.js --answers    what the server sends, byte for byte, and nothing else
//     node examples/01-intercept.js --json       what the interception costs, measured; --quick: roughly
//
// The article: "Intercepting the HTTP Data Stream" (Trevor Norris, 2014). It takes Node's 'data' listener out of the socket's
// private fields; today Node's parser reads past the socket, so that trace.intercept has to do a little more.

const { execFileSync } = require('node:child_process')
const http = require('node:http')
const net = require('node:net')
const trace = require('longstack')
const { serve, priceOf, end, paired, digits, table, register, cleanEnvironment } = require('./common/measure')

const NAME = 'customheader'
const LONGEST = 16 * 1024 // bytes of a line; Node's parser refuses a longer head
const LF = 10

/** Follows the messages of one connection and leaves the header out. What is part of no head goes on as it is. */
class Remover {
  held = Buffer.alloc(0) // of a line that is not whole yet
  /** what comes next @type {'start' | 'header' | 'body' | 'size' | 'data' | 'data end' | 'trailer' | 'tunnel'} */
  state = 'start'
  left = 0 // bytes of the body, or of its chunk
  removing = false // the header was left out: so is its continuation
  message = { size: 0, chunked: false, tunnel: false, upgrade: false }

  /** @param {net.Socket} socket */
  constructor (socket) {
    this.socket = socket
  }

  /** @param {Buffer} chunk @returns {Buffer} */
  push (chunk) {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk])
    const kept = []
    let at = 0
    while (at < bytes.length) {
      const next = this.nextEnd(bytes, at)
      if (next === 0) break // a line without an end
      const part = bytes.subarray(at, next)
      if (this.takes(part)) kept.push(part)
      at = next
    }
    this.held = bytes.subarray(at)
    if (this.held.length > LONGEST) this.state = 'tunnel' // Node will refuse it
    return Buffer.concat(kept)
  }

  /** @returns {Buffer} what was held back */
  rest () {
    const { held } = this
    this.held = Buffer.alloc(0)
    return held
  }

  /** Where the next line or part of a body ends; 0 where that is not known yet. @param {Buffer} bytes @param {number} at */
  nextEnd (bytes, at) {
    if (this.state === 'tunnel') return bytes.length
    if (this.state === 'body' || this.state === 'data') return Math.min(bytes.length, at + this.left)
    return bytes.indexOf(LF, at) + 1
  }

  /** @param {Buffer} part @returns {boolean} does it go on? */
  takes (part) {
    switch (this.state) {
      case 'start': this.start(part.toString('latin1').trim()); return true
      case 'header': return this.header(part.toString('latin1'))
      case 'size': this.size(Number.parseInt(part.toString('latin1'), 16)); return true
      case 'data end': this.state = 'size'; return true
      case 'trailer': if (part.toString('latin1').trim() === '') this.state = 'start'; return true
      case 'tunnel': return true
    }
    this.left -= part.length
    if (this.left === 0) this.state = this.state === 'body' ? 'start' : 'data end'
    return true
  }

  /** @param {string} line */
  start (line) {
    if (line === '') return // between two messages
    this.message = { size: 0, chunked: false, tunnel: line.startsWith('CONNECT '), upgrade: false }
    this.removing = false
    this.state = 'header'
  }

  /** @param {string} line */
  header (line) {
    if (line.trim() === '') {
      this.head()
      return true
    }
    if (/^[ \t]/.test(line)) return !this.removing
    const [, name, value] = /^([^:]*):?(.*)/s.exec(line.toLowerCase().trim()) ?? []
    this.removing = name.trim() === NAME
    if (name === 'content-length') this.message.size = Number.parseInt(value, 10) || 0
    if (name === 'transfer-encoding') this.message.chunked = value.trim().endsWith('chunked')
    if (name === 'upgrade') this.message.upgrade = true
    return !this.removing
  }

  /** The head is over. */
  head () {
    const { size, chunked, tunnel, upgrade } = this.message
    const { server } = /** @type {any} */ (this.socket)
    this.left = size
    if (tunnel || (upgrade && server.listenerCount('upgrade') > 0)) this.state = 'tunnel'
    else if (chunked) this.state = 'size'
    else this.state = size > 0 ? 'body' : 'start'
  }

  /** @param {number} size of a chunk */
  size (size) {
    this.left = size || 0
    this.state = this.left > 0 ? 'data' : 'trailer'
  }
}

/** @type {WeakMap<net.Socket, Remover>} */
const removers = new WeakMap()

/** The transform. @param {Buffer} chunk an empty one at the end @param {net.Socket} socket */
function removeCustomHeader (chunk, socket) {
  let remover = removers.get(socket)
  if (remover === undefined) removers.set(socket, remover = new Remover(socket))
  return chunk.length === 0 ? remover.rest() : remover.push(chunk)
}

/** Answers with what it got. */
function makeServer () {
  const server = http.createServer(async (request, response) => {
    let body = ''
    try {
      for await (const part of request) body += part
    } catch {
      return // the connection is gone
    }
    const { method, url, headers, trailers } = request
    response.sendDate = false
    response.setHeader('Content-Type', 'application/json')
    response.end(`${JSON.stringify({ method, url, headers, body, trailers })}\n`)
  })
  server.on('upgrade', (request, socket, head) => {
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n${JSON.stringify(request.headers)}\n${head}`)
    socket.on('data', (/** @type {Buffer} */ data) => socket.write(data))
    socket.on('end', () => socket.end())
  })
  return server
}

/** @param {http.Server} server @returns {Promise<number>} its port */
function listen (server) {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(/** @type {net.AddressInfo} */ (server.address()).port)))
}

/**
 * Sends parts of bytes, each once the server has had the one before.
 * @param {number} port
 * @param {string[]} parts
 * @param {{ arrived?: () => number, last?: boolean }} [given] how many bytes the server has had so far; does the client say that it is done?
 * @returns {Promise<string>} all that comes back until the server closes
 */
async function send (port, parts, { arrived = () => Infinity, last = false } = {}) {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  let got = ''
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.on('data', (data) => { got += data.toString('latin1') })
  socket.on('end', () => socket.end())
  socket.on('error', () => {})
  for (const part of parts) {
    const before = arrived()
    socket.write(part)
    while (part !== parts.at(-1) && !socket.destroyed && arrived() < before + part.length) await new Promise(setImmediate)
  }
  if (last) socket.end()
  await closed
  return got
}

const CLOSE = 'Connection: close\r\n'
const plain = `GET /plain HTTP/1.1\r\nHost: example\r\ncustomHeader: secret\r\nOther: kept\r\n${CLOSE}\r\n`
const body = 'a body:\r\n\r\ncustomHeader: x\r\n\r\n'
const chunks = `${body.length.toString(16)};customHeader=x\r\n${body}\r\n13\r\ncustomHeader: split\r\n0\r\nafter: kept\r\n\r\n`

/** @type {Array<{ what: string, request: string, head?: boolean, whole?: boolean, last?: boolean }>} head: cut in the head only */
const requests = [
  { what: 'a header', request: plain },
  { what: 'in capitals', request: `GET /capitals HTTP/1.1\r\nHost: example\r\nCUSTOMHEADER:x\r\n${CLOSE}\r\n` },
  { what: 'as a part of other headers', request: `GET /names HTTP/1.1\r\nHost: example\r\ncustomHeaders: kept\r\nx-customHeader: kept\r\nOther: customHeader: kept\r\n${CLOSE}\r\n` },
  { what: 'in a body of known length', request: `POST /length HTTP/1.1\r\nHost: example\r\ncustomHeader: x\r\nContent-Length: ${body.length}\r\n${CLOSE}\r\n${body}` },
  { what: 'in a body in chunks', request: `POST /chunks HTTP/1.1\r\nHost: example\r\ncustomHeader: x\r\nTransfer-Encoding: chunked\r\nTrailer: after\r\n${CLOSE}\r\n${chunks}` },
  {
    what: 'in three requests at once',
    request: `GET /1 HTTP/1.1\r\nHost: example\r\ncustomHeader: 1\r\n\r\nPOST /2 HTTP/1.1\r\nHost: example\r\nContent-Length: 15\r\ncustomHeader: 2\r\n\r\ncustomHeader: 2${plain}`
  },
  {
    what: 'before another protocol, and after',
    request: 'GET /echo HTTP/1.1\r\nHost: example\r\ncustomHeader: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\ncustomHeader: passes\r\n',
    head: true,
    last: true
  },
  { what: 'in what is no request', request: 'GET\r\ncustomHeader: x\r\n\r\n', whole: true }
]

/** The bytes of all answers: each request in one piece, cut at each byte, and byte by byte. */
async function answers () {
  const server = makeServer()
  let count = 0
  trace.intercept(server, (chunk) => { count += chunk.length })
  trace.intercept(server, removeCustomHeader)
  const port = await listen(server)
  for (const { what, request, head, whole, last } of requests) {
    const answer = await send(port, [request], { last })
    process.stdout.write(`## ${what}\n${answer}`)
    if (whole) continue
    const cuts = head ? request.indexOf('\r\n\r\n') : request.length - 1
    let same = 0
    for (let i = 1; i <= cuts; i++) if (await send(port, [request.slice(0, i), request.slice(i)], { arrived: () => count, last }) === answer) same++
    const bytes = [...request.slice(0, cuts), request.slice(cuts)]
    const slow = await send(port, bytes, { arrived: () => count, last })
    process.stdout.write(`## the same, cut at each of ${cuts} bytes: ${same} answers equal; byte by byte: ${slow === answer ? 'equal' : slow}\n`)
  }
  server.close()
}

/** What a traced process shows. */
async function story () {
  const server = makeServer()
  const port = await listen(server)
  const show = async () => console.log(`  ${(await send(port, [plain])).split('\n').at(-2)}`)
  console.log('A client sends')
  for (const line of plain.trim().split('\r\n')) console.log(`  ${line}`)
  console.log('and without a transform the handler gets')
  await show()
  const remove = trace.intercept(server, removeCustomHeader)
  console.log('With trace.intercept(server, removeCustomHeader) it gets')
  await show()
  console.log('It is gone before the parser: not in the headers, not in rawHeaders, and bodies that look like it pass:')
  const posted = JSON.parse((await send(port, [requests[4].request])).split('\n').at(-2) ?? '')
  console.log(`  headers ${JSON.stringify(posted.headers)}\n  body    ${JSON.stringify(posted.body)}\n  trailers ${JSON.stringify(posted.trailers)}\n`)

  console.log('The socket looks as if nobody stood there; trace.why(request.socket) knows, and so does the stack of an error in the handler:\n')
  server.prependOnceListener('request', function handle (request) {
    console.log(`${trace.why(request.socket)}\n`)
    console.log(new Error('in the handler').stack)
  })
  await send(port, [plain])
  console.log('\nAn error made in a transform has its own frames, and the chain of the connection:\n')
  const undo = trace.intercept(server, function look (chunk) {
    if (chunk.length > 0) console.log(new Error('in a transform').stack)
  })
  await send(port, [plain])
  undo()

  console.log('\nA transform that throws harms its own connection alone:')
  server.on('clientError', (error) => console.log(`  'clientError' gets ${error.code}: ${error.message}`))
  trace.on('warning', (warning) => console.log(`  trace.on('warning') gets ${warning.code}`))
  const mend = trace.intercept(server, function faulty (chunk) {
    if (chunk.includes('/plain')) throw new RangeError('I do not know this header')
  })
  console.log(`  the client of this connection gets ${JSON.stringify(await send(port, [plain]))}`)
  console.log(`  the next one, for another path, ${(await send(port, [requests[1].request])).split('\r\n', 1)[0]}`)
  mend()
  remove()
  console.log('With removeCustomHeader and faulty taken away again, the handler gets')
  await show()
  server.close()
}

/** A server to be measured. @param {string} which */
function measured (which) {
  const server = http.createServer((request, response) => response.end('hello'))
  server.keepAliveTimeout = 120_000
  if (which === 'viewer') trace.intercept(server, function viewer () {})
  if (which === 'removing') trace.intercept(server, removeCustomHeader)
  serve(server)
}

const price = async (/** @type {string} */ which, /** @type {boolean} */ traced, /** @type {number} */ count) =>
  (await priceOf(__filename, ['serve', which], { traced, requests: count, connections: 16 })).cpu

/** @param {number} count of requests @param {boolean} quick */
async function figures (count, quick) {
  const cost = await paired((which, traced) => price(which === 'a' ? 'nothing' : 'viewer', traced, count), quick)
  const removing = { off: await price('removing', false, count), on: await price('removing', true, count) }
  await end()
  const claim = {
    id: 'interception',
    article: 'Intercepting the HTTP Data Stream (Trevor Norris, 2014)',
    said: 'Between the socket and the HTTP parser a program can see and change the data without any module noticing; what that costs is not said.',
    saidRatio: null,
    a: 'no transform',
    b: 'a transform that only looks',
    unit: 'CPU µs a request',
    ...cost,
    means: 'what it costs that all bytes of a small request pass a transform, over letting the parser read from the handle',
    why: {
      'as said': 'Without a transform Node\'s parser takes the bytes in C++, past the socket. With one they become a Buffer and an event of the stream, two functions ' +
        'run, and the parser is called from JavaScript: a fixed price for each chunk, whatever its size.',
      'no difference': 'The price of a chunk is small against that of a request, and lies within what two runs of the same server differ by.',
      'other way round': 'The price of a chunk is small against what two runs of the same server differ by; there is no reason why a transform should save anything.'
    }
  }
  const rows = [['off', cost.off, removing.off], ['on', cost.on, removing.on]].map(([state, { a, b }, c]) => [`tracing ${state}`, digits(a), digits(b), digits(c)])
  const tables = [{ title: 'CPU µs a request of a hello server', heading: ['', 'no transform', 'only looks', 'removes the header'], rows }]
  return { claims: [claim], tables }
}

async function tell () {
  console.log('Between a server\'s sockets and Node\'s HTTP parser a transform sees every chunk first, and may change it.\n')
  process.stdout.write(execFileSync(process.execPath, ['-r', register, __filename, 'story'], { env: cleanEnvironment(), encoding: 'utf8' }))
  console.log('\nWhat it costs, measured now:\n')
  const { claims: [{ off, on }], tables: [{ title, heading, rows }] } = await figures(1_500, true)
  console.log(`${title}:\n\n${table(heading, rows)}\n\nOnly to look: ${(off.b / off.a).toFixed(2)} × no transform with tracing off, ${(on.b / on.a).toFixed(2)} × with it on.
In so short a run 15 % of a figure is noise, on a busy machine up to half. Any transform has a price for each chunk, as the parser\ncannot read from the handle in C++ then.`)
}

const [mode, ...args] = process.argv.slice(2)
if (mode === 'serve') measured(args[0])
else if (mode === 'story') story()
else if (mode === '--answers') answers()
else if (mode === '--json') figures(args.includes('--quick') ? 300 : 5_000, args.includes('--quick')).then((result) => console.log(JSON.stringify(result, undefined, 2)))
else tell()
