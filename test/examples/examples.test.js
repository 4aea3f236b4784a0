'use strict'

// Every example runs by itself and answers with real output.

const path = require('node:path')
const test = require('ava')
const { node, root, register } = require('../helpers/run')

const run = (name, preload = true, env = {}) => node([...(preload ? ['-r', register] : []), path.join(root, 'examples', `${name}.js`)], { env })

test('start shows a refused connection and why a live one exists, in colour where wanted', async (t) => {
  const { stdout, stderr, code } = await run('start')
  t.is(stderr, '')
  t.is(code, 0)
  t.regex(stdout, /Error: connect ECONNREFUSED 127\.0\.0\.1:1\n {4}at TCPConnectWrap.*\n {2}── net\.connect\(127\.0\.0\.1:1\) · TCPCONNECTWRAP · \d+ ms earlier ──\n {4}at openPool/)
  t.regex(stdout, /── setTimeout\(100\) · Timeout/)
  t.regex(stdout, /TCP connection, client to 127[^]*opened by\n {2}── http\.get[^]*loadOrders[^]*refresh[^]*used now by GET http:\/\/127\.0\.0\.1:\d+\/orders/)
  t.regex(stdout, /TCP connection, server of 127[^]*connection accepted[^]*server\.listen\(127/)
  t.false(stdout.includes('\u001b'))

  const colourful = await run('start', true, { FORCE_COLOR: '1' })
  t.true(colourful.stdout.includes('\u001b[36m  ── net.connect'))
})

test('propagate prints init, before and after with ids, and does not recurse', async (t) => {
  const { stdout, stderr, code } = await run('propagate', false)
  t.is(stderr, '')
  t.is(code, 0)
  const lines = stdout.trim().split('\n')
  const [, server] = /init {3}TCPSERVERWRAP (\d+), caused by \d+ \(server\.listen\)/.exec(lines[0])
  const accepted = lines.find((line) => line.includes('connection accepted'))
  t.regex(accepted, new RegExp(`^ *init +TCPWRAP \\d+, caused by ${server} `))
  t.true(stdout.includes(`- the server's callback runs in context ${server}`))
  const events = lines.map((line) => line.trim()).filter((line) => !line.startsWith('-'))
  t.is(events.filter((line) => line.startsWith('before')).length, events.filter((line) => line.startsWith('after')).length)
  t.true(lines.length < 60, 'logging made no events')
})

test('why-connection: both ends explain themselves, also after close', async (t) => {
  const { stdout, stderr, code } = await run('why-connection')
  t.is(stderr, '')
  t.is(code, 0)
  const [accepted, outgoing, closed] = stdout.split(/^The .*:$/m).slice(1)
  t.regex(accepted, /server of[^]*connection accepted[^]*server\.listen[^]*startService/)
  t.regex(outgoing, /client to[^]*7 bytes in, 5 bytes out[^]*callService[^]*setTimeout\(20\)/)
  t.regex(closed, /client to 127[^]*closed,[^]*7 bytes in, 5 bytes out[^]*callService/)
})

test('timers: a loop is one hop with a count, and the beginning is kept', async (t) => {
  const { stdout, code } = await run('timers')
  t.is(code, 0)
  t.regex(stdout, /^Error: gave up\n/)
  t.regex(stdout, /── setTimeout\(1\) × 99 · Timeout/)
  t.regex(stdout, /── setImmediate · Immediate[^]*startPolling/)
  t.true(stdout.split('  ── ').length <= 4)
})

test('subsystem-filter: only the filtered types are seen, the chain is whole', async (t) => {
  const { stdout, stderr, code } = await run('subsystem-filter', false)
  t.is(stderr, '')
  t.is(code, 0)
  t.regex(stdout, /LONGSTACK_ERR_UNKNOWN_SUBSYSTEM: Unknown subsystem "TPC"\. Did you mean "TCP"\?/)
  t.regex(stdout, /── net\.connect\(127[^]*dial[^]*── server\.listen\(127/)
  t.true(stdout.includes('Resources that hooks saw: {"TCPSERVERWRAP":2,"TCPWRAP":4,"TCPCONNECTWRAP":2}'))
})

test('error-tracing: what the handler handles is handled, the rest is not', async (t) => {
  const { stdout, stderr, code } = await run('error-tracing')
  t.is(stderr, '')
  t.is(code, 0)
  t.regex(stdout, /^Handled: connect ECONNREFUSED 127\.0\.0\.1:1\n {2}in net\.connect\(127\.0\.0\.1:1\) \(TCPCONNECTWRAP \d+\)[^]*connectToDatabase/)
  t.regex(stdout, /uncaughtException still gets the rest: not of TCP\n$/)
})
