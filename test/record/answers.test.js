'use strict'

// Waits for an answer in a recording: whether the request had made the query, and the peer.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { recordsOf } = require('../helpers/records')
const { node, register, root } = require('../helpers/run')
const { longstack } = require('../helpers/span-files')

const PROGRAM = path.join(root, 'test', 'fixtures', 'record', 'answers.js')

/** @type {any[]} */
let records

test.before(async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-answers-'))
  const file = path.join(directory, 'app.rec')
  const { code, stderr } = await node(['-r', register, PROGRAM], { env: { LONGSTACK_RECORD: file } })
  if (code !== 0) throw new Error(stderr)
  const printed = await longstack(['spans', file])
  fs.rmSync(directory, { recursive: true, force: true })
  if (printed.code !== 0) throw new Error(printed.stderr)
  records = recordsOf(printed.stdout)
})

/**
 * Waits of a request, longest first.
 * @param {string} name
 * @param {string} [subsystem] that ended them
 * @returns {any[]}
 */
function waitsOf (name, subsystem = 'TCP') {
  const found = records.filter((record) => record.name === name && record.kind === 'SERVER')
  if (found.length !== 1) throw new Error(`${found.length} of ${name}`)
  /** @type {any[]} */
  const waits = found[0].attributes['longstack.waits']
  return waits.filter(({ until = '' }) => until.split(' ')[0] === subsystem)
}

test('waits for HTTP responses are marked, also on a kept-alive connection', (t) => {
  const waits = waitsOf('GET /twice')
  t.is(waits.reduce((count, { sent = 0 }) => count + sent, 0), 2, JSON.stringify(waits))
  for (const { until, sent } of waits) if (sent > 0) t.regex(until, /^TCP 127\.0\.0\.1:\d+$/)
})

test('a wait for an HTTP/2 response is at the place of its request', (t) => {
  const waits = waitsOf('GET /http2', 'HTTP2')
  t.true(waits.length > 0)
  for (const { at } of waits) t.regex(at, /^askUpstream /)
})

test('data on an accepted connection comes from the client', (t) => {
  const [wait] = waitsOf('GET /upgraded')
  t.regex(wait.until, /^TCP 127\.0\.0\.1:\d+$/)
  t.is(wait.sent, undefined)
})
