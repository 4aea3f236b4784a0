'use strict'

// Every example is short, needs only longstack, runs without arguments and prints what it demonstrates.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const test = require('ava')
const { inOrder } = require('../helpers/articles')
const { node, root, register } = require('../helpers/run')
const { recordsOf } = require('../helpers/records')

const MAX_LINES = 120
const directory = path.join(root, 'examples')

test('an example has at most 120 lines and imports longstack and node: alone', (t) => {
  const all = /** @type {string[]} */ (fs.readdirSync(directory, { recursive: true }))
  const files = all.filter((name) => name.endsWith('.js'))
  t.true(files.length > 14)
  for (const name of files) {
    const text = fs.readFileSync(path.join(directory, name), 'utf8')
    t.true(text.trimEnd().split('\n').length <= MAX_LINES, name)
    const imports = [...text.matchAll(/require(?:\.resolve)?\('([^']*)'\)/g)].map(([, module]) => module)
    const isAllowed = /^(node:|longstack$|longstack\/register$)/
    t.deepEqual(imports.filter((module) => !isAllowed.test(module)), [], name)
  }
})

/**
 * Runs an example to its end, as a user does.
 * @param {import('ava').ExecutionContext} t
 * @param {string} name
 */
async function output (t, name, ...args) {
  const { stdout, stderr, code } = await node([path.join(directory, `${name}.js`), ...args])
  t.is(stderr, '')
  t.is(code, 0)
  return stdout
}

const run = (name, preload = true, env = {}) => {
  return node([...(preload ? ['-r', register] : []), path.join(directory, `${name}.js`)], { env })
}

test('start shows a refused connection and the origin of a live one, in colour if wanted', async (t) => {
  const { stdout, stderr, code } = await run('start')
  t.is(stderr, '')
  t.is(code, 0)
  inOrder(t, stdout, /^Error: connect ECONNREFUSED 127\.0\.0\.1:1\n {4}at TCPConnectWrap.*\n/,
    /^ {2}── net\.connect\(127\.0\.0\.1:1\) · \d+ ms earlier ──\n {4}at openPool/)
  t.regex(stdout, /── setTimeout\(100\)/)
  inOrder(t, stdout, /TCP connection, client to 127/, /opened by\n {2}── http\.get/, 'loadOrders', 'refresh',
    /used now by GET http:\/\/127\.0\.0\.1:\d+\/orders/)
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
  const count = (/** @type {string} */ stage) => events.filter((line) => line.startsWith(stage)).length
  t.is(count('before'), count('after'))
  t.true(lines.length < 60, 'logging made no events')
})

test('why-connection: both ends name their opener, also after close', async (t) => {
  const { stdout, stderr, code } = await run('why-connection')
  t.is(stderr, '')
  t.is(code, 0)
  const [accepted, outgoing, closed] = stdout.split(/^The .*:$/m).slice(1)
  t.regex(accepted, /server of[^]*connection accepted[^]*server\.listen[^]*startService/)
  t.regex(outgoing, /client to[^]*7 bytes in, 5 bytes out[^]*callService[^]*setTimeout\(20\)/)
  t.regex(closed, /client to 127[^]*closed,[^]*7 bytes in, 5 bytes out[^]*callService/)
})

test('timers: a loop is one hop with a count, and its start is kept', async (t) => {
  const { stdout, code } = await run('timers')
  t.is(code, 0)
  t.regex(stdout, /^Error: gave up\n/)
  t.regex(stdout, /── setTimeout\(1\) × 99/)
  t.regex(stdout, /── setImmediate[^]*startPolling/)
  t.true(stdout.split('  ── ').length <= 4)
})

test('subsystem-filter: only the filtered types are listed, the chain is complete', async (t) => {
  const { stdout, stderr, code } = await run('subsystem-filter', false)
  t.is(stderr, '')
  t.is(code, 0)
  t.regex(stdout, /LONGSTACK_ERR_UNKNOWN_SUBSYSTEM: Unknown subsystem "TPC"\. Did you mean "TCP"\?/)
  t.regex(stdout, /── net\.connect\(127[^]*dial[^]*── server\.listen\(127/)
  t.true(stdout.includes('Resources that hooks saw: {"TCPSERVERWRAP":2,"TCPWRAP":4,"TCPCONNECTWRAP":2}'))
})

test('error-tracing: the handler handles some errors, others are uncaught', async (t) => {
  const { stdout, stderr, code } = await run('error-tracing')
  t.is(stderr, '')
  t.is(code, 0)
  inOrder(t, stdout, /^Handled: connect ECONNREFUSED 127\.0\.0\.1:1\n/,
    /^ {2}in net\.connect\(127\.0\.0\.1:1\) \(TCPCONNECTWRAP \d+\)/, 'connectToDatabase')
  t.regex(stdout, /uncaughtException still gets the rest: not of TCP\n$/)
})

test('01-intercept: the header is removed before the parser, though its name is split', async (t) => {
  const stdout = await output(t, '01-intercept')
  const lines = [...stdout.matchAll(/^(\/\w+): (.*); body "customHeader: body"$/gm)]
  const headers = new Map(lines.map(([, url, list]) => [url, list]))
  t.deepEqual([...headers.keys()], ['/before', '/during', '/why', '/after'])
  for (const [url, list] of headers) t.is(list.includes('customheader'), /before|after/.test(url), url)
  inOrder(t, stdout, /used now by POST \/why\n/,
    /^ {2}its bytes go through removeCustomHeader, set at .*01-intercept\.js:\d+:\d+/)
  inOrder(t, stdout, /Error: an example\n/,
    /── POST \/why, through removeCustomHeader · /)
})

test('02-tcp-net-http: the resources of each layer, and the opener of its connection', async (t) => {
  const parts = (await output(t, '02-tcp-net-http')).split(/^(?:raw|net|http): .*\n/m).slice(1)
  const counts = parts.map((part) => Object.fromEntries([...part.matchAll(/^ {2}(\w+) +(\d+), ([\d.]+)$/gm)]
    .map(([, type, first, further]) => [type, [Number(first), Number(further)]])))
  const [raw, net, http] = counts
  t.deepEqual(raw, { TCPWRAP: [1, 0] }, 'the handle makes nothing for a request')
  t.deepEqual(net.TCPWRAP, [1, 0])
  t.true(net.TickObject[1] >= 1)
  t.true(http.TickObject[1] > net.TickObject[1])
  for (const part of parts) {
    inOrder(t, part, /TCP connection, server of 127/, 'connection accepted', /server\.listen\(127/)
  }
  t.regex(parts[0], /to close it: handle\.close\(\)/)
  t.regex(parts[1], /to close it: socket\.end\(\)/)
})

test('03-primes-in-nexttick: a recursion is one hop with its count', async (t) => {
  const stdout = await output(t, '03-primes-in-nexttick')
  t.is(stdout.match(/^test(Beside|Inside): 3245 primes up to 30000, [\d.]+ µs of CPU per tick$/gm)?.length, 4)
  inOrder(t, stdout, /^Error: the end of 29999 ticks\n/, /── process\.nextTick × 29998 /,
    /at tick /, /── process\.nextTick /, /at main /)
  t.regex(stdout, /stands for 29998 ticks/)
  const held = /: (\d+) in the last tick, (\d+) after/.exec(stdout) ?? t.fail(stdout)
  const [contexts, later] = held.slice(1).map(Number)
  t.true(contexts < 31_000 && later < 2_100, 'both are estimates')
})

test('04-serving-files: where the time went, with a slow client and one that leaves', async (t) => {
  const stdout = await output(t, '04-serving-files')
  const rows = [...stdout.matchAll(/^ {2}(\/\S+): run [\d.]+, waited [\d.]+, delayed [\d.]+$/gm)]
  t.deepEqual(rows.map(([, route]) => route), ['/chunks-of-4-KiB', '/chunks-of-64-KiB', '/whole'])
  const [, waits] = /^A client reads nothing for 300 ms: run [\d.]+, wait (\{.*\})$/m.exec(stdout) ?? []
  t.true(Object.values(JSON.parse(waits)).some((ms) => ms > 0))
  inOrder(t, stdout, /^Open files while a client waits: 1\. Then the client leaves\.$/,
    /^GET \/film failed: Premature close\.$/)
  t.regex(stdout, /Its span ended as "aborted"\. Open files now: 0\.\n$/)
})

test('05-deferring: the order of all ways, and chains that lead to the caller', async (t) => {
  const stdout = await output(t, '05-deferring')
  t.regex(stdout, /attached:\n {2}no listener for 5 characters\n/)
  t.false(stdout.includes('never called'))
  const first = 'process.nextTick, promise.then, queueMicrotask'
  t.true(stdout.includes(`  of fs.stat: ${first}, setImmediate, setTimeout 0\n`))
  t.true(stdout.includes(`  of setImmediate: ${first}, setTimeout 0, setImmediate\n`))
  t.regex(stdout, / {2}of a promise: promise\.then, queueMicrotask, process\.nextTick, /)
  inOrder(t, stdout, /^Error: no log for 5 characters\n {4}at (Object\.)?logLength /,
    /── process\.nextTick /, /at deliver /, /at showHomePage /)
  const labels = { 'setTimeout 0': 'setTimeout(1)' } // Node makes 1 of 0
  for (const way of ['process.nextTick', 'queueMicrotask', 'promise.then', 'setImmediate', 'setTimeout 0']) {
    const begin = `  ${way}: ${labels[way] ?? way}, set in `
    const line = stdout.split('\n').find((text) => text.startsWith(begin))
    t.regex(String(line), / < deliver < showHomePage < main$/, way)
  }
})

test('06-logger: spans as lines, errors with chains as text and as data, a rotated file', async (t) => {
  const stdout = await output(t, '06-logger')
  const [, old, current, errors] = stdout.split(/^(?:all\.log\.1|all\.log|errors\.jsonl):\n/m)
  inOrder(t, old, /^\S+Z error no user\n {4}Error: ENOENT/, /^ {6}── fs\.promises\.readFile /, /GET \/user/)
  t.regex(old, /^\S+Z info {2}SERVER GET \/user: run [\d.]+ ms, waited [\d.]+ ms, delayed [\d.]+ ms$/m)
  inOrder(t, current, /^\S+Z error escaped\n {4}Error: connect ECONNREFUSED.*\n.*\n {6}── net\.connect\(/,
    /^ {8}at sendMail .*\n {6}── setTimeout\(5\) /, /^ {8}at answer .*\n {6}── GET \/order/)
  const [user, order] = errors.trim().split('\n').map((line) => JSON.parse(line))
  t.regex(user.error, /ENOENT/)
  const hops = order.chain.map((hop) => hop.replace(/(\(.*\))?( at 06-logger.js:\d+)?$/, ''))
  t.deepEqual(hops, ['net.connect', 'setTimeout', 'GET /order', 'server.listen'])
})

test.serial('07-never-comes-back: an endless loop is reported while it runs, and by a span', async (t) => {
  const stdout = await output(t, '07-never-comes-back', '--keep')
  const [, kept] = /^longstack report (.*never-comes-back-\w+).\*\.jsonl$/m.exec(stdout) ?? t.fail(stdout)
  t.teardown(() => fs.rmSync(kept, { recursive: true, force: true }))
  const source = fs.readFileSync(path.join(directory, '07-never-comes-back.js'), 'utf8').split('\n')
  const line = source.findIndex((text) => text.trim() === 'while (true);') + 1
  inOrder(t, stdout, /^longstack: the event loop is blocked by GET \/forever, for \S+ \w+ so far$/,
    `^ {4}at comeBackNever \\(.*07-never-comes-back.js:${line}:\\d+\\)\n {4}at answer `,
    /^ {2}── GET \/forever/)
  t.true(stdout.includes('After 1300 ms: AbortError, AbortError\n'))
  t.deepEqual(stdout.match(/^(at-once|in-slices): median \d+ ms, slowest \d+ ms$/gm)?.length, 2)
  const spans = fs.readFileSync(path.join(kept, 'stuck.jsonl'), 'utf8').trim().split('\n')
  const records = recordsOf(spans)
  const open = records.filter(({ attributes }) => attributes['longstack.end'] === 'open')
  t.deepEqual(open.map(({ name }) => name), ['blocked'])
  t.is(open[0].attributes['longstack.blocked_by'], 'GET /forever')
})

test.serial('08-where-time-goes: the report begins with the pool, the sequence and the blocker', async (t) => {
  const stdout = await output(t, '08-where-time-goes')
  const source = fs.readFileSync(path.join(directory, '08-where-time-goes.js'), 'utf8').split('\n')
  const lineOf = (/** @type {string} */ mark) => source.findIndex((text) => text.endsWith(`// ${mark}`)) + 1
  const verdict = stdout.slice(stdout.indexOf('Verdict'), stdout.indexOf('\n\n', stdout.indexOf('Verdict')))
  const words = verdict.replace(/\s+/g, ' ')
  const place = (/** @type {string} */ mark) => `08-where-time-goes\\.js:${lineOf(mark)}\\)`
  t.regex(words, new RegExp(`turn at acquire \\(${place('the pool')} \\d+ % of .* time: 3 connections`))
  t.regex(words, new RegExp(`GET /report .* one after another at loadReport \\(${place('the sequence')}.* \\d+ %`))
  t.regex(words, new RegExp(`computePrice \\(${place('the blocker')} in GET /price blocked .* \\d+ %`))
})

test.serial('09-live: commands name the function and line of the leaks', async (t) => {
  const file = path.join(directory, '09-live.js')
  const service = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => service.kill('SIGKILL'))
  let printed = ''
  for await (const text of service.stdout.setEncoding('utf8')) if ((printed += text).includes('diff')) break
  const source = fs.readFileSync(file, 'utf8').split('\n')
  const lineOf = (/** @type {string} */ mark) => source.findIndex((text) => text.includes(`// ${mark}`)) + 1
  const place = (/** @type {string} */ name, /** @type {string} */ mark) =>
    `${name} \\((\\S*/)?09-live\\.js:${lineOf(mark)}(:\\d+)?\\)`
  const ask = async (/** @type {string} */ name, /** @type {string[]} */ ...flags) => {
    t.true(printed.includes(`longstack ${name} --no-children ${service.pid} `))
    const command = path.join(directory, '..', 'lib', 'cli', 'main.js')
    const { stdout, code } = await node([command, name, '--no-children', ...flags, String(service.pid)])
    t.is(code, 0)
    return stdout
  }
  const opened = await ask('diff', '--seconds', '4')
  for (const [name, mark] of [['queryDatabase', 'the connection'], ['watchPrices', 'the interval']]) {
    inOrder(t, opened, /^\d+ × /, /more since the snapshot .* per minute$/, new RegExp(place(name, mark)))
  }
  const present = await ask('why')
  inOrder(t, present, new RegExp(`^\\d+ × await at ${place('queryDatabase', 'the wait')}.*, GET /report`))
  inOrder(t, present, /^\d+ × TCP connection, client to /, new RegExp(place('queryDatabase', 'the connection')))
  inOrder(t, present, /^\d+ × timer, every 1000 ms, calls updatePrice/,
    new RegExp(place('watchPrices', 'the interval')))
  const figures = await ask('top', '--once')
  t.regex(figures, new RegExp(`^${place('queryDatabase', 'the connection')} +TCP connection +\\d+ +\\+`, 'm'))
  t.regex(figures, /^GET \/report +[\d.]+ /m)
})

test.serial('07-never-comes-back: the stuck server ends with the example', async (t) => {
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-')) // no one else removes it
  t.teardown(() => fs.rmSync(temporary, { recursive: true, force: true }))
  const example = spawn(process.execPath, [path.join(directory, '07-never-comes-back.js')],
    { env: { ...process.env, TMPDIR: temporary }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => example.kill('SIGKILL'))
  for await (const text of example.stdout.setEncoding('utf8')) if (text.includes('asks for /forever')) break
  const list = `/proc/${example.pid}/task/${example.pid}/children`
  if (!fs.existsSync(list)) {
    t.log('skipped: this kernel does not list the children of a process')
    return t.falsy(process.env.CI)
  }
  const [server] = fs.readFileSync(list, 'utf8').trim().split(' ')
  t.true(isRunning(server))
  example.kill('SIGKILL')
  await once(example, 'exit')
  for (let i = 0; i < 200 && isRunning(server); i++) await delay(100)
  t.false(isRunning(server))
})

/** @param {string} pid */
function isRunning (pid) {
  try {
    return !/\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
