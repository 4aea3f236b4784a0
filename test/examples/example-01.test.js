'use strict'

// The first example: its story, its answers bare and traced, and the shape of its figures.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, root, register } = require('../helpers/run')

const file = path.join(root, 'examples', '01-intercept.js')

test.serial('the story: the header is gone, why() and stacks name the transform, one that throws harms its own connection', async (t) => {
  t.timeout(120_000)
  const { stdout, stderr, code } = await node([file], { timeout: 110_000 })
  t.is(stderr, '')
  t.is(code, 0)
  const headers = [...stdout.matchAll(/^ {2}(\{"method".*\})$/gm)].map(([, line]) => JSON.parse(line).headers)
  t.deepEqual(headers.map((one) => one.customheader), ['secret', undefined, 'secret'], 'without, with, taken away again')
  t.true(headers.every((one) => one.other === 'kept'))
  t.true(stdout.includes('  body    "a body:\\r\\n\\r\\ncustomHeader: x\\r\\n\\r\\ncustomHeader: split"'))
  t.regex(stdout, /TCP connection, server of[^]*used now by GET \/plain\n {2}its bytes go through removeCustomHeader, set at story \(.*01-intercept\.js:\d+:\d+\)\n/)
  t.regex(stdout, /Error: in the handler\n {4}at Server\.handle[^]*?── GET \/plain, through removeCustomHeader · HTTPINCOMINGMESSAGE · [^]*?── server\.listen\(/)
  t.regex(stdout, /Error: in a transform\n {4}at look [^]*?── connection accepted, through removeCustomHeader, look · TCPWRAP · [^]*?── server\.listen\(/)
  t.true(stdout.includes('LONGSTACK_ERR_INTERCEPT: The transform "faulty" of trace.intercept threw an error: I do not know this header.'))
  t.regex(stdout, /this connection gets ""\n.*HTTP\/1\.1 200 OK\n/)
  const rows = [...stdout.matchAll(/^tracing (off|on) +([\d.]+) +([\d.]+) +([\d.]+)$/gm)]
  t.deepEqual(rows.map(([, state]) => state), ['off', 'on'])
  for (const [, , ...figures] of rows) t.true(figures.map(Number).every((µs) => µs > 1 && µs < 100_000))
})

test.serial('its answers are the same, byte for byte, bare and traced in every mode', async (t) => {
  t.timeout(120_000)
  const bare = await node([file, '--answers'])
  t.is(bare.stderr, '')
  t.is(bare.code, 0)
  const cut = [...bare.stdout.matchAll(/cut at each of (\d+) bytes: (\d+) answers equal; byte by byte: equal/g)]
  t.is(cut.length, 7)
  for (const [, cuts, equal] of cut) t.is(cuts, equal)
  t.false(/"customheader"/i.test(bare.stdout))
  t.is(bare.stdout.match(/customHeader/g)?.length, 6, 'in bodies, in the value of another header, and past the upgrade')
  t.true(bare.stdout.includes('HTTP/1.1 400 Bad Request'))

  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const spans = path.join(folder, 'spans.jsonl')
  for (const env of [{}, { LONGSTACK_SPANS: spans }, { LONGSTACK_BLOCKED: '20' }, { LONGSTACK_MODE: 'light' }, { LONGSTACK_CAPTURE: 'js' }]) {
    const traced = await node(['-r', register, file, '--answers'], { env })
    t.is(traced.stdout, bare.stdout, JSON.stringify(env))
    // A slow machine blocks, and then that is said.
    if (!('LONGSTACK_BLOCKED' in env)) t.is(traced.stderr, '', JSON.stringify(env))
    t.is(traced.code, 0)
  }
  const served = fs.readFileSync(spans, 'utf8').trim().split('\n').map((line) => JSON.parse(line)).filter(({ kind }) => kind === 2 || kind === 'SERVER')
  t.true(served.some(({ name }) => name.includes('/chunks')), 'requests through transforms have spans')
})

test.serial('its figures have the shape that is agreed on', async (t) => {
  const { stdout, stderr, code } = await node([file, '--json', '--quick'])
  t.is(stderr, '')
  t.is(code, 0)
  const { claims, tables } = JSON.parse(stdout)
  t.is(claims.length, 1)
  const [claim] = claims
  t.deepEqual(Object.keys(claim), ['id', 'article', 'said', 'saidRatio', 'a', 'b', 'unit', 'off', 'on', 'means', 'why'])
  t.is(claim.saidRatio, null)
  for (const state of ['off', 'on']) for (const which of ['a', 'b']) t.true(claim[state][which] > 0)
  t.true(Object.values(claim.why).every((text) => text.length > 20))
  for (const { heading, rows } of tables) t.true(rows.every((row) => row.length === heading.length && row.every((cell) => typeof cell === 'string')))
})
