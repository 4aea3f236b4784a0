'use strict'

// Spans in a real Jaeger, read back from its query API, and the effects on a program if Jaeger is down, hangs
// or restarts.

const test = require('ava')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const http = require('node:http')
const path = require('node:path')
const readline = require('node:readline')
const { jaeger, missing } = require('../helpers/jaeger')
const { node, root, register } = require('../helpers/run')
const { patient } = require('../helpers/starved')

const patiently = patient(test) // at its end a process waits a second for the collector, and no longer

const fixtures = path.join(root, 'test', 'fixtures', 'otlp')
const prelude = `const { sink, record, write, settled, say, warnings } = require(${JSON.stringify(path.join(fixtures, 'sink.js'))})\n`

/** @param {string} stdout */
const linesOf = (stdout) => stdout.trim().split('\n').map((line) => JSON.parse(line))

patiently('spans, events, links and figures are stored as they were written', async (t) => {
  if (missing(t)) return
  const engine = await jaeger(t)
  const { stdout, code, stderr } = await node(['-e', `${prelude}
    const stack = 'at openPool (/app/db.js:12:21)\\n  ── setTimeout(100) · Timeout · 103 ms earlier ──\\n    at main (/app/index.js:1:1)'
    write(1, {
      name: 'GET /users/:id',
      status: { code: 'ERROR', message: 'boom' },
      attributes: { 'code.stacktrace': stack, 'longstack.wait_ms': { TIMER: 20.1, TCP: 3 }, 'longstack.delayed_by': [{ name: 'GET /slow', ms: 4.1 }], huge: 1e300, half: '\\ud800' },
      events: [{ name: 'exception', timeUnixNano: '1763685600012345678', attributes: { 'exception.type': 'Error', 'exception.stacktrace': stack } }],
      links: [{ traceId: '1af7651916cd43dd8448eb211c80319c', spanId: '0000000000000009' }]
    })
    write(2999)
    settled()
  `], { env: { TO: engine.url } })
  t.is(code, 0, stderr)
  t.like(linesOf(stdout).at(-1), { written: 3000, dropped: 0, warnings: [] })

  const spans = await engine.trace('0af7651916cd43dd8448eb211c80319c', 3000)
  t.is(spans.length, 3000)
  t.is(new Set(spans.map(({ spanId }) => spanId)).size, 3000)
  const span = spans.find(({ parentSpanId }) => parentSpanId === undefined)
  t.like(span, { spanId: '0000000000000001', name: 'GET /users/:id', service: 'writer', start: 1763685600000000, duration: 12345 })
  t.like(span.tags, { 'longstack.wait_ms.TIMER': 20.1, 'longstack.wait_ms.TCP': 3, 'span.kind': 'server', 'otel.status_code': 'ERROR', huge: '1e+300' })
  t.regex(span.tags['code.stacktrace'], /^at openPool .*\n {2}── setTimeout\(100\)/)
  t.regex(span.tags['longstack.delayed_by'], /GET \/slow 4\.1 ms/)
  t.like(span.logs[0], { event: 'exception', 'exception.type': 'Error' })
  t.regex(span.logs[0]['exception.stacktrace'], /openPool/)
  t.is(span.resource['process.pid'], 7)
  t.true(span.references.some(({ spanID }) => spanID === '0000000000000009'))
})

patiently('a backend that hangs: memory stays bounded, overflow is counted, the rest arrives later', async (t) => {
  if (missing(t)) return
  const engine = await jaeger(t)
  engine.pause()
  const child = spawn(process.execPath, ['-e', `${prelude}
    const before = process.memoryUsage().rss
    const text = 'x'.repeat(2000)
    let turns = 0
    const timer = setInterval(() => {
      write(1000, { attributes: { text } })
      if (++turns < 20) return
      clearInterval(timer)
      say({ grown: process.memoryUsage().rss - before })
      settled()
    }, 10)
  `], { env: { ...process.env, TO: engine.url } })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = readline.createInterface(child.stdout)[Symbol.asyncIterator]()
  const filled = JSON.parse((await lines.next()).value)
  t.is(filled.written, 0)
  t.true(filled.dropped > 10_000 && filled.dropped < 20_000, String(filled.dropped))
  t.true(filled.grown < 150e6, `${filled.grown} bytes`)
  t.regex(filled.warnings[0], /it accepts them too slowly/)
  engine.resume()
  const after = JSON.parse((await lines.next()).value)
  t.is(after.written + after.dropped, 20_000)
  t.is(after.dropped, filled.dropped, 'nothing that was taken is lost')
  t.is(after.warnings.length, 1)
})

patiently('a backend that hangs does not keep a program alive', async (t) => {
  if (missing(t)) return
  const engine = await jaeger(t)
  engine.pause()
  const { code, stdout } = await node(['-e', `${prelude} write(100)`], { env: { TO: engine.url } })
  t.is(code, 0)
  const [last] = linesOf(stdout)
  t.is(last.written, 0)
  t.regex(last.warnings[0], /^SPANS_UNSENT: spans do not reach .*: no answer in time\./)
})

patiently('a backend that restarts: the program continues, and every span arrives or is counted', async (t) => {
  if (missing(t)) return
  const engine = await jaeger(t)
  const child = spawn(process.execPath, ['-e', `${prelude}
    const timer = setInterval(() => { write(20) }, 20)
    process.stdin.once('data', () => {
      clearInterval(timer)
      settled(() => process.exit())
    })
    setInterval(() => { say() }, 100).unref()
  `], { env: { ...process.env, TO: engine.url } })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = readline.createInterface(child.stdout)[Symbol.asyncIterator]()
  /** @param {(line: any) => boolean} wanted */
  const wait = async (wanted) => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error('the program ended')
      const line = JSON.parse(value)
      if (wanted(line)) return line
    }
  }
  const first = await wait(({ written }) => written > 0)
  await engine.stop()
  const down = await wait(({ fault }) => fault !== undefined)
  t.regex(down.fault, /ECONNREFUSED|ECONNRESET|socket hang up/)
  await engine.start()
  const again = await wait(
    ({ written, fault }) => written > first.written && written > down.written && fault === undefined
  )
  t.is(again.fault, undefined)
  child.stdin.write('stop\n')
  const [code] = await once(child, 'exit')
  t.is(code, 0)
  let last
  for await (const line of lines) last = JSON.parse(line)
  t.true(last.written > again.written)
  t.true(last.warnings.length <= 1)
})

/** @param {string} name @param {string} to @param {import('ava').ExecutionContext} t */
async function service (name, to, t) {
  const engine = process.env.ENGINE ? { LONGSTACK_CAPTURE: process.env.ENGINE } : {}
  const env = { ...process.env, ...engine, LONGSTACK_SPANS: to, LONGSTACK_PROPAGATE: '1', OTEL_SERVICE_NAME: name }
  const child = spawn(process.execPath, ['-r', register, path.join(fixtures, 'service.js')], { env })
  t.teardown(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
  const lines = readline.createInterface(child.stdout)[Symbol.asyncIterator]()
  const { value: port } = await lines.next()
  return {
    url: `http://127.0.0.1:${port}`,
    /** @param {{ url: string }} other */
    meet: ({ url }) => child.stdin.write(`${url}\n`),
    async end () {
      child.stdin.end()
      const { value } = await lines.next()
      const [code] = await once(child, 'exit')
      return { spans: JSON.parse(value), code, stderr }
    }
  }
}

/** @param {string} url @param {number} count @param {number} width at a time */
async function load (url, count, width) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: width })
  const ask = () => new Promise((resolve, reject) => http.get(url, { agent }, (response) => {
    let body = ''
    response.setEncoding('utf8').on('data', (text) => { body += text }).on('end', () => resolve(body))
  }).on('error', reject))
  const answers = await Promise.all(Array.from({ length: count }, ask))
  agent.destroy()
  return answers
}

patiently('two services that call each other under load have one tree per request, with stacks', async (t) => {
  if (missing(t)) return
  const engine = await jaeger(t)
  const [shop, store] = await Promise.all([service('shop', engine.url, t), service('store', engine.url, t)])
  shop.meet(store)
  store.meet(shop)
  const REQUESTS = 300
  const answers = await load(`${shop.url}/order`, REQUESTS, 20)
  t.true(answers.every((answer) => answer === '42'), String(answers.find((answer) => answer !== '42')))
  for (const one of [shop, store]) {
    const { spans, code, stderr } = await one.end()
    t.is(code, 0)
    t.is(stderr, '')
    t.like(spans, { open: 0, ended: 3 * REQUESTS, written: 3 * REQUESTS, dropped: 0 })
  }

  const traces = await engine.traces('shop', 2 * REQUESTS)
  t.is(traces.length, REQUESTS)
  for (const spans of traces) {
    t.is(spans.length, 6)
    /** @param {import('../helpers/jaeger').Span} span @returns {any} */
    const tree = (span) => [`${span.service} ${span.tags['span.kind'] ?? 'internal'} ${span.tags['url.path'] ?? span.name}`,
      ...spans.filter(({ parentSpanId }) => parentSpanId === span.spanId).map(tree)]
    const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined)
    t.is(roots.length, 1)
    t.deepEqual(tree(roots[0]), ['shop server /order', ['shop client /stock', ['store server /stock',
      ['store internal count', ['store client /price', ['shop server /price']]]]]])
  }

  const spans = traces.flat()
  for (const client of spans.filter(({ tags }) => tags['span.kind'] === 'client')) {
    t.regex(client.tags['code.stacktrace'], /at (async )?callOther \(.*service\.js:/)
    t.regex(client.tags['code.stacktrace'], client.service === 'shop' ? /\border\b/ : /\bstock\b/)
  }
  for (const { tags, duration } of spans) {
    const parts = tags['longstack.run_ms'] + tags['longstack.waited_ms'] + tags['longstack.delayed_ms']
    t.true(Math.abs(parts - duration / 1000) < 1, `${parts} of ${duration / 1000} ms`)
  }
  t.true(spans.some(({ tags }) => tags['url.path'] === '/order' && tags['longstack.wait_ms.TIMER'] > 0))
  t.is(spans.find(({ name }) => name === 'count').tags.shelf, 7)
})

patiently('a backend that is down costs two services one line on stderr', async (t) => {
  if (missing(t)) return
  const engine = await jaeger(t)
  await engine.stop()
  const [shop, store] = await Promise.all([service('shop', engine.url, t), service('store', engine.url, t)])
  shop.meet(store)
  store.meet(shop)
  const answers = await load(`${shop.url}/order`, 100, 10)
  t.true(answers.every((answer) => answer === '42'))
  for (const one of [shop, store]) {
    const { spans, code, stderr } = await one.end()
    t.is(code, 0)
    t.like(spans, { ended: 300, written: 0 })
    t.regex(stderr, /^longstack: spans do not reach http:\/\/127\.0\.0\.1:\d+\/v1\/traces: .*ECONNREFUSED.*\n$/)
  }
})
