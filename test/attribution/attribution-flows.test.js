'use strict'

// Flows that share their handlers, errors and connections: each error is reported with the flow that made it,
// the one that rejected with it, and the one that awaited it. If this is unknown, no flow is named.

const test = require('ava')
const { program, split } = require('../helpers/run')
const { loadBinding } = require('../../lib/stacks/binding')

const isNative = loadBinding().failure === undefined && process.env.ENGINE !== 'js'
const known = isNative ? test : test.skip
const ROOMY = ['--min-semi-space-size=16'] // MB: no collection comes between the making and the reading
const TRIES = 5 // a run in which V8 goes on to another page is not known to the clock

/**
 * Runs a program until its error's maker is known; whatever it says until then is judged as well.
 * @param {string} source prints the stack
 * @param {(stack: string) => void} judge of any answer
 */
async function told (source, judge = () => {}) {
  let stdout = ''
  for (let i = 0; i < TRIES; i++) {
    ({ stdout } = await program(source, { args: ROOMY }))
    judge(stdout)
    if (!/ · reader/.test(stdout)) return stdout
  }
  return stdout
}

/**
 * @param {string} stack
 * @param {string} word in its separator
 * @returns {string[]} frames of the hops from that one on
 */
function section (stack, word) {
  const { hops } = split(stack)
  const first = hops.findIndex(({ title }) => title.includes(word))
  return first === -1 ? [] : hops.slice(first).map(({ frames }) => frames)
}

known('an error in a handler shared by many flows has the flow that made it', async (t) => {
  const stdout = await told(`
    const kept = []
    function shared () { if (kept.push(new Error('shared')) === 2) setTimeout(reads, 2) }
    function one () { setTimeout(shared, 5) }
    function two () { setTimeout(shared, 5) }
    setTimeout(one, 1)
    setTimeout(two, 1)
    function reads () { console.log(kept.map((error) => error.stack).join('\\n\\n')) }`,
  (stack) => t.false(/ at reads/.test(stack.split('reader')[0]), stack))
  const [first, second] = stdout.split('\n\n')
  t.regex(first, /at one /)
  t.notRegex(first, /at two /)
  t.regex(second, /at two /)
  t.notRegex(second, /at one /)
})

known('an error rethrown by another flow names its creator first, then who rejected with it', async (t) => {
  const stack = await told(`
    let cached
    setTimeout(function makes () { cached = new Error('cached') }, 1)
    async function load () { await null; throw cached }
    setTimeout(function throwsAgain () { load().catch((error) => console.log(error.stack)) }, 8)`)
  const { hops } = split(stack)
  t.regex(hops[0].frames, /program\.cjs:3/, stack)
  t.notRegex(hops[0].title, /rejected/)
  t.regex(section(stack, 'rejected here').join('\n'), /throwsAgain/, stack)
})

known('a query on a shared connection names the waiting request, and those that share it', async (t) => {
  const stack = await told(`
    const http = require('node:http')
    const net = require('node:net')
    const database = net.createServer((peer) => peer.on('data', (data) => setTimeout(() => peer.write(data), 3)))
    database.listen(0, function listens () {
      const jobs = []
      const connection = openConnection()
      function openConnection () { return net.connect(database.address().port) }
      connection.on('data', (data) => {
        for (const byte of data) {
          const { fails, resolve, reject } = jobs.shift()
          if (fails) reject(new Error('the query failed'))
          else resolve()
        }
      })
      function query (fails) {
        return new Promise((resolve, reject) => {
          jobs.push({ fails, resolve, reject })
          connection.write('?')
        })
      }
      async function report (url) {
        await query(false)
        await query(url === '/fails')
      }
      const server = http.createServer(function serves (request, response) {
        report(request.url).then(() => response.end('fine'), (error) => response.end(error.stack))
      })
      server.listen(0, async () => {
        const base = 'http://127.0.0.1:' + server.address().port
        await Promise.all([fetch(base + '/works'), fetch(base + '/works')])
        console.log(await (await fetch(base + '/fails')).text())
        process.exit()
      })
    })`)
  const { hops } = split(stack)
  t.regex(hops[0].title, /^awaited by/, stack)
  t.regex(hops[0].frames, /at query .*\n.*at report /, stack)
  t.regex(stack, /at serves/)
  t.regex(stack, /── GET \/fails/)
  t.regex(stack, /── on a connection shared by GET \/works and GET \/fails ──$/m)
  t.notRegex(stack, /openConnection/)
})

known('a fetch whose pooled connection breaks names the request in flight, and the opener', async (t) => {
  const { stdout } = await program(`
    const http = require('node:http')
    const upstream = http.createServer((request, response) => {
      if (request.url.startsWith('/breaks')) request.socket.resetAndDestroy()
      else response.end()
    })
    upstream.listen(0, () => {
      const service = http.createServer(function serves ({ url }, response) {
        load(url).then(() => response.end(), (error) => response.end(error.cause.stack))
      })
      async function load (url) { await (await fetch('http://127.0.0.1:' + upstream.address().port + url)).text() }
      service.listen(0, async () => {
        const ask = async (path) => (await fetch('http://127.0.0.1:' + service.address().port + path)).text()
        await ask('/opens')
        console.log(await ask('/breaks?secret=1'))
        process.exit()
      })
    })`, { args: ROOMY })
  t.regex(stdout, /ECONNRESET/)
  const { hops } = split(stdout)
  t.regex(hops[0].title, /^fetch · /, stdout)
  t.regex(hops[0].frames, /at load /, stdout)
  t.regex(hops[1].title, /^GET \/breaks · /, stdout)
  t.regex(stdout, /── on a connection opened by GET \/opens, \d.* earlier ──$/m)
  t.is(stdout.split('GET /opens').length, 2, stdout)
  t.notRegex(stdout, /secret/)
})

known('a broken connection names its last writer', async (t) => {
  const stack = await told(`
    const net = require('node:net')
    const peer = net.createServer((socket) => socket.once('data', () => {
      socket.on('data', () => socket.resetAndDestroy())
      socket.write('!')
    }))
    peer.listen(0, () => {
      const connection = openConnection()
      function openConnection () { return net.connect(peer.address().port, opened) }
      function query () { connection.write('?') }
      function opened () {
        let answered = false
        connection.on('data', () => { answered = true })
        setTimeout(function first () { query() }, 1)
        const timer = setInterval(function second () {
          if (!answered) return
          clearInterval(timer)
          query()
        }, 1)
      }
      connection.on('error', (error) => { console.log(error.stack); process.exit() })
    })`)
  t.regex(stack, /ECONNRESET/)
  t.regex(split(stack).hops[0].frames, /at query .*\n.*second /, stack)
})

for (const env of [{}, { LONGSTACK_CAPTURE: 'js' }]) {
  test(`a shared connection shows who wrote last, ${JSON.stringify(env)}`, async (t) => {
    const { stdout } = await program(`
      const net = require('node:net')
      const trace = require(${JSON.stringify(require.resolve('../..'))})
      const peer = net.createServer((socket) => socket.pipe(socket)).listen(0, () => {
        const connection = openConnection()
        function openConnection () { return net.connect(peer.address().port, opened) }
        function query () { connection.write('?') }
        function opened () {
          setTimeout(function first () { query() }, 1)
          setTimeout(function second () { query() }, 5)
          connection.on('data', () => setTimeout(reads, 20))
        }
        function reads () {
          const why = trace.why(connection)
          console.log(JSON.stringify({ why, text: String(why) }))
          process.exit()
        }
      })`, { env })
    const { why, text } = JSON.parse(stdout)
    t.regex(text, /opened by\n.*net\.connect.*\n {4}at openConnection/)
    t.regex(text, /last written [\d.]+ m?s ago at query \(program\.cjs:7\), by\n.*socket\.write .*\n {4}at query .*\n {4}at (Timeout\.)?second /)
    t.is(why.writtenBy.at, 'query (program.cjs:7)')
    t.true(why.writtenBy.agoMs >= 0 && why.writtenBy.agoMs < 10_000)
    t.true(why.writtenBy.chain[0].frames.some(({ functionName }) => functionName === 'second'), stdout)
  })
}

known('an abort names the code that aborted, and the code that waited', async (t) => {
  const stack = await told(`
    const { setTimeout: wait } = require('node:timers/promises')
    const controller = new AbortController()
    async function waiter () { await wait(1000, null, { signal: controller.signal }) }
    setTimeout(function starts () { waiter().catch((error) => console.log(error.stack)) }, 1)
    setTimeout(function aborts () { controller.abort() }, 8)`)
  t.regex(split(stack).hops[0].frames, /program\.cjs:6/, stack)
  t.regex(section(stack, 'awaited by').join('\n'), /at waiter .*\n.*at starts /, stack)
})

known('causes and AggregateError members are known when the ring wraps, and shown after a collection', async (t) => {
  const source = `
    const { setFlagsFromString } = require('node:v8')
    setFlagsFromString('--expose-gc')
    const gc = require('node:vm').runInNewContext('gc')
    let first
    function shared () { return new Error('shared') }
    setTimeout(function makesCause () { first = shared() }, 10)
    setTimeout(function rejects () {
      Promise.reject(new AggregateError([shared()], 'all', { cause: first })).catch((error) => setTimeout(function reads () {
        gc()
        console.log(error.cause.stack + '\\n\\n' + error.errors[0].stack)
      }, 5))
    }, 20)`
  const stdout = await told(source)
  const [cause, member] = stdout.split('\n\n')
  t.regex(split(cause).hops[0].frames, /program\.cjs:7/, stdout)
  t.regex(split(member).hops[0].frames, /program\.cjs:8/, stdout)
})

known('one file system request is not taken for another', async (t) => {
  const stack = await told(`
    const fs = require('node:fs')
    let kept
    function shared (error) { if (kept === undefined) kept = error; else console.log(kept.stack) }
    function first () { fs.readFile('/nowhere/first', shared) }
    function second () { if (kept) fs.readFile('/nowhere/second', shared); else setTimeout(second, 5) }
    setTimeout(first, 1)
    setTimeout(second, 10)`,
  (text) => t.false(/at second/.test(text.split('reader')[0]), text))
  t.regex(stack, /nowhere\/first/)
  t.regex(stack, /at first /)
  t.notRegex(stack, /at second /)
})

known('a timer refreshed by another flow has its own chain for each run', async (t) => {
  const stdout = await told(`
    let kept
    const timer = setTimeout(function sloppy () {
      if (kept !== undefined) return console.log(kept.stack + '\\n\\n' + new Error('second').stack)
      kept = new Error('first')
      setTimeout(function refreshes () { timer.refresh() }, 3)
    }, 1)`)
  const [first, second] = stdout.split('\n\n')
  t.notRegex(first, /refreshes/, stdout)
  t.regex(second, /at refreshes/, stdout)
})

test('the reader of an error is not taken for its creator if nothing distinguishes them', async (t) => {
  const { stdout } = await program(`'use strict'
    let kept
    function shared () { if (kept === undefined) kept = new Error('shared'); else console.log(kept.stack) }
    function one () { setTimeout(shared, 1) }
    function two () { setTimeout(shared, 1) }
    setTimeout(one, 1)
    setTimeout(two, 9)`, { env: { LONGSTACK_CAPTURE: 'js' } })
  t.regex(stdout, /at two /)
  t.regex(split(stdout).hops[0].title, /reader: only where/)
})

test('an unhandled rejection with a non-error value has the place of its promise', async (t) => {
  for (const start of ['fails()', 'setTimeout(fails, 1)', 'import("node:fs").then(fails)']) {
    const { stderr, code } = await program(`function fails () { Promise.reject(42) }\n${start}`)
    t.is(code, 1)
    if (isNative) t.regex(stderr, /── Promise\.reject .*rejected here ──\n {4}at fails /, stderr)
  }
})

test('a function used as a rejection reason is not converted to text', async (t) => {
  const source = `
    let asked = 0
    const reason = Object.assign(function reason () {}, { toString () { asked++; return 'reason' } })
    setTimeout(function fails () { Promise.reject(reason) }, 1)
    process.on('uncaughtException', () => { console.log(asked); process.exit() })`
  const [bare, traced] = [await program(source, { preload: false }), await program(source)]
  t.regex(bare.stdout, /^\d+\n$/)
  t.is(traced.stdout, bare.stdout)
})

known('the clock is off on a heap that does not move its objects', async (t) => {
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(require.resolve('../..'))})
    const garbage = []
    for (let i = 0; i < 3e5; i++) garbage[i % 1000] = { i, text: String(i) }
    setTimeout(() => setTimeout(() => console.log(JSON.stringify(trace.stats().clockWhy)), 5), 5)`, { args: ['--minor-ms'] })
  if (stdout === '') {
    t.log('this Node has no such collector')
    return t.pass()
  }
  t.regex(JSON.parse(stdout), /without moving|not allocate upwards/)
})

known('an error rejected again names the rejection that reached the reader, and the first in one line', async (t) => {
  const stack = await told(`
    const { setTimeout: wait } = require('node:timers/promises')
    let closed
    setImmediate(function openPool () { closed = new Error('the pool is closed') })
    async function query () { await wait(1); throw closed }
    async function load () { await query() }
    setTimeout(function first () { load().catch(() => {}) }, 5)
    setTimeout(function second () { load().catch((error) => console.log(error.stack)) }, 30)`)
  const rejected = section(stack, 'rejected here')[0]
  t.regex(rejected, /at query .*\n.*at load .*\n.*second /, stack)
  t.regex(stack, /\n {2}── first rejected: await · [\d.]+ m?s earlier · query \(program\.cjs:5\) < load < .*first ──\n?$/)
  t.is(stack.split('first ──').length, 2, stack)
})

known('a rejection passed on by callers is one rejection, without a first one', async (t) => {
  const stack = await told(`
    const { setTimeout: wait } = require('node:timers/promises')
    let kept
    setImmediate(function makes () { kept = new Error('kept') })
    async function query () { await wait(1); throw kept }
    async function load () { try { await query() } catch (error) { await wait(1); throw error } }
    async function serve () { return Promise.all([load(), wait(2)]) }
    setTimeout(function asks () { serve().then(() => {}).catch((error) => setTimeout(() => console.log(error.stack), 2)) }, 5)`)
  t.regex(section(stack, 'rejected here')[0], /at query .*\n.*at load .*\n.*at serve .*\n.*asks /, stack)
  t.notRegex(stack, /first rejected/)
})

known('one error for all waiters: each reader has its own wait', async (t) => {
  const stack = await told(`
    const waiting = []
    function query () { return new Promise((resolve, reject) => waiting.push(reject)) }
    async function first () { await query().catch(() => {}) }
    async function second () { await query().catch((error) => console.log(error.stack)) }
    async function third () { await query().catch(() => {}) }
    setTimeout(function asksFirst () { first() }, 1)
    setTimeout(function asksSecond () { second() }, 3)
    setTimeout(function asksThird () { third() }, 5)
    setTimeout(function closes () { const error = new Error('closed'); for (const reject of waiting) reject(error) }, 12)`)
  t.regex(section(stack, 'awaited by').join('\n'), /at query .*\n.*at second .*\n.*asksSecond/, stack)
  t.notRegex(stack, /asksFirst|asksThird/)
})

known('an old error read in a message handler: the sender\'s chain is marked as the reader\'s', async (t) => {
  const { stdout } = await program(`'use strict'
    const { Worker } = require('node:worker_threads')
    let kept
    setTimeout(function flowA () { kept = new Error('made by A') }, 1)
    const echo = 'const { parentPort } = require("worker_threads"); parentPort.on("message", (m) => parentPort.postMessage(m))'
    const worker = new Worker(echo, { eval: true })
    setTimeout(function flowB () { gc(); worker.postMessage(1) }, 100)
    worker.on('message', function onMessage () { worker.terminate(); console.log(kept.stack) })`, { args: ['--expose-gc'] })
  const { hops } = split(stdout)
  t.regex(stdout, /flowB/)
  t.regex(hops[0].title, /^parentPort\.postMessage · in thread \d+ · reader: only where/, stdout)
})

known('every rejection is seen, however many there are in an iteration', async (t) => {
  const { stdout } = await program(`'use strict'
    const kept = []
    setTimeout(function makes () { for (let i = 0; i < 20; i++) kept.push(new Error('kept')) }, 1)
    async function rejects (error) { throw error }
    setTimeout(function flow () {
      gc()
      for (const error of kept) rejects(error).catch(() => {})
      setTimeout(function reads () { for (const error of kept) console.log(error.stack) }, 5)
    }, 5)`, { args: ['--expose-gc'] })
  t.is(stdout.split('rejected here').length - 1, 20, stdout)
})
