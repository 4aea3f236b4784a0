'use strict'

// longstack top PID on a real process, with and without a terminal.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register, root } = require('../helpers/run')
const { screenOf } = require('../helpers/screen')
const { skip } = require('../helpers/skip')
const { noTerminal } = require('../helpers/terminal')
const { isEmulated } = require('../helpers/time-factor')

const main = path.join(root, 'lib', 'cli', 'main.js')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-top-'))
const isAskable = process.platform === 'linux'
const reason = noTerminal()
const WAIT_MS = 120_000

const app = path.join(directory, 'app.js')
fs.writeFileSync(app, `
  const http = require('node:http')
  const timers = []
  const server = http.createServer((request, response) => {
    if (request.url === '/leak') timers.push(setInterval(function leaked () {}, 1e6))
    if (request.url === '/slow') return setTimeout(() => response.end(), 20)
    if (request.url === '/block') { const end = performance.now() + 60; while (performance.now() < end); }
    response.statusCode = request.url === '/bad' ? 500 : 200
    response.end('x')
  }).listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    const agent = new http.Agent({ keepAlive: true })
    const get = (path) => {
      const request = http.get({ port, host: '127.0.0.1', path, agent }, (response) => response.resume())
      request.on('error', () => {}) // of a connection that was kept alive for too long, on a busy machine
    }
    setInterval(() => { for (const path of ['/slow', '/fast', '/fast', '/bad', '/leak']) get(path) }, 100)
    setInterval(() => get('/block'), 500)
    console.log('ready')
  })
`)

/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set()
test.after.always(() => {
  for (const child of children) child.kill('SIGKILL')
  fs.rmSync(directory, { recursive: true, force: true })
})

/** @type {ReturnType<typeof startOwn> | undefined} */
let shared

/** Starts the program, one for most tests. */
const start = () => (shared ??= startOwn())

/** Starts the program. */
async function startOwn (file = app, env = {}) {
  const flags = file === app ? ['--inspect-port=0'] : [] // of which members of a cluster cannot have one more
  const child = spawn(process.execPath, [...flags, '-r', register, file], {
    env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe']
  })
  children.add(child)
  let errors = ''
  child.stderr.on('data', (text) => { errors += text })
  child.on('exit', (code) => { if (code !== null) console.error(`The program of the test exited with ${code}: ${errors}`) })
  await once(/** @type {any} */ (child.stdout), 'data')
  return { pid: Number(child.pid), child }
}

/** @param {string} title @param {(t: import('ava').ExecutionContext) => Promise<void>} body */
function onLinux (title, body) {
  test.serial(title, async (t) => {
    if (isAskable) return await body(t)
    t.log('not tried: not on Linux')
    t.pass()
  })
}

/**
 * A test that needs a terminal.
 * @param {string} title
 * @param {(t: import('ava').ExecutionContext) => Promise<void>} body
 */
function onTty (title, body) {
  onLinux(title, async (t) => {
    if (reason === undefined) return await body(t)
    skip(t, reason)
  })
}

/**
 * Runs longstack top on a terminal.
 * @param {number} pid
 * @param {{ columns?: number, rows?: number, flags?: string, env?: Record<string, string> }} [options]
 */
function open (pid, { columns = 80, rows = 24, flags = '', env = {} } = {}) {
  const top = `'${process.execPath}' '${main}' top ${pid} ${flags}`
  // What the terminal is set to is printed before and after.
  const command = `stty cols ${columns} rows ${rows}; stty -g; echo pid $$; ${top}; code=$?; echo; echo "exit $code"; stty -g`
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm-256color', NO_COLOR: '1', ...env }
  })
  children.add(child)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => { output += text })
  const shown = () => screenOf(output, { columns, rows })
  return {
    shown,
    output: () => output,
    /** @param {string} keys */
    press: (keys) => { child.stdin.write(keys) },
    /** @param {(text: string) => boolean} condition @returns {Promise<string>} the screen */
    async until (condition) {
      for (const end = Date.now() + WAIT_MS; Date.now() < end;) {
        const text = shown().lines.join('\n')
        if (condition(text)) return text
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      throw new Error(`not seen:\n${shown().lines.join('\n')}\n${output.slice(-500)}`)
    },
    /** Sends a signal to the command. @param {NodeJS.Signals} signal */
    kill (signal) {
      const shell = Number(/^pid (\d+)/m.exec(output)?.[1])
      const [command] = fs.readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8').split(' ')
      process.kill(Number(command), signal)
    },
    /** Resolves when the command has ended and the terminal is seen as it was. */
    async ended () {
      if (child.exitCode === null) await once(child, 'close')
      const [before, after] = output.match(/^[\da-f]+(:[\da-f]+)+/gm) ?? []
      const { isAlternate, isCursorHidden } = shown()
      return {
        code: Number(/exit (\d+)/.exec(output)?.[1]),
        isRestored: before !== undefined && before === after && !isAlternate && !isCursorHidden
      }
    }
  }
}

onLinux('without a terminal: one sample as text, in JSON, with flags', async (t) => {
  const { pid } = await start()
  const { stdout, stderr, code } = await node([main, 'top', String(pid), '--once', '--blocked', '30', '--sort', 'p50'])
  t.is(code, 0, stderr)
  t.regex(stdout, /^longstack top \d+ · /)
  t.regex(stdout, /^GET \/bad +[\d.]+ .* [1-9]\d* +-$/m)
  const routes = [...stdout.matchAll(/^GET (\/\w+)/gm)].map(([, route]) => route)
  const [first, second] = routes
  t.deepEqual(isEmulated ? [first, second].sort() : [first, second], ['/block', '/slow'], stdout)
  t.regex(stdout, /^app\.js:5 +timer +\d+ +\+[\d.]+$/m)
  t.regex(stdout, /^server\.listen +TCP server +1 +-$/m)
  t.regex(stdout, /^Blockers:\n[^]*^app\.js:7 /m)
  const { stdout: json, code: jsonCode } = await node([main, 'top', String(pid), '--once', '--json', '--only', 'bad'])
  t.is(jsonCode, 0)
  t.is(json.trim().split('\n').length, 1)
  const frame = JSON.parse(json)
  t.deepEqual(frame.routes.map((/** @type {any} */ { name }) => name), ['GET /bad'])
  t.is(frame.routes[0].errors, frame.routes[0].count)
  t.is(frame.threads[0].pid, pid)
})

onLinux('without a terminal: a table per interval, until the process ends', async (t) => {
  const { pid, child } = await startOwn()
  const top = spawn(process.execPath, [main, 'top', String(pid), '--interval', '0.2'])
  children.add(top)
  let text = ''
  let error = ''
  top.stderr.on('data', (part) => { error += part })
  await new Promise((resolve) => {
    top.stdout.on('data', (part) => {
      text += part
      if (text.split('longstack top').length > 3) resolve(undefined)
    })
  })
  child.kill('SIGKILL')
  const [code] = await once(top, 'close')
  t.is(code, 1)
  t.regex(error, /^longstack: Process \d+ .*ended.*\n$/)
  t.false(text.includes('\u001b'))
})

/** @param {any} frame @returns {Set<number>} */
const pidsOf = (frame) => new Set(frame?.threads.map((/** @type {any} */ { pid }) => pid))
/** @param {any} frame @returns {number[]} pids of its worker threads */
const workersOf = ({ threads }) =>
  threads.flatMap((/** @type {any} */ { pid, threadId }) => threadId > 0 ? [pid] : [])

onLinux('a cluster and a worker thread are one; later processes and threads are added', async (t) => {
  const file = path.join(directory, 'cluster.js')
  fs.writeFileSync(file, `
    const cluster = require('node:cluster')
    const http = require('node:http')
    const { Worker, isMainThread } = require('node:worker_threads')
    if (cluster.isPrimary && isMainThread) {
      new Worker(__filename)
      cluster.fork()
      cluster.fork()
      process.on('SIGUSR2', () => { cluster.fork(); new Worker(__filename) })
      console.log('ready')
    } else if (!isMainThread) {
      setInterval(() => {}, 1000)
    } else {
      http.createServer((request, response) => response.end('x')).listen(0, '127.0.0.1', function () {
        setInterval(() => http.get({ port: this.address().port, host: '127.0.0.1', path: '/member' }, (response) => {
          response.resume()
        }), 50)
      })
    }
  `)
  const { child: target } = await startOwn(file, { LONGSTACK_SOCKET: path.join(directory, 'socket') })
  const sockets = path.join(directory, 'socket.longstack')
  while (!fs.existsSync(sockets) || fs.readdirSync(sockets).length < 4) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const top = spawn(process.execPath, [main, 'top', String(target.pid), '--json', '--interval', '0.5'])
  children.add(top)
  let text = ''
  /** @type {any[]} */
  let frames = []
  let isAsked = false // for what starts later
  await new Promise((resolve) => {
    top.stdout.on('data', (part) => {
      text += part
      frames = text.split('\n').slice(0, -1).map((line) => JSON.parse(line))
      const last = frames.at(-1)
      if (last === undefined || (isEmulated && pidsOf(last).size < 3)) return // more to come
      if (!isAsked) target.kill('SIGUSR2')
      isAsked = true
      if ((pidsOf(last).size === 4 && workersOf(last).length === 2) || frames.length > 200) resolve(undefined)
    })
  })
  const first = frames.find((frame) => !isEmulated || pidsOf(frame).size === 3)
  t.is(pidsOf(first).size, 3, JSON.stringify(first.threads))
  t.deepEqual(workersOf(first), [target.pid])
  const { routes, threads } = /** @type {any} */ (frames.find(({ routes }) => routes.length > 0))
  t.is(routes[0].name, 'GET /member')
  t.true(threads.filter((/** @type {any} */ { perSecond }) => perSecond > 0).length >= 1)
  t.is(pidsOf(frames.at(-1)).size, 4, 'the member that came later')
  t.deepEqual(workersOf(frames.at(-1)), [target.pid, target.pid], 'the worker that came later')
  top.kill()
  t.deepEqual(await once(top, 'close'), [0, null])
  target.kill()
})

onTty('the screen shows routes at once, panes and why, and the terminal is restored', async (t) => {
  const { pid } = await start()
  const terminal = open(pid, { flags: '--blocked 30' })
  const first = await terminal.until((text) => text.includes('GET /slow'))
  t.regex(first, /^longstack top \d+ · \d\d:\d\d:\d\d$/m)
  t.regex(first, /\[Routes \d\]/)
  t.false(/^. GET \/fast +0 /m.test(first), 'no empty rates')
  const { isAlternate, isCursorHidden } = terminal.shown()
  t.true(isAlternate && isCursorHidden)
  terminal.press('/bad\r')
  await terminal.until((text) => text.includes('filter "bad"') && !text.includes('GET /slow'))
  terminal.press('h')
  await terminal.until((text) => text.includes('[Handles'))
  terminal.press('\u001b')
  await terminal.until((text) => text.includes('app.js:5'))
  terminal.press('p')
  await terminal.until((text) => text.includes('paused'))
  while (!/^› .*app\.js:5/m.test(terminal.shown().lines.join('\n'))) {
    terminal.press('\u001b[B')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  terminal.press('w')
  const why = await terminal.until((text) => text.includes('── '))
  t.regex(why, /── setInterval\(1000000\) ──\n +at .*app\.js:5:/)
  terminal.press('\r')
  terminal.press('b')
  await terminal.until((text) => text.includes('[Blockers'))
  terminal.press('q')
  t.deepEqual(await terminal.ended(), { code: 0, isRestored: true })
})

onTty('signals that end it restore the terminal', async (t) => {
  const { pid } = await start()
  for (const [signal, code] of /** @type {const} */ ([['SIGTERM', 143], ['SIGHUP', 129], ['SIGINT', 130]])) {
    const terminal = open(pid)
    await terminal.until((text) => text.includes('GET /'))
    terminal.kill(signal)
    t.deepEqual(await terminal.ended(), { code, isRestored: true }, signal)
  }
})

onTty('the end of the process restores the terminal, and is reported', async (t) => {
  const { pid, child } = await startOwn()
  const terminal = open(pid)
  await terminal.until((text) => text.includes('GET /'))
  child.kill('SIGKILL')
  t.deepEqual(await terminal.ended(), { code: 1, isRestored: true })
  t.regex(terminal.output(), /longstack: Process \d+ .*ended/)
})

onTty('Ctrl-C quits; narrow terminals and colours work', async (t) => {
  const { pid } = await start()
  const terminal = open(pid, { columns: 30, rows: 10, env: { NO_COLOR: '', FORCE_COLOR: '1' } })
  const text = await terminal.until((text) => text.includes('GET /'))
  t.true(text.split('\n').every((line) => line.length <= 30))
  t.true(terminal.output().includes('\u001b[1m'))
  terminal.press('\u0003')
  t.deepEqual(await terminal.ended(), { code: 0, isRestored: true })
})

test('wrong usage is rejected', async (t) => {
  const cases = [
    [[], /Missing process id, port or address/],
    [['1', '2'], /One target at a time/],
    [['x'], /"x" is neither a process id/],
    [['1', '--interval', '0'], /--interval must be a number from 0\.1 to 3600\. Received "0"/],
    [['1', '--sort', 'p5'], /--sort must be one of name, rate, p50/],
    [['1', '--blocked', '-3'], /--blocked must be an integer of at least 1/],
    [['1', '--onse'], /Did you mean --once/]
  ]
  for (const [args, message] of /** @type {Array<[string[], RegExp]>} */ (cases)) {
    const { stderr, code } = await node([main, 'top', ...args])
    t.is(code, 2)
    t.regex(stderr, message)
  }
  const { stderr, code } = await node([main, 'top', '999999999'])
  t.is(code, 1)
  t.regex(stderr, /999999999/)
})
