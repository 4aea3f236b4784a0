'use strict'

// longstack PID: its findings in a process that is blocked, out of sockets or files, leaking, or has an
// exhausted pool; no finding in a healthy one; and the process is left as it was.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { endGroup, livePrograms, longstack, main } = require('../helpers/live')
const { writeDriver } = require('../helpers/pool-driver')
const { noTerminal, onTerminal } = require('../helpers/terminal')
const { isEmulated } = require('../helpers/time-factor')

const { start, directory } = livePrograms(test)
const own = process.platform === 'linux' ? test.serial : test.skip
const SECONDS = 3
const MAX_MS = isEmulated ? 60_000 : 18_000 // for an observation of 10 s, and the start of the command
const BY_LINE = isEmulated ? 20 : 6 // seconds, for counts to lie on a line
// A machine that is busy is all that may be found; an emulated CPU is busy with this alone.
const BUSY = `The main thread of process \\d+ waited for a CPU|used only \\d+ % of a CPU${isEmulated ? '|The event loop of process \\d+ is busy' : ''}`
const nothing = new RegExp(`nothing found|${BUSY}`)

/**
 * The last line: the next command, or that of a machine that is busy.
 * @param {string} command
 */
const next = (command) => new RegExp(`next: (?:${command}|ps -eo pid,pcpu,args --sort=-pcpu \\| head) $`)

const PRELUDE = `
  const fs = require('node:fs')
  const http = require('node:http')
  const net = require('node:net')
  const { setTimeout: sleep } = require('node:timers/promises')
  const spin = (ms) => { for (const end = performance.now() + ms; performance.now() < end;); }
  class Pool {
    free = 2
    waiting = []
    async acquire () { if (this.free > 0) this.free--; else await new Promise((resolve) => this.waiting.push(resolve)) }
    release () { const next = this.waiting.shift(); if (next === undefined) this.free++; else next() }
  }
  const kept = []
  const traced = setInterval(() => {
    if (!process.getBuiltinModule('async_hooks')[Symbol.for('longstack.tracer.3')]?.tracer.settings.enabled) return
    clearInterval(traced)
    console.log('traced')
  }, 50)
  const agent = new http.Agent({ keepAlive: true })
  const get = (port, path, options = { agent }) => new Promise((resolve, reject) => {
    http.get({ port, host: '127.0.0.1', path, ...options }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    }).on('error', reject)
  })
  const serve = (answer) => new Promise((resolve) => {
    const server = http.createServer(answer).listen(0, '127.0.0.1', () => resolve(server.address().port))
  })
  // A service that has traffic of its own; it says ready after the first answers.
  async function service (answer, everyMs = 25) {
    const port = await serve(async (request, response) => {
      try { response.end(String(await answer(request))) } catch { response.writeHead(500).end() }
    })
    if (everyMs !== null) setInterval(() => get(port, '/work').catch(() => {}), everyMs)
    await sleep(200)
    console.log('ready', port)
    return port
  }
`

/** @param {string} source @param {Parameters<typeof start>[1]} [options] */
async function run (source, options) {
  const program = await start(PRELUDE + source, { traced: false, ...options })
  running.push(program.pid)
  return program
}

/** @type {number[]} */
const running = []
test.afterEach.always(() => {
  for (const pid of running.splice(0)) endGroup(pid)
})

/**
 * Looks at a process.
 * @param {string | number} target
 * @param {number} [seconds]
 * @param {...string} flags
 */
async function look (target, seconds = SECONDS, ...flags) {
  const begun = performance.now()
  const { code, stdout, stderr } = await longstack(target, '--seconds', seconds, ...flags)
  return { code, text: stdout, words: stdout.replace(/\s+/g, ' '), stderr, ms: performance.now() - begun }
}

/** Waits until a process is looked at, and some more. @param {(name: string) => Promise<any>} told */
async function meanwhile (told) {
  await told('traced')
  await new Promise((resolve) => setTimeout(resolve, 1500))
}

const healthy = 'service(async () => { await sleep(5); return "fine" })'

own('a healthy process has no finding, and its number of requests', async (t) => {
  const { pid } = await run(healthy)
  const { code, text, words, stderr } = await look(pid)
  t.is(code, 0)
  t.is(stderr, '')
  t.regex(words, new RegExp(`^Process ${pid} · node `))
  t.regex(text, new RegExp(`^nothing found in \\d\\.\\d\\d s, \\d+ requests$|^busy +(?:${BUSY})`, 'm'))
  t.true(Number(/ (\d+) requests in /.exec(words)?.[1]) > 10)
  t.true(text.split('\n').length <= 24)
})

own('without requests, the output says so; a port names the process', async (t) => {
  const { ready: port } = await run('service(() => "", null)')
  const { code, text } = await look(`127.0.0.1:${port}`, 2)
  t.is(code, 0)
  t.regex(text, /^nothing found in \d\.\d\d s, no requests$/m)
})

own('a permanently blocked process is reported at once, with its stack', async (t) => {
  const { pid } = await run(`
    setTimeout(function forever () { for (;;); }, 300)
    console.log('ready')
  `)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const { code, words, ms } = await look(pid, 60)
  t.is(code, 1)
  t.regex(words, /^blocked The event loop of process \d+ has been blocked for at least \S+ s\. It is running at forever \(.*app\d+\.js:\d+:\d+\)/)
  t.regex(words, /next: longstack why \d+ --watch $/)
  t.true(ms < 45_000)
})

own('a process that blocks permanently during the observation is reported', async (t) => {
  const { pid, say, told } = await run(`
    process.stdin.once('data', function forever () { for (;;); })
    ${healthy}
  `)
  const looking = look(pid, 60)
  await meanwhile(told)
  say('block')
  const { code, words, ms } = await looking
  t.is(code, 1)
  t.regex(words, /requests in .* blocked The event loop of process \d+ has been blocked.* at \S*forever \(/)
  t.true(ms < 45_000)
})

own('a blocked worker is reported', async (t) => {
  const { pid } = await run(`
    const { Worker } = require('node:worker_threads')
    new Worker('setTimeout(function grind () { for (;;); }, 100)', { eval: true })
    ${healthy}
  `)
  await new Promise((resolve) => setTimeout(resolve, 500))
  const { code, words } = await look(pid)
  t.is(code, 1)
  t.regex(words, /requests in .* blocked Thread \d+ of process \d+ has been blocked .* It is running at .*grind/)
})

own('endless microtasks block the event loop', async (t) => {
  const { pid } = await run(`
    setTimeout(async function forever () { for (;;) { await undefined; spin(20) } }, 300)
    console.log('ready')
  `)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const { code, words, ms } = await look(pid, 10)
  t.is(code, 1)
  t.regex(words, /^blocked The event loop of process \d+ has been blocked for at least \S+ s\. It is running at .*forever \(/)
  t.true(ms < MAX_MS, `${ms}`)
})

// Like a worker of Piscina, which runs task after task in Atomics.wait and microtasks
own('a worker that is always busy: the command ends, and restores the worker as well', async (t) => {
  const { pid, say, told } = await run(`
    const { Worker } = require('node:worker_threads')
    const stop = new Int32Array(new SharedArrayBuffer(4))
    new Worker(\`
      const { parentPort, workerData: stop } = require('node:worker_threads')
      async function task () {
        await undefined
        for (const end = performance.now() + 20; performance.now() < end;);
        Atomics.wait(stop, 0, 0, 1)
      }
      (async () => {
        while (Atomics.load(stop, 0) === 0) await task()
        setTimeout(() => parentPort.postMessage({
          enabled: process.getBuiltinModule('async_hooks')[Symbol.for('longstack.tracer.3')]?.tracer.settings.enabled ?? false,
          resources: process.getActiveResourcesInfo().filter((name) => /Pipe|TCP/.test(name))
        }), 500)
      })()
    \`, { eval: true, workerData: stop }).on('message', (state) => console.log('worker', JSON.stringify(state)))
    process.stdin.once('data', () => { stop[0] = 1 })
    ${healthy}
  `)
  await new Promise((resolve) => setTimeout(resolve, 500))
  const { code, words, ms } = await look(pid, 10)
  t.is(code, 0)
  t.regex(words, /Thread 1 of process \d+ is busy \(.*\): it runs microtasks but not its event loop, so it cannot be queried\./)
  t.notRegex(words, /blocked/)
  t.true(ms < MAX_MS, `${ms}`)
  say('stop')
  t.deepEqual(await told('worker'), { enabled: false, resources: [] })
})

for (const traced of [false, true]) {
  own(`the blocker is named, ${traced ? 'preloaded' : 'on older connections'}`, async (t) => {
    const { pid } = await run('service(function busy () { spin(60); return "" }, 150)', { traced })
    const { code, words } = await look(pid)
    t.is(code, 0)
    t.regex(words, /blocks spin \(app\d+\.js:\d+\) in GET \/work blocked the event loop \d+ times \(/)
    t.regex(words, next('longstack profile \\d+'))
  })
}

own('leaking connections and intervals are reported by opener', async (t) => {
  const { pid } = await run(`
    serve(() => {}).then((other) => service(function leaky () {
      kept.push(net.connect(other, '127.0.0.1'), setInterval(function tick () {}, 1e6))
      return ''
    }))
  `)
  const { code, words } = await look(pid, BY_LINE)
  t.is(code, 0)
  t.regex(words, /grows TCP connection opened at leaky \(app\d+\.js:\d+\): \d+ more in /)
  t.regex(words, /grows timer opened at leaky \(app\d+\.js:\d+\): \d+ more in /)
  t.regex(words, next('longstack diff \\d+'))
})

own('pipelined requests are not pending since the start', async (t) => {
  const { pid } = await run(`
    serve((request, response) => { setTimeout(() => response.end(), 100) }).then((port) => {
      const client = net.connect(port, '127.0.0.1').setEncoding('latin1')
      const send = () => client.write('GET /piped HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
      client.on('data', (text) => { for (const _ of text.match(/HTTP\\/1.1 200/g) ?? []) send() })
      for (let i = 0; i < 10; i++) send()
      console.log('ready')
    })
  `)
  const { code, words } = await look(pid, 4)
  t.is(code, 0)
  t.regex(words, nothing)
  t.notRegex(words, /pending/)
})

own('a permanently exhausted pool is reported', async (t) => {
  const { pid } = await run(`
    const pool = new Pool()
    service(async function load () { await pool.acquire(); await new Promise(() => {}) }, 200)
  `)
  const { code, words } = await look(pid)
  t.is(code, 0)
  t.regex(words, /hangs GET \/work has been pending for .* \(the oldest of \d+\); it waits for await at acquire \(app\d+\.js:\d+\)\./)
})

own('connections never returned to a pool name their last user; requests of one route are one line', async (t) => {
  writeDriver(directory)
  const { pid } = await run(`
    const Driver = require('driver')
    const database = net.createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1', async () => {
      const pool = new Driver()
      await pool.open(database.address().port)
      async function transfer () { await pool.ask(await pool.acquire()) }
      const port = await serve(async ({ url }, response) => {
        if (url.startsWith('/forgotten')) return sleep(1)
        await transfer()
        response.end()
      })
      for (const path of ['/bad', '/bad', '/ok', '/ok', '/forgotten/1', '/forgotten/2']) {
        get(port, path).catch(() => {})
        await sleep(100)
      }
      console.log('ready')
    })
  `, { traced: true })
  const { code, words } = await look(pid, 5)
  t.is(code, 0)
  t.regex(words, new RegExp('hangs GET /ok has been pending for .* \\(the oldest of 2\\); it waits for await at transfer ' +
    '\\(app\\d+\\.js:\\d+\\) via driver\\. All 2 connections to 127\\.0\\.0\\.1:\\d+ have been idle for .* s, ' +
    'last used by GET /bad, at transfer \\(app\\d+\\.js:\\d+\\): check whether they are released there\\.'))
  t.regex(words, /hangs GET \/forgotten\/1 has been pending for .* s \(the oldest of 2 of GET \/forgotten\/\*\); no await, timer, handle or operation of it is pending \(last: (?:timers\.promises\.setTimeout\(1\)|await|async function) at app\d+\.js:\d+\): only other code can respond to it\./)
})

own('an untraced process: queries on older connections are reported', async (t) => {
  writeDriver(directory)
  const { pid } = await run(`
    const Driver = require('driver')
    const database = net.createServer((socket) => socket.on('data', () => setTimeout(() => socket.write('.'), 3)))
    database.listen(0, '127.0.0.1', async () => {
      const pool = new Driver()
      await pool.open(database.address().port)
      async function loadUser (socket) { await pool.ask(socket) }
      await service(async function orders () {
        const socket = await pool.acquire()
        for (let i = 0; i < 6; i++) await loadUser(socket)
        pool.waiting.length > 0 ? pool.waiting.shift()(socket) : pool.release(socket)
      }, 100)
    })
  `)
  const { code, words } = await look(pid, 5)
  t.is(code, 0)
  t.regex(words, /slow GET \/work sends 6 queries per request, one after another at loadUser \(app\d+\.js:\d+\)/)
})

own('an untraced process that hangs: its silent connections are reported', async (t) => {
  writeDriver(directory)
  const { pid } = await run(`
    const Driver = require('driver')
    const { Worker } = require('node:worker_threads')
    new Worker(\`
      const server = require('node:net').createServer(() => {}).listen(0, '127.0.0.1', () => {
        require('node:worker_threads').parentPort.postMessage(server.address().port)
      })
    \`, { eval: true }).once('message', async (database) => {
      const pool = new Driver()
      await pool.open(database)
      pool.free = []
      const port = await serve(async (request, response) => { response.end(await pool.acquire()) })
      for (let i = 0; i < 3; i++) get(port, '/work').catch(() => {})
      setTimeout(() => console.log('ready'), 500)
    })
  `)
  const { code, words } = await look(pid, 5)
  t.is(code, 0)
  t.regex(words, new RegExp('hangs GET /work has been pending for at least .* \\(the oldest of 3\\); what it waits for is unknown\\. ' +
    'Nothing was sent or received on any of the 2 connections to 127\\.0\\.0\\.1:\\d+ for at least .* s: ' +
    'check whether they are released, and whether the peer responds\\.'))
  t.is(words.match(/Nothing was sent/g)?.length, 1)
})

own('a process that waits for a CPU is not blocked by its own code', async (t) => {
  const cpu = String(/Cpus_allowed_list:\s*(\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))?.[1])
  const spinners = [1, 2, 3, 4].map(() => spawn('taskset', ['-c', cpu, process.execPath, '-e', 'for (;;);']))
  t.teardown(() => { for (const spinner of spinners) spinner.kill() })
  const { pid } = await run(`
    require('node:child_process').execFileSync('taskset', ['-p', '-c', '${cpu}', String(process.pid)])
    service(() => { spin(10); return '' }, 12)
  `)
  const { code, words } = await look(pid, 5)
  t.is(code, 0)
  t.regex(words, new RegExp(`busy The main thread of process ${pid} waited for a CPU \\d+ % of the time: other processes used it`))
})

own('slow routes with too few requests to judge are listed', async (t) => {
  const { pid } = await run('service(async () => { await sleep(150); return "" }, 800)')
  const { code, words } = await look(pid)
  t.is(code, 0)
  t.regex(words, /Too few requests to judge: \d of GET \/work\. nothing found in /)
})

own('a pool that is too small has the verdict of the report', async (t) => {
  const { pid } = await run(`
    const pool = new Pool()
    service(async function load () {
      await pool.acquire()
      try { await sleep(40) } finally { pool.release() }
      return ''
    }, null).then((port) => setInterval(() => {
      for (let i = 0; i < 6; i++) get(port, '/work').catch(() => {})
    }, 140))
  `)
  const { code, words } = await look(pid, isEmulated ? BY_LINE : SECONDS)
  t.is(code, 0)
  t.regex(words, /waits GET \/work waits for a turn at acquire \(app\d+\.js:\d+\) \d+ % of its time/)
  t.regex(words, next('longstack attach \\d+ --spans spans\\.jsonl --seconds 60 && longstack report spans\\.jsonl'))
})

own('a worker too busy to be queried is reported, with the requests that wait for it', async (t) => {
  const { pid } = await run(`
    const { Worker } = require('node:worker_threads')
    const worker = new Worker(\`
      const { parentPort } = require('node:worker_threads')
      parentPort.on('message', (id) => {
        for (const end = performance.now() + 20; performance.now() < end;);
        parentPort.postMessage(id)
      })\`, { eval: true })
    const tasks = new Map()
    worker.on('message', (id) => tasks.get(id)())
    let count = 0
    async function render () {
      await new Promise((resolve) => {
        tasks.set(++count, resolve)
        worker.postMessage(count)
      })
    }
    service(async function thumbnail () { await render() }, null).then((port) => {
      const send = () => get(port, "/work").then(send, () => {})
      for (let i = 0; i < 8; i++) send()
    })
  `, { traced: true })
  const { words } = await look(pid, 8)
  t.regex(words, /Thread 1 of process \d+ is busy/)
  t.regex(words, /waits GET \/work waits \d+ % of its time for a free worker thread at render \(app\d+\.js:\d+\): up to \d+ tasks at once for 1 worker; each/)
})

own('two locks taken in opposite orders are reported', async (t) => {
  const { pid } = await run(`
    class Lock extends Pool { free = 1 }
    const [first, second] = [new Lock(), new Lock()]
    const take = async (a, b) => {
      await a.acquire()
      await sleep(300)
      await b.acquire()
    }
    service((request) => request.url === '/a' ? take(first, second) : take(second, first), null).then((port) => {
      setTimeout(() => { for (const path of ['/a', '/b']) get(port, path).catch(() => {}) }, 1000)
    })
  `, { traced: true })
  const { code, words } = await look(pid)
  t.is(code, 0)
  t.regex(words, /deadlock .*GET \/[ab] holds what it took at take \(app\d+\.js:\d+\) and waits at take \(app\d+\.js:\d+\), in acquire/)
  t.regex(words, next('longstack why \\d+'))
})

own('requests that wait for a free socket of an agent are reported', async (t) => {
  const { pid } = await run(`
    const limited = new http.Agent({ maxSockets: 2 })
    serve(() => {}).then((silent) => service(() => get(silent, '/', { agent: limited }), 100))
  `)
  const { words } = await look(pid)
  t.regex(words, /waits \d+ requests to 127\.0\.0\.1:\d+ wait for a free socket: 2 are in use, maxSockets of the http\.Agent is 2\./)
})

own('a process without free descriptors is not queried; its open files are listed', async (t) => {
  const { pid } = await run(`
    const { execFileSync } = require('node:child_process')
    execFileSync('prlimit', ['--nofile=64:64', '--pid', String(process.pid)])
    for (;;) try { kept.push(fs.openSync(__filename)) } catch { break }
    setInterval(() => {}, 1e6)
    console.log('ready')
  `)
  const { code, words, ms } = await look(pid)
  t.is(code, 1)
  t.regex(words, /files Process \d+ has 64 of 64 files open: it cannot open more \(EMFILE\), so it cannot be inspected; the most: \d+ × \S*app\d+\.js\. next: ls -l \/proc\/\d+\/fd $/)
  t.true(ms < 30_000)
})

own('a busy loop without a CPU is reported', async (t) => {
  const { pid } = await run(`
    const flag = new Int32Array(new SharedArrayBuffer(4))
    setInterval(() => Atomics.wait(flag, 0, 0, 20), 1)
    service(() => '')
  `)
  const { code, words } = await look(pid)
  t.is(code, 0)
  t.regex(words, new RegExp(`is busy \\d+ % of the time, with \\S+ % of a CPU: it waits for a CPU or in synchronous calls|${BUSY}`))
})

own('time spent in garbage collection is reported', async (t) => {
  const { pid } = await run(`
    const all = Array.from({ length: 3e5 }, (_, i) => ({ i, list: [i] }))
    service(() => { gc(); return all.length }, 20)
  `, { flags: ['--expose-gc'] })
  const { code, words } = await look(pid)
  t.is(code, 0)
  t.regex(words, /busy Process \d+ spent \d+ % of the time in garbage collection; its heap has [\d.]+ MB of at most \d+ MB\./)
})

own('failures are reported with function and line', async (t) => {
  const { pid } = await run('service(async function order () { throw new Error("no such order 12") })')
  const { code, words } = await look(pid)
  t.is(code, 0)
  t.regex(words, /\d+ with 5xx/)
  t.regex(words, /failed \d+ × Error: no such order 12 at .*order \(app\d+\.js:\d+\) in GET \/work/)
})

own('if the process ends meanwhile, observations until then are printed', async (t) => {
  const { pid, say, told } = await run(`process.stdin.once('data', () => process.exit()); ${healthy}`)
  const looking = look(pid, 60)
  await meanwhile(told)
  say('end')
  const { code, words } = await looking
  t.is(code, 0)
  t.regex(words, /requests in .* The process ended after \S+ s\. /)
  t.regex(words, nothing)
})

own('Ctrl-C ends the observation early and prints its results', async (t) => {
  const { pid, told } = await run(healthy)
  const child = spawn(process.execPath, [main, String(pid), '--seconds', '600'])
  let text = ''
  child.stdout.on('data', (part) => { text += part })
  await meanwhile(told)
  child.kill('SIGINT')
  const [code] = await once(child, 'close')
  t.is(code, 0)
  t.regex(text, /^Interrupted after .* s\.$/m)
  t.regex(text.replace(/\s+/g, ' '), nothing)
})

own('--until waits for a limit, --html writes a page of the requests recorded after it', async (t) => {
  const { pid, say } = await run(`
    let ms = 5
    process.stdin.once('data', () => { ms = 150 })
    service(async () => { await sleep(ms); return '' })
  `)
  const file = path.join(directory, 'incident.html')
  const looking = longstack(pid, '--until', 'GET /work: max > 100 ms', '--seconds', SECONDS, '--html', file)
  setTimeout(() => say('slow'), 2000)
  const { code, stdout, stderr } = await looking
  t.is(code, 0)
  t.regex(stderr, /^longstack: max of GET \/work is \d+ ms\.$/m)
  t.regex(stdout, /p50 1\d\d ms/) // it was looked at after the limit was exceeded
  t.regex(stderr, /^Wrote .*incident\.html \(/m)
  t.regex(fs.readFileSync(file, 'utf8'), /GET \/work/)
})

own('an invalid limit of --until is wrong usage', async (t) => {
  for (const [limit, message] of [
    ['wait > 5 ms', /--until "wait > 5 ms": the metric must be one of p50, /],
    ['p99 > +5 %', /--until "p99 > \+5 %": a change needs a run to compare with\./],
    ['p99', /--until "p99": expected >/],
    ['p99 > 1 s', /--html - would mix the page with the text\./]
  ]) {
    const { code, stderr } = await longstack(process.pid, '--until', limit, '--html', '-')
    t.is(code, 2)
    t.regex(stderr, /** @type {RegExp} */ (message))
  }
})

own('--until ends with the process', async (t) => {
  const { pid, child } = await run(healthy)
  const looking = longstack(pid, '--until', 'max > 10 s')
  setTimeout(() => child.kill(), 3000)
  const { code, stdout, stderr } = await looking
  t.is(code, 1)
  t.is(stdout, '')
  t.is(stderr, `longstack: Process ${pid} has ended.\n`)
})

own('JSON', async (t) => {
  const { pid } = await run('service(function busy () { spin(60); return "" }, 150)')
  const { code, text } = await look(pid, SECONDS, '--json')
  t.is(code, 0)
  const { processes, ms, requests, findings, next, verdict } = JSON.parse(text)
  t.is(processes[0].pid, pid)
  t.true(ms >= SECONDS * 500 && requests.count > 0)
  t.is(findings[0].next, next)
  const [found] = findings.filter(({ kind }) => kind !== 'busy') // the machine may be
  t.is(found.kind, 'blocks')
  t.regex(found.at, /^spin \(.*app\d+\.js:\d+:\d+\)$/)
  t.is(verdict[0].rule, 'blocker')
})

own('the members of a cluster are one report', async (t) => {
  const { pid } = await run(`
    const cluster = require('node:cluster')
    if (cluster.isPrimary) {
      for (let i = 0; i < 2; i++) cluster.fork()
      let ready = 0
      cluster.on('message', () => { if (++ready === 2) console.log('ready') })
    } else {
      service(async () => { throw new Error('a member fails') }).then(() => process.send('ready'))
    }
  `, { port: 9321 })
  const { code, text, words } = await look(pid)
  t.is(code, 0)
  t.is(text.match(/^Process \d+ · /gm)?.length, 3)
  t.regex(words, /failed \d+ × Error: a member fails/)
})

own('the program\'s own spans are undisturbed and complete', async (t) => {
  const file = path.join(directory, 'own-spans.jsonl')
  const env = { LONGSTACK_SPANS: file }
  const { pid, child, ready: port } = await run('service(() => "")', { traced: true, env })
  const { code, words } = await look(pid, 2)
  t.is(code, 0)
  t.regex(words, nothing)
  await fetch(`http://127.0.0.1:${port}/last`)
  child.kill('SIGTERM')
  await once(child, 'close')
  const records = fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  const definitions = records.filter(({ longstack }) => longstack !== undefined)
  t.is(new Set(definitions.map(({ source }) => source)).size, 1)
  const spans = records.filter(({ spanId }) => spanId !== undefined)
  t.deepEqual(spans.filter(({ name }) => name === 'blocked'), [])
  t.is(new Set(spans.map(({ spanId }) => spanId)).size, spans.length)
  t.true(spans.filter(({ kind = 'SERVER' }) => kind === 'SERVER').length > 50)
})

own('the process is restored', async (t) => {
  const { pid, told, say } = await run(`
    ${healthy}
    process.stdin.on('data', () => {
      const tracer = process.getBuiltinModule('async_hooks')[Symbol.for('longstack.tracer.3')]?.tracer
      console.log('state', JSON.stringify({
        enabled: tracer?.settings.enabled ?? false,
        inspector: process.getBuiltinModule('inspector').url() ?? 'closed',
        formatter: typeof Error.prepareStackTrace,
        listeners: process.eventNames().map((name) => [String(name), process.listenerCount(name)])
      }))
    })
  `)
  const state = async () => {
    say('state')
    return await told('state')
  }
  const first = await state()
  await look(pid, 1) // it loads
  const before = await state()
  for (let i = 0; i < 2; i++) await look(pid, 1)
  const same = async () => JSON.stringify(await state()) === JSON.stringify(before)
  for (let i = 0; i < 100 && !await same(); i++) await new Promise((resolve) => setTimeout(resolve, 50))
  t.deepEqual(await state(), before)
  for (const name of ['enabled', 'inspector', 'formatter']) t.is(before[name], first[name])
})

const terminal = noTerminal() === undefined && process.platform === 'linux' ? own : test.skip
/** @param {number} pid */
const commandOf = (pid) => ({ preload: false, file: main, after: [String(pid), '--seconds', '2'] })

terminal('a terminal has colours and progress that is erased; NO_COLOR and narrow terminals work', async (t) => {
  const { pid } = await run('service(async function order () { throw new Error("no such order") })')
  const wide = await onTerminal('', commandOf(pid))
  t.true(wide.text.includes('\x1b[31mfailed'))
  t.regex(wide.text, /looking, \d+ of \d s: \d+ requests/)
  t.false(wide.text.slice(wide.text.lastIndexOf('\x1b[2K')).includes('looking'))
  const narrow = await onTerminal('', { ...commandOf(pid), env: { NO_COLOR: '1', COLUMNS: '50' } })
  t.false(narrow.text.replaceAll('\x1b[2K', '').includes('\x1b['))
  const lines = narrow.text.split('\n').filter((line) => !/^next:|looking/.test(line))
  t.deepEqual(lines.filter((line) => line.length > 50), [])
})

own('CPU and event-loop delay cover the whole observation, not its last sample', async (t) => {
  const program = await run(`
    let count = 0
    setInterval(() => { if (traced._destroyed && count++ < 8) spin(120) }, 250) // then it is idle
    console.log('ready')`)
  const { words } = await look(program.pid, 6)
  const [, lateMs, cpu] = /% busy, up to ([\d.]+) ms late; CPU ([\d.]+) %/.exec(words) ?? []
  t.true(Number(lateMs) > 50, words)
  t.true(Number(cpu) > 6, words)
})

test('words that name no process are commands', async (t) => {
  const unknown = await longstack('tpo')
  t.is(unknown.code, 2)
  t.regex(unknown.stderr, /Unknown command "tpo"\. Did you mean "top"\?/)
  const wrong = await longstack(1, '--seconds', 'x')
  t.is(wrong.code, 2)
  t.regex(wrong.stderr, /--seconds must be a number from 1 to 3600/)
  const none = await longstack(999_999_999)
  t.is(none.code, 1)
  t.regex(none.stderr, /There is no process 999999999\./)
  const flagFirst = await longstack('--seconds', '1', 999_999_999)
  t.deepEqual([flagFirst.code, flagFirst.stderr], [none.code, none.stderr])
  const noCommand = await longstack('--frames', '5', 'app.js')
  t.is(noCommand.code, 2)
  t.regex(noCommand.stderr, /Unknown flag "--frames": use a command first/)
})
