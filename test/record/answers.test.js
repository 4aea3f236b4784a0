'use strict'

// What a recording tells of waits for an answer: whether the request had asked, and the other end.

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

/** Waits of a request for a connection, longest first. @param {string} name @returns {any[]} */
function waitsOf (name) {
  const found = records.filter((record) => record.name === name && record.kind === 'SERVER')
  if (found.length !== 1) throw new Error(`${found.length} of ${name}`)
  return found[0].attributes['longstack.waits'].filter((/** @type {any} */ { until = '' }) => until.startsWith('TCP'))
}

test('waits for answers over HTTP say that they were, also on a connection that was kept', (t) => {
  const waits = waitsOf('GET /twice')
  t.is(waits.reduce((count, { sent = 0 }) => count + sent, 0), 2, JSON.stringify(waits))
  for (const { until, sent } of waits) if (sent > 0) t.regex(until, /^TCP 127\.0\.0\.1:\d+$/)
})

test('data on a connection that the server accepted comes from the other end', (t) => {
  const [wait] = waitsOf('GET /upgraded')
  t.regex(wait.until, /^TCP 127\.0\.0\.1:\d+$/)
  t.is(wait.sent, undefined)
})
