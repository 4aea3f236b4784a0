'use strict'

// Spans of one event loop iteration are written, and passed to listeners, in one go right before the loop
// polls. If longstack's own thread writes, they are handed over within a short time.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { node, program, register, root, runsAll } = require('../helpers/run')
const { folder, read, records } = require('../helpers/sinks')
const { loadBinding } = require('../../lib/stacks/binding')

const binding = /** @type {any} */ (loadBinding().binding)
const counted = process.env.ENGINE !== 'js' && binding?.turns !== undefined
const whereCounted = counted ? test : test.skip
const ROUNDS = runsAll ? 25 : 8
const WRITTEN = 'await written(300)' // by a thread of longstack's own

/** @param {string} file @returns {string} a name by which the program's thread writes to it */
const byProgram = (file) => process.platform === 'linux' ? `/proc/self/root${file}` : file

/**
 * What every program begins with: a module that is preloaded before longstack counts the writes to a file.
 */
const head = `
  const trace = require(${JSON.stringify(root)})
  const fs = require('node:fs')
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const iteration = async () => { await turn(); await turn() } // an immediate may come in the iteration that made it, not so the next one
  const span = (i) => trace.span('n ' + i, { i }, () => {})
  const written = async (count) => {
    while (fs.readFileSync(process.env.LONGSTACK_SPANS, 'latin1').split('"traceId"').length <= count) await wait(20)
  }
`

/** @param {any[]} list */
const numbers = (list) => list.map(({ attributes }) => attributes.i)
const range = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => i)

/**
 * @param {string} dir
 * @returns {string} a module to preload that notes each write to spans.jsonl, by its length
 */
function counter (dir) {
  const file = path.join(dir, 'counter.js')
  fs.writeFileSync(file, `
    const fs = require('node:fs')
    const { writeSync, readlinkSync } = fs
    globalThis.writes = []
    fs.writeSync = function (fd, data, ...rest) {
      const length = writeSync(fd, data, ...rest)
      if (readlinkSync('/proc/self/fd/' + fd).endsWith('spans.jsonl')) writes.push(length)
      return length
    }`)
  return file
}

whereCounted('an iteration makes one write, in whichever phases spans end; or several for many', async (t) => {
  const dir = folder(t)
  const file = path.join(dir, 'spans.jsonl')
  const { stdout, stderr } = await node(['-r', counter(dir), '-r', register, '-e', `${head}
    ;(async () => {
      const seen = []
      const note = () => { seen.push(writes.length); writes.length = 0 }
      span(0); span(1)
      note()                                       // the loop does not run yet: each by itself
      await iteration()
      note()
      for (let i = 2; i < 10; i++) span(i)
      await null
      process.nextTick(span, 10)
      await new Promise((resolve) => process.nextTick(resolve))
      note()                                       // not yet
      await turn()
      note()
      setTimeout(() => { const end = performance.now() + 3; while (performance.now() < end); for (let i = 11; i < 1011; i++) span(i) })
      await wait(20)
      await turn()
      note()
      span(1011)
      trace.stats()
      note()                                       // a question is a reason
      span(1012)
      console.log(JSON.stringify(seen))
    })()`], { env: { LONGSTACK_SPANS: byProgram(file) } })
  t.is(stderr, '')
  const [before, after, pending, batch, many, asked] = JSON.parse(stdout)
  t.deepEqual([before, after, pending, batch, asked], [2, 0, 0, 1, 1])
  t.true(many > 2 && many < 100, `${many} writes of 64 KiB`)
  t.deepEqual(numbers(read(file)), range(1013))
})

/** @type {Array<[name: string, end: string, code: number | null, signal?: string, args?: string[]]>} */
const ends = [
  ['nothing is left to do', '', 0],
  ['process.exit', 'process.exit(3)', 3],
  ['process.reallyExit', 'process.reallyExit(3)', 3],
  ['an exception', "throw new Error('x')", 1],
  ['process.abort', 'process.abort()', null, 'SIGABRT'],
  ['SIGKILL', `${WRITTEN}; process.kill(process.pid, 'SIGKILL'); setTimeout(() => {}, 5000)`, null, 'SIGKILL'],
  ['SIGTERM in an endless loop', "require('node:child_process').exec('sleep 0.2; kill ' + process.pid); for (;;);", null, 'SIGTERM'],
  ...('execve' in process
    ? [(['process.execve', "process.execve(process.execPath, ['node', '-e', 'process.exitCode = 4'], {})", 4])]
    : []),
  ['out of memory', `${WRITTEN}; const all = []; for (;;) all.push(new Array(1000).fill(all.length))`, null, 'SIGABRT', ['--max-old-space-size=20']]
]

/** @param {string} source */
const inWorker = (source) => `
  new (require('node:worker_threads').Worker)(${JSON.stringify(source)}, { eval: true })
    .on('error', () => { process.exitCode = 1 })
    .on('exit', (code) => { process.exitCode = code })`

for (const [name, end, code, signal = null, args = []] of ends) {
  for (const where of ['process', 'worker']) {
    if (where === 'worker' && /abort|execve|memory/.test(name)) continue // a worker cannot abort; out of memory ends it alone, see below
    test(`spans that ended before the last iteration are in whole lines: ${name}, in a ${where}`, async (t) => {
      const file = path.join(folder(t), 'spans.jsonl')
      const source = `${head}
        ;(async () => {
          for (let i = 0; i < 300; i++) { span(i); if (i % 3 === 0) await turn() }
          await iteration()
          ${end}
        })()`
      const result = await program(where === 'process' ? source : inWorker(source), { args, env: { LONGSTACK_SPANS: file } })
      t.deepEqual([result.code, result.signal], [code, signal], result.stderr)
      t.deepEqual(numbers(read(file)), range(300))
    })
  }
}

test('a worker that is out of memory, or terminated, has written its ended spans', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const worker = (/** @type {string} */ end) => `${head}
    ;(async () => {
      for (let i = 0; i < 100; i++) { span(i); if (i % 3 === 0) await turn() }
      await iteration()
      ${end}
    })()`
  const { code, stderr } = await program(`
    const { Worker } = require('node:worker_threads')
    const { once } = require('node:events')
    const run = (source, options) => new Worker(source, { eval: true, ...options }).on('error', () => {})
    ;(async () => {
      const small = run(${JSON.stringify(worker('const all = []; for (;;) all.push(new Array(1000).fill(1))'))}, { resourceLimits: { maxOldGenerationSizeMb: 20 } })
      await new Promise((resolve) => small.on('exit', resolve))
      for (const end of ['for (;;);', 'setInterval(() => {}, 1)', 'setInterval(() => trace.span("later", () => {}))']) {
        const one = run(${JSON.stringify(worker("require('node:worker_threads').parentPort.postMessage('ready'); END"))}.replace('END', end))
        await once(one, 'message')
        await one.terminate()
      }
    })()`, { env: { LONGSTACK_SPANS: file } })
  t.is(code, 0, stderr)
  const seen = numbers(read(file).filter(({ name }) => name !== 'later'))
  t.deepEqual(seen.sort((a, b) => a - b), range(400).map((i) => Math.floor(i / 4)))
})

test('many short-lived threads leave nothing, however they end', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const { code, stderr, signal } = await program(`
    const { Worker } = require('node:worker_threads')
    const { once } = require('node:events')
    const source = ${JSON.stringify(`${head}; span(0); setInterval(() => span(1)); require('node:worker_threads').parentPort.postMessage(1)`)}
    ;(async () => {
      for (let i = 0; i < ${ROUNDS}; i++) {
        await Promise.all(['terminate', 'terminate at once', 'exit', 'end'].map(async (end) => {
          const worker = new Worker(end === 'exit' ? source + '; setTimeout(process.exit, 2, 0)' : end === 'end' ? source.replace('setInterval', 'setTimeout') : source, { eval: true })
          const exit = once(worker, 'exit')
          if (end !== 'terminate at once') await once(worker, 'message')
          if (end.startsWith('terminate')) await worker.terminate()
          await exit
        }))
      }
    })()`, { env: { LONGSTACK_SPANS: file } })
  t.deepEqual([code, signal], [0, null], stderr)
  t.true(read(file).length >= ROUNDS * 3)
})

test('an idle process ends; no handle is visible', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const source = (/** @type {string} */ begin) => `${begin}
    setTimeout(() => {
      span(0)
      setTimeout(() => {
        fs.writeSync(1, JSON.stringify([process._getActiveHandles().length, process.getActiveResourcesInfo()]))
        process.on('exit', () => span(2))
        span(1)
      }, 5)
    }, 5)`
  const bare = await program(source("const fs = require('node:fs'), span = () => {}"), { preload: false })
  t.deepEqual(await program(source(head), { env: { LONGSTACK_SPANS: file } }), bare)
  t.deepEqual([bare.code, bare.stdout], [0, '[0,["Timeout"]]'])
  t.deepEqual(numbers(read(file)), range(3))
})

whereCounted('spans are written before the loop sleeps', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const child = spawn(process.execPath, ['-r', register, '-e', `${head}
    iteration().then(() => { for (let i = 0; i < 5; i++) span(i); process.stdout.write('.'); setTimeout(() => {}, 20_000) })`],
  { env: { ...process.env, LONGSTACK_SPANS: file }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await new Promise((resolve) => child.stdout.once('data', resolve))
  while (fs.readFileSync(file, 'utf8') === '') await new Promise((resolve) => setTimeout(resolve, 10))
  t.deepEqual(numbers(read(file)), range(5))
})

test('listeners get plain objects in order; work that they schedule is done before the loop sleeps', async (t) => {
  const { stdout, stderr } = await program(`${head}
    const seen = []
    trace.on('span', () => { throw new Error('mine') })
    trace.on('warning', () => {})
    const off = trace.on('span', (record) => {
      seen.push(record.attributes.i)
      if (Object.getPrototypeOf(record) !== Object.prototype) seen.push('odd')
      if (record.attributes.i !== 4) return
      const idle = () => performance.nodeTiming.idleTime
      const start = idle()
      process.nextTick(() => {
        seen.push('tick')
        Promise.resolve().then(() => { seen.push(idle() === start ? 'microtask' : 'late') })
      })
    })
    ;(async () => {
      span(0)
      seen.push('at once')
      await iteration()
      for (let i = 1; i < 5; i++) span(i)
      seen.push('ended')
      await wait(300)
      span(5)
      off()
      seen.push('off')
      span(6)
      await wait(5)
      console.log(JSON.stringify(seen))
    })()`)
  t.is(stderr, '')
  const batched = [0, 'at once', 'ended', 1, 2, 3, 4, 'tick', 'microtask', 5, 'off']
  t.deepEqual(JSON.parse(stdout), counted ? batched : [0, 'at once', 1, 2, 3, 4, 'ended', 'tick', 'microtask', 5, 'off'])
})

test('stores of AsyncLocalStorage that a listener enters stay its own', async (t) => {
  const { stdout } = await program(`${head}
    const { AsyncLocalStorage } = require('node:async_hooks')
    const storage = new AsyncLocalStorage()
    const seen = []
    trace.on('span', () => { seen.push(storage.getStore() === undefined); storage.enterWith('listener') })
    const last = () => console.log(JSON.stringify([...seen, storage.getStore() === undefined]))
    iteration().then(() => { setTimeout(() => { span(0); setTimeout(() => { span(1); setTimeout(last, 5) }, 5) }, 5) })`)
  t.deepEqual(JSON.parse(stdout), counted ? [true, true, true] : JSON.parse(stdout))
})

test('with an addon of an older build, each line is written by itself', async (t) => {
  const dir = folder(t)
  const file = path.join(dir, 'spans.jsonl')
  const stale = path.join(dir, 'stale.js')
  fs.writeFileSync(stale, `delete (require(${JSON.stringify(path.join(root, 'lib/stacks/binding.js'))}).loadBinding().binding ?? {}).turns`)
  const { stdout, stderr } = await node(['-r', counter(dir), '-r', stale, '-r', register, '-e', `${head}
    setTimeout(() => { for (let i = 0; i < 5; i++) span(i); console.log(writes.length) }, 5)`], { env: { LONGSTACK_SPANS: byProgram(file) } })
  t.is(stderr, '')
  t.is(stdout, '5\n')
})

test('a pipe gets its lines in chunks that other writers do not interleave', async (t) => {
  const writer = (/** @type {number} */ part) => `${head}
    setTimeout(async () => {
      for (let i = 0; i < 400; i++) {
        trace.span('x'.repeat(1 + i * 37 % 700), { i: ${part} * 400 + i }, () => {})
        if (i % 20 === 0) await turn()
      }
      while (trace.stats().spans.written < 400) await wait(5) // at its end a process waits for a reader, not for long
    }, 5)`
  const script = [0, 1, 2].map((part) => `"$NODE" -r "$REGISTER" -e "$TEXT${part}" &`).join(' ')
  const texts = Object.fromEntries([0, 1, 2].map((part) => [`TEXT${part}`, writer(part)]))
  const child = spawn('bash', ['-c', `(${script} wait) | (sleep 0.3; cat)`], {
    env: { ...process.env, NODE: process.execPath, REGISTER: register, LONGSTACK_SPANS: '-', ...texts }
  })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => { stdout += chunk })
  await new Promise((resolve) => child.on('close', resolve))
  t.deepEqual(numbers(records(stdout)).sort((a, b) => a - b), range(1200))
})

/** A program with hooks of its own; prints each event with stand-in ids. */
const hooked = `
  const hooks = require('node:async_hooks')
  const fs = require('node:fs')
  const http = require('node:http')
  const numbers = new Map([[0, 0], [1, 1]])
  const number = (id) => numbers.get(id) ?? (numbers.set(id, numbers.size), numbers.get(id))
  const events = []
  hooks.createHook({
    init (id, type, trigger) { events.push('init ' + number(id) + ' ' + type + ' by ' + number(trigger) + ' in ' + number(hooks.executionAsyncId())) },
    before (id) { events.push('before ' + number(id)) },
    after (id) { events.push('after ' + number(id)) },
    promiseResolve (id) { events.push('resolve ' + number(id)) }
  }).enable()
  if (process.env.LATER !== undefined) require(${JSON.stringify(root)}).enable({ spans: process.env.LATER }).on('span', () => {})
  process.on('exit', () => fs.writeSync(1, events.join('\\n') + '\\n'))
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  ;(async () => {
    await turn()
    const server = http.createServer((request, response) => { response.sendDate = false; setImmediate(() => response.end('x')) })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, (response) => response.resume().on('close', resolve)))
      await turn()
    }
    await wait(30)
    await fs.promises.stat('/')
    server.close()
  })()`

for (const [name, file, preload] of /** @type {Array<[string, string, boolean]>} */ ([['at preload', 'LONGSTACK_SPANS', true], ['by enable()', 'LATER', false]])) {
  test(`the program's own hooks see nothing: spans ${name}`, async (t) => {
    const env = { [file]: byProgram(path.join(folder(t), 'spans.jsonl')) }
    for (let tries = 1; ; tries++) { // sockets and timers of one program do not always come in the same order
      const bare = await program(hooked, { preload: false })
      const traced = await program(hooked, { preload, env })
      t.true(bare.stdout.includes(' HTTPINCOMINGMESSAGE '))
      if (bare.stdout !== traced.stdout && tries < 10) continue
      t.deepEqual(traced.stdout.split('\n'), bare.stdout.split('\n'))
      t.deepEqual([traced.stderr, traced.code], ['', 0])
      break
    }
    t.is(read(Object.values(env)[0]).filter(({ kind }) => kind === 'SERVER').length % 5, 0)
  })
}
