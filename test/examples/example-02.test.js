'use strict'

// Example 02: three layers give the same answer, tracing changes none of it, and the figures mean what they say.

const test = require('ava')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const { node, root, register } = require('../helpers/run')

const example = path.join(root, 'examples', '02-tcp-net-http.js')
const LAYERS = ['raw', 'net', 'http']
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\nHello, world\n'
const CONVERSATION = 8 // requests of one server's client

/** @param {import('ava').ExecutionContext} t @param {string[]} args @param {object} [options] */
async function run (t, args, options) {
  const { stdout, stderr, code } = await node(args, { timeout: 120_000, ...options })
  t.is(stderr, '')
  t.is(code, 0)
  return stdout
}

/** The figures of a row: its name, then numbers. @param {string} text @param {string} name */
function row (text, name) {
  const line = text.split('\n').find((one) => one.startsWith(`${name}  `))
  if (line === undefined) throw new Error(`no row ${name} in\n${text}`)
  return line.slice(name.length).trim().split(/ {2,}/).map((cell) => parseFloat(cell) * (/ k$/.test(cell) ? 1e3 : 1))
}

test.serial('the story: what each layer costs, makes and tells', async (t) => {
  const text = await run(t, [example])
  const [, layers, resources, callbacks, ...told] = text.split(/^[A-Z].*:\n/m)
  for (const name of LAYERS.flatMap((layer) => [`${layer}, bare`, `${layer}, traced`]).concat('http, traced, with spans')) {
    const [rate, share, cpu, ratio] = row(layers, name)
    t.true(rate > 0 && share > 0 && share <= 100 && cpu > 0 && ratio > 0, name)
  }
  t.true(row(layers, 'http, bare')[2] > row(layers, 'raw, bare')[2], 'http costs more than the bare handle')
  t.true(row(layers, 'http, traced, with spans')[2] > row(layers, 'http, bare')[2], 'spans cost something')

  t.deepEqual(row(resources, 'raw, TCPWRAP'), [1, 0])
  t.is(resources.match(/^raw, /gm)?.length, 1, 'nothing else is made for raw')
  t.deepEqual(row(resources, 'net, TCPWRAP'), [1, 0])
  t.true(row(resources, 'net, TickObject')[1] >= 1)
  t.deepEqual(row(resources, 'http, TCPWRAP'), [1, 0])
  t.true(row(resources, 'http, TickObject')[1] > row(resources, 'net, TickObject')[1])
  for (const name of LAYERS.map((layer) => `${layer}, bare`)) {
    const [hoisted, closures, ratio] = row(callbacks, name)
    t.true(Math.abs(closures / hoisted - ratio) < 0.02, `${name}: ${ratio} is what its figures say`)
  }

  const [raw, onNet, onHttp] = told.join('').split(/^(?:raw|net|http), /m).slice(1)
  for (const story of [raw, onNet, onHttp]) t.regex(story, /TCP connection, server of 127[^]*35 bytes in[^]*connection accepted/)
  for (const story of [onNet, onHttp]) t.regex(story, /connection accepted[^]*server\.listen\(127/)
  t.regex(raw, /125 bytes out[^]*connection accepted[^]*new TCP\(127[^]*openRaw[^]*to close it: handle\.close\(\)/)
  t.regex(onNet, /125 bytes out[^]*to close it: socket\.end\(\)/)
  t.regex(onHttp, /used now by GET \//)
})

test.serial('the same bytes come from every layer, in both styles, bare and traced in every mode', async (t) => {
  const bare = await run(t, [example, '--answers'])
  t.is(bare, ANSWER.repeat(CONVERSATION * LAYERS.length * 2))

  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const spans = path.join(folder, 'spans.jsonl')
  const traced = [{}, { LONGSTACK_SPANS: spans }, { LONGSTACK_BLOCKED: '20' }, { LONGSTACK_MODE: 'light' }, { LONGSTACK_CAPTURE: 'js' }]
  for (const env of traced) {
    const { stdout, stderr, code } = await node(['-r', register, example, '--answers'], { env })
    const [name = 'nothing'] = Object.keys(env)
    t.is(code, 0, name)
    // A slow machine may block for 20 ms; Node 20 and 22 have no light mode.
    if (!/BLOCKED|MODE/.test(name)) t.is(stderr, '', name)
    t.is(stdout, bare, name)
  }
  const requests = fs.readFileSync(spans, 'utf8').trim().split('\n').map((line) => JSON.parse(line)).filter(({ name }) => name === 'GET /')
  t.is(requests.length, CONVERSATION * 2, 'http has a span for each request, the layers below have none')
})

test.serial('no warning where process.binding() has one, and no need for it where it is refused', async (t) => {
  const text = await run(t, ['--pending-deprecation', example, '--answers'])
  t.is(text, ANSWER.repeat(CONVERSATION * LAYERS.length * 2))
})

for (const layer of ['raw', 'net']) {
  for (const callbacks of ['hoisted', 'closures']) {
    test(`${layer}, ${callbacks}: a client that asks much and reads late gets every answer, and the end`, async (t) => {
      const child = fork(example, ['count', layer, callbacks], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: ['-r', register] })
      t.teardown(() => child.kill())
      const [{ port }] = await once(child, 'message')
      const asked = 120_000 // 15 MB of answers, more than the kernel keeps
      const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      socket.setTimeout(30_000, () => socket.destroy(new Error('no end')))
      await once(socket, 'connect')
      socket.end('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(asked))
      await once(socket, 'finish')
      const writes = async () => {
        child.send('count')
        return (await once(child, 'message'))[0].seen.WRITEWRAP ?? 0
      }
      for (const end = Date.now() + 30_000; await writes() === 0 && Date.now() < end;) await delay(50)
      t.true(await writes() > 0, 'a write has to wait')
      let got = ''
      for await (const text of socket.setEncoding('latin1')) got += text
      t.is(got.length, asked * ANSWER.length)
      t.true(got === ANSWER.repeat(asked))
    })
  }
}

test.serial('--json --quick: claims and tables in the shape of all examples', async (t) => {
  const { claims, tables } = JSON.parse(await run(t, [example, '--json', '--quick']))
  t.deepEqual(claims.map(({ id }) => id), ['net-over-raw', 'http-over-net', 'closures-raw', 'closures-net', 'closures-http'])
  for (const claim of claims) {
    for (const key of ['article', 'said', 'a', 'b', 'unit', 'means']) t.true(typeof claim[key] === 'string' && claim[key] !== '', `${claim.id} ${key}`)
    t.true(claim.saidRatio === null || claim.saidRatio > 1)
    for (const state of ['off', 'on']) for (const side of ['a', 'b']) t.true(Number.isFinite(claim[state][side]) && claim[state][side] > 0, `${claim.id} ${state}`)
    const verdicts = Object.keys(claim.why)
    t.true(verdicts.length > 0 && verdicts.every((verdict) => ['as said', 'no difference', 'other way round'].includes(verdict)))
  }
  const [netOverRaw, httpOverNet] = claims
  t.is(netOverRaw.off.b, httpOverNet.off.a, 'net is one figure in both')
  t.deepEqual(tables.map(({ heading }) => heading.length), [6, 3, 4])
  for (const { title, heading, rows } of tables) {
    t.true(rows.length > 0 && rows.every((cells) => cells.length === heading.length && cells.every((cell) => typeof cell === 'string')), title)
  }
})
