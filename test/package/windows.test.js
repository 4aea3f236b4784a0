'use strict'

// longstack on Windows, where it has no native engine: in processes that imitate Windows
// (test/fixtures/windows/preload.js), or on Windows itself.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, program, register, root, split } = require('../helpers/run')

const preload = path.join(root, 'test', 'fixtures', 'windows', 'preload.js')
const main = path.join(root, 'lib', 'cli', 'main.js')
const isWindows = process.platform === 'win32'

/** Runs a program text. @param {string} source @param {Parameters<typeof program>[1]} [options] */
function onWindows (source, options) {
  return program(source, { preload: false, args: ['-r', preload, '-r', register], ...options })
}

/** Runs a command. @param {string[]} args */
const longstack = (...args) => node(['-r', preload, main, ...args])

/** @param {import('ava').ExecutionContext} t @param {string} source @returns {string} gone after the test */
function script (t, source) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-windows-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'app.js')
  fs.writeFileSync(file, source)
  return file
}

test('errors are traced by the JavaScript engine, and the doctor says why', async (t) => {
  const { stdout, stderr, code } = await onWindows(`
    const trace = require(${JSON.stringify(root)})
    setTimeout(function begin () {
      setImmediate(function later () {
        const { engine, engineCode, engineWhy, clock, text } = trace.doctor()
        console.log(JSON.stringify({ stack: new Error('told').stack, engine, engineCode, engineWhy, clock, text }))
      })
    }, 1)`)
  t.is(stderr, '')
  t.is(code, 0)
  const { stack, engine, engineWhy, clock, text } = JSON.parse(stdout)
  t.deepEqual(split(stack).hops.map(({ title }) => title.split(' ·', 1)[0]), ['setImmediate', 'setTimeout(1)'])
  t.deepEqual([engine, clock], ['js', 'off'])
  t.regex(engineWhy, /win32-/)
  t.regex(text, /^longstack .*, win32-/)
})

test('file names are those of Windows: drives, brackets, shares, URLs', async (t) => {
  const { stdout, stderr } = await program(`
    const path = require('node:path')
    path.isAbsolute = path.win32.isAbsolute
    const { parseFrame } = require(${JSON.stringify(path.join(root, 'lib', 'stacks', 'frames'))})
    const lines = JSON.parse(process.env.LINES)
    console.log(JSON.stringify(lines.map(parseFrame)))`, {
    preload: false,
    env: {
      LINES: JSON.stringify([
        'load (C:\\app\\db.js:12:21)',
        'C:\\Program Files (x86)\\app\\db.js:12:21',
        'async Pool.load (D:\\a (b\\node_modules\\@my\\pool\\index.js:1:2)',
        'load (\\\\server\\share\\db.js:3:4)',
        'file:///C:/app/db.mjs:5:6',
        'new Pool (file:///C:/app/node_modules/pool/index.mjs:7:8)'
      ])
    }
  })
  t.is(stderr, '')
  const frames = JSON.parse(stdout).map((/** @type {any} */ frame) => {
    return [frame.functionName ?? null, frame.fileName, frame.lineNumber, frame.columnNumber, frame.kind]
  })
  t.deepEqual(frames, [
    ['load', 'C:\\app\\db.js', 12, 21, 'user'],
    [null, 'C:\\Program Files (x86)\\app\\db.js', 12, 21, 'user'],
    ['load', 'D:\\a (b\\node_modules\\@my\\pool\\index.js', 1, 2, 'module'],
    ['load', '\\\\server\\share\\db.js', 3, 4, 'user'],
    [null, 'file:///C:/app/db.mjs', 5, 6, 'user'],
    ['new Pool', 'file:///C:/app/node_modules/pool/index.mjs', 7, 8, 'module']
  ])
})

test('spans and handles do not need Linux', async (t) => {
  const file = path.join(path.dirname(script(t, '')), 'spans.jsonl')
  const { stdout, stderr, code } = await onWindows(`
    const trace = require(${JSON.stringify(root)})
    const work = () => clearInterval(timer)
    trace.enable({ spans: ${JSON.stringify(file)} })
    const timer = setInterval(work, 1000)
    console.log(trace.why(timer).what)
    trace.span('work', work)`)
  t.is(stderr, '')
  t.is(code, 0)
  t.is(stdout, 'timer, every 1000 ms, calls work()\n')
  t.true(fs.readFileSync(file, 'utf8').trim().split('\n').some((line) => JSON.parse(line).name === 'work'))
})

test('file sockets, and signals to other processes, are rejected in a sentence', async (t) => {
  const directory = path.dirname(script(t, ''))
  const socket = path.join(directory, 'socket')
  const { stdout, stderr } = await onWindows("console.log('runs')", {
    env: { LONGSTACK_SOCKET: socket, LONGSTACK_SIGNAL: 'SIGUSR2' }
  })
  t.is(stdout, 'runs\n')
  t.regex(stderr, /cannot listen on .*socket: Windows has no sockets that are files/)
  t.regex(stderr, /LONGSTACK_SIGNAL.*"SIGBREAK"/)
  t.false(fs.existsSync(`${socket}.longstack`))
})

for (const [name, ...args] of [['why', '1'], ['why', ':8080'], ['top', '1', '--once'], ['attach', '1'], ['profile', '1']]) {
  test(`longstack ${[name, ...args].join(' ')} says that running processes cannot be queried`, async (t) => {
    const { stdout, stderr, code } = await longstack(name, ...args)
    t.is(stdout, '')
    t.regex(stderr, /A running process can be asked on Linux and macOS only/)
    t.is(code, 1)
  })
}

test('longstack env prints PowerShell syntax', async (t) => {
  const { stdout, stderr, code } = await longstack('env')
  t.deepEqual([stderr, code], ['', 0])
  t.regex(stdout, /^\$env:NODE_OPTIONS = '.*--require=.*register\.js.*'\n$/)
})

test('longstack run passes on the exit code, but not signals of the console', async (t) => {
  const app = script(t, `
    process.on('SIGINT', () => console.log('told'))
    console.log('ready')
    setTimeout(() => { process.exitCode = 7 }, 1000)`)
  const child = spawn(process.execPath, ['-r', preload, main, 'run', app], { stdio: ['ignore', 'pipe', 'inherit'] })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text
    if (stdout === 'ready\n' && !isWindows) child.kill('SIGINT')
  })
  const [code] = await once(child, 'close')
  t.deepEqual([stdout, code], ['ready\n', 7])
})

test('longstack profile ends with the program, whatever the console sends', async (t) => {
  const app = script(t, "setTimeout(() => process.emit('SIGHUP', 'SIGHUP'), 20); setTimeout(() => {}, 100_000)")
  const options = { env: { NODE_OPTIONS: `-r ${preload.replaceAll('\\', '/')}` } }
  const { stdout, stderr } = await node([main, 'profile', '--json', app], options)
  t.is(stderr, '')
  t.true(JSON.parse(stdout).seconds < 60)
})

test('NODE_OPTIONS with escaped backslashes works: a child gets the chain of its parent', async (t) => {
  const printed = isWindows ? ['cmd', ['/d', '/c', 'set']] : ['env', []]
  const { stdout, stderr } = await onWindows(`
    const { spawn } = require('node:child_process')
    const start = (name) => {
      const NODE_OPTIONS = \`"--require=C:\\\\\\\\Program Files\\\\\\\\\${name}\\\\\\\\lib\\\\\\\\register.js"\`
      spawn(...${JSON.stringify(printed)}, { env: { PATH: process.env.PATH, NODE_OPTIONS }, stdio: 'inherit' })
    }
    start('longstack')
    start('other')`)
  t.is(stderr, '')
  t.is(stdout.match(/^NODE_OPTIONS=/gm)?.length, 2)
  t.is(stdout.match(/^_LONGSTACK_CHAIN=/gm)?.length, 1)
})
