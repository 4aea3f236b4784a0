'use strict'

// Many concurrent spans over a long time: each is correct, and nothing is left of them.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { runsAll } = require('../helpers/run')
const { program, root, sound } = require('../helpers/spans')
const { recordsOf } = require('../helpers/records')

const COUNT = runsAll ? 10_000 : 3_000
const LINKS = runsAll ? 10_000 : 8_000

// How many spans and how much heap there are, when all has settled.
const counting = `'use strict'
  const trace = require(${JSON.stringify(root)})
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const { Span } = require(${JSON.stringify(path.join(root, 'lib', 'spans', 'span.js'))})
  const v8 = require('node:v8')
  async function left () {
    for (let i = 0; i < 6; i++) { await wait(20); gc() }
    return { spans: v8.queryObjects(Span, { format: 'count' }), heap: process.memoryUsage().heapUsed / 2 ** 20 }
  }
`

/** @param {import('ava').ExecutionContext} t @param {string} source @param {Record<string, string>} [env] */
async function counted (t, source, env) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-spans-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'spans.jsonl')
  const { stdout, stderr, code } = await program(`${counting}${source}`, { args: ['--expose-gc', '--no-warnings'], env: { LONGSTACK_SPANS: file, ...env }, timeout: 180_000 })
  t.is(stderr, '')
  t.is(code, 0)
  return { ...JSON.parse(stdout), lines: () => recordsOf(fs.readFileSync(file, 'utf8')) }
}

test.serial(`${COUNT} requests in flight: each has its own span, path and children, and nothing remains`, async (t) => {
  const { most, before, after, stats, lines } = await counted(t, `
    const http = require('node:http'), net = require('node:net')
    const COUNT = ${COUNT}, SOCKETS = 500
    let flying = 0, most = 0, release
    const all = new Promise((resolve) => { release = resolve })
    const server = http.createServer(async (request, response) => {
      most = Math.max(most, ++flying)
      if (most === COUNT) release()
      await all
      await wait(Math.random() * 50)
      const id = request.url.slice(3)
      await trace.span('work', { id }, async () => { await wait(1); trace.span('inner', { id }, () => {}) })
      flying--
      response.end(id)
    })
    function ask (n) {
      return new Promise((resolve, reject) => {
        const paths = Array.from({ length: COUNT / SOCKETS }, (_, i) => '/r/' + (n * COUNT / SOCKETS + i))
        let text = ''
        const socket = net.connect(server.address().port, '127.0.0.1').setEncoding('utf8').on('error', reject)
        socket.write(paths.map((path, i) => 'GET ' + path + ' HTTP/1.1\\r\\nHost: x\\r\\n' + (i === paths.length - 1 ? 'Connection: close\\r\\n' : '') + '\\r\\n').join(''))
        socket.on('data', (data) => { text += data }).on('close', () => resolve(text.match(/^\\d+$/gm)))
      })
    }
    server.listen(0, '127.0.0.1', async () => {
      const before = await left()
      await Promise.all(Array.from({ length: SOCKETS }, (_, n) => ask(n)))
      server.close(async () => {
        const after = await left()
        const { open, ended, written, dropped } = trace.stats().spans
        console.log(JSON.stringify({ most, before, after, stats: { open, ended, written, dropped } }))
      })
    })`)
  t.is(most, COUNT)
  const spans = lines()
  const of = (/** @type {string} */ kind, /** @type {string} */ name = '') => spans.filter((/** @type {any} */ span) => span.kind === kind && (name === '' || span.name === name))
  const servers = of('SERVER')
  t.deepEqual(stats, { open: 0, ended: spans.length, written: spans.length, dropped: 0 })
  t.is(servers.length, COUNT)
  t.is(new Set(servers.map((/** @type {any} */ span) => span.attributes['url.path'])).size, COUNT)
  t.is(new Set(servers.map((/** @type {any} */ span) => span.traceId)).size, COUNT)
  t.is(new Set(spans.map((/** @type {any} */ span) => span.spanId)).size, spans.length)
  const byId = new Map(spans.map((/** @type {any} */ span) => [span.spanId, span]))
  let wrong = 0
  for (const work of of('INTERNAL', 'work')) if (byId.get(work.parentSpanId)?.attributes['url.path'] !== `/r/${work.attributes.id}`) wrong++
  for (const inner of of('INTERNAL', 'inner')) if (byId.get(inner.parentSpanId)?.attributes.id !== inner.attributes.id) wrong++
  t.is(wrong, 0, 'each has the parent that it was made in')
  t.is(of('INTERNAL', 'work').length, COUNT)
  t.is(of('INTERNAL', 'inner').length, COUNT)
  for (let i = 0; i < COUNT; i += 97) sound(t, servers[i])
  t.true(servers.every((/** @type {any} */ span) => span.attributes['http.response.status_code'] === 200 && span.attributes['longstack.end'] === undefined))
  t.true(after.spans <= before.spans + 50, `${after.spans} spans are left`)
  t.log(`heap: ${before.heap.toFixed(1)} MB before, ${after.heap.toFixed(1)} after`)
  t.true(after.heap < before.heap + 30, `${after.heap} MB after ${before.heap}`) // tables of bounded size are full
})

const chains = {
  'each made in the last one, which has ended': `
    async function next (n) {
      await new Promise((resolve) => setImmediate(resolve))
      if (n > 0) trace.span('link', () => { next(n - 1) })
      else done()
    }`,
  'each made in the last one, which ends later': `
    function next (n) {
      if (n > 0) trace.span('link', async () => { await new Promise((resolve) => setImmediate(resolve)); next(n - 1); await null })
      else done()
    }`,
  'each made in the last one, which stays open for some': `
    const open = []
    function next (n) {
      if (open.length > 50) open.shift()()
      if (n > 0) trace.span('link', async () => { setImmediate(next, n - 1); await new Promise((resolve) => open.push(resolve)) })
      else { for (const end of open) end(); done() }
    }`,
  'deep in one another, ended from within': `
    async function deep (n) { if (n > 0) await trace.span('link', async () => { await null; await deep(n - 1) }) }
    async function next (n) { for (; n > 0; n -= 500) await deep(500); done() }`
}

for (const [name, source] of Object.entries(chains)) {
  test.serial(`an endless chain, ${name}: nothing grows`, async (t) => {
    const { middle, end } = await counted(t, `${source}
      let done
      const run = (n) => new Promise((resolve) => { done = resolve; next(n) })
      const held = []
      ;(async () => {
        await run(${LINKS / 4})
        const middle = await left()
        await run(${LINKS})
        console.log(JSON.stringify({ middle, end: await left() }))
      })()`)
    t.true(end.spans < 200, `${end.spans} spans are held`)
    t.true(end.heap < middle.heap + 8, `${end.heap} MB after ${middle.heap}`)
  })
}

test.serial('a resource kept from a span retains only the span\'s name', async (t) => {
  const { here, heap, spans } = await counted(t, `
    const net = require('node:net')
    const refs = [], kept = []
    const server = net.createServer(() => {}).listen(0, '127.0.0.1', async () => {
      const before = (await left()).heap
      for (let i = 0; i < 200; i++) {
        await trace.span('first ' + i, { big: refs[refs.push(new WeakRef({ text: 'x'.repeat(50_000) + i })) - 1].deref() }, async (span) => {
          kept.push(net.connect(server.address().port, '127.0.0.1'), setInterval(() => {}, 1e6), new Promise(() => {}), span)
          const error = new Error('x'); refs.push(new WeakRef(error)); span.fail(error)
          for (let n = 0; n < 3; n++) await wait(0)
        })
      }
      const { heap, spans } = await left()
      console.log(JSON.stringify({ here: refs.filter((ref) => ref.deref() !== undefined).length, heap: heap - before, spans }))
      process.exit()
    })`)
  t.is(here, 0)
  t.true(spans <= 401, `${spans} spans, of them the connections`)
  t.true(heap < 6, `${heap} MB for 200 connections`)
})

test.serial('open spans beyond the limit are counted', async (t) => {
  const { most, stats } = await counted(t, `
    const COUNT = 100_300
    let release
    const gate = new Promise((resolve) => { release = resolve })
    const all = Array.from({ length: COUNT }, () => trace.span('open', () => gate))
    const most = trace.stats().spans
    release()
    Promise.all(all).then(() => console.log(JSON.stringify({ most, stats: trace.stats().spans })))`, { LONGSTACK_SPANS: os.devNull })
  t.is(most.open, 100_000)
  t.is(most.dropped, 300)
  t.is(stats.open, 0)
  t.is(stats.ended, 100_000)
})

test.serial('a span with 20,000 timers does not check them all repeatedly', async (t) => {
  const { ms, bare } = await counted(t, `
    const timers = (n) => new Promise((resolve) => { let left = n; for (let i = 0; i < n; i++) setTimeout(() => { if (--left === 0) resolve() }, 1 + i % 50) })
    const cpu = async (fn) => { const { user } = process.cpuUsage(); await fn(); return (process.cpuUsage().user - user) / 1e3 }
    setTimeout(async () => {
      await timers(20_000)
      const bare = await cpu(() => timers(20_000))
      const ms = await cpu(() => trace.span('many', () => timers(20_000)))
      console.log(JSON.stringify({ ms, bare }))
    })`)
  t.true(ms < bare * 10 + 500, `${ms} ms of ${bare}: what grows with the square would take a minute`)
})
