'use strict'

// Requests in flight when a recording ends, whatever ends it: what each waited for, and what the report says.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const path = require('node:path')
const { setTimeout: wait } = require('node:timers/promises')
const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { createModel } = require('../../report/aggregate/model')
const { writeDriver } = require('../helpers/pool-driver')
const { inherited, node, register, root } = require('../helpers/run')
const { readRecordings } = require('../helpers/recordings')
const { folder, records: recordsOf } = require('../helpers/sinks')

const service = path.join(root, 'test', 'fixtures', 'record', 'open-requests.js')
const cli = path.join(root, 'lib', 'cli', 'main.js')
const engine = process.env.ENGINE ? { LONGSTACK_CAPTURE: process.env.ENGINE } : {}
const isHeld = process.platform !== 'win32' && loadBinding().binding !== undefined
const whereHeld = isHeld ? test : test.skip
const HANG_MS = 5200 // the verdict needs 5 s

/** A server that never responds. */
const silent = net.createServer(() => {})
test.before(async () => {
  await new Promise((resolve) => { silent.listen(0, '127.0.0.1', () => resolve(undefined)) })
})
test.after.always(() => { silent.close() })
const upstream = () => String(/** @type {net.AddressInfo} */ (silent.address()).port)

/**
 * Starts the service, which records itself.
 * @param {import('ava').ExecutionContext} t
 * @param {string} file
 * @param {{ env?: Record<string, string>, args?: string[] }} [options]
 */
async function start (t, file, { env, args = [] } = {}) {
  const child = spawn(process.execPath, ['-r', register, service, upstream(), ...args], {
    env: { ...inherited, ...engine, LONGSTACK_RECORD: file, ...env }, stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(() => { child.kill('SIGKILL') })
  child.stderr.resume()
  const end = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)))
  const [port] = await once(child.stdout.setEncoding('utf8'), 'data')
  return { child, port: Number(port), end }
}

/**
 * Sends a request and keeps its connection.
 * @param {number} port
 * @param {string} url
 * @param {import('node:http').OutgoingHttpHeaders} [headers]
 */
function open (port, url, headers) {
  return new Promise((resolve) => {
    const request = http.get({ port, path: url, host: '127.0.0.1', agent: false, headers })
    request.on('response', (response) => { response.on('error', () => {}).resume().on('end', resolve) })
    request.on('upgrade', () => {}).on('error', resolve)
  })
}

/** Waits until the service has begun a request after those sent. @param {number} port */
const settled = async (port) => {
  for (let i = 0; i < 5; i++) await open(port, '/quick')
  await wait(300)
  await open(port, '/quick')
}

/** @param {Awaited<ReturnType<typeof createModel>>} model open requests of servers, by name */
const openOf = ({ open }) => Object.fromEntries(open.filter(({ kind }) => kind === 'SERVER')
  .map(({ name, pending, responding, stopped, ms }) => [name, {
    waits: pending?.map(({ what }) => what.replace(/ \(.*/, '')), responding, last: stopped?.label, ms
  }]))

/**
 * Returns the findings about open requests: on a busy machine there are others.
 * @param {Awaited<ReturnType<typeof createModel>>} model
 */
const sentencesOf = ({ verdict }) => verdict
  .filter(({ rule }) => ['deadlock', 'convoy', 'hangs', 'unanswered'].includes(rule))
  .map(({ rule, sentence }) => `${rule}: ${sentence}`)

/**
 * How the service ends.
 * @type {Record<string, { held?: boolean, env?: Record<string, string>, end: unknown,
 *   by: (child: import('node:child_process').ChildProcess, port: number) => unknown }>}
 */
const ends = {
  SIGTERM: { held: true, end: 'SIGTERM', by: (child) => child.kill('SIGTERM') },
  SIGINT: { held: true, end: 'SIGINT', by: (child) => child.kill('SIGINT') },
  'SIGTERM with a handler that exits': { held: true, env: { HANDLER: '1' }, end: 4, by: (child) => child.kill('SIGTERM') },
  'process.exit() in a request': { end: 3, by: (child, port) => open(port, '/exit') },
  'an uncaught error in a request': { end: 1, by: (child, port) => open(port, '/throw') }
}
for (const [name, { held, env, end: wanted, by }] of Object.entries(ends)) {
  const on = held ? whereHeld : test
  on(`it is known what open requests wait for: ${name}`, async (t) => {
    const file = path.join(folder(t), 'app.rec')
    const { child, port, end } = await start(t, file, { env })
    for (const url of ['/hang', '/upstream', '/forgotten', '/stream']) open(port, url)
    for (let i = 0; i < 5; i++) open(port, '/quick', { connection: 'Upgrade', upgrade: 'websocket' })
    await settled(port)
    await settled(port) // the verdict compares with ten others
    await wait(1000)
    by(child, port)
    t.is(await end, wanted)
    const model = await createModel([file])
    const { '/exit': exit, ...known } = Object.fromEntries(Object.entries(openOf(model))
      .map(([name, { ms, ...one }]) => [name.replace('GET ', ''), one]))
    t.deepEqual(known['/hang'], { waits: ['await at /hang'], responding: undefined, last: undefined })
    t.deepEqual(known['/upstream'].waits, [`GET http://127.0.0.1:${upstream()}/stock`])
    t.deepEqual(known['/forgotten'], { waits: [], responding: undefined, last: 'fs.readFile' })
    t.deepEqual(known['/stream'], { waits: [], responding: true, last: undefined })
    t.is(known['/quick'].waits, undefined, 'a WebSocket')
    t.is(exit?.waits, undefined, 'it runs')
    t.deepEqual(sentencesOf(model), [])
    t.is(model.routes.find(({ name }) => name === 'GET /hang')?.open, 1)
  })
}

for (const signal of /** @type {const} */ (['SIGTERM', 'SIGKILL'])) {
  const on = signal === 'SIGTERM' ? whereHeld : test
  on(`the verdict of a deadlock, a leaked pool and requests without a response, after ${signal}`, async (t) => {
    const directory = folder(t)
    writeDriver(directory)
    const file = path.join(directory, 'app.rec')
    const { child, port, end } = await start(t, file, { args: [directory] })
    await Promise.all([open(port, '/bad'), open(port, '/bad')])
    for (const url of ['/ab', '/ba', '/hang', '/forgotten', '/forgotten', '/ok', '/ok', '/stream']) open(port, url)
    await settled(port)
    if (signal === 'SIGTERM') await wait(HANG_MS)
    else while (!/"waits":[^\n]*"cycles":\[\{/.test(fs.readFileSync(file, 'latin1'))) await wait(100)
    if (signal === 'SIGKILL') await settled(port)
    child.kill(signal)
    t.is(await end, signal)
    const model = await createModel([file])
    const [deadlock, ...others] = sentencesOf(model)
    t.regex(deadlock, /^deadlock: A deadlock at the end of the recording: GET \/ab holds what it took at .* for what GET \/ba took at /)
    t.is(others.length, 3, others.join('\n'))
    const find = (/** @type {string} */ name) => others.find((text) => text.startsWith(`hangs: GET ${name} `)) ?? ''
    t.regex(find('/hang'), /had been pending for .* s; it waited for await at \/hang \(open-requests\.js:\d+\)\.$/)
    t.regex(find('/forgotten'), /\(the oldest of 2\); no await, .* was pending \(last: fs\.readFile at \/forgotten \(open-requests\.js:\d+\)\): only other code could respond to it\.$/)
    t.regex(find('/ok'), /\(the oldest of 2\); it waited for await at transfer \(open-requests\.js:\d+\) via driver\. All 2 connections to .* had been idle for .* s, last used by GET \/bad, at transfer \(open-requests\.js:\d+\): check whether they are released there\.$/)
    t.is(model.open.filter(({ name }) => name === 'GET /stream')[0].responding, true)
    // A killed process has not reported them as open, so they are no lines
    const { stdout } = await node([cli, 'spans', file])
    const lines = recordsOf(stdout).filter(({ attributes, kind }) => kind === 'SERVER' && attributes['longstack.end'] === 'open')
    t.is(lines.length, signal === 'SIGTERM' ? 8 : 0)
  })
}

test('the report lists only the oldest open requests, so a finding about many gives no exact number', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const hex = (/** @type {number} */ number, /** @type {number} */ digits) => number.toString(16).padStart(digits, '0')
  const lines = Array.from({ length: 150 }, (_, i) => JSON.stringify({
    traceId: hex(i + 1, 32),
    spanId: hex(i + 1, 16),
    name: 'GET /x',
    kind: 'SERVER',
    startTimeUnixNano: '1800000000000000000',
    endTimeUnixNano: '1800000009000000000',
    status: { code: 'UNSET' },
    attributes: { 'longstack.end': 'open', 'longstack.pending': [{ what: 'await at f (/app/a.js:1:1)', ms: 9000 }] }
  }))
  fs.writeFileSync(file, lines.join('\n'))
  t.regex(sentencesOf(await createModel([file]))[0], /pending for 9\.0 s \(the oldest of at least 100\); it waited for/)
})

test('a request of 5 s whose error ends the process did not wait', async (t) => {
  const file = path.join(folder(t), 'app.rec')
  const { port, end } = await start(t, file)
  await open(port, '/fail')
  t.is(await end, 1)
  const model = await createModel([file])
  t.deepEqual(model.open.filter(({ kind }) => kind === 'SERVER').map(({ name }) => name), ['GET /fail'])
  t.deepEqual(sentencesOf(model), [])
})

test('what a request waited for before it went on is not said of a killed process', async (t) => {
  const directory = folder(t)
  writeDriver(directory)
  const file = path.join(directory, 'app.rec')
  const { child, port, end } = await start(t, file, { args: [directory] })
  await Promise.all([open(port, '/bad'), open(port, '/bad')])
  for (const url of ['/later', '/hang', '/ok']) open(port, url)
  while (!/"waits":/.test(fs.readFileSync(file, 'latin1'))) await wait(100)
  await wait(3000)
  await open(port, '/again')
  await settled(port)
  child.kill('SIGKILL')
  await end
  const model = await createModel([file])
  const ok = sentencesOf(model).find((sentence) => sentence.includes('GET /ok ')) ?? ''
  t.regex(ok, /it waited for await at transfer \(open-requests\.js:\d+\) via driver\.$/, 'its connections are not idle')
  const { 'GET /hang': hang, 'GET /later': later } = openOf(model)
  t.is(hang.waits?.length, 1)
  t.is(later.waits, undefined)
  t.true(later.ms > 7000, String(later.ms))
})

test('open requests of a worker, of two processes and of a file that is rotated', async (t) => {
  const file = path.join(folder(t), 'app.rec')
  const [first, second] = await Promise.all([start(t, file), start(t, file, { env: { WORKER: '1' } })])
  for (const { port } of [first, second]) open(port, '/hang')
  await Promise.all([settled(first.port), settled(second.port)])
  fs.renameSync(file, `${file}.1`)
  const isRotated = () => fs.existsSync(file) &&
    readRecordings(file).sources.some(({ head }) => head?.pid === first.child.pid)
  while (!isRotated()) await settled(first.port)
  open(first.port, '/upstream')
  await Promise.all([settled(first.port), settled(second.port)])
  for (const { child, end } of [first, second]) {
    child.kill('SIGKILL')
    await end
  }
  const model = await createModel([`${file}.1`, file])
  const names = model.open.filter(({ kind }) => kind === 'SERVER').map(({ name }) => name)
  t.deepEqual(names.sort(), ['GET /hang', 'GET /hang', 'GET /upstream'])
  t.deepEqual(sentencesOf(model), [])
  // The last file alone does not know when they began
  const last = await createModel([file])
  t.deepEqual(Object.keys(openOf(last)), ['GET /upstream'])
})
