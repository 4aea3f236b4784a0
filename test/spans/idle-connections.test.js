'use strict'

// Connections that were idle when tracing was enabled.

const path = require('node:path')
const test = require('ava')
const { node, root } = require('../helpers/run')

test('an idle connection of fetch from before tracing is known once it is used', async (t) => {
  const { stdout, stderr } = await node([path.join(root, 'test', 'fixtures', 'idle-connections.js')])
  t.is(stderr, '')
  const spans = JSON.parse(stdout)
  for (const name of ['third', 'fourth']) {
    const { attributes } = spans.find((/** @type {any} */ span) => span.name === name)
    const [longest] = attributes['longstack.waits']
    t.regex(String(longest.until), /^TCP 127\.0\.0\.1:\d+$/, JSON.stringify(longest))
    t.is(longest.sent, 1)
    t.true(longest.ms > 30)
    t.regex(longest.at, /get \(.*idle-connections\.js/)
  }
})
