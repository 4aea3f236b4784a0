'use strict'

// The leak gate in each runner: a test or file that leaves handles open fails by name, with the runner's own
// exit code, and healthy ones pass.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const test = require('ava')
const { leakWatchEnvironment } = require('../../lib/leak-watch')
const { node } = require('../helpers/run')
const { testRunners } = require('../helpers/runners')

/** Makes functions that take a callback return a promise. */
const ADAPTER = `
  const adapt = (fn) => async () => { await (fn.length === 1 ? new Promise((resolve) => fn(resolve)) : fn()) }
`

/** Test styles that leave nothing open, each a test; hooks close what they share. */
const HEALTHY = `
  const net = require('node:net'), http = require('node:http'), fs = require('node:fs')
  const { fork, spawn } = require('node:child_process')
  const { once } = require('node:events')
  const { Worker, MessageChannel } = require('node:worker_threads')
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const listen = (server) => new Promise((resolve) => server.listen(0, () => resolve(server.address().port)))
  const read = async (response) => { let text = ''; for await (const part of response) text += part; return text }
  const agent = new http.Agent({ keepAlive: true })
  let shared, port, pool, children, fresh
  before(async () => { shared = http.createServer((request, response) => response.end('x')); port = await listen(shared); children = []; pool = [] })
  after(async () => {
    agent.destroy(); shared.close(); shared.closeAllConnections(); pool.forEach((socket) => socket.destroy())
    await Promise.all(children.map((child) => { child.kill(); return once(child, 'exit') }))
  })
  beforeEach(async () => { fresh = net.createServer((socket) => socket.end()); await listen(fresh) })
  afterEach((done) => { fresh.close(done) })
  it('keep-alive agent', async () => { await read((await once(http.get({ port, agent }), 'response'))[0]) })
  it('fetch with keep-alive', async () => { await (await fetch('http://localhost:' + port)).text() })
  it('fetch without its body', async () => { await (await fetch('http://localhost:' + port)).body.cancel() })
  it('fetch aborted', async () => { const abort = new AbortController(); const failed = fetch('http://localhost:' + port, { signal: abort.signal }).catch(() => {}); abort.abort(); await failed })
  it('server per request, closed without waiting', async () => { const own = http.createServer((_, response) => response.end()); const at = await listen(own); await (await fetch('http://localhost:' + at)).text(); own.close() })
  it('server per request, closed with the answer', (done) => { const own = http.createServer((_, response) => response.end()).listen(0, () => { http.get({ port: own.address().port, agent: false }, (response) => response.resume().on('end', () => own.close(done))) }) })
  it('server of beforeEach', (done) => { net.connect(fresh.address().port).resume().on('close', () => done()) })
  it('socket destroyed at once', () => { net.connect(port).on('error', () => {}).destroy() })
  it('socket ended without waiting', async () => { const socket = net.connect(port); await once(socket, 'connect'); socket.on('error', () => {}).end() })
  it('pool that opens lazily', async () => { const socket = net.connect(port); pool.push(socket); await once(socket, 'connect') })
  it('pool used again', async () => { pool[0].write('GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); await once(pool[0], 'data') })
  it('process pool, closed in after', async () => { const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 1e6)'], { stdio: 'ignore' }); children.push(child); await once(child, 'spawn') })
  it('child killed without waiting', async () => { const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 1e6)']); await once(child, 'spawn'); child.kill() })
  it('child that ends', async () => { await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit') })
  it('worker terminated without waiting', async () => { const worker = new Worker('setTimeout(() => {}, 1e6)', { eval: true }); await once(worker, 'online'); worker.terminate() })
  it('worker that ends', async () => { await once(new Worker('0', { eval: true }), 'exit') })
  it('message channel closed', async () => { const { port1, port2 } = new MessageChannel(); port2.on('message', () => {}); port1.postMessage(1); port1.close(); await once(port2, 'close') })
  it('timer unreferenced', () => { setInterval(() => {}, 1e6).unref(); setTimeout(() => {}, 1e6).unref() })
  it('timer cleared', () => { clearTimeout(setTimeout(() => {}, 1e6)); clearInterval(setInterval(() => {}, 1e6)) })
  it('timer that soon runs', () => { setTimeout(() => {}, 30); setImmediate(() => {}) })
  it('race with a timer that is cleared', async () => { let timer; await Promise.race([wait(5), new Promise((resolve) => { timer = setTimeout(resolve, 1e6) })]); clearTimeout(timer) })
  it('AbortSignal.timeout', async () => { await (await fetch('http://localhost:' + port, { signal: AbortSignal.timeout(1e6) })).text() })
  it('fake timers', async () => { const { setTimeout: real, setInterval: interval } = globalThis; globalThis.setTimeout = () => ({}); globalThis.setInterval = () => ({}); setTimeout(() => {}, 10); setInterval(() => {}, 10); globalThis.setTimeout = real; globalThis.setInterval = interval })
  it('file handle closed', async () => { const file = await fs.promises.open(__filename); await file.read(); await file.close() })
  it('stream of a file', async () => { for await (const part of fs.createReadStream(__filename)) part.length })
  it('watcher closed', () => { fs.watch(__dirname).close(); fs.watchFile(__filename, () => {}); fs.unwatchFile(__filename) })
  it('udp closed', (done) => { const socket = require('node:dgram').createSocket('udp4').bind(0, () => socket.close(done)) })
  it('signal listener', () => { const listener = () => {}; process.on('SIGUSR2', listener); process.off('SIGUSR2', listener) })
  it('compression', async () => { require('node:zlib').createGzip(); await require('node:util').promisify(require('node:zlib').gzip)('x') })
  it('readline closed', () => { require('node:readline').createInterface({ input: new (require('node:stream').PassThrough)() }).close() })
  it('own timeout of the test', async function () { if (this?.timeout) this.timeout(60000); await wait(1) })
`

const MOCHA = ['mocha12', 'mocha11']
/** The project has no longstack beside the runner, which alone finds plug-ins by name. */
const MOCHA_SETUP = { 'setup.cjs': "module.exports = require('longstack/mocha')" }

const LEAKS = `
  const net = require('node:net')
  describe('database', () => {
    let server
    before((done) => { server = net.createServer().listen(0, done) })
    it('saves', (done) => { net.connect(server.address().port).on('connect', function connected () { done() }) })
    it('reads', async () => { await new Promise((resolve) => setTimeout(resolve, 5)) })
  })
  describe('timers', () => {
    it('polls', () => { setInterval(function poll () {}, 1000) })
    it('fails by itself', () => { setTimeout(() => {}, 1e6); throw new Error('its own failure') })
    it.skip('is skipped', () => { setInterval(() => {}, 1000) })
  })
  describe('pool', () => {
    let server, socket, timer
    before((done) => { server = net.createServer().listen(0, done) })
    it('opens lazily', (done) => { socket = net.connect(server.address().port, () => done()) })
    it('forgets', () => { timer = setInterval(function forgotten () {}, 1000) })
    after(() => { socket.destroy(); server.close() })
  })`

testRunners(test, MOCHA, 'a test and a file that leave something open fail by name', async (t, run) => {
  const files = { ...MOCHA_SETUP, 'leak.test.js': LEAKS }
  const { stdout, code } = await run({ files, args: ['--exit', '--require', './setup.cjs', 'leak.test.js'] })
  const [marks, details] = stdout.split('failing')
  t.is(code, 5)
  t.regex(marks, /✔ reads/, 'the run goes on')
  t.regex(details, /1\) database\s+saves:\s+Error: test 'database saves' left 1 TCP connection, opened at leak\.test\.js:6\n/)
  t.regex(details, /opened by\n.*net\.connect[^]*leak\.test\.js:6[^]*hops? in mocha/)
  t.regex(details, /polls:\s+Error: test 'timers polls' left 1 timer, made at leak\.test\.js:10/)
  t.regex(details, /fails by itself:\s+Error: its own failure/)
  t.regex(details, /fails by itself:\s+Error: test 'timers fails by itself' left 1 timer/)
  t.regex(details, /"after all" hook: longstack .*:\s+Error: file leak\.test\.js left 1 TCP server, opened at leak\.test\.js:5/)
  t.regex(details, /test 'pool forgets' left 1 timer, made at leak\.test\.js:18/, 'told when the after hook has not closed it')
  t.notRegex(details, /opens lazily|is skipped/)
})

testRunners(test, MOCHA, 'by file only, and not at all', async (t, run) => {
  const files = { ...MOCHA_SETUP, 'leak.test.js': LEAKS.replace("throw new Error('its own failure')", '') }
  const args = ['--exit', '--require', './setup.cjs', 'leak.test.js']
  const [byFile, off] = await Promise.all(['file', 'off'].map((LONGSTACK_LEAKS) => run({ files, args, env: { LONGSTACK_LEAKS } })))
  t.is(byFile.code, 1)
  t.regex(byFile.stdout, /file leak\.test\.js left /)
  t.notRegex(byFile.stdout, /test '/)
  t.is(off.code, 0)
  t.is(byFile.stderr + off.stderr, '')
})

testRunners(test, MOCHA, 'files in parallel, and modules', async (t, run) => {
  const source = (/** @type {string} */ name) => `describe('${name}', () => { it('leaks', () => { setInterval(() => {}, 1000) }); it('is clean', () => {}) })`
  const module = `import net from 'node:net'; const server = net.createServer().listen(0); ${source('module')}; after(() => server.close())`
  const files = { ...MOCHA_SETUP, 'a.test.js': source('a'), 'b.test.js': source('b'), 'c.test.mjs': module }
  const { stdout, code } = await run({ files, args: ['--parallel', '--exit', '--require', './setup.cjs', '*.test.*js'] })
  t.is(code, 3, stdout)
  for (const name of ['a', 'b']) t.regex(stdout, new RegExp(`test '${name} leaks' left 1 timer, made at ${name}\\.test\\.js:1`))
  t.regex(stdout, /test 'module leaks' left 1 timer, made at c\.test\.mjs:1/)
})

testRunners(test, MOCHA, 'longstack run --fail-on-leak has the last word over its listener of exit', async (t, run) => {
  const files = { 'a.test.js': "it('leaks', () => { setInterval(function poll () {}, 1e6) })" }
  const { code, stdout, stderr } = await run({
    files,
    args: ['a.test.js'],
    nodeOptions: `-r ${JSON.stringify(require.resolve('../../lib/register'))} -r ${JSON.stringify(require.resolve('../../lib/leak-watch'))}`,
    env: leakWatchEnvironment({ failMs: 500 })
  })
  t.is(code, 3)
  t.regex(stdout, /1 passing/)
  t.regex(stderr, /calls poll\(\)/)
})

testRunners(test, MOCHA, 'thirty healthy styles of tests pass, with the gate', async (t, run) => {
  const files = { ...MOCHA_SETUP, 'a.test.js': HEALTHY, 'b.test.js': `describe('in a suite', () => {${HEALTHY}})` }
  const { stdout, stderr, code } = await run({ files, args: ['--timeout', '60000', '--require', './setup.cjs', '*.test.js'] })
  t.is(code, 0, stdout + stderr)
  t.regex(stdout, /62 passing/)
})

const AVA = ['ava8', 'ava7']
const AVA_LEAKS = `
  import net from 'node:net'
  import test from 'ava'
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const macro = test.macro({ exec: async (t, ms) => { await wait(ms); setInterval(function inMacro () {}, 1000); t.pass() }, title: (_, ms) => 'macro ' + ms })
  test('saves', async (t) => { await wait(5); const server = net.createServer().listen(0); await wait(50); t.true(server.listening) })
  test('waits beside', async (t) => { await wait(60); t.pass() })
  test(macro, 3)
  test('with teardown', (t) => { const timer = setInterval(() => {}, 1000); t.teardown(() => clearInterval(timer)); t.pass() })
  test.serial('serial', (t) => { t.pass() })
  test.skip('skipped', () => { setInterval(() => {}, 1000) })
  test.todo('todo')
  test('fails by itself', (t) => { setTimeout(() => {}, 1e6); t.fail('its own failure') })
  test.failing('fails as it should', (t) => { t.fail() })`

for (const workerThreads of [true, false]) {
  testRunners(test, AVA, `tests at the same time are told apart, in ${workerThreads ? 'threads' : 'processes'}`, async (t, run) => {
    const config = `export default { require: ['longstack/ava'], workerThreads: ${workerThreads}, timeout: '60s' }`
    const { stdout, code } = await run({
      files: { 'ava.config.mjs': config, 'a.test.mjs': AVA_LEAKS },
      args: ['a.test.mjs'],
      nodeOptions: ''
    })
    t.is(code, 1, stdout)
    t.regex(stdout, /test 'saves' left 1 TCP server, opened at a\.test\.mjs:6/)
    t.regex(stdout, /test 'macro 3' left 1 timer, made at (exec \()?a\.test\.mjs:5/)
    t.regex(stdout, /test 'fails by itself' left 1 timer/)
    t.regex(stdout, /its own failure/)
    t.notRegex(stdout, /(waits beside|with teardown|serial|skipped)' left|Timed out|Failed to exit/)
    t.regex(stdout, /3 hooks failed/)
  })
}

testRunners(test, AVA, 'healthy styles of tests pass, with the gate', async (t, run) => {
  const config = "export default { require: ['longstack/ava'], timeout: '60s' }"
  const source = `
    const ava = require('ava')
    const test = ava.default ?? ava
    ${ADAPTER}
    const declare = (fn) => async (t) => { await adapt(fn)(); t.pass() }
    const it = (title, fn) => test.serial(title, declare(fn))
    const before = (fn) => test.before(adapt(fn)), after = (fn) => test.after.always(adapt(fn))
    const beforeEach = (fn) => test.beforeEach(adapt(fn)), afterEach = (fn) => test.afterEach.always(adapt(fn))
    ${HEALTHY}`
  const { stdout, stderr, code } = await run({ files: { 'ava.config.mjs': config, 'a.test.js': source }, nodeOptions: '' })
  t.is(code, 0, stdout + stderr)
  t.regex(stdout, /31 tests passed/)
})

const nodeTest = require.resolve('../../lib/runners/node-test')

/**
 * Runs files under node --test.
 * @param {import('ava').ExecutionContext} t
 * @param {Record<string, string>} files
 * @param {string[]} [flags]
 * @param {Record<string, string>} [env]
 */
async function runNodeTest (t, files, flags = [], env = {}) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-node-test-')))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text)
  const plugin = ['--import', pathToFileURL(nodeTest).href]
  return await node(['--test', '--test-reporter=spec', ...flags, ...plugin, ...Object.keys(files)], { cwd: folder, env })
}

const NODE_LEAKS = `
  const { after, before, describe, it, test } = require('node:test')
  const net = require('node:net')
  const { fork } = require('node:child_process')
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  let server, lazy
  before((_, done) => { server = net.createServer(() => {}).listen(0, done) })
  after(() => { server.close() })
  test('saves', (t, done) => { const socket = net.connect(server.address().port, () => done()); socket.on('error', () => {}) })
  test('closes in t.after', (t, done) => { const socket = net.connect(server.address().port, () => done()); t.after(() => socket.destroy()) })
  describe('suite', () => { it('polls', () => { setInterval(function poll () {}, 1000) }) })
  test('fails by itself', () => { setTimeout(() => {}, 1e6); throw new Error('its own failure') })
  test('parent', { concurrency: 2 }, async (t) => {
    const first = t.test('leaks beside', async () => { await wait(10); setInterval(() => {}, 2000); await wait(50) })
    const second = t.test('waits beside', () => wait(80))
    await Promise.all([first, second])
  })
  test('forks', (t, done) => { fork('-e', ['0'], { execArgv: [...process.execArgv, '-e', '0'], silent: true }).on('exit', () => done()) })
  test('skipped', { skip: true }, () => { setInterval(() => {}, 1000) })`

test('node:test: a test and a file that leave something open fail by name', async (t) => {
  const { stdout, code } = await runNodeTest(t, { 'a.test.js': NODE_LEAKS })
  t.is(code, 1)
  const [, details] = stdout.split('failing tests:')
  t.regex(details, /test 'saves' left 1 TCP connection, opened at a\.test\.js:9\n/)
  t.regex(details, /test 'polls' left 1 timer, made at a\.test\.js:11\n/)
  t.regex(details, /✖ fails by itself .*\n.*Error: its own failure/)
  t.regex(details, /test 'fails by itself' left 1 timer, made at a\.test\.js:12/)
  t.regex(details, /test at a\.test\.js:14 left 1 timer, made at a\.test\.js:14/)
  t.notRegex(details, /closes in t\.after|waits beside' left|skipped|forks/)
})

test('node:test: healthy tests of all styles pass the check', async (t) => {
  const prelude = `
    const nodeTest = require('node:test')
    ${ADAPTER}
    const [it, before, after, beforeEach, afterEach] = ['it', 'before', 'after', 'beforeEach', 'afterEach']
      .map((name) => (...args) => nodeTest[name](...args.slice(0, -1), adapt(args.at(-1))))`
  const files = { 'a.test.js': prelude + HEALTHY, 'b.test.js': `${prelude}\nnodeTest.describe('in a suite', () => {${HEALTHY}})` }
  const { stdout, stderr, code } = await runNodeTest(t, files)
  t.is(code, 0, stdout + stderr)
  t.regex(stdout, /pass 62/)
})

const major = Number(process.versions.node.split('.', 1)[0])

if (major >= 24) {
  test('node:test: files in one process, and TypeScript', async (t) => {
    const source = (/** @type {string} */ name) => `
      import { test } from 'node:test'
      test('${name}', (t: unknown) => { setInterval(() => {}, 1000) })
      test('clean ${name}', () => {})`
    const files = { 'a.test.ts': source('first'), 'b.test.ts': source('second') }
    const { stdout, code } = await runNodeTest(t, files, ['--test-isolation=none'])
    t.is(code, 1)
    for (const [name, file] of [['first', 'a'], ['second', 'b']]) {
      t.regex(stdout, new RegExp(`test '${name}' left 1 timer, made at ${file}\\.test\\.ts:3`))
    }
    t.regex(stdout, /✖ first[^]*✖ second[^]*pass 2\n/)
  })
}
