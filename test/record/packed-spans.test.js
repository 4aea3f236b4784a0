'use strict'

// Spans of requests that a recording stores as numbers: no information is lost.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { MAX_MICROS, PackedSpans, attributesOf, unpack } = require('../../lib/encoding/packed-spans')
const { recordsOf } = require('../helpers/records')
const { node, register } = require('../helpers/run')
const { longstack } = require('../helpers/span-files')

const PATHS = 2500 // more than are remembered

const program = `
  const http = require('node:http')
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 })
  const sent = []
  const server = http.createServer((request, response) => {
    response.statusCode = 200 + Number(new URL(request.url, 'http://a').searchParams.get('more') ?? 0)
    response.end()
  })
  server.listen(0, '127.0.0.1', async () => {
    const { port } = server.address()
    const get = (path, headers) => new Promise((resolve) => {
      const request = http.get({ agent, port, path, headers, host: '127.0.0.1' }, (response) => {
        sent.push({ path: path.replace(/\\?.*/, ''), port: request.socket.localPort, status: response.statusCode, ...headers })
        response.resume().on('end', resolve)
      })
    })
    for (let i = 0; i < ${PATHS}; i += 4) {
      await Promise.all([0, 1, 2, 3].map((k) => get('/' + i + 'x' + k)))
    }
    const parent = '1f'.repeat(16) + '-' + 'a0'.repeat(8)
    for (const more of [0, 4, 99, 299, 300]) await get('/again?more=' + more, { traceparent: '00-' + parent + '-01' })
    await get('/unsampled', { traceparent: '00-' + parent + '-00' })
    await get('/0x0')
    agent.destroy()
    server.close()
    console.log(JSON.stringify(sent))
  })`

test('a span has its own path, status, peer and parent, however many spans there are', async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-packed-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  const file = path.join(directory, 'app.rec')
  const { code, stdout, stderr } = await node(['-r', register, '-e', program], { env: { LONGSTACK_RECORD: file } })
  t.is(code, 0, stderr)
  const sent = JSON.parse(stdout)
  const served = recordsOf((await longstack(['spans', file])).stdout).filter(({ kind }) => kind === 'SERVER')
  const textOf = (/** @type {unknown[]} */ values) => values.join(' ')
  t.deepEqual(
    served.map(({ attributes: own, traceId, parentSpanId, status }) => textOf([
      own['url.path'], own['network.peer.port'], own['http.response.status_code'], status.code,
      parentSpanId === undefined ? '' : `${traceId}-${parentSpanId}`
    ])).sort(),
    sent.map((/** @type {any} */ { path, port, status, traceparent }) => textOf([
      path, port, status, status >= 500 ? 'ERROR' : 'UNSET', traceparent?.slice(3, -3) ?? ''
    ])).sort()
  )
  t.is(new Set(served.map(({ spanId }) => spanId)).size, sent.length)
})

test('packed spans are unpacked unchanged', (t) => {
  const packed = new PackedSpans()
  const spans = [
    { seq: 1, start: 0.25, parentSpanId: undefined, queued: 0, queuedMax: 0, ids: '01'.repeat(24) },
    { seq: 2 ** 31 - 1, start: 1e9 + 0.5, parentSpanId: '00000000ffffffff', queued: 7, queuedMax: 9, ids: 'ef'.repeat(24) }
  ]
  const written = () => {
    spans.forEach((span, i) => packed.add(/** @type {any} */ ({
      ...span,
      copyIds (/** @type {Int32Array} */ words, /** @type {Buffer} */ bytes, /** @type {number} */ index) {
        bytes.write(span.ids, 4 * index, 'hex')
      }
    }), i + 1, i, MAX_MICROS - i))
    return packed.take()
  }
  const expected = spans.map(({ seq, ids, ...rest }, i) => ({
    ...rest,
    number: seq,
    form: i + 1,
    peer: i,
    duration: MAX_MICROS - i,
    traceId: ids.slice(16),
    spanId: ids.slice(32)
  }))
  const text = written()
  t.deepEqual(unpack(text), expected)
  t.deepEqual(unpack(written()), expected, 'they are written over')
  t.deepEqual(unpack(text.slice(0, -4)), expected.slice(0, 1), 'a text that is cut')
})

test('attributes of a request keep their order', (t) => {
  const peer = { peer: '::1', peerPort: 5 }
  const all = { path: '/', peer, queued: 1500, queuedMax: 2500, statusCode: 200, route: '/:id' }
  t.deepEqual(Object.entries(attributesOf(all)), [
    ['url.path', '/'], ['network.peer.address', '::1'], ['network.peer.port', 5], ['longstack.queued_ms', 1.5],
    ['longstack.queued_max_ms', 2.5], ['http.response.status_code', 200], ['http.route', '/:id']
  ])
  t.deepEqual(attributesOf({ path: undefined }), {})
})
