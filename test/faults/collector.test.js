'use strict'

// A misbehaving collector: the program behaves as without longstack, ends (it is killed after two minutes),
// takes no more memory, and spans that do not arrive are counted.

const { once } = require('node:events')
const net = require('node:net')
const path = require('node:path')
const test = require('ava')
const { OtlpSender } = require('../../lib/sinks/otlp')
const { compare, temporary, ways } = require('../helpers/faults')
const { root } = require('../helpers/run')

const HEADERS = 'content-type: application/json\r\nconnection: close\r\n'
const CHUNK = Buffer.alloc(1 << 16, 'x')
const MAX_ANSWER = 1 << 30 // bytes; a collector without bounds sends until nobody reads
const MAX_GROWTH = 300 << 20 // bytes, of the program's memory with the thread that sends

/**
 * What a collector does with a connection, once it has got a request.
 * @type {Record<string, (socket: net.Socket) => void>}
 */
const misdeeds = {
  'never answers': () => {},
  'answers byte by byte' (socket) {
    socket.write(`HTTP/1.1 200 OK\r\n${HEADERS}content-length: 1000\r\n\r\n`)
    setInterval(() => socket.write('x'), 50).unref()
  },
  'resets the connection': (socket) => { socket.resetAndDestroy() },
  'closes the connection': (socket) => { socket.destroy() },
  'is no HTTP server': (socket) => { socket.end('220 mail.example.com ESMTP\r\n') },
  'asks for patience (429)': (socket) => { socket.end(`HTTP/1.1 429 Too Many Requests\r\n${HEADERS}retry-after: 3600\r\ncontent-length: 0\r\n\r\n`) },
  'is overloaded (503)': (socket) => { socket.end(`HTTP/1.1 503 Service Unavailable\r\n${HEADERS}retry-after: 1\r\ncontent-length: 0\r\n\r\n`) },
  'redirects to itself': (socket) => { socket.end(`HTTP/1.1 307 Temporary Redirect\r\n${HEADERS}location: /v1/traces\r\ncontent-length: 0\r\n\r\n`) },
  'refuses (401)': (socket) => { socket.end(`HTTP/1.1 401 Unauthorized\r\n${HEADERS}content-length: 0\r\n\r\n`) },
  'answers without end' (socket) {
    socket.write(`HTTP/1.1 200 OK\r\n${HEADERS}\r\n`)
    let sent = 0
    const send = () => {
      while (sent < MAX_ANSWER) {
        sent += CHUNK.length
        if (!socket.write(CHUNK)) return
      }
      socket.end()
    }
    socket.on('drain', send)
    send()
  }
}

/** @param {import('ava').ExecutionContext} t @param {(socket: net.Socket) => void} misdeed */
async function listen (t, misdeed) {
  /** @type {Set<net.Socket>} */
  const sockets = new Set()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.once('data', () => misdeed(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return /** @type {net.AddressInfo} */ (server.address()).port
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} spans
 * @param {import('../helpers/faults').Way} way
 */
async function send (t, spans, way) {
  const directory = temporary(t)
  // Long enough for the thread to send; memory is that of the whole process.
  const env = {
    REQUESTS: '24',
    THREADS: '0',
    AFTER: 'await wait(2500); console.log("grown", process.memoryUsage.rss() > Number(process.env.MAX))',
    MAX: String(MAX_GROWTH)
  }
  const { traced, lines } = await compare(t, { directory, spans, env }, way)
  t.is(traced.stats.fault, undefined)
  const { ended, written, waiting, dropped } = traced.stats.spans
  t.deepEqual([ended, written + waiting + dropped], [48, 48], JSON.stringify(traced.stats.spans))
  return { lines, spans: traced.stats.spans }
}

let turn = 0

for (const [how, misdeed] of Object.entries(misdeeds)) {
  const chosen = [ways[turn++ % ways.length]] // what fails does not depend on the engine
  test(`a collector that ${how}`, async (t) => {
    for (const way of chosen) {
      const port = await listen(t, misdeed)
      const { lines, spans } = await send(t, `http://127.0.0.1:${port}`, way)
      if (how === 'answers without end') continue // it took them
      t.is(spans.written, 0)
      t.true(lines.length <= 1, String(lines)) // what waits at the end is told of by nobody
      for (const line of lines) t.regex(line, /^longstack: spans do not reach http:\/\/127\.0\.0\.1:\d+\/v1\/traces: /)
    }
  })
}

for (const [how, url] of Object.entries({
  'that no name server knows': 'http://collector.invalid:4318',
  'where nobody listens': 'http://127.0.0.1:9',
  'that needs no TLS, but gets it': 'https://127.0.0.1:PORT'
})) {
  test(`a collector ${how}`, async (t) => {
    const port = await listen(t, misdeeds['is no HTTP server'])
    const { lines, spans } = await send(t, url.replace('PORT', String(port)), ways[0])
    t.is(spans.written, 0)
    t.is(lines.length, 1)
  })
}

test('an endless response is cut off if the exporter would buffer it', async (t) => {
  const port = await listen(t, misdeeds['answers without end'])
  const exporter = path.join(root, 'test', 'fixtures', 'faults', 'keeping-exporter.js')
  const sender = new OtlpSender(`http://127.0.0.1:${port}`, exporter, () => {})
  sender.post('{"startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":{}}')
  while (sender.count('LOST') === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  const faults = sender.readNews().map(({ fault }) => fault)
  t.is(faults[0], 'its answer is too long')
  const kept = Number(/^kept (\d+) bytes$/.exec(String(faults[1]))?.[1])
  t.true(kept > 1 << 20 && kept < 32 << 20, String(faults))
  sender.send({ close: true })
})

test('the exporter of these tests is installed', (t) => {
  t.notThrows(() => require.resolve('@opentelemetry/exporter-trace-otlp-http', { paths: [path.join(root, 'lib')] }))
})
