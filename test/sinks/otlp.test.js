'use strict'

// The sink alone, with hand-made records, in its own process: the data arriving in a collector, and the
// effects on a program if the collector is absent, slow or refuses.

const test = require('ava')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { collector } = require('../helpers/collector')
const { freePorts } = require('../helpers/jaeger')
const { node, root, register } = require('../helpers/run')
const { patient } = require('../helpers/starved')

const patiently = patient(test) // at its end a process waits a second for the collector, and no longer

const fixture = path.join(root, 'test', 'fixtures', 'otlp', 'sink.js')
const prelude = `const { sink, record, write, settled, say, warnings } = require(${JSON.stringify(fixture)})\n`

/** @param {string} source @param {{ to: string, env?: Record<string, string>, args?: string[] }} options */
async function run (source, { to, env, args = [] }) {
  const result = await node([...args, '-e', prelude + source], { env: { TO: to, ...env } })
  const lines = result.stdout.trim().split('\n').map((line) => {
    try {
      return JSON.parse(line)
    } catch {
      return line
    }
  })
  return { ...result, lines, last: lines.at(-1) }
}

/** @param {any} span as OTLP has it */
const attributes = (span) =>
  Object.fromEntries(
    span.attributes.map((/** @type {any} */ { key, value }) => [key, Object.values(value)[0]])
  )

patiently('written spans arrive in one request to /v1/traces', async (t) => {
  const { url, requests } = await collector(t)
  const { last, code, stderr } = await run('write(3); settled()', { to: url })
  t.is(code, 0, stderr)
  t.like(last, { written: 3, dropped: 0, warnings: [] })
  t.is(last.fault, undefined)
  t.is(requests.length, 1)
  t.is(requests[0].path, '/v1/traces')
  t.deepEqual(requests[0].spans.map(({ spanId, parentSpanId = null }) => [spanId, parentSpanId]), [
    ['0000000000000001', null], ['0000000000000002', '0000000000000001'], ['0000000000000003', '0000000000000001']
  ])
  const [span] = requests[0].spans
  t.like(span, { traceId: '0af7651916cd43dd8448eb211c80319c', name: 'GET /users/:id', kind: 2, startTimeUnixNano: '1763685600000000000', endTimeUnixNano: '1763685600012345678' })
  t.is(requests[0].spans[1].kind, 3)
  const resource = attributes(requests[0].resources[0])
  t.like(resource, { 'service.name': 'writer', 'process.pid': 7 })
})

const ends = {
  'process.exit()': ['process.exit(3)', 3],
  'an error that nobody catches': ["throw new Error('bad')", 1],
  'a rejection that nobody catches': ["Promise.reject(new Error('bad'))", 1],
  'its last callback': ['', 0]
}
for (const [how, [source, wanted]] of Object.entries(ends)) {
  patiently(`nothing is lost if a program ends by ${how}`, async (t) => {
    const { url, spans } = await collector(t)
    const { last, code, stderr } = await run(`write(1); settled(() => { write(600); ${source} })`, { to: url })
    t.is(code, wanted, stderr)
    t.like(last, { written: 601, dropped: 0 })
    t.is(spans().length, 601)
  })
}

patiently("longstack's own figures have OTLP's form; values that no collector accepts become text", async (t) => {
  const { url, spans } = await collector(t)
  await run(`sink.write(record(1, {
    name: 'half \\ud800',
    status: { code: 'ERROR', message: 'boom' },
    attributes: {
      'http.response.status_code': 500,
      'longstack.run_ms': 1.25,
      'longstack.wait_ms': { TIMER: 20.1, TCP: 3 },
      'longstack.waits': [{ ms: 20.1, count: 3, at: 'load (/app/x.js:3:5)', until: 'TCP 127.0.0.1:15432', label: 'await' }, { ms: 3, count: 1 }],
      'longstack.delayed_by': [{ spanId: '00000000000000ff', name: 'GET /slow', ms: 4.1 }, { ms: 2, at: 'work (/app/x.js:3:5)' }],
      'longstack.runs': [[0, 1, 'Timeout']],
      list: ['a', 'b'], mixed: [1, 'a'], deep: { a: { b: null } }, nothing: null, huge: 1e300, beyond: 2 ** 53, half: '\\udfff', ['__proto__']: 'x', yes: true
    },
    events: [{ name: 'exception', timeUnixNano: '1763685600012345678', attributes: { 'exception.message': 'boom' } }],
    links: [{ traceId: '1af7651916cd43dd8448eb211c80319c', spanId: '0000000000000009' }]
  })); write(1); settled()`, { to: url })
  const [span] = spans()
  t.is(span.name, 'half \ufffd')
  t.deepEqual(span.status, { code: 2, message: 'boom' })
  const { list, mixed, __proto__: odd, ...others } = attributes(span)
  t.is(odd, 'x')
  t.deepEqual(others, {
    'http.response.status_code': 500,
    'longstack.run_ms': 1.25,
    'longstack.wait_ms.TIMER': 20.1,
    'longstack.wait_ms.TCP': 3,
    'longstack.waits': { values: [{ stringValue: '20.1 ms in 3, await, TCP 127.0.0.1:15432, load (/app/x.js:3:5)' }, { stringValue: '3 ms' }] },
    'longstack.delayed_by': { values: [{ stringValue: 'GET /slow 4.1 ms' }, { stringValue: 'outside of spans 2 ms, work (/app/x.js:3:5)' }] },
    deep: '{"a":{"b":null}}',
    huge: '1e+300',
    beyond: '9007199254740992',
    half: '\ufffd',
    yes: true
  })
  t.deepEqual(list, { values: [{ stringValue: 'a' }, { stringValue: 'b' }] })
  t.is(mixed, '[1,"a"]')
  t.like(span.events[0], { name: 'exception', timeUnixNano: '1763685600012345678' })
  t.deepEqual(attributes(span.events[0]), { 'exception.message': 'boom' })
  t.like(span.links[0], { traceId: '1af7651916cd43dd8448eb211c80319c', spanId: '0000000000000009' })
})

const endless = {
  'that takes up another protocol': ['HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', ''],
  'byte by byte, without an end': ['HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n', 'x'],
  'whose head has no end': ['HTTP/1.1 200 OK\r\n', 'X-Odd: x\r\n']
}
for (const [what, [head, part]] of Object.entries(endless)) {
  patiently(`a response ${what} does not retain spans forever`, async (t) => {
    const server = net.createServer((socket) => {
      socket.on('error', () => {}).once('data', () => {
        socket.write(head)
        const timer = setInterval(() => { if (part !== '') socket.write(part) }, 50)
        socket.on('close', () => clearInterval(timer))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const to = `http://127.0.0.1:${/** @type {net.AddressInfo} */ (server.address()).port}`
    const { last, code, stderr } = await run('write(3); settled(() => process.exit())', { to, env: { OTEL_EXPORTER_OTLP_TIMEOUT: '300' } })
    t.is(code, 0, stderr)
    t.is(last.waiting, 0)
    t.is(last.written + last.dropped, 3)
  })
}

patiently('an attribute that is not JSON does not stop its span', async (t) => {
  const { url, spans } = await collector(t)
  const { last, code } = await run('write(1); write(1, { attributes: { big: 1n } }); const loop = {}; loop.loop = loop; write(1, { attributes: { loop } }); write(1); settled()', { to: url })
  t.is(code, 0)
  t.like(last, { written: 4, dropped: 0 })
  const [, big, loop] = spans().map(attributes)
  t.regex(big.big, /^not written: .*BigInt/)
  t.regex(loop.loop, /^not written: /)
})

patiently('headers and compression are left to the exporter; a given path is used unchanged', async (t) => {
  const { port, requests } = await collector(t)
  const { last } = await run('write(1); settled()', {
    to: `http://127.0.0.1:${port}/deep/in?tenant=a`,
    env: { OTEL_EXPORTER_OTLP_HEADERS: 'x-key=abc,authorization=Bearer%20t', OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }
  })
  t.like(last, { written: 1, dropped: 0 })
  t.is(requests[0].path, '/deep/in?tenant=a')
  t.like(requests[0].headers, { 'x-key': 'abc', authorization: 'Bearer t', 'content-encoding': 'gzip' })
})

patiently('https works with a certificate that the environment trusts, and fails without', async (t) => {
  const { url, cert, spans } = await collector(t, { tls: true })
  const trusted = await run('write(1); settled()', { to: url, env: { NODE_EXTRA_CA_CERTS: cert } })
  t.like(trusted.last, { written: 1, dropped: 0 })
  t.is(spans().length, 1)

  const strange = await run('write(1); settled()', { to: url })
  t.is(strange.code, 0)
  t.like(strange.last, { written: 0, dropped: 1 })
  t.regex(strange.last.fault, /self.signed|certificate/)
  t.is(spans().length, 1)
})

patiently('nobody listens: the program runs and ends, with one line and no password', async (t) => {
  const [port] = await freePorts(1)
  const { last, lines, code, stderr } = await run(`
    write(10)
    const timer = setInterval(() => {
      if (sink.stats().fault === undefined) return
      clearInterval(timer)
      write(10)
      console.log('alive')
    }, 10)
  `, { to: `http://user:secret@127.0.0.1:${port}` })
  t.is(code, 0)
  t.is(stderr, '')
  t.true(lines.includes('alive'))
  t.is(last.written, 0)
  t.regex(last.fault, /ECONNREFUSED/)
  t.is(last.warnings.length, 1)
  t.regex(last.warnings[0], new RegExp(`^SPANS_UNSENT: spans do not reach http://127\\.0\\.0\\.1:${port}/v1/traces: .*ECONNREFUSED`))
  t.notRegex(last.warnings[0], /secret/)
})

patiently('a collector that rejects spans: they are counted, and later ones arrive', async (t) => {
  let refusals = 1
  const { url, requests } = await collector(t, { status: () => refusals-- > 0 ? 400 : 200 })
  const { last, lines } = await run(`
    write(600)
    const timer = setInterval(() => {
      if (sink.stats().dropped === 0) return
      clearInterval(timer)
      say()
      write(50)
    }, 10)
  `, { to: url })
  t.regex(lines[0].fault, /^HTTP 400 /)
  t.is(last.fault, undefined, 'it takes them again')
  t.is(last.written + last.dropped, 650)
  t.is(last.dropped, requests[0].spans.length)
  t.is(last.warnings.length, 1)
})

patiently('without the exporter, a sentence says what to install', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  fs.cpSync(path.join(root, 'lib'), path.join(folder, 'lib'), { recursive: true })
  fs.copyFileSync(path.join(root, 'package.json'), path.join(folder, 'package.json'))
  const { last, code, stderr } = await run('write(2)', { to: 'http://127.0.0.1:9', env: { HOME_OF_SINK: folder } })
  t.is(code, 0, stderr)
  t.like(last, { written: 0, dropped: 2, fault: '@opentelemetry/exporter-trace-otlp-http is not installed' })
  t.deepEqual(last.warnings, [
    'SPANS_NO_EXPORTER: spans cannot go to http://127.0.0.1:9/v1/traces: @opentelemetry/exporter-trace-otlp-http is not installed; ' +
    'npm install @opentelemetry/exporter-trace-otlp-http'
  ])
})

patiently('an exporter beside the program is found even if longstack is elsewhere', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  fs.cpSync(path.join(root, 'lib'), path.join(folder, 'longstack', 'lib'), { recursive: true })
  fs.copyFileSync(path.join(root, 'package.json'), path.join(folder, 'longstack', 'package.json'))
  fs.mkdirSync(path.join(folder, 'app', 'node_modules'), { recursive: true })
  fs.symlinkSync(path.join(root, 'node_modules', '@opentelemetry'), path.join(folder, 'app', 'node_modules', '@opentelemetry'))
  const main = path.join(folder, 'app', 'main.js')
  fs.writeFileSync(main, prelude + 'write(2); settled()')
  const { url, spans } = await collector(t)
  const { code, stderr } = await node([main], { env: { TO: url, HOME_OF_SINK: path.join(folder, 'longstack') } })
  t.is(code, 0, stderr)
  t.is(spans().length, 2)
})

patiently('an exporter that does not load is a fault, and ends nothing', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  fs.cpSync(path.join(root, 'lib'), path.join(folder, 'lib'), { recursive: true })
  fs.copyFileSync(path.join(root, 'package.json'), path.join(folder, 'package.json'))
  const broken = path.join(folder, 'node_modules', '@opentelemetry', 'exporter-trace-otlp-http')
  fs.mkdirSync(broken, { recursive: true })
  fs.writeFileSync(path.join(broken, 'index.js'), "throw new Error('made for another Node')")
  const source = "write(3); settled(() => { write(1); console.log('alive') })"
  const { last, code, stderr } = await run(source, { to: 'http://127.0.0.1:9', env: { HOME_OF_SINK: folder } })
  t.is(code, 0, stderr)
  t.is(stderr, '')
  t.like(last, { written: 0, dropped: 4 })
  t.regex(last.fault, /does not load: made for another Node/)
  t.is(last.warnings.length, 1)
})

patiently('if threads are forbidden, the program runs on and gets a warning', async (t) => {
  const flag = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission'
  const { last, code } = await run("write(2); console.log('alive')", { to: 'http://127.0.0.1:9', args: [flag, '--allow-fs-read=*'] })
  t.is(code, 0)
  t.like(last, { written: 0, dropped: 2 })
  t.regex(last.fault, /^its thread does not start: /)
  t.is(last.warnings.length, 1)
})

patiently('the program\'s changes to http, timers and clock do not affect the exporter, nor vice versa', async (t) => {
  const { url, spans } = await collector(t)
  const { last, lines, code, stderr } = await run(`
    const http = require('node:http')
    const channels = require('node:diagnostics_channel')
    let seen = 0
    for (const name of ['http.client.request.start', 'net.client.socket']) channels.subscribe(name, () => { seen++ })
    http.request = http.Agent.prototype.addRequest = () => { throw new Error('wrapped') }
    performance.now = () => 0
    Date.now = () => 0
    const { setTimeout } = globalThis
    globalThis.setTimeout = globalThis.setInterval = () => { throw new Error('fake') }
    write(5)
    const wait = () => sink.stats().written === 5 ? console.log(seen) : setTimeout(wait, 10)
    wait()
  `, { to: url })
  t.is(code, 0, stderr)
  t.is(last.written, 5)
  t.is(lines[0], 0, 'the program sees no request')
  t.is(spans().length, 5)
})

patiently('in a traced process the sink makes no event, no handle and no hop', async (t) => {
  const { url, spans } = await collector(t)
  const { lines, last, code, stderr } = await run(`
    const trace = require(${JSON.stringify(root)})
    const made = []
    setImmediate(() => {
      trace.hook({ init: (context) => made.push(context.type) })
      write(1000)
      settled(() => {
        const foreign = made.filter((type) => !['Timeout', 'Timers', 'TickObject'].includes(type))
        console.log(JSON.stringify([foreign, trace.handles().map(String), process.getActiveResourcesInfo(), trace.stats().fault ?? null]))
      })
    })
  `, { to: url, args: ['-r', register] })
  t.is(code, 0, stderr)
  const [made, handles, active, fault] = lines[0]
  t.deepEqual(made, [])
  t.deepEqual(handles.filter((one) => !/timer|Timeout/i.test(one)), [])
  t.deepEqual(active.filter((one) => !/Timeout|Pipe|TTY/.test(one)), [])
  t.is(fault, null)
  t.is(last.written, 1000)
  t.is(spans().length, 1000)
})

patiently("the preload and the program's variables do not reach the thread", async (t) => {
  const { url, spans } = await collector(t)
  const { code, last, stderr } = await run('write(1); settled()', { to: url, env: { NODE_OPTIONS: `-r ${register}`, LONGSTACK: 'TPC' } })
  t.is(code, 0)
  t.is(stderr.match(/Did you mean/g)?.length, 1, 'by the main thread alone')
  t.is(last.written, 1)
  t.is(spans().length, 1)
})

patiently('a closed sink sends what it has and ends its thread', async (t) => {
  const { url, spans } = await collector(t)
  const { lines, code, stderr } = await run(`
    process.removeAllListeners('exit')
    const listeners = () => process.listenerCount('exit')
    const before = listeners()
    write(700)
    sink.close()
    const timer = setInterval(() => {
      if (sink.stats().written < 700 || listeners() > before) return
      clearInterval(timer)
      write(1)
      console.log(JSON.stringify({ ...sink.stats(), warnings }))
    }, 10)
  `, { to: url })
  t.is(code, 0, stderr)
  t.like(lines[0], { written: 700, dropped: 1, warnings: [] })
  t.is(spans().length, 700)

  const short = await run("process.removeAllListeners('exit'); write(7); settled(() => { write(7); sink.close() })", { to: url })
  t.is(short.code, 0)
  t.is(spans().length, 714, 'a program that ends at once loses nothing')
})

patiently("the program's threads have their own sinks, and end by process.exit() or with their parent", async (t) => {
  const { url, spans } = await collector(t)
  const { code, stderr } = await run(`
    const { Worker } = require('node:worker_threads')
    const worker = (end) => new Worker(${JSON.stringify(prelude)} + 'write(20);' + end, { eval: true, env: process.env })
    worker('settled()')
    worker('settled(() => { write(1); process.exit() })')
  `, { to: url })
  t.is(code, 0, stderr)
  t.is(spans().length, 41)
})

patiently('a span written open and then ended is sent once; one that stays open is sent at the end', async (t) => {
  const { url, spans } = await collector(t)
  const { last, code, stderr } = await run(`
    const still = { attributes: { 'longstack.end': 'open' } }
    write(1)
    sink.write(record(7, still))
    sink.write(record(8, still))
    setTimeout(() => { sink.write(record(7, { attributes: { 'longstack.blocked_ms': 900 } })) }, 700)
    setTimeout(() => {
      sink.flush(true)
      console.log(JSON.stringify(sink.stats()))
    }, 1500)
  `, { to: url })
  t.is(code, 0, stderr)
  t.like(last, { written: 4, dropped: 0 })
  t.deepEqual(spans().map(({ spanId }) => spanId.at(-1)), ['1', '7', '8'])
  t.is(attributes(spans()[1])['longstack.blocked_ms'], 900)
  t.is(attributes(spans()[2])['longstack.end'], 'open')
})

patiently('a loop that never ends reaches the collector while it runs', async (t) => {
  const { url, spans } = await collector(t)
  const engine = process.env.ENGINE ? { LONGSTACK_CAPTURE: process.env.ENGINE } : {}
  const child = spawn(process.execPath, ['-r', register, '-e', 'setTimeout(function spin () { for (;;) Math.random() }, 50)'], {
    env: { ...process.env, ...engine, LONGSTACK_SPANS: url, LONGSTACK_BLOCKED: '50' }
  })
  t.teardown(() => child.kill('SIGKILL'))
  for (const end = Date.now() + 30_000; Date.now() < end && spans().length === 0;) {
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  t.is(child.exitCode, null, 'it still runs')
  t.is(spans().length, 1)
  const [blocked] = spans()
  t.is(blocked.name, 'blocked')
  t.is(attributes(blocked)['longstack.end'], 'open')
  t.regex(attributes(blocked)['code.stacktrace'], /at .*spin[^]*── setTimeout\(50\)/)
})
