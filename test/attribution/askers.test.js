'use strict'

// Requests that errors belong to, checked with known answers on pooled connections of real drivers and of the
// fixture's own framing. An error names the request that made the query, and never another one as a fact; the
// opener of the connection is at most one line.

const { execFile } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { hasRedis, postgresDirectory, startPostgres, startRedis } = require('../helpers/database-servers')
const { strict } = require('../helpers/installed')
const { program: runProgram, register, root } = require('../helpers/run')
const { timeFactor } = require('../helpers/time-factor')

const app = path.join(root, 'test', 'fixtures', 'askers', 'app.js')
const pem = (/** @type {string} */ name) => fs.readFileSync(path.join(root, 'test', 'fixtures', 'chains', `${name}.pem`), 'utf8')
const others = /^(LONGSTACK|NODE_|AVA_|FORCE_COLOR|NO_COLOR|PG)/
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !others.test(name)))

/** @type {Record<string, string>} */
const ports = {}
/** @type {Array<{ stop: () => Promise<void> }>} */
const servers = []

test.before(async (t) => {
  const bin = postgresDirectory()
  const [postgres, redis] = await Promise.all([
    bin === undefined ? undefined : startPostgres(bin), hasRedis() ? startRedis() : undefined
  ])
  if (postgres !== undefined) ports.POSTGRES_PORT = String(postgres.port)
  if (redis !== undefined) ports.REDIS_PORT = String(redis.port)
  for (const server of [postgres, redis]) if (server !== undefined) servers.push(server)
  if (servers.length < 2) t.log('left out what needs PostgreSQL and Redis: they are not there')
  if (strict) t.is(servers.length, 2)
})

test.after.always(() => Promise.all(servers.map(({ stop }) => stop())))

/**
 * @typedef {{ right: number, none: number, wrong: number, sample?: string, unknown?: string }} Count
 * Runs the program, while the servers' output is read on.
 * @param {Record<string, string>} env
 * @param {string[]} [flags]
 * @returns {Promise<Record<string, Count>>} by kind
 */
function run (env, flags = ['-r', register]) {
  const options = {
    timeout: 120_000 * timeFactor,
    env: { ...inherited, ...ports, PAIR: JSON.stringify({ key: pem('key'), cert: pem('cert') }), ...env }
  }
  return new Promise((resolve) => {
    execFile(process.execPath, [...flags, app], options, (_, stdout, stderr) => {
      resolve(stdout === '' ? /** @type {any} */ (stderr) : JSON.parse(stdout))
    })
  })
}

/** @type {Array<Record<string, string>>} */
const engines = [{}, { LONGSTACK_CAPTURE: 'js' }]

for (const env of engines) {
  test.serial(`an error on a pooled connection names the code that sent the query, ${JSON.stringify(env)}`, async (t) => {
    const counts = await run(env)
    t.true(Object.keys(counts).length >= 12, JSON.stringify(counts))
    for (const [kind, { right, none, wrong, sample, unknown }] of Object.entries(counts)) {
      t.is(wrong, 0, `${kind}: ${sample}`)
      // Without the allocation clock the reader is all that is known
      const isTold = unknown !== undefined && env.LONGSTACK_CAPTURE === undefined
      if (isTold) t.regex(unknown, /── on a connection opened by .*; who asked is not known ──/, kind)
      if (kind.includes('called')) t.true(right > 0, `${kind}: ${unknown}`)
      else t.is(none, 0, `${kind}: ${unknown}`)
    }
  })
}

for (const isPreloaded of [true, false]) {
  const title = isPreloaded ? 'of all drivers at once' : 'that are older than tracing'
  test.serial(`an error on connections ${title} names the code that sent the query, or none`, async (t) => {
    /** kinds with a right answer in some run: on a busy machine one kind may have none @type {Set<string>} */
    const known = new Set()
    /** @type {string[]} */
    let unknown = []
    for (let i = 0; i < 3 && (i === 0 || unknown.length > 0); i++) {
      const counts = await run({ LATE: '1' }, isPreloaded ? undefined : [])
      t.true(Object.keys(counts).length >= 12, JSON.stringify(counts))
      for (const [kind, { right, wrong, sample }] of Object.entries(counts)) {
        t.is(wrong, 0, `${kind}: ${sample}`)
        if (right > 0) known.add(kind)
      }
      unknown = Object.keys(counts).filter((kind) => /^(?:net|tls|pg)\b/.test(kind) && !known.has(kind))
    }
    t.deepEqual(unknown, [])
  })
}

test('the response to a query sent while tracing was off is not attributed to the next sender', async (t) => {
  const { stdout } = await runProgram(`
    const net = require('node:net')
    const trace = require(${JSON.stringify(root)})
    const peer = net.createServer((socket) => socket.on('data', () => setTimeout(() => socket.write('x'), 50)))
    peer.listen(0, function open () {
      const connection = net.connect(peer.address().port, async () => {
        connection.write('first')
        await new Promise((resolve) => connection.once('data', resolve))
        trace.disable()
        connection.write('unseen')
        await new Promise((resolve) => setTimeout(resolve, 20))
        trace.enable()
        connection.once('data', () => console.log(new Error('late').stack))
        setTimeout(function next () { connection.write('next') }, 10)
        setTimeout(() => process.exit(), 200)
      })
    })
  `)
  t.regex(stdout, /^Error: late/)
  t.notRegex(stdout, /at next /)
})

test('a stack names the opener of the connection in one line', async (t) => {
  const { stdout } = await runProgram(`
    const http = require('node:http')
    const net = require('node:net')
    const peer = net.createServer((socket) => socket.on('data', () => socket.write('x'))).listen(0, () => {
      let connection
      let done
      function query (next) {
        if (connection === undefined) {
          connection = net.connect(peer.address().port)
          connection.on('data', () => done(new Error('the query failed')))
        }
        done = next
        connection.write('?')
      }
      const server = http.createServer(function handle (request, response) {
        query((error) => response.end(error.stack))
      }).listen(0, async () => {
        const get = async (path) => (await fetch('http://127.0.0.1:' + server.address().port + path)).text()
        console.log(await get('/orders') + '\\n===\\n' + await get('/bad'))
        process.exit()
      })
    })`)
  const [first, second] = stdout.split('\n===\n')
  t.regex(first, /── GET \/orders /)
  t.notRegex(first, /on a connection/)
  t.regex(second, /── socket\.write .*\n +at query .*\n +at (Server\.)?handle .*\n +── GET \/bad /)
  t.regex(second, /── on a connection opened by GET \/orders, [\d.]+ m?s earlier ──$/m)
  t.is(second.split('GET /orders').length, 2, second)
})

test('data that a server sends unasked belongs to the opener of the connection, and is marked', async (t) => {
  const { stdout } = await runProgram(`
    const net = require('node:net')
    const peer = net.createServer((socket) => {
      socket.on('data', () => { socket.write('answer'); setTimeout(() => socket.write('push'), ${50 * timeFactor}) })
    }).listen(0, () => {
      let answered
      const connection = (function openPool () { return net.connect(peer.address().port) })()
      connection.setEncoding('utf8').on('data', (text) => {
        if (text === 'answer') return answered()
        console.log(new Error('pushed').stack)
        process.exit()
      })
      setTimeout(async function asker () {
        await new Promise((resolve) => { answered = resolve; connection.write('?') })
      }, 20)
    })`)
  t.regex(stdout, /── on a connection opened by net\.connect\(.*\n +at openPool /)
  t.notRegex(stdout, /asker/)
})

test('a write by a driver\'s queue in its reply handler has no known owner', async (t) => {
  const { stdout } = await runProgram(`
    const net = require('node:net')
    const trace = require(${JSON.stringify(root)})
    const peer = net.createServer((socket) => socket.on('data', (data) => setTimeout(() => socket.write(data), 20)))
    peer.listen(0, () => {
      const queue = []
      let present
      const connection = net.connect(peer.address().port, function openPool () {
        setTimeout(function handleA () { query('good', () => {}) }, 1)
        setTimeout(function handleB () { query('bad', () => process.exit()) }, 5)
      })
      function query (sql, done) { queue.push({ sql, done }); if (present === undefined) next() }
      function next () { present = queue.shift(); if (present) connection.write(present.sql) }
      connection.setEncoding('utf8').on('data', (text) => {
        const { done } = present
        if (text === 'bad') console.log(new Error('the query failed').stack + '\\n' + trace.why(connection))
        next()
        done()
      })
    })`)
  t.regex(stdout, /the query failed/)
  t.regex(stdout, /── on a connection opened by .*; who asked is not known ──/)
  t.notRegex(stdout, /handleA|last written/)
})

const client = JSON.stringify(path.join(root, 'test', 'fixtures', 'askers', 'line-client.js'))

test('a query in the callback of another one names the code that sent it', async (t) => {
  const { stdout } = await runProgram(`
    const { Client, serve } = require(${client})
    serve((port) => {
      const db = new Client(port)
      function findUser (done) { db.query('1 user', done) }
      function saveOrder (done) { db.query('1 bad', done) }
      setTimeout(function checkout () {
        findUser(function found () {
          saveOrder(function saved (error) { console.log(error.stack); process.exit() })
        })
      }, 20)
    })`)
  t.regex(stdout, /── socket\.write .*\n.*#send .*\n.*query .*\n +at saveOrder .*\n +at found /)
  t.notRegex(stdout, /who asked is not known/)
})

test('a query of a timer that was set in a callback of the connection names the timer', async (t) => {
  const { stdout } = await runProgram(`
    const { Client, serve } = require(${client})
    serve((port) => {
      const db = new Client(port)
      function report () { db.query('1 bad', (error) => { console.log(error.stack); process.exit() }) }
      setTimeout(function warmUp () {
        db.query('1 first', function warm () { setTimeout(report, 20) })
      }, 20)
    })`)
  t.regex(stdout, /── socket\.write .*\n[^─]*at report .*\n +── setTimeout.* ──\n +at warm /)
})

test('a query that a pool sends in a callback of its connection does not name the previous request', async (t) => {
  const { stdout } = await runProgram(`
    const http = require('node:http')
    const { Client, serve } = require(${client})
    serve((port) => {
      const db = new Client(port)
      const waiting = []
      let isBusy = false
      function acquire (use) { if (isBusy) waiting.push(use); else { isBusy = true; use() } }
      function release () { isBusy = false; const use = waiting.shift(); if (use) acquire(use) }
      function ask (line, done) {
        acquire(function use () { db.query(line, function answered (error) { release(); done(error) }) })
      }
      const server = http.createServer(function handle ({ url }, response) {
        ask(url === '/bad' ? '20 bad' : '100 ok', (error) => response.end(error?.stack))
      }).listen(0, async () => {
        const get = async (path) => (await fetch('http://127.0.0.1:' + server.address().port + path)).text()
        const first = get('/first')
        await new Promise((resolve) => setTimeout(resolve, 50))
        console.log(await get('/bad'))
        await first
        process.exit()
      })
    })`)
  t.regex(stdout, /the query failed/)
  t.notRegex(stdout, /── GET \/first/)
})

test('a first query that a driver holds back names the code that opened the connection', async (t) => {
  const { stdout } = await runProgram(`
    const { Client, serve } = require(${client})
    serve((port) => {
      function countRows (done) { new Client(port, { held: true }).query('1 bad', done) }
      setTimeout(function report () {
        countRows((error) => { console.log(error.stack); process.exit() })
      }, 20)
    })`)
  t.regex(stdout, /── on a connection opened by .*; who asked is not known ──\n[^─]*at countRows .*\n +at report /)
})

test('the second of two queries of one step is not attributed to the next sender', async (t) => {
  for (const call of ['askTwo()', 'for (const done of [() => {}, second]) ask(done)']) {
    const { stdout } = await runProgram(`
      const { Client, serve } = require(${client})
      const times = [20, 90, 80]
      serve((port) => {
        const db = new Client(port, { pipelined: true })
        function ask (done) { db.query(times.shift() + ' x', done) }
        function askTwo () {
          ask(() => {})
          ask(second)
        }
        function second () { console.log(new Error('second').stack); process.exit() }
        setTimeout(function timerOfA () { ${call} }, 20)
        setTimeout(function timerOfB () { ask(() => {}) }, 70)
      })`)
    t.regex(stdout, /Error: second/, call)
    t.notRegex(stdout, /timerOfB/, call)
  }
})

test('responses of a thread to two messages name their own senders', async (t) => {
  const { stdout, stderr } = await runProgram(`
    const { Worker } = require('node:worker_threads')
    const { Client, serve } = require(${client})
    const echo = 'const { parentPort: port } = require("worker_threads"); port.on("message", (m) => port.postMessage(m))'
    serve((port) => {
      const db = new Client(port, { pipelined: true })
      const worker = new Worker(echo, { eval: true })
      const lines = ['300 x', '600 bad']
      function tell (error) { if (error) { console.log(error.stack); process.exit() } }
      worker.on('message', () => db.query(lines.shift(), tell))
      worker.on('online', () => {
        setTimeout(function timerOfA () { worker.postMessage('a') }, 20)
        setTimeout(function timerOfB () { worker.postMessage('b') }, 60)
      })
    })`)
  t.regex(stdout, /the query failed/, stderr)
  t.notRegex(stdout, /timerOfA/)
})

test('if a step and its cause query at the same time, neither place is named', async (t) => {
  const { stdout } = await runProgram(`
    const { Client, serve } = require(${client})
    const trace = require(${JSON.stringify(root)})
    serve((port) => {
      const db = new Client(port, { pipelined: true })
      function askFirst () { db.query('40 x', () => {}) }
      function askLater () {
        db.query('80 bad', (error) => { console.log(error.stack); process.exit() })
        console.log(String(trace.why(db.socket)))
      }
      setTimeout(function asker () {
        askFirst()
        setTimeout(askLater, 10)
      }, 20)
    })`)
  t.regex(stdout, /last written .* at .*#?send/)
  t.regex(stdout, /the query failed/)
  t.notRegex(stdout, /askFirst/)
})

test('no writer is named for a connection on which nothing was written', async (t) => {
  const { stdout } = await runProgram(`
    const net = require('node:net')
    const trace = require(${JSON.stringify(root)})
    const peer = net.createServer(() => {}).listen(0, () => {
      const connection = net.connect(peer.address().port, () => setTimeout(() => {
        console.log(String(trace.why(connection)))
        process.exit()
      }, 20))
    })`)
  t.regex(stdout, /0 bytes out/)
  t.notRegex(stdout, /last written/)
})

test('connections are grouped by holder', async (t) => {
  const { stdout } = await runProgram(`
    const http = require('node:http')
    const net = require('node:net')
    const trace = require(${JSON.stringify(root)})
    const peer = net.createServer((socket) => socket.pipe(socket)).listen(0, () => {
      const idle = []
      const acquire = () => idle.pop() ?? net.connect(peer.address().port)
      const query = (socket) => new Promise((resolve) => { socket.once('data', resolve); socket.write('?') })
      async function ok () { const socket = acquire(); await query(socket); idle.push(socket) }
      async function leak () { await query(acquire()) }
      const server = http.createServer(async function handle ({ url }, response) {
        await (url === '/leak' ? leak() : ok())
        response.end()
      }).listen(0, async () => {
        const get = async (path) => (await fetch('http://127.0.0.1:' + server.address().port + path)).text()
        await Promise.all(['/ok', '/ok', '/ok', '/ok'].map(get))
        await Promise.all(['/leak', '/leak', '/leak'].map(get))
        const pool = trace.handles().filter(({ remote }) => remote?.endsWith(':' + peer.address().port))
        const text = require('node:util').inspect(trace.handles())
        console.log(text.split('\\n\\n').filter((group) => group.includes(':' + peer.address().port)).join('\\n\\n'))
        process.exit()
      })
    })`)
  t.regex(stdout, /3 × TCP connection, client[^]*?last written .* ago at program\.cjs:8, for GET \/leak, by/)
  t.regex(stdout, /last written .* ago at program\.cjs:8, for GET \/ok, by/)
})
