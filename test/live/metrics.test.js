'use strict'

// Figures for dashboards, compared with the program's own: requests in flight, handles, awaits, a
// blocked loop; as an object, as OpenMetrics text in an independent parser, and by HTTP on the
// socket.

const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { setTimeout: sleep } = require('node:timers/promises')
const test = require('ava')
const { livePrograms, longstack } = require('../helpers/live')
const prometheus = require('../helpers/prometheus')
const { node, program, register } = require('../helpers/run')

const { start, directory } = livePrograms(test)

const PRELUDE = `
  const http = require('node:http')
  const net = require('node:net')
  const { once } = require('node:events')
  const { setTimeout: sleep } = require('node:timers/promises')
  const { trace } = require(${JSON.stringify(require.resolve('../../lib/shared'))})
  const express = require(${JSON.stringify(require.resolve('express'))})
  const never = new Promise(() => {})
  async function hang () { await never }
  const app = express()
  app.get('/users/:id', (request, response) => response.end('x'))
  app.get('/fails', (request, response) => response.status(503).end())
  app.get('/slow', (request, response) => setTimeout(() => response.end(), 300))
  app.get('/hangs', () => {})
  const get = (server, path) => http.get({ port: server.address().port, host: '127.0.0.1', path, agent: false })
  async function getAll (server, path) {
    const [response] = await once(get(server, path), 'response')
    await once(response.resume(), 'close')
  }
  async function until (condition) { while (!condition()) await sleep(5) }
  const isCounted = (route) => trace.metrics().metrics['http.server.request.duration'].points
    .some(({ attributes }) => attributes['http.route'] === route)
  const report = (value) => console.log(JSON.stringify(value))
`

/** @param {import('ava').ExecutionContext} t @param {string} source @param {object} [options] */
async function run (t, source, options) {
  const { stdout, stderr, code } = await program(`${PRELUDE};(async () => {${source}})()`, options)
  t.is(code, 0, stderr)
  return stdout.trim().split('\n').map((line) => JSON.parse(line))
}

/** Adds up points. @param {any} answer @param {string} name @param {Record<string, string>} [wanted] */
function valueOf ({ metrics }, name, wanted = {}) {
  const isWanted = ({ attributes }) =>
    Object.entries(wanted).every(([key, text]) => attributes[key].startsWith(text))
  return metrics[name].points.filter(isWanted).reduce((sum, { value }) => sum + value, 0)
}

test('a program installed in node_modules has its own places', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'node_modules', '@acme', 'shop', 'index.js')
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, `
    const { trace } = require(${JSON.stringify(require.resolve('../../lib/shared'))})
    function watch () { setInterval(() => {}, 1000) }
    watch()
    console.log(JSON.stringify(trace.metrics().metrics['longstack.handles'].points))
    process.exit()`)
  const { stdout, stderr } = await node(['-r', register, file])
  const openers = JSON.parse(stdout).map(({ attributes }) => attributes.opener)
  t.true(openers.some((opener) => opener.startsWith('watch (') && opener.includes('index.js:3:')), stdout + stderr)
})

test('the figures match what the program did', async (t) => {
  const [first, second] = await run(t, `
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    for (let i = 0; i < 5; i++) get(server, '/hangs').on('error', () => {})
    for (let i = 0; i < 3; i++) hang()
    await until(() => trace.handles(['TCP']).length >= 11)
    await sleep(50)
    report(trace.metrics())
    const sockets = []
    function openSeven () { for (let i = 0; i < 7; i++) sockets.push(net.connect(server.address().port)) }
    openSeven()
    for (let i = 0; i < 4; i++) await getAll(server, '/users/' + i)
    await getAll(server, '/fails')
    await getAll(server, '/slow')
    await until(() => isCounted('/slow'))
    await sleep(100)
    trace.metrics() // from here on
    await sleep(50)
    const end = performance.now() + 200
    while (performance.now() < end);
    await sleep(50)
    report(trace.metrics())
    process.exit()
  `)
  t.is(first.enabled, true)
  t.is(valueOf(first, 'http.server.active_requests'), 5)
  t.deepEqual(first.metrics['http.server.request.duration'].points, [], 'measured from now on')
  t.is(first.metrics['nodejs.eventloop.delay.max'], undefined, 'likewise')
  t.is(valueOf(first, 'longstack.waits', { site: 'hang (' }), 3)
  t.is(valueOf(second, 'http.server.active_requests'), 5)
  t.is(valueOf(second, 'longstack.handles', { opener: 'openSeven (', type: 'TCP connection' }), 7)
  t.is(valueOf(second, 'longstack.waits', { site: 'hang (' }), 3)
  const durations = Object.fromEntries(second.metrics['http.server.request.duration'].points
    .map(({ attributes, histogram }) => [attributes['http.route'], { attributes, histogram }]))
  t.deepEqual(Object.keys(durations).sort(), ['/fails', '/slow', '/users/:id'])
  t.deepEqual(durations['/users/:id'].attributes, { 'http.request.method': 'GET', 'http.route': '/users/:id' })
  t.is(durations['/users/:id'].histogram.count, 4)
  const { bounds, counts, sum, count } = durations['/slow'].histogram
  t.is(count, 1)
  t.true(sum >= 0.295, `${sum}`)
  t.is(counts.length, bounds.length + 1)
  t.is(counts.slice(0, bounds.indexOf(0.25) + 1).reduce((a, b) => a + b), 0)
  t.is(counts.reduce((a, b) => a + b), 1)
  t.is(valueOf(second, 'longstack.http.server.failures', { 'http.route': '/fails', 'error.type': '5xx' }), 1)
  t.is(valueOf(second, 'longstack.http.server.failures'), 1)
  // A timer that was to run while the loop was blocked was at most the resolution of 20 ms away
  t.true(valueOf(second, 'nodejs.eventloop.delay.max') >= 0.17)
  t.true(valueOf(second, 'nodejs.eventloop.time', { 'nodejs.eventloop.state': 'active' }) >= 0.2)
  t.is(second.sinceUnixMs, first.sinceUnixMs)
})

test('the most frequent openers and places are named, the others summed', async (t) => {
  const [metrics] = await run(t, `
    const make = (i) => new Function('net', 'never', 'i',
      'return { f' + i + ' () { for (let n = 0; n < 2; n++) setTimeout(() => {}, 1e6); return (async function w' + i + ' () { await never })() } }')(net, never, i)
    for (let i = 0; i < 80; i++) make(i)['f' + i]()
    function often () { for (let n = 0; n < 300; n++) setTimeout(() => {}, 1e6) }
    often()
    report(trace.metrics().metrics)
    process.exit()
  `)
  const handles = metrics['longstack.handles'].points
  const waits = metrics['longstack.waits'].points
  t.is(handles.length, 51)
  t.is(waits.length, 51)
  t.regex(handles[0].attributes.opener, /^often \(/)
  t.is(handles[0].value, 300)
  const total = (/** @type {any[]} */ points) => points.reduce((sum, { value }) => sum + value, 0)
  t.is(total(handles), 460)
  t.is(total(waits), 80)
  t.deepEqual(handles.at(-1).attributes, { opener: '(other)', type: '(other)' })
  t.deepEqual(waits.at(-1).attributes, { site: '(other)' })
})

test('queries keep nothing alive and leave nothing behind', async (t) => {
  const [before, after] = await run(t, `
    const channels = require('node:diagnostics_channel')
    const traced = channels.channel('http2.server.stream.start')
    const before = traced.hasSubscribers
    trace.metrics()
    trace.disable()
    report([before, traced.hasSubscribers, trace.metrics().enabled, Object.keys(trace.metrics().metrics)])
    trace.enable()
    report(Object.keys(trace.metrics().metrics).length > 3)
  `)
  t.deepEqual(before, [false, false, false, []])
  t.true(after)
})

const SERVICE = `${PRELUDE}
  function openSeven () { for (let i = 0; i < 7; i++) setInterval(() => {}, 1e6) }
  const odd = { ['odd "name"' + String.fromCharCode(92)]: () => { setInterval(() => {}, 1e6) } }
  const [oddlyNamed] = Object.values(odd)
  ;(async () => {
    const { isMainThread, Worker } = require('node:worker_threads')
    if (!isMainThread) return setInterval(() => {}, 1e6)
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    for (let i = 0; i < 5; i++) get(server, '/hangs').on('error', () => {})
    for (let i = 0; i < 3; i++) hang()
    openSeven()
    oddlyNamed()
    await once(new Worker(__filename), 'online')
    await until(() => trace.handles(['TCP']).length >= 11)
    process.stdin.on('data', async () => {
      for (let i = 0; i < 4; i++) await getAll(server, '/users/' + i)
      await until(() => isCounted('/users/:id'))
      console.log('asked')
    })
    console.log('ready', server.address().port)
  })()
`

/** @param {string} socketPath @param {string} [target] @param {string} [method] */
async function request (socketPath, target = '/metrics', method = 'GET') {
  const [response] = await once(http.request({ socketPath, path: target, method }).end(), 'response')
  let text = ''
  for await (const part of response.setEncoding('utf8')) text += part
  return { status: response.statusCode, type: response.headers['content-type'], text }
}

/** @param {ReturnType<typeof prometheus.parse>} families @param {string} name @param {object} labels */
function samplesWith (families, name, labels) {
  return families.flatMap(({ samples }) => samples).filter((sample) => sample.name === name &&
    Object.entries(labels).every(([key, text]) => sample.labels[key]?.startsWith(text)))
}

test('the socket serves OpenMetrics text over HTTP that Prometheus reads', async (t) => {
  if (prometheus.missing(t)) return
  const socket = path.join(directory, 'http.sock')
  const { pid, say, told } = await start(SERVICE, { env: { LONGSTACK_SOCKET: socket } })
  await request(socket)
  say('go')
  await told('asked')
  const { status, type, text } = await request(socket)
  t.is(status, 200)
  t.is(type, 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  t.true(text.endsWith('# EOF\n'))
  const families = prometheus.parse(text)
  const labels = { process_pid: String(pid), longstack_thread: '0' }
  const valueOf = (/** @type {string} */ name, wanted = {}) =>
    samplesWith(families, name, { ...labels, ...wanted }).map(({ value }) => value)
  t.deepEqual(valueOf('http_server_active_requests'), [5])
  t.deepEqual(valueOf('longstack_handles', { opener: 'openSeven (', type: 'timer' }), [7])
  t.deepEqual(valueOf('longstack_handles', { opener: 'odd "name"\\ (' }), [1])
  t.deepEqual(valueOf('longstack_waits', { site: 'hang (' }), [3])
  const route = { http_route: '/users/:id', http_request_method: 'GET' }
  t.deepEqual(valueOf('http_server_request_duration_seconds_count', route), [4])
  t.deepEqual(valueOf('http_server_request_duration_seconds_bucket', { ...route, le: '+Inf' }), [4])
  t.deepEqual(valueOf('longstack_http_server_failures_total', { ...route, error_type: '5xx' }), [0])
  t.like(families.find(({ name }) => name === 'http_server_request_duration_seconds'), { type: 'histogram', unit: 'seconds' })

  // it is told once its timer has fired twice since it was read last
  const findDelay = (/** @type {typeof families} */ families) =>
    families.find(({ name }) => name === 'nodejs_eventloop_delay_max_seconds')
  let delay = findDelay(families)
  while (delay === undefined) {
    await sleep(50)
    delay = findDelay(prometheus.parse((await request(socket)).text))
  }
  t.like(delay, { type: 'gauge', unit: 'seconds' })

  t.is((await request(socket, '/other')).status, 404)
  t.is((await request(socket, '/metrics', 'POST')).status, 405)
  const answers = await Promise.all(Array.from({ length: 20 }, () => request(socket, '/metrics?x=1')))
  t.true(answers.every((answer) => answer.status === 200 && answer.text.endsWith('# EOF\n')))
  const slow = net.connect(socket) // a request that comes in pieces
  for (const piece of 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n') {
    slow.write(piece)
    await new Promise(setImmediate)
  }
  let answer = ''
  for await (const part of slow.setEncoding('utf8')) answer += part
  t.regex(answer, /^HTTP\/1\.1 200 OK\r\n[^]*# EOF\n$/)
})

test('longstack metrics prints the figures of all threads', async (t) => {
  if (prometheus.missing(t)) return
  const socket = path.join(directory, 'command.sock')
  const { pid } = await start(SERVICE, { env: { LONGSTACK_SOCKET: socket } })
  const { stdout, stderr, code } = await longstack('metrics', socket)
  t.is(code, 0, stderr)
  const families = prometheus.parse(stdout)
  const threads = samplesWith(families, 'nodejs_eventloop_delay_max_seconds', { process_pid: String(pid) })
  t.deepEqual(threads.map(({ labels }) => labels.longstack_thread), ['0', '1'])
  t.is(samplesWith(families, 'longstack_waits', { site: 'hang (', longstack_thread: '0' })[0].value, 3)
  const json = JSON.parse((await longstack('metrics', '--json', socket)).stdout)
  t.deepEqual(json.map(({ resource }) => resource['longstack.thread']), [undefined, 1])
  t.is(valueOf(json[0], 'http.server.active_requests'), 5)
})

test('longstack metrics queries a process without longstack, and restores it', async (t) => {
  const { pid, say, told } = await start(`
    for (let i = 0; i < 7; i++) require('node:net').createServer().listen(0, '127.0.0.1')
    process.stdin.on('data', () => console.log('channels', JSON.stringify(
      require('node:diagnostics_channel').hasSubscribers('http.server.request.start'))))
    console.log('ready')
  `, { traced: false })
  const { stdout, stderr, code } = await longstack('metrics', '--json', pid)
  t.is(code, 0, stderr)
  const [metrics] = JSON.parse(stdout)
  t.is(valueOf(metrics, 'longstack.handles', { type: 'TCP server' }), 7)
  say('now')
  t.false(await told('channels'))
})
