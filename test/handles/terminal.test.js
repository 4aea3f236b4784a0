'use strict'

// Terminal output: colours, a source line and links, in longstack's own reports and in Node's report of a
// fatal error. A pipe gets none of this, and no program sees it in a stack.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { stripVTControlCharacters } = require('node:util')
const test = require('ava')
const { leakWatchEnvironment } = require('../../lib/leak-watch')
const { node, register, root, withoutHops } = require('../helpers/run')
const { skip } = require('../helpers/skip')
const { COLUMNS, noTerminal, onTerminal } = require('../helpers/terminal')

const reason = noTerminal()
const ESC = '\u001b'
const LEAK_WATCH = require.resolve('../../lib/leak-watch')

/**
 * A test that needs a terminal.
 * @param {string} title
 * @param {(t: import('ava').ExecutionContext) => Promise<void>} body
 */
function onTty (title, body) {
  test(title, async (t) => {
    if (reason === undefined) return await body(t)
    skip(t, reason)
  })
}

/** Lines of source, as longstack prints them. */
const withoutCode = (/** @type {string} */ text) => text.replace(/\n {6,}(\d+| +) ?│[^\n]*?( \{)?(?=\n)/g, '$2')

const CONNECT = `
setTimeout(function openPool () {
  require('node:net').connect(1, '127.0.0.1')
}, 1)
`

onTty('an uncaught error has coloured hops, and the source line below the program\'s innermost frame', async (t) => {
  const { text, plain, code } = await onTerminal(CONNECT)
  t.is(code, 1)
  t.true(text.includes(`${ESC}[36m  ── net.connect(127.0.0.1:1)`), text)
  t.regex(plain, /at openPool \(.*:3:23\)\n {6}3 │ require\('node:net'\)\.connect\(1, '127\.0\.0\.1'\)\n {8}│ {21}\^\n {2}── setTimeout/)
  t.is(plain.match(/ │ /g)?.length, 2, 'one line of source')
  t.regex(plain, /^Error: connect ECONNREFUSED 127\.0\.0\.1:1$/m)
  t.regex(plain, /code: 'ECONNREFUSED'/)
})

onTty('without colours, the source line is printed; without a terminal, it is not', async (t) => {
  const without = await onTerminal(CONNECT, { env: { NO_COLOR: '1' } })
  t.is(without.text, without.plain)
  t.regex(without.text, /\n {6}3 │ require/)
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-pipe-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'stderr')
  await onTerminal(CONNECT, { redirect: `2>${file}` })
  const piped = fs.readFileSync(file, 'utf8')
  t.false(piped.includes(ESC) || piped.includes(' │ '), piped)
  t.regex(piped, /── net\.connect\(127\.0\.0\.1:1\)/)
})

/** Programs that end by an error, or do not. @type {Record<string, string>} */
const endings = {
  thrown: "setTimeout(() => { throw new TypeError('thrown') }, 1)",
  rejected: "Promise.reject(new Error('rejected'))",
  'rejected with a string': "Promise.reject('plain string')",
  'rejected with an object': 'setTimeout(() => Promise.reject({ a: 1 }), 1)',
  'thrown string': "setTimeout(() => { throw 'plain string' }, 1)",
  'thrown object': 'setTimeout(() => { throw { a: 1, b: [2] } }, 1)',
  'thrown null': 'setTimeout(() => { throw null }, 1)',
  'at the top': "throw new RangeError('at the top')",
  'an error event': "setTimeout(() => new (require('node:events'))().emit('error', new Error('event')), 1)",
  'an exit code': "process.exitCode = 9; process.on('exit', (code) => console.log('exit', code)); throw new Error('code')",
  'a listener': "process.on('uncaughtException', ({ stack }) => console.log('caught', stack.includes('\\u001b'))); setTimeout(() => { throw new Error('x') }, 1)",
  'a listener that throws': "process.on('uncaughtException', () => { throw new Error('second') }); setTimeout(() => { throw new Error('first') }, 1)",
  'a capture callback': "process.setUncaughtExceptionCaptureCallback(({ message }) => console.log('captured', message)); setTimeout(() => { throw new Error('x') }, 1)",
  'a domain': "require('node:domain').create().on('error', ({ message }) => console.log('domain', message)).run(() => setTimeout(() => { throw new Error('x') }, 1))",
  'an unhandledRejection listener': "process.on('unhandledRejection', ({ message }) => console.log('heard', message)); Promise.reject(new Error('x'))",
  frozen: "setTimeout(() => { throw Object.freeze(new Error('frozen')) }, 1)",
  'a getter': "const e = new Error('getter'); Object.defineProperty(e, 'stack', { get: () => 'Error: own\\n    at nowhere (/no/such/file.js:1:1)' }); setTimeout(() => { throw e }, 1)",
  'a proxy': "setTimeout(() => { throw new Proxy(new Error('proxy'), {}) }, 1)",
  'no stack': "Error.stackTraceLimit = 0; setTimeout(() => { throw new Error('limit') }, 1)",
  'a class': "class Odd extends Error { constructor () { super('odd'); this.name = 'Odd'; this.detail = { deep: new Error('inner') } } }; setTimeout(() => { throw new Odd() }, 1)",
  'a message of many lines': "setTimeout(() => { throw new Error('one\\n    at two (/app/three.js:1:2)\\n  ── four ──') }, 1)"
}

/** What a terminal got, without what longstack adds. @param {{ plain: string, folder: string }} result */
function normalized ({ plain, folder }) {
  // V8 names a frame by the property of its receiver that holds the function; it holds a wrapper.
  const text = plain.replace('process._fatalException (', 'process.<anonymous> (')
  return withoutHops(withoutCode(text)).replaceAll(folder, 'folder').replace(/\(node:\d+\)/g, '(node:pid)')
    .replace(/[ \t]+$/gm, '')
}

for (const [name, source] of Object.entries(endings)) {
  onTty(`a fatal error ends the process like Node, except for hops, colours and source: ${name}`, async (t) => {
    const [bare, traced] = await Promise.all([onTerminal(source, { preload: false }), onTerminal(source)])
    t.is(traced.code, bare.code)
    t.is(normalized(traced), normalized(bare), traced.text)
  })
}

/** Flags of Node, each with an end that it concerns. @type {Record<string, string>} */
const flags = {
  '--enable-source-maps': 'thrown',
  '--trace-uncaught': 'thrown',
  '--unhandled-rejections=strict': 'rejected',
  '--unhandled-rejections=warn': 'rejected'
}

for (const [flag, ending] of Object.entries(flags)) {
  onTty(`a flag of Node works as before: ${flag}`, async (t) => {
    const options = { args: [flag] }
    const bare = await onTerminal(endings[ending], { ...options, preload: false })
    const traced = await onTerminal(endings[ending], options)
    t.is(traced.code, bare.code)
    t.is(normalized(traced), normalized(bare), traced.text)
  })
}

onTty('no listener or other reader sees a decorated stack', async (t) => {
  const { plain, text } = await onTerminal(`
    const util = require('node:util')
    const say = (name, error) => console.log(name, /\\u001b|│/.test(error.stack + util.inspect(error)))
    let last
    process.on('uncaughtExceptionMonitor', (error) => { last = error; say('monitor', error) })
    process.on('exit', () => say('exit', last))
    ${CONNECT}`)
  t.regex(plain, /^monitor false$/m)
  t.regex(plain, /^exit false$/m)
  t.true(text.includes(`${ESC}[36m  ── net.connect`))
})

onTty('an error that a debugger may read is left unchanged', async (t) => {
  const { plain, text, code } = await onTerminal(CONNECT, { args: ['--inspect=127.0.0.1:0'] })
  t.is(code, 1)
  t.regex(plain, /── net\.connect\(127\.0\.0\.1:1\)/)
  t.false(plain.includes(' │ ') || text.includes(`${ESC}[36m`), text)
})

onTty('a cause and the errors of an AggregateError have colours and a source line each', async (t) => {
  const { plain, text } = await onTerminal(`
setTimeout(function outer () {
  const inner = () => new TypeError('inner')
  const cause = inner()
  throw new AggregateError([new Error('first')], 'outer', { cause })
}, 1)`)
  t.regex(plain, /\[cause\]: TypeError: inner\n +at inner .*\n +3 │ const inner = \(\) => new TypeError\('inner'\)\n/)
  t.regex(plain, /Error: first\n +at .*\n +5 │ throw new AggregateError\(\[new Error\('first'\)\]/)
  t.true(text.includes(`${ESC}[36m  ── setTimeout(1)`))
})

onTty('errors of workers, modules and their rejections have hops', async (t) => {
  const worker = await onTerminal(`
const { Worker, isMainThread } = require('node:worker_threads')
if (isMainThread) setTimeout(function start () { new Worker(__filename) }, 1)
else setTimeout(function work () {
  throw new Error('in the worker')
}, 1)`)
  t.is(worker.code, 1)
  t.regex(worker.plain, /Error: in the worker\n +at .*work.*\n {6}5 │ throw new Error\('in the worker'\)\n/)
  t.true(worker.text.includes(`${ESC}[36m  ── new Worker`), worker.text)
  const module = await onTerminal(`import fs from 'node:fs/promises'
await fs.readFile('/no/such/file')
`, { type: 'mjs' })
  t.is(module.code, 1)
  t.regex(module.plain, /ENOENT/)
  t.regex(module.plain, /\n {6}2 │ await fs\.readFile\('\/no\/such\/file'\)\n/)
})

onTty('a source line is the one that runs: from a map, from an unchanged file, within the columns', async (t) => {
  const long = await onTerminal(`setTimeout(function far () {\n  /* ${'x'.repeat(300)} */ require('node:net').connect(1, '127.0.0.1') // ${'y'.repeat(300)}\n}, 1)`)
  const lines = long.plain.split('\n').filter((line) => line.includes(' │ '))
  t.is(lines.length, 2, long.plain)
  t.true(lines.every((line) => line.length <= COLUMNS), lines.join('\n'))
  t.regex(lines[0], /^ {6}2 │ …x+ \*\/ require\('node:net'\)\.connect\(1/)
  t.is(lines[0][lines[1].indexOf('^')], 'c')
  const changed = await onTerminal(`require('node:fs').appendFileSync(__filename, '\\n')\n${CONNECT}`)
  t.false(changed.plain.includes(' │ '), changed.plain)
  const sourcesContent = ["const port: number = 1\nconst net = require('node:net')\nsetTimeout(() => net.connect(port, '127.0.0.1'), 1)\n"]
  const map = { version: 3, sources: ['gone.ts'], sourcesContent, names: [], mappings: 'AAAA;AACA;AACA' }
  const generated = "const port = 1\nconst net = require('node:net')\nsetTimeout(() => net.connect(port, '127.0.0.1'), 1)\n"
  const url = Buffer.from(JSON.stringify(map)).toString('base64')
  for (const args of [[], ['--enable-source-maps']]) {
    const source = `${generated}//# sourceMappingURL=data:application/json;base64,${url}\n`
    const mapped = await onTerminal(source, { args })
    t.regex(mapped.plain, /gone\.ts:3:1\)?\n {6}3 │ setTimeout\(\(\) => net\.connect\(port, '127\.0\.0\.1'\), 1\)\n/)
  }
})

const REPORT = `
  const trace = require(${JSON.stringify(root)})
  const server = require('node:net').createServer().listen(0, '127.0.0.1', function ready () {
    console.log(trace.why(server))
    console.log({ nested: trace.why(server) })
    console.log(trace.chain())
    server.close()
  })
`

onTty("longstack's own reports are coloured: console.log, blocking callbacks, open handles", async (t) => {
  const why = await onTerminal(REPORT)
  t.regex(why.text, /\[1mTCP server at 127/)
  t.true(why.text.includes(`${ESC}[36m  ── server.listen`))
  t.regex(why.plain, /\n {4}at Object\.<anonymous> .*\n {6}3 │ const server = require\('node:net'\)\.createServer\(\)\.listen\(0, .*\n {8}│ {51}\^\n/)
  const file = await onTerminal(REPORT, { redirect: '| cat' })
  t.is(file.text, file.plain)
  t.false(file.plain.includes(' │ '))
  const blocked = await onTerminal(`
setTimeout(function hash () {
  const end = Date.now() + 150
  while (Date.now() < end);
}, 1)`, { env: { LONGSTACK_BLOCKED: '50' } })
  if (process.env.ENGINE !== 'js') { // which watches no callbacks
    t.regex(blocked.plain, /^longstack: the event loop was blocked for /m)
    t.regex(blocked.plain, /\n {4}at hash \(.*\n {6}\d │ /)
  }
  const leak = await onTerminal('setInterval(function beat () {}, 10)', { env: leakWatchEnvironment({ failMs: 300 }), args: ['-r', LEAK_WATCH] })
  t.is(leak.code, 3)
  t.regex(leak.plain, /\n {6}1 │ setInterval\(function beat/)
})

onTty('places are links only if the terminal supports them', async (t) => {
  const kitty = { TERM: 'xterm-kitty' }
  const { text, plain, folder } = await onTerminal(CONNECT, { env: kitty })
  const links = text.split(`${ESC}]8;;`).filter((part) => part.startsWith('file:'))
    .map((part) => new URL(part.slice(0, part.indexOf(ESC))))
  t.true(links.length >= 2, text)
  t.is(links[0].hash, '#3')
  t.is(links[0].host, os.hostname().toLowerCase())
  t.is(decodeURIComponent(links[0].pathname), path.join(folder, 'program.js'))
  t.regex(plain, /at openPool \(.*program\.js:3:23\)\n/)
  const own = await onTerminal(REPORT, { env: { FORCE_HYPERLINK: '1' } })
  t.true(own.text.includes(`${ESC}]8;;file://${os.hostname()}/`))
  for (const [env, redirect] of /** @type {const} */ ([[{}, ''], [{ ...kitty, TERM_PROGRAM: 'vscode' }, ''], [kitty, '2>&1 | cat'], [{ ...kitty, NO_COLOR: '1' }, '']])) {
    const none = await onTerminal(CONNECT, { env, redirect })
    t.false(none.text.includes(`${ESC}]8`), JSON.stringify([env, redirect]))
  }
})

onTty('tools that strip escapes strip a whole link, whatever the path', async (t) => {
  const parent = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-odd-')))
  t.teardown(() => fs.rmSync(parent, { recursive: true, force: true }))
  const file = path.join(parent, "c++ (it's, $1; é!)", 'program.js')
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, CONNECT)
  const { text, plain } = await onTerminal('', { file, env: { TERM: 'xterm-kitty' } })
  t.true(plain.includes(`at openPool (${file}:3:23)\n`), plain)
  const [link] = text.split(`${ESC}]8;;`).filter((part) => part.startsWith('file:'))
  t.is(decodeURIComponent(new URL(link.slice(0, link.indexOf(ESC))).pathname), file)
})

onTty('standard streams of a terminal keep no process alive until they are read', async (t) => {
  const { plain, code } = await onTerminal(`
    const trace = require(${JSON.stringify(root)})
    for (const name of ['stdout', 'stderr', 'stdin']) console.log(name, '=', trace.why(process[name]).what, trace.why(process[name]).referenced)
    console.log('open =', trace.handles(['TTY']).map(({ what }) => what).join())
    process.stdin.on('data', () => {})
    console.log('reading =', trace.why(process.stdin).referenced)
    process.exit()`)
  t.is(code, 0)
  t.regex(plain, /^stdout = standard output, a terminal false$/m)
  t.regex(plain, /^stderr = standard error, a terminal false$/m)
  t.regex(plain, /^stdin = standard input, a terminal false$/m)
  t.regex(plain, /^open = (standard input, a terminal)?$/m)
  t.regex(plain, /^reading = true$/m)
})

test('a pipe gets plain text, even if colours are forced', async (t) => {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-pipe-')))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'program.js')
  fs.writeFileSync(file, CONNECT)
  for (const env of [{}, { FORCE_COLOR: '1' }, { FORCE_HYPERLINK: '1' }]) {
    const { stderr, code } = await node(['-r', register, file], { env })
    t.is(code, 1)
    t.false(stderr.includes(' │ ') || stderr.includes(`${ESC}]8`) || stderr.includes(`${ESC}[36m`), stderr)
    t.regex(stripVTControlCharacters(stderr), /── net\.connect\(127\.0\.0\.1:1\)/)
  }
})

onTty('standard output and input of a terminal do not keep the process alive', async (t) => {
  const { plain, code } = await onTerminal(`
    const trace = require(${JSON.stringify(root)})
    console.log('begin')
    setTimeout(function ask () {
      for (const stream of [process.stdout, process.stderr, process.stdin]) console.log(String(trace.why(stream)))
      console.log(trace.handles().filter(({ referenced }) => referenced).length)
    }, 50)`)
  t.is(code, 0)
  t.regex(plain, /^standard output, a terminal · TTYWRAP\n {2}open, .*, does not keep the process alive$/m)
  t.regex(plain, /^standard (error|input), a terminal · TTYWRAP\n {2}open, .*, does not keep the process alive$/m)
  t.regex(plain, /^0$/m)
})
