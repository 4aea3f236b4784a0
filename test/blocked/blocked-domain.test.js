'use strict'

// longstack's native code calls from the event loop on an object of its own, never on one of the program's,
// because node:domain and AsyncLocalStorage use the properties of that object.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, register } = require('../helpers/run')
const { watched } = require('../helpers/watchdog')

const program = path.join(__dirname, '..', 'fixtures', 'blocked', 'domain-global.js')

watched(test, 'a global `domain` is not entered when a report is made or spans are written', async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  const file = path.join(directory, 'spans.ndjson')
  const { stdout, stderr, code } = await node(['-r', register, program], {
    env: { LONGSTACK_CAPTURE: 'native', LONGSTACK_SPANS: file, LONGSTACK_BLOCKED: '50' }
  })
  t.is(stdout, 'done\n', stderr)
  t.is(code, 0)
  t.regex(stderr, /^longstack: the event loop was blocked for \d/m)
  t.true(fs.readFileSync(file, 'utf8').includes('"name":"GET /"'))
})
