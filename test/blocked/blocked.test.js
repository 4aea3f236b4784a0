'use strict'

// LONGSTACK_BLOCKED: long runs of the event loop, reported with the stack inside them. A busy machine takes
// longer, and one that stands still for a while shows less, so lengths are only approximate.

const test = require('ava')
const { spawn, execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, program, register, root } = require('../helpers/run')
const { watched } = require('../helpers/watchdog')
const { recordsOf } = require('../helpers/records')

const runs = path.join(__dirname, '..', 'fixtures', 'blocked', 'runs.js')
const places = path.join(__dirname, '..', 'fixtures', 'blocked', 'places.js')

/**
 * @param {string} kind
 * @param {Record<string, string>} env
 * @param {string[]} [args]
 */
function run (kind, env, args = []) {
  return node(['-r', register, runs, kind, ...args], { env: { LONGSTACK_BLOCKED: '150', ...env } })
}

/**
 * The runs that listeners were told of when they were over.
 * @param {string} stdout
 * @returns {Array<import('../../lib/blocked/blocking-callback').BlockedEvent>}
 */
function events (stdout) {
  return stdout.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line)).filter((event) => !event.stillRunning)
}

/** @param {import('ava').ExecutionContext} t */
function folder (t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-'))
  t.teardown(() => fs.rmSync(made, { recursive: true, force: true }))
  return made
}

/** @param {string} file */
function records (file) {
  return recordsOf(fs.readFileSync(file, 'utf8'))
}

watched(test, 'a listener is given the run: how long, the frames inside, how the program got there, whose it was', async (t) => {
  const began = Date.now()
  const { stdout, stderr, code } = await run('server', { LONGSTACK_CAPTURE: 'native', LISTEN: '1' })
  t.is(code, 0)
  t.is(stderr, '')
  const [event, ...others] = events(stdout).filter(({ stack }) => stack.includes('later'))
  t.deepEqual(others, [])
  t.true(event.ms >= 200 && event.ms < 30_000, String(event.ms))
  t.false(event.stillRunning)
  t.true(event.samples >= 1)
  t.true(event.startUnixMs >= began && event.startUnixMs <= Date.now() - 200)
  const names = event.frames.map(({ functionName }) => functionName)
  t.deepEqual(names.slice(-2), ['spin', 'later'])
  t.true(event.frames.every(({ fileName, lineNumber, kind }) => fileName === runs && lineNumber > 0 && kind === 'user'))
  t.regex(event.stack, /at spin \(.*runs\.js:\d+:\d+\)\n {4}at later \(.*\n {2}── setTimeout\(5\) · [^\n]* ──\n {4}at answer \(.*\n {2}── GET \/slow/)
  t.deepEqual(event.chain.slice(0, 2).map(({ label }) => label), ['setTimeout(5)', 'GET /slow'])
  t.is(event.context?.type, 'Timeout')
  t.regex(String(event.span?.name), /^GET( \/slow)?$/)
  t.regex(String(event.span?.traceId), /^[0-9a-f]{32}$/)
})

watched(test, 'without a listener it is said on stderr; among the spans it is a child of its request', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const { stdout, stderr, code } = await run('server', { LONGSTACK_CAPTURE: 'native', LONGSTACK_SPANS: file })
  t.is(code, 0)
  t.is(stdout, '')
  t.regex(stderr, /^longstack: the event loop was blocked for \d+ ms by GET \/slow\n(?: {2}sampled.*\n)?(?: {4}at work .*\n)? {4}at spin \(.*\n {4}at later \(/m)
  t.false(stderr.includes('secret'))
  const all = records(file)
  const request = all.find(({ kind, attributes }) => kind === 'SERVER' && attributes['url.path'] === '/slow')
  const blocked = all.filter(({ name, parentSpanId }) => name === 'blocked' && parentSpanId === request.spanId)
  t.is(blocked.length, 1)
  const [{ kind, traceId, attributes, startTimeUnixNano, endTimeUnixNano, resource }] = blocked
  t.is(kind, 'INTERNAL')
  t.is(traceId, request.traceId)
  t.true(attributes['longstack.blocked_ms'] >= 200)
  t.regex(attributes['code.stacktrace'], /at spin .*\n {4}at later .*\n {2}── setTimeout\(5\)/)
  t.is(attributes['longstack.end'], undefined)
  t.true(Math.abs(Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6 - attributes['longstack.blocked_ms']) < 0.01)
  t.true(
    BigInt(startTimeUnixNano) >= BigInt(request.startTimeUnixNano) &&
      BigInt(startTimeUnixNano) < BigInt(request.endTimeUnixNano)
  )
  t.is(resource['process.pid'], request.resource['process.pid'])
})

for (const [kind, frame, by] of [['endless', 'answer', ' by GET /endless'], ['endlessMain', 'endlessMain', ''], ['endlessAwait', 'endlessAwait', '']]) {
  watched(test, `what never ends is told while it runs: ${kind}`, async (t) => {
    const file = path.join(folder(t), 'spans.jsonl')
    const child = spawn(process.execPath, ['-r', register, runs, kind], {
      cwd: root,
      env: { PATH: process.env.PATH, LONGSTACK_BLOCKED: '50', LONGSTACK_CAPTURE: 'native', LONGSTACK_SPANS: file },
      stdio: ['ignore', 'ignore', 'pipe']
    })
    t.teardown(() => child.kill('SIGKILL'))
    let stderr = ''
    await new Promise((resolve) => child.stderr.on('data', (text) => {
      stderr += text
      if (new RegExp(`is blocked[^]*at ${frame} `).test(stderr)) resolve(undefined)
    }))
    t.is(child.exitCode, null, 'it runs')
    t.regex(stderr, new RegExp(`longstack: the event loop is blocked${by}, for \\d.* so far\n(?: {2}sampled.*\n)?(?: {4}at .*\n)* {4}at ${frame} \\(`))
    const blocked = records(file).filter(({ name, attributes }) => name === 'blocked' && attributes['longstack.end'] === 'open')
    t.is(blocked.length, 1)
    t.true(blocked[0].attributes['code.stacktrace'].includes(`at ${frame} `))
    t.is(typeof blocked[0].parentSpanId, kind === 'endless' ? 'string' : 'undefined')
  })
}

watched(test, 'what was told while it ran is told again when it is over, under the same id', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(root)})
    trace.on('blocked', ({ ms, stillRunning }) => console.log(stillRunning, ms >= (stillRunning ? 550 : 600)))
    setTimeout(function slow () { const end = performance.now() + 900; while (performance.now() < end); }, 10)`,
  { env: { LONGSTACK_BLOCKED: '50', LONGSTACK_CAPTURE: 'native', LONGSTACK_SPANS: file } })
  t.deepEqual(stdout.split('\n').filter((line) => line.includes('true')).slice(-2), ['true true', 'false true'])
  const blocked = records(file).filter(({ name, attributes }) => name === 'blocked' && attributes['code.stacktrace'].includes('slow'))
  t.deepEqual(blocked.map(({ attributes }) => attributes['longstack.end']), ['open', undefined])
  t.is(new Set(blocked.map(({ spanId, traceId }) => spanId + traceId)).size, 1)
})

/** @type {Array<[string, RegExp]>} */
const single = [['scopes', /at part .*\n {4}at outer /], ['awaits', /at outer /], ['ticks', /at again /], ['main', /at spin .*\n {4}at main /], ['timer', /at spin .*\n {4}at slow /]]
for (const [kind, frames] of single) {
  watched(test, `one run is one report: ${kind}`, async (t) => {
    const { stdout, code } = await run(kind, { LONGSTACK_CAPTURE: 'native', LISTEN: '1' })
    t.is(code, 0)
    const found = events(stdout).filter(({ ms }) => ms >= 200)
    t.is(found.length, 1)
    t.regex(found[0].stack, frames)
  })
}

watched(test, 'many short runs in a row are no long one', async (t) => {
  const { stdout, code } = await run('short', { LONGSTACK_CAPTURE: 'native', LONGSTACK_BLOCKED: '300', LISTEN: '1' })
  t.is(code, 0)
  const longest = Number(stdout.trim().split('\n').at(-1))
  t.true(longest >= 25)
  for (const { ms, stack } of events(stdout)) if (stack.includes('at brief')) t.true(ms < longest + 100, `${ms} ms, and none took more than ${longest}`)
})

watched(test, 'a call that cannot be looked into is said to be one', async (t) => {
  const fifo = path.join(folder(t), 'pipe')
  execFileSync('mkfifo', [fifo])
  for (const [kind, args] of /** @type {Array<[string, string[]]>} */ ([['shell', []], ['pipe', [fifo]]])) {
    if (kind === 'pipe') spawn('sh', ['-c', 'exec 3> "$0"; sleep 1; echo x >&3', fifo]) // waits for its reader, who then waits
    const { stdout, code } = await run(kind, { LONGSTACK_CAPTURE: 'native', LISTEN: '1' }, args)
    t.is(code, 0)
    const event = /** @type {any} */ (events(stdout).find(({ ms, stack }) => ms >= 200 && stack.includes('setTimeout(10)')))
    t.truthy(event, kind)
    if (event.samples > 0) t.true(event.sampledLate >= 100, kind)
    if (event.samples > 0) t.regex(event.stack, /^ {4}at calls /)
  }
  const { stderr } = await run('shell', { LONGSTACK_CAPTURE: 'native' })
  t.regex(stderr, /blocked for \d.*\n {2}(sampled .* late, for example after a native call|no sample inside)/)
})

watched(test, 'Atomics.wait is looked into', async (t) => {
  const { stdout } = await run('waits', { LONGSTACK_CAPTURE: 'native', LISTEN: '1' })
  const event = events(stdout).find(({ ms, stack }) => ms >= 200 && stack.includes('at calls'))
  t.truthy(event)
})

watched(test, 'a program that ends inside of a run ends as it would, and the run is told', async (t) => {
  for (const kind of ['exits', 'throws']) {
    const { stdout, stderr, code } = await run(kind, { LONGSTACK_CAPTURE: 'native' })
    t.is(code, kind === 'exits' ? 7 : 1)
    t.is(stdout, '')
    t.regex(stderr, /longstack: the event loop was blocked for \d.*\n(?: {2}sampled.*\n)?(?: {4}at work .*\n)? {4}at spin .*\n {4}at calls /)
    t.is(stderr.includes('Error: meant'), kind === 'throws')
    t.false(stderr.includes('debugger'))
  }
})

watched(test, 'an error that a program survives does not end the watch', async (t) => {
  const { stdout, code } = await run('goesOn', { LONGSTACK_CAPTURE: 'native', LISTEN: '1' })
  t.is(code, 0)
  t.true(stdout.includes('meant\n'))
  const stacks = events(stdout).filter(({ ms }) => ms >= 200).map(({ stack }) => stack)
  t.deepEqual(['first', 'second'].map((name) => stacks.filter((stack) => stack.includes(`at ${name} `)).length), [1, 1])
})

watched(test, 'what blocks again is one line', async (t) => {
  const source = `
    let left = 8
    function spin () { const end = performance.now() + 60; while (performance.now() < end); }
    setTimeout(function tick () { spin(); if (--left > 0) setTimeout(tick, 1) }, 300)`
  const { stderr } = await node(['-r', register, '-e', source], { env: { LONGSTACK_BLOCKED: '50', LONGSTACK_CAPTURE: 'native' } })
  const reports = stderr.split('longstack: ').filter((text) => text.includes('at spin ('))
  t.true(reports.length >= 3, stderr)
  for (const [i, text] of reports.entries()) {
    const times = i + 1
    if (times === 1) t.regex(text, /^the event loop was blocked for \d+ ms\n(?: {2}sampled.*\n)?(?: {4}at .*\n)*? {4}at spin .*\n {4}at tick /)
    else t.regex(text, new RegExp(`^the event loop was blocked again for \\d+ ms, the ${times}(?:st|nd|rd|th) time, at spin \\(.*\\)\n$`))
  }
})

watched(test, 'sampled as often as can be, in all sorts of places, a program computes what it computes', async (t) => {
  const { stdout, stderr, code, signal } = await node(['-r', register, places], { env: { LONGSTACK_BLOCKED: '4', LONGSTACK_CAPTURE: 'native', LENGTH: '150' } })
  t.is(signal, null, stderr)
  t.is(code, 0, stderr)
  const results = new Map(stdout.trim().split('\n').map((line) => JSON.parse(line)))
  t.deepEqual(Object.fromEntries(results), {
    loop: [-1237055728],
    recursion: 3000,
    overflow: true,
    garbage: 10000,
    reviver: true,
    backtracking: false,
    matches: 0,
    constructing: { before: 1, after: 2 },
    generator: 'in order',
    comparator: true,
    conversions: 1,
    realm: true,
    evaluated: true,
    formatting: 'formatted true',
    hook: true,
    scopes: true,
    compressing: true,
    trying: true
  })
  /** @type {Record<string, string>} */
  const inner = { recursion: 'dive', constructing: 'new Made', overflow: '(fall|overflow)' }
  const missing = [...results.keys()].filter((name) => !new RegExp(`at ${inner[name] ?? name} \\(`).test(stderr))
  // A worker that waits for a processor comes too late now and then.
  t.deepEqual(missing, [])
})

watched(test, 'what RegExp tells of the last match outlives a report from inside', async (t) => {
  const { stdout, stderr } = await node(['-r', register, places, 'matches', 'overflow', 'hook'], { env: { LONGSTACK_BLOCKED: '4', LONGSTACK_CAPTURE: 'native', LENGTH: '800' } })
  t.is(stdout, '["matches",0]\n["overflow",true]\n["hook",true]\n')
  t.true(stderr.split('is blocked').length > 3)
})

watched(test, 'a listener that throws is said once, and harms nobody', async (t) => {
  const { stdout, stderr, code } = await run('goesOn', { LONGSTACK_CAPTURE: 'native', LISTEN: 'throw' })
  t.is(code, 0)
  t.true(events(stdout).length >= 2)
  t.is(stderr, "longstack: a listener of 'blocked' threw: of the listener\n")
})

watched(test, 'it comes and goes with the option, and leaves nothing behind', async (t) => {
  const { stdout, stderr, code } = await run('leaves', { LONGSTACK_CAPTURE: 'native' })
  t.is(stdout, 'here\ntrue true\ntrue,true,true\n')
  t.is(stderr, '')
  t.is(code, 0)
})

test('a wrong threshold is rejected', async (t) => {
  for (const value of ['0', 'soon', '3600001', '1.5']) {
    const { stdout, stderr } = await program('console.log("runs")', { env: { LONGSTACK_BLOCKED: value } })
    t.is(stdout, 'runs\n')
    t.regex(stderr, /^longstack: LONGSTACK_BLOCKED: Option "blocked" must be an integer from 1 to 3600000 \(ms\)\. Received .*\.\n$/)
  }
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(root)})
    for (const blocked of [0, '50', Infinity]) try { trace.enable({ blocked }) } catch (error) { console.log(error.code) }`, { preload: false })
  t.is(stdout, 'LONGSTACK_ERR_INVALID_OPTION\n'.repeat(3))
})

test('without the native engine, one line says so and the program runs', async (t) => {
  const env = { LONGSTACK_BLOCKED: '50', LONGSTACK_CAPTURE: 'js' }
  const source = "new (require('node:worker_threads').Worker)('console.log(1 + 1)', { eval: true })"
  const { stdout, stderr, code } = await program(source, { env })
  t.is(code, 0, stderr)
  t.is(stdout, '2\n')
  t.is(stderr, 'longstack: blocking callbacks cannot be detected without the native engine; ' +
    'longstack doctor explains why.\n')
})
