'use strict'

// What a collector of OTLP may answer: any status, any header, bodies that are broken, huge or slow, and
// connections that end at any byte. The sink never throws, counts each span as sent or as lost, and sends
// again as soon as the collector is well.

const http = require('node:http')
const zlib = require('node:zlib')
const { OtlpSink } = require('../lib/sinks/otlp')
const { expectHarmless } = require('./helpers/expectations')
const { check, fc } = require('./helpers/property')

const BATCH = 5
const SPANS = 512 // of a request: as many are sent at once
const TIMEOUT_MS = 400 // of the exporter for an answer
const MAX_SETTLE_MS = 120_000 // a busy machine
const HUGE_BYTES = 9 << 20
const TRICKLE_MS = 20
const LABEL_CHARS = 200

/**
 * @typedef {object} Answer
 * @property {Buffer} bytes
 * @property {number} cut bytes that are sent
 * @property {'keep' | 'end' | 'reset' | 'trickle'} then what becomes of the connection
 */

const headerText = fc.string({ maxLength: 40 }).map((text) => text.replace(/[^\x20-\x7e]/g, '?'))
const header = fc.oneof(
  fc.tuple(fc.constantFrom('Retry-After', 'Content-Encoding', 'Content-Type', 'Transfer-Encoding',
    'Connection', 'Upgrade', 'Location', 'Trailer', 'X-Odd'), headerText).map((pair) => pair.join(': ')),
  fc.constantFrom('Retry-After: 0', 'Retry-After: -1', 'Retry-After: NaN', `Retry-After: ${'9'.repeat(20)}`,
    'Retry-After: Wed, 21 Oct 2099 07:28:00 GMT', 'Content-Encoding: gzip', 'Content-Length: -1',
    'Content-Length: 99999999999999999999', 'Transfer-Encoding: chunked', 'Connection: close',
    'Connection: Upgrade\r\nUpgrade: x', `X-Long: ${'x'.repeat(20_000)}`, 'no colon', ': none'))
const body = fc.oneof(
  fc.constantFrom('{}', '', '{', '{"partialSuccess":{"rejectedSpans":{}}}',
    '{"partialSuccess":{"rejectedSpans":"3","errorMessage":"\x1b[2J"}}', '[]', 'null', '"__proto__"',
    '[['.repeat(10_000))
    .map((text) => Buffer.from(text)),
  fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
  fc.constant(zlib.gzipSync('{}')), fc.constant(zlib.gzipSync('{}').subarray(0, 12)),
  fc.constant(Buffer.alloc(HUGE_BYTES, 'x')))
const status = fc.oneof({ arbitrary: fc.constantFrom(200, 202, 204, 400, 429, 500, 503), weight: 4 },
  fc.constantFrom(100, 101, 103, 301, 304), fc.integer({ min: 100, max: 999 }))

/** @param {number} code @param {string[]} headers @param {Buffer} content */
function bytesOf (code, headers, content) {
  const lines = [`HTTP/1.1 ${code} Reason`, ...headers, `Content-Length: ${content.length}`, '', '']
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), content])
}

/** Names an answer in a finding. @param {Answer} answer @returns {Answer} */
function labelled (answer) {
  const { bytes, cut, then } = answer
  const text = JSON.stringify(bytes.toString('latin1', 0, LABEL_CHARS))
  const name = `${text} of ${bytes.length} bytes, cut at ${cut}, ${then}`
  return Object.assign(answer, { [fc.toStringMethod]: () => name })
}

/** An answer that a collector should give. @returns {fc.Arbitrary<Answer>} */
function clean () {
  return fc.constantFrom(200, 202, 400, 404).map((code) => {
    const bytes = bytesOf(code, ['Content-Type: application/json'], Buffer.from('{}'))
    return labelled({ bytes, cut: Infinity, then: 'keep' })
  })
}

/** @returns {fc.Arbitrary<Answer>} */
function odd () {
  const whole = fc.tuple(status, fc.array(header, { maxLength: 3 }), body)
    .map(([code, headers, content]) => bytesOf(code, headers, content))
  const noise = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))
  const bytes = fc.oneof({ arbitrary: whole, weight: 6 }, noise)
  const then = fc.constantFrom(/** @type {const} */ ('keep'), 'end', 'reset', 'trickle')
  const cut = fc.oneof(fc.constant(Infinity), fc.nat(400))
  return fc.record({ bytes, cut, then }).map(labelled)
}

/** @param {import('node:net').Socket} socket @param {Answer} answer */
function give (socket, { bytes, cut, then }) {
  const sent = bytes.subarray(0, Math.min(cut, bytes.length))
  if (then === 'trickle') return trickle(socket, sent)
  socket.write(sent, () => {
    if (then === 'end') socket.end()
    else if (then === 'reset') socket.resetAndDestroy()
  })
}

/** Sends byte after byte, without an end. @param {import('node:net').Socket} socket @param {Buffer} bytes */
function trickle (socket, bytes) {
  let index = 0
  const timer = setInterval(() => {
    socket.write(index < bytes.length ? bytes.subarray(index, ++index) : 'x')
  }, TRICKLE_MS)
  socket.once('close', () => clearInterval(timer))
}

class Collector {
  /** for the next requests; then all is well @type {Answer[]} */
  answers = []
  /** requests that came whole */
  received = 0
  #server = http.createServer({ requestTimeout: 0 }, (request) => {
    request.resume().on('error', () => {}).on('end', () => {
      this.received++
      give(request.socket, this.answers.shift() ?? {
        bytes: bytesOf(200, [], Buffer.from('{}')), cut: Infinity, then: 'keep'
      })
    })
  })

  /** @returns {Promise<string>} its address */
  listen () {
    this.#server.on('connection', (socket) => { socket.on('error', () => {}) }).on('clientError', () => {})
    return new Promise((resolve) => this.#server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (this.#server.address())
      resolve(`http://127.0.0.1:${port}`)
    }))
  }
}

/** @param {number} index */
const record = (index) => ({
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: (index + 1).toString(16).padStart(16, '0'),
  name: 'GET /',
  kind: 'SERVER',
  startTimeUnixNano: '1763685600000000000',
  endTimeUnixNano: '1763685600012345678',
  status: { code: 'UNSET' },
  attributes: {},
  resource: {}
})

/** Writes as many spans as go into some requests. @param {OtlpSink} sink @param {number} requests */
async function send (sink, requests) {
  const before = sink.stats()
  const posted = before.written + before.dropped + requests * SPANS
  for (let i = 0; i < requests * SPANS; i++) sink.write(record(i))
  const end = performance.now() + MAX_SETTLE_MS
  for (let now = sink.stats(); ; now = sink.stats()) {
    if (now.fault !== undefined) expectHarmless('a fault', now.fault)
    const sum = now.written + now.dropped + now.waiting
    if (sum !== posted) throw new Error(`${posted} spans were written, ${JSON.stringify(now)}`)
    if (now.waiting === 0) {
      return { written: now.written - before.written, dropped: now.dropped - before.dropped }
    }
    if (performance.now() > end) throw new Error(`spans wait for ever: ${JSON.stringify(now)}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** @param {OtlpSink} sink @param {Collector} collector @param {Answer[]} answers */
async function play (sink, collector, answers) {
  collector.answers = [...answers]
  const received = collector.received
  const { written } = await send(sink, answers.length)
  if (written > (collector.received - received) * SPANS) throw new Error(`${written} spans count as sent`)
  collector.answers = []
  // Bytes behind an answer spoil the request that its connection serves next.
  for (const end = performance.now() + MAX_SETTLE_MS; (await send(sink, 1)).dropped > 0;) {
    const { fault } = sink.stats()
    if (performance.now() > end) throw new Error(`spans are lost to a collector that is well: ${fault}`)
  }
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'collector',
  async run (settings) {
    process.env.OTEL_EXPORTER_OTLP_TIMEOUT = String(TIMEOUT_MS)
    const collector = new Collector()
    const sink = new OtlpSink({ to: await collector.listen() }, (code, sentence) => {
      expectHarmless('a warning', sentence)
    })
    const answer = fc.oneof({ arbitrary: odd(), weight: 4 }, clean())
    const answers = fc.array(answer, { minLength: 1, maxLength: 6 })
    await send(sink, 1)
    return check(fc.asyncProperty(answers, (list) => play(sink, collector, list)), settings, BATCH)
  }
}
