'use strict'

// longstack why: a running process reports open handles with their openers, pending awaits, and blockers.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { livePrograms, longstack } = require('../helpers/live')
const { patient } = require('../helpers/starved')
const { isEmulated, timeFactor } = require('../helpers/time-factor')

const { start, directory } = livePrograms(test)
const live = process.platform === 'win32' ? test.skip : patient(test)
const isLinux = process.platform === 'linux'

const service = `
  const http = require('node:http')
  const net = require('node:net')
  const pool = { async connect () { await new Promise(() => {}) } }
  const server = http.createServer(async function report (request, response) {
    if (request.url === '/hang') await pool.connect()
    response.end('ok')
  }).listen(0, '127.0.0.1', function listening () {
    const { port } = server.address()
    net.createServer(() => {}).listen(0, '127.0.0.1', function openUpstream () {
      const upstream = net.connect(this.address().port, '127.0.0.1', () => {
        for (let i = 0; i < 3; i++) http.get({ port, host: '127.0.0.1', path: '/hang' }).on('error', () => {})
        setTimeout(() => console.log('ready', JSON.stringify({ port, upstream: this.address().port })), 100)
      })
      upstream.on('error', () => {})
    })
  })
`

/** @param {...(string | number)} args */
async function whyJson (...args) {
  const { stdout, stderr } = await longstack('why', '--json', ...args)
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

/** @param {any} process */
const threadIds = ({ threads }) => threads.map((/** @type {any} */ { threadId }) => threadId)

const state = "JSON.stringify({ url: process.getBuiltinModule('inspector').url() ?? 'closed', resources: process.getActiveResourcesInfo() })"

live('it shows the openers of handles, and pending awaits', async (t) => {
  const { pid, ready, file } = await start(service)
  const { processes, refused } = await whyJson(pid)
  t.deepEqual(refused, [])
  const [{ threads: [{ open, pending, requests, tracing }] }] = processes
  t.is(tracing, 'full')
  const upstream = open.find((/** @type {any} */ { side, remote }) => side === 'client' && remote === `127.0.0.1:${ready.upstream}`)
  const { functionName, fileName } = upstream.opened[0].frames.find((/** @type {any} */ { kind }) => kind === 'user')
  t.regex(functionName, /openUpstream$/)
  t.is(fileName, file)
  const [hanging] = pending
  t.is(hanging.count, 3)
  t.regex(hanging.at, /connect \(.*app\d+\.js:4:/)
  t.deepEqual(hanging.requests, [{ request: 'GET /hang', count: 3 }])
  const hung = requests.filter((/** @type {any} */ { request }) => request === 'GET /hang')
  t.is(hung.length, 3)
  t.true(hung.every((/** @type {any} */ { ageMs, waits }) => ageMs > 50 && waits[0].at === hanging.at))
  const { stdout, code } = await longstack('why', pid)
  t.is(code, 0)
  t.regex(stdout, /\n3 requests in flight\n\n3 × GET \/hang, oldest [^\n]*\n {2}waits for await at connect \(app\d+\.js:4\)\n/)
  t.regex(stdout, /^Process \d+ · node .*app\d+\.js · Node \d+\.\d+\.\d+ · up .* · traced\n/)
  t.regex(stdout, /\n3 × await at connect \(app\d+\.js:4\), oldest [^\n]*, GET \/hang \(3 ×\)\n/)
  t.regex(stdout, /TCP connection, client to [^]*openUpstream/)
})

live('it queries a process without longstack, and restores it', async (t) => {
  const { pid, told, say } = await start(`
    const server = require('node:net').createServer().listen(0, '127.0.0.1')
    require('node:readline').createInterface(process.stdin).on('line', () => console.log('state', ${state}))
    server.on('listening', () => console.log('ready', 1))
  `, { traced: false })
  say('before')
  const before = await told('state')
  const { processes: [{ threads: [{ open, tracing, pending }] }] } = await whyJson(pid)
  t.is(tracing, 'off')
  const server = open.find((/** @type {any} */ { type }) => type === 'TCPSERVERWRAP')
  t.is(server.origin, 'early')
  t.deepEqual(pending, [])
  say('after')
  t.deepEqual(await told('state'), before)
  t.is(before.url, 'closed')
  t.regex((await longstack('why', pid)).stdout, /longstack attach \d+ starts tracing it/)
})

live('it finds processes and connections by port and address', async (t) => {
  const { pid, ready } = await start(service)
  for (const target of [`:${ready.upstream}`, `127.0.0.1:${ready.upstream}`, `localhost:${ready.upstream}`]) {
    const { processes } = await whyJson(target)
    t.deepEqual(processes.map((/** @type {any} */ one) => one.pid), [pid])
    const { open } = processes[0].threads[0]
    t.deepEqual(open.map((/** @type {any} */ { type, side }) => `${type} ${side}`).sort(),
      ['TCPSERVERWRAP undefined', 'TCPWRAP client', 'TCPWRAP server'].sort(), target)
  }
  const { stderr, code } = await longstack('why', '127.0.0.9:1')
  t.is(code, 1)
  t.regex(stderr, /^longstack: No process of Node listens or has a connection at 127\.0\.0\.9:1\./)
})

live('--only selects subsystems', async (t) => {
  const { pid } = await start(service)
  const { processes: [{ threads: [{ open, pending }] }] } = await whyJson('--only', 'TIMER', pid)
  t.true(open.every((/** @type {any} */ { type }) => type === 'Timeout'))
  t.is(pending, undefined)
})

live('it queries workers and child processes together', async (t) => {
  const { pid } = await start(`
    const { Worker, isMainThread, parentPort } = require('node:worker_threads')
    const { fork } = require('node:child_process')
    const net = require('node:net')
    const isChild = process.argv[2] === 'child'
    const server = net.createServer().listen(0, '127.0.0.1', function listening () {
      if (!isMainThread) return parentPort.postMessage('listening')
      if (isChild) return process.send('listening')
      new Worker(__filename).once('message', () => {
        fork(__filename, ['child']).once('message', () => console.log('ready', 1))
      })
    })
  `)
  const { processes } = await whyJson(pid)
  t.deepEqual(processes.map(threadIds), [[0, 1], [0]])
  const threads = processes.flatMap((/** @type {any} */ one) => one.threads)
  const servers = threads.map((/** @type {any} */ { open }) =>
    open.filter((/** @type {any} */ { type }) => type === 'TCPSERVERWRAP').length)
  t.deepEqual(servers, [1, 1, 1])
  const { stdout } = await longstack('why', pid)
  t.regex(stdout, /in thread 1 of process \d+/)
  const { processes: alone } = await whyJson('--no-children', pid)
  t.is(alone.length, 1)
})

live('it reports what blocks the event loop, with the stack inside', async (t) => {
  const { pid } = await start(`
    setTimeout(function later () {
      console.log('ready', 1)
      for (;;) Math.random()
    }, 50)
  `)
  const { stdout, code, stderr } = await longstack('why', pid)
  t.is(code, 1, stderr)
  t.regex(stdout, /^The event loop of process \d+ has been blocked for at least \d\.\d s\. It is running\n {4}at later \(.*app\d+\.js:4:/)
  t.regex(stdout, /── setTimeout\(50\) · /)
  const { processes: [{ blocked, threads }] } = await whyJson(pid)
  t.regex(blocked.stack, /at later/)
  t.deepEqual(threads, [])
})

live('it reports the blocked worker, with its stack and exit code', async (t) => {
  for (const env of [{}, { LONGSTACK_SOCKET: path.join(directory, 'worker') }]) {
    const { pid } = await start(`
      const { Worker, isMainThread, parentPort } = require('node:worker_threads')
      if (isMainThread) {
        new Worker(__filename).once('message', () => console.log('ready', 1))
      } else {
        setTimeout(function compute () {
          parentPort.postMessage('computes')
          for (;;) Math.random()
        }, 500)
      }
    `, { env })
    const { stdout, code } = await longstack('why', pid)
    t.is(code, 1)
    t.regex(stdout, /^Thread 1 of process \d+ has been blocked for at least [\d.]+ s\. It is running\n {4}at compute \(/m)
    t.regex(stdout, /^1 open\n\nworker thread 1/m)
    const answer = await whyJson(pid)
    t.deepEqual(answer.refused.map((/** @type {any} */ one) => one.pid), [pid])
    t.regex(answer.refused[0].stack, /at compute/)
    t.deepEqual(answer.processes.map(threadIds), [[0]])
  }
})

live('an attached debugger stays attached', async (t) => {
  const { WebSocket } = require('ws')
  const { pid, ready } = await start("console.log('ready', JSON.stringify(require('node:inspector').url())); setInterval(() => {}, 1000)",
    { flags: ['--inspect=0'] })
  const debugging = new WebSocket(ready)
  await new Promise((resolve) => debugging.once('open', resolve))
  const { processes } = await whyJson(pid)
  t.is(processes[0].threads.length, 1)
  t.is(debugging.readyState, WebSocket.OPEN)
  debugging.terminate()
})

live('inspectors of cluster workers, which Node opens with the primary\'s, are closed', async (t) => {
  const { listeningAddresses } = require('../../lib/ask/system')
  const { pid, ready } = await start(`
    const cluster = require('node:cluster')
    if (cluster.isPrimary) {
      const pids = []
      for (let i = 0; i < 2; i++) {
        const member = cluster.fork()
        member.once('message', () => { if (pids.push(member.process.pid) === 2) console.log('ready', JSON.stringify(pids)) })
      }
    } else {
      process.send('online')
      setInterval(() => {}, 1000)
    }
  `, { traced: false, port: 9310 })
  for (const flags of [[], ['--no-children']]) {
    const { processes, refused } = await whyJson(...flags, pid)
    t.deepEqual(refused, [])
    t.is(processes.length, flags.length === 0 ? 3 : 1)
    if (isLinux) await until(() => [pid, ...ready].every((each) => listeningAddresses(each)?.length === 0))
  }
})

live('LONGSTACK_SOCKET responds without the inspector, to its user only', async (t) => {
  const home = fs.mkdtempSync(path.join(directory, 'sockets-'))
  const socket = path.join(home, 'socket')
  const source = `
    const cluster = require('node:cluster')
    const { Worker, isMainThread, parentPort } = require('node:worker_threads')
    const net = require('node:net')
    if (!isMainThread) net.createServer().listen(0, () => parentPort.postMessage('listening'))
    else if (cluster.isPrimary) {
      cluster.fork().once('message', () => new Worker(__filename).once('message', () => console.log('ready', 1)))
      require('node:readline').createInterface(process.stdin).on('line', () => {
        console.log('state', ${state})
        cluster.disconnect(() => process.exit())
      })
    } else net.createServer().listen(0, '127.0.0.1', () => process.send('listening'))
  `
  const options = { env: { LONGSTACK_SOCKET: socket }, port: 9300 }
  const { pid, say, told, child, stderr } = await start(source, options)
  t.is(fs.statSync(socket).mode & 0o777, 0o600)
  t.deepEqual(fs.readdirSync(home), ['socket', 'socket.longstack'])
  t.is(fs.readdirSync(`${socket}.longstack`).length, 3)
  for (const target of [socket, pid]) {
    const { processes } = await whyJson(target)
    t.deepEqual(processes.map(threadIds).map(String).sort(), ['0', '0,1'], String(target))
  }
  t.is(stderr(), '', 'no inspector was opened')
  say('end')
  t.is((await told('state')).url, 'closed')
  await new Promise((resolve) => child.once('close', resolve))
  await until(() => fs.readdirSync(home).length === 0)
})

live('a stale LONGSTACK_SOCKET is replaced, any other file is kept', async (t) => {
  const socket = path.join(directory, 'stale')
  const program = "console.log('ready', 1); setInterval(() => {}, 1000)"
  const first = await start(program, { env: { LONGSTACK_SOCKET: socket } })
  await until(() => fs.existsSync(socket))
  first.child.kill('SIGKILL')
  await new Promise((resolve) => first.child.once('close', resolve))
  t.true(fs.existsSync(socket))
  const { stderr, code } = await longstack('why', socket)
  t.is(code, 1)
  t.regex(stderr, /^longstack: No process listens on .*stale: the one that did has ended/)
  const second = await start(program, { env: { LONGSTACK_SOCKET: socket } })
  const { processes } = await until(() => whyJson(socket).catch(() => undefined))
  t.is(processes[0].pid, second.pid)
  const file = path.join(directory, 'precious')
  fs.writeFileSync(file, 'content')
  const third = await start(program, { env: { LONGSTACK_SOCKET: file } })
  await until(() => third.stderr() !== '')
  t.regex(third.stderr(), /longstack: cannot listen on .*precious: a file has that name/)
  t.is(fs.readFileSync(file, 'utf8'), 'content')
})

live('it fails with one sentence and exit code 1', async (t) => {
  const ended = await start("console.log('ready', 1)")
  await new Promise((resolve) => { if (ended.child.exitCode === null) ended.child.once('close', resolve); else resolve(1) })
  /** @type {Array<[number, RegExp]>} */
  const refusals = [[ended.pid, /^longstack: There is no process \d+\.$/m]]
  const waiting = "console.log('ready', 1); setInterval(() => {}, 1000)"
  if (isLinux && !isEmulated && process.allowedNodeEnvironmentFlags.has('--disable-sigusr1')) {
    const deaf = await start(waiting, { flags: ['--disable-sigusr1'] })
    refusals.push([deaf.pid, /^longstack: Process \d+ does not open its inspector on SIGUSR1: it was started with --disable-sigusr1/m])
  }
  if (isLinux) {
    const stopped = await start(waiting)
    stopped.child.kill('SIGSTOP')
    refusals.push([stopped.pid, /^longstack: Process \d+ is stopped \(SIGSTOP\)\. Resume it with kill -CONT \d+\.$/m])
  }
  for (const [pid, sentence] of refusals) {
    const { stdout, stderr, code } = await longstack('why', pid)
    t.is(code, 1)
    t.is(stdout, '')
    t.regex(stderr, sentence)
  }
})

live('--watch repeats the query until the process ends', async (t) => {
  const { pid, child } = await start("console.log('ready', 1); setInterval(() => {}, 1000)")
  const asking = longstack('why', '--watch=0.2', '--json', pid)
  setTimeout(() => child.kill('SIGKILL'), 4000 * timeFactor)
  const { stdout, code } = await asking
  const answers = stdout.trim().split('\n').map((line) => JSON.parse(line))
  t.true(answers.length > 3, stdout)
  t.is(answers[1].processes[0].pid, pid)
  t.deepEqual(answers.at(-1).processes, [])
  t.is(code, 0)
})

/**
 * @template T
 * @param {() => T | Promise<T>} look
 * @returns {Promise<NonNullable<Awaited<T>>>} what it returns when that is something
 */
async function until (look) {
  for (;;) {
    const value = await look()
    if (value) return /** @type {any} */ (value)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
