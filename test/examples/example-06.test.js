'use strict'

// The logger of the examples: its story, its claims, the same answers bare and traced, and what it promises of rotation,
// failing outputs and exit.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, root, register } = require('../helpers/run')

const file = path.join(root, 'examples', '06-logger.js')

/** @param {import('ava').ExecutionContext} t */
function folderFor (t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-logger-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('the story: spans as lines, errors with their chains, nothing lost in rotation, hooks that log, what it costs', async (t) => {
  const { stdout, stderr, code } = await node([file])
  t.is(stderr, '')
  t.is(code, 0)

  t.regex(stdout, /^\S+Z info {2}SERVER GET \/ 200 in [\d.]+ ms: run [\d.]+ ms, waited [\d.]+ ms(?: for TIMER)?, delayed/m)
  t.regex(stdout, /^\S+Z error no user\n {4}Error: ENOENT.*\n(?: {8}at .*\n)*? {6}── fs\.promises\.readFile [^]*?GET \/user[^]*?server\.listen/m)
  const escaped = /^\S+Z error escaped\n {4}Error: connect ECONNREFUSED.*\n.*\n {6}── net\.connect\(.*\n {8}at sendMail .*\n {6}── setTimeout\(5\) .*\n {8}at answer .*\n/m.exec(stdout)
  t.regex(stdout.slice(escaped?.index).slice(Number(escaped?.[0].length)), /^ {6}── GET \/order/)

  const [user, order] = stdout.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
  t.regex(user.error, /ENOENT/)
  t.regex(order.chain.map((/** @type {string} */ hop) => hop.replace(/:\d+\)/, ')').replace(/:\d+$/, '')).join(', '),
    /^net\.connect\(127\.0\.0\.1\) at 06-logger\.js, setTimeout\(5\) at 06-logger\.js, GET \/order, server\.listen\(127\.0\.0\.1\) at 06-logger\.js$/)

  const onStdout = stdout.slice(stdout.indexOf('stdout, too'), stdout.indexOf('Now under load')).split('\n').filter((line) => line.includes(' warn '))
  t.deepEqual(onStdout.map((line) => /(failed with ENOSPC|is tried again: \d+ lines)/.exec(line)?.[0].replace(/\d+/, 'N')),
    ['failed with ENOSPC', 'is tried again: N lines', 'failed with ENOSPC'])

  const [, asked, lines, spans, lost, twice, torn] = /^(\d+) requests: (\d+) lines and (\d+) spans in 7 files, (\d+) lost, (\d+) twice, (\d+) torn\.$/m.exec(stdout)?.map(Number) ?? []
  t.true(asked > 400, stdout)
  t.deepEqual({ lines, spans, lost, twice, torn }, { lines: asked, spans: asked, lost: 0, twice: 0, torn: 0 })

  const [, quiet, logged] = /^(\d+) events, and (\d+): /m.exec(stdout)?.map(Number) ?? []
  t.true(quiet > 5)
  t.is(logged, quiet)

  const rows = [...stdout.matchAll(/^(?:into|an error).*?([\d.]+) +([\d.]+)$/gm)].map((row) => row.slice(1).map(Number))
  t.is(rows.length, 5)
  for (const row of rows) for (const figure of row) t.true(figure > 0.05 && figure < 50_000, stdout)
})

const modes = {
  'in full': {},
  'with spans': { LONGSTACK_SPANS: 'FOLDER/spans.jsonl' },
  'with long runs reported': { LONGSTACK_BLOCKED: '20' },
  'in light mode': { LONGSTACK_MODE: 'light' },
  'by the JavaScript engine': { LONGSTACK_CAPTURE: 'js' }
}

for (const [name, env] of Object.entries(modes)) {
  test(`its answers are the same bare and traced ${name}`, async (t) => {
    const folder = folderFor(t)
    const given = Object.fromEntries(Object.entries(env).map(([key, value]) => [key, value.replace('FOLDER', folder)]))
    const bare = await node([file, '--answers'])
    const traced = await node(['-r', register, file, '--answers'], { env: given })
    t.is(bare.code, 0)
    t.is(bare.stderr, '')
    t.is(traced.code, 0)
    t.is(traced.stdout, bare.stdout)
    t.regex(bare.stdout, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nhello\n/m)
    t.regex(bare.stdout, /^all\.1:\n.*debug a debug\\nof "two" lines \\u001b\[31m\n[^]*still in the old file\n\nall:\n(?!.*still)[^]*in the new file\n/m)
    t.regex(bare.stdout, /info {2}request 2: \/\\nforged\n/, 'no line is forged')
    const warnings = /** @type {string} */ (/^warnings:\n([^]*?)\n\n/m.exec(bare.stdout)?.[1]).split('\n')
    t.true(warnings.every((line) => /Z (warn |error) /.test(line)))
    t.is(warnings.filter((line) => line.includes('failed with ENOSPC')).length, 2, 'once, and once when it was tried again')
    if ('LONGSTACK_SPANS' in env) t.true(fs.readFileSync(path.join(folder, 'spans.jsonl'), 'utf8').includes('GET /user'))
  })
}

test('--json: claims in the shape of the page, off and on', async (t) => {
  const { stdout, stderr, code } = await node([file, '--json', '--quick'])
  t.is(stderr, '')
  t.is(code, 0)
  const { claims } = JSON.parse(stdout)
  t.deepEqual(claims.map((/** @type {any} */ claim) => claim.id), ['log-at-once-over-stream', 'log-at-once-over-gathered', 'log-chain-over-message'])
  for (const { article, said, saidRatio, a, b, unit, off, on, means, why } of claims) {
    for (const text of [article, said, a, b, unit, means]) t.true(typeof text === 'string' && text.length > 0)
    t.is(saidRatio, null)
    for (const figure of [off.a, off.b, on.a, on.b]) t.true(figure > 0.05 && figure < 50_000)
    t.true(Object.keys(why).length > 0 && Object.keys(why).every((key) => ['as said', 'no difference', 'other way round'].includes(key)))
  }
  const chain = claims[2]
  t.true(chain.off.b > chain.off.a && chain.on.b > chain.on.a, 'a stack is never for nothing')
  t.true(chain.on.b > chain.off.b, 'nor is a chain')
})

/** Runs the example's server, traced, until it is told to end. @param {import('ava').ExecutionContext} t @param {import('node:child_process').StdioOptions} [stdio] */
async function serve (t, stdio = ['ignore', 'pipe', 'pipe', 'ipc']) {
  const folder = folderFor(t)
  const child = spawn(process.execPath, ['-r', register, file, 'serve', folder, '1'], { stdio })
  t.teardown(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text) => { stderr += text })
  const [port] = await once(child, 'message')
  return { folder, child, port, stderr: () => stderr, log: () => fs.readFileSync(path.join(folder, 'all.log'), 'utf8') }
}

test('what is gathered is written at exit', async (t) => {
  const { child, port, log, stderr } = await serve(t)
  await (await fetch(`http://127.0.0.1:${port}/the-last`)).text()
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  t.is(code, 0)
  t.is(stderr(), '')
  t.regex(log(), /info {2}request 1: \/the-last\n[^]*info {2}SERVER GET \/the-last 200 in /)
})

test('a stdout that nobody reads any more is told once, and the file misses nothing', async (t) => {
  const { child, port, log, stderr } = await serve(t)
  child.stdout?.destroy()
  for (let i = 0; i < 5; i++) await (await fetch(`http://127.0.0.1:${port}/user`)).text()
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  t.is(code, 0)
  t.is(stderr(), '')
  t.is(log().match(/error no user\n/g)?.length, 5)
  t.is(log().match(/log output stdout failed with EPIPE/g)?.length, 1)
})

test('a folder that is gone while it logs: the open file goes on, and a new one is made when there is one again', async (t) => {
  const { folder, child, port } = await serve(t)
  const read = (/** @type {string} */ where) => fs.readFileSync(path.join(where, 'all.log'), 'utf8')
  const until = async (/** @type {() => boolean} */ done) => { while (!done()) await new Promise((resolve) => setTimeout(resolve, 10)) }
  const ask = async (/** @type {string} */ url) => (await fetch(`http://127.0.0.1:${port}${url}`)).text()
  await ask('/before')
  fs.renameSync(folder, `${folder}.old`)
  t.teardown(() => fs.rmSync(`${folder}.old`, { recursive: true, force: true }))
  child.kill('SIGUSR2')
  await ask('/without')
  await until(() => read(`${folder}.old`).includes('/without'))
  fs.mkdirSync(folder)
  child.kill('SIGUSR2')
  await until(() => fs.existsSync(path.join(folder, 'all.log')))
  await ask('/after')
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  t.is(code, 0)
  t.regex(read(`${folder}.old`), /request 1: \/before\n[^]*request 2: \/without\n/)
  t.regex(read(folder), /request 3: \/after\n/)
})
