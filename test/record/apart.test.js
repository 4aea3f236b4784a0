'use strict'

// Spans written to files by longstack's own thread: its existence, the fate of spans if it fails, and effects
// on the program.

const test = require('ava')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const path = require('node:path')
const { collector } = require('../helpers/collector')
const { node, register, root } = require('../helpers/run')
const { folder, read } = require('../helpers/sinks')
const { patient } = require('../helpers/starved')

const patiently = patient(test)

/** What every program begins with. */
const head = `
  const trace = require(${JSON.stringify(root)})
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const span = (i) => trace.span('n ' + i, { i }, () => {});
`

/** @param {any[]} list */
const numbers = (list) => list.map(({ attributes }) => attributes.i)
/** @param {number} count */
const range = (count) => Array.from({ length: count }, (_, i) => i)

/**
 * Runs a program with a module that comes before longstack: `made` has the workers that it has made, and
 * `change` may change their options.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {{ change?: string, args?: string[], env?: Record<string, string>, name?: string }} [options] name:
 *   of the file of spans, in the program's directory
 */
async function run (t, source, { change = '', args = [], env, name } = {}) {
  const dir = folder(t)
  const before = path.join(dir, 'before.js')
  fs.writeFileSync(before, `
    const threads = require('node:worker_threads')
    const { Worker } = threads
    const made = globalThis.made = []
    threads.Worker = class extends Worker {
      constructor (file, options) { ${change}; super(file, options); made.push(this) }
    }`)
  const file = path.join(dir, 'spans.jsonl')
  const options = { cwd: dir, env: { LONGSTACK_SPANS: name ?? file, ...env } }
  const result = await node([...args, '-r', before, '-r', register, '-e', `${head}${source}`], options)
  return { ...result, file, spans: fs.existsSync(file) ? read(file) : [] }
}

test('a program without spans has no thread; spans of a short program are written', async (t) => {
  const none = await run(t, 'setTimeout(() => console.log(made.length), 300)')
  t.deepEqual([none.stdout, none.stderr, none.code], ['0\n', '', 0])
  t.true(fs.existsSync(none.file))
  const short = await run(t, 'span(0); setImmediate(() => span(1))')
  t.deepEqual([short.stderr, short.code], ['', 0])
  t.deepEqual(numbers(short.spans), [0, 1])
})

/** @type {Array<[name: string, end: string, code: number]>} */
const ends = [
  ['process.exit', 'process.exit(3)', 3],
  ['an exception', "throw new Error('x')", 1],
  ['a rejection', "Promise.reject(new Error('x'))", 1],
  ['its last callback', '', 0]
]
for (const [name, end, wanted] of ends) {
  patiently(`all spans are written, also those at the very end: ${name}`, async (t) => {
    const { spans, stdout, code } = await run(t, `
      process.on('exit', () => span(40))
      ;(async () => {
        for (let i = 0; i < 30; i++) { span(i); await wait(5) }
        for (let i = 30; i < 39; i++) span(i)
        console.log(made.length)
        process.on('exit', () => span(41))
        setImmediate(() => { span(39); ${end} })
      })()`)
    t.deepEqual([stdout, code], ['1\n', wanted])
    t.deepEqual(numbers(spans).sort((a, b) => a - b), range(42))
  })
}

patiently('kill -9 loses less than a second of spans, and much less with a free CPU', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const child = spawn(process.execPath, ['-r', register, '-e', `${head}
    ;(async () => { for (let i = 0; ; i++) { trace.span('n', { at: Date.now() }, () => {}); process.stdout.write(Date.now() + '\\n'); await wait(2) } })()`],
  { env: { PATH: process.env.PATH, LONGSTACK_SPANS: file }, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk) => { text += chunk })
  while (!fs.existsSync(file) || read(file).length < 200) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  child.kill('SIGKILL')
  await once(child, 'exit')
  const last = Number(text.trim().split('\n').at(-1))
  const told = read(file).at(-1).attributes.at
  t.true(last - told < 1000, `${last - told} ms`)
})

test('a relative name is resolved against the directory in which it was set', async (t) => {
  const { spans, stderr } = await run(t, `
    process.chdir(require('node:os').tmpdir())
    ;(async () => { for (let i = 0; i < 20; i++) { span(i); await wait(10) } })()`, { name: 'spans.jsonl' })
  t.is(stderr, '')
  t.deepEqual(numbers(spans), range(20))
})

const failures = {
  'it cannot be made': "throw new Error('forbidden')",
  'it has no memory left': 'options.workerData.heap = 1',
  'its file is gone': "file += '.gone.js'"
}
for (const [name, change] of Object.entries(failures)) {
  patiently(`${name}: the program continues, and makes its spans itself`, async (t) => {
    const { spans, stderr, stdout, code } = await run(t, `
      ;(async () => {
        for (let i = 0; i < 60; i++) { span(i); await wait(10) }
        console.log(trace.stats().spans.outputs.length)
      })()`, { change })
    t.deepEqual([stdout, code], ['1\n', 0], stderr)
    t.true(numbers(spans).includes(59))
    if (stderr === '') t.deepEqual(numbers(spans), range(60))
    else t.regex(stderr, /^longstack: some spans are lost: the thread that makes them has failed: [^\n]*\n$/)
  })
}

patiently('if the thread dies meanwhile, one line says so, and later spans are written', async (t) => {
  const { spans, stderr, stdout, code } = await run(t, `
    ;(async () => {
      for (let i = 0; i < 40; i++) { span(i); await wait(10) }
      trace.stats()
      await made[0].terminate()
      for (let i = 40; i < 80; i++) { span(i); await wait(10) }
      const { written, outputs } = trace.stats().spans
      console.log(made.length, written, outputs.length)
    })()`)
  t.is(code, 0)
  t.regex(stderr, /^longstack: some spans are lost: [^\n]*\n$/)
  t.is(stdout, '1 80 1\n')
  t.deepEqual(numbers(spans), range(80))
})

test('spans are written even if threads are forbidden', async (t) => {
  const flag = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission'
  const { spans, stderr, code } = await run(t, '(async () => { for (let i = 0; i < 20; i++) { span(i); await wait(10) } })()',
    { args: [flag, '--allow-fs-read=*', '--allow-fs-write=*', '--no-warnings'] })
  t.is(code, 0, stderr)
  t.deepEqual(numbers(spans), range(20))
})

patiently('the thread is invisible: no handle, no event, no hop, and the process ends', async (t) => {
  const source = `
    const seen = []
    process.on('worker', () => seen.push('worker'))
    ;(async () => {
      for (let i = 0; i < 30; i++) { span(i); await wait(10) }
      setTimeout(() => {
        const handles = trace.handles().map(String)
        const { Worker, threadId } = require('node:worker_threads')
        console.log(JSON.stringify([made.length, handles, process.getActiveResourcesInfo(), process._getActiveHandles().length, seen, process.listenerCount('exit') > 5]))
      }, 10)
    })()`
  const { stdout, stderr, code } = await run(t, source)
  t.deepEqual([stderr, code], ['', 0])
  t.deepEqual(JSON.parse(stdout), [1, [], ['Timeout'], 0, [], false])
})

patiently("the program's own async_hooks see only its start", async (t) => {
  const { spans, stdout } = await run(t, `
    const types = new Set()
    const { createHook } = require('node:async_hooks')
    createHook({ init (id, type) { if (type !== 'Span') types.add(type) } }).enable() // which is the program's own doing
    setTimeout(() => { for (let i = 0; i < 40; i++) setTimeout(span, 10 * i, i) }, 5)
    setTimeout(() => console.log(JSON.stringify([...types].sort())), 500)`)
  t.deepEqual(JSON.parse(stdout), ['MESSAGEPORT', 'Timeout', 'WORKER'])
  t.deepEqual(numbers(spans), range(40))
})

patiently('workers of the program make their spans themselves', async (t) => {
  const { spans, stdout } = await run(t, `
    const { Worker } = require('node:worker_threads')
    const worker = new Worker(${JSON.stringify(`${head};(async () => { for (let i = 10; i < 20; i++) { span(i); await wait(20) } require('node:worker_threads').parentPort.postMessage(made.length) })()`)}, { eval: true })
    worker.on('message', (count) => console.log(count))
    ;(async () => { for (let i = 0; i < 10; i++) { span(i); await wait(20) } })()`)
  t.is(stdout, '0\n')
  t.deepEqual(numbers(spans).sort((a, b) => a - b), range(20))
})

patiently('a collector gets everything from the same thread', async (t) => {
  const { url, spans } = await collector(t)
  for (const end of ['process.exit()', '', "trace.enable({ spans: '-;sample=0' })", 'trace.disable()']) {
    const before = spans().length
    const { stdout, stderr, code } = await run(t, `(async () => {
      for (let i = 0; i < 40; i++) { span(i); await wait(5) }
      console.log(made.length)
      ${end}
    })()`, { env: { LONGSTACK_SPANS: url } })
    t.deepEqual([stdout, stderr, code], ['1\n', '', 0], end)
    t.is(spans().length - before, 40, end)
  }
})

test('writes during Atomics.wait() leave V8\'s list of waiting threads intact', async (t) => {
  const { spans, stdout, stderr, code } = await run(t, `
    const words = new Int32Array(new SharedArrayBuffer(8))
    const { Worker } = require('node:worker_threads')
    const other = new Worker(\`
      const { workerData: words } = require('node:worker_threads')
      setInterval(() => { Atomics.add(words, 1, 1); Atomics.notify(words, 1) }, 5)\`, { eval: true, workerData: words })
    other.on('online', async () => {
      for (let i = 0; i < 4; i++) {
        span(i)
        await wait(60)
        Atomics.wait(words, 0, 0, 1200)
      }
      const before = words[1]
      await wait(200)
      console.log(words[1] > before)
      other.terminate()
    })`, { env: { LONGSTACK_BLOCKED: '50' } })
  t.deepEqual([stdout, code], ['true\n', 0], stderr)
  t.regex(stderr, /the event loop is blocked, for \d+ ms so far/)
  t.deepEqual(numbers(spans.filter(({ name }) => name.startsWith('n '))), range(4))
})

test('a busy program without spans has no thread', async (t) => {
  const { stdout, stderr, spans } = await run(t, `
    let left = 60_000
    setImmediate(function next () {
      if (left-- > 0) return setImmediate(next)
      console.log(made.length)
      span(0)
    })`)
  t.deepEqual([stdout, stderr], ['0\n', ''])
  t.deepEqual(numbers(spans), [0])
})

patiently('disable() does not wait for a collector', async (t) => {
  const { stdout, stderr, code } = await run(t, `
    const requests = []
    trace.disable()
    const server = require('node:http').createServer((request, response) => {
      requests.push(request.url)
      request.resume().on('end', () => response.end('{}'))
    }).listen(0, '127.0.0.1', async () => {
      for (const thread of [false, true]) {
        trace.enable({ spans: 'http://127.0.0.1:' + server.address().port })
        for (let i = 0; i < 5; i++) span(i)
        if (thread) while (trace.stats().spans.written < 5) await wait(20) // each request makes a span of the server
        span(5)
        trace.disable()
        const before = requests.length
        while (requests.length === before) await wait(20)
      }
      console.log(requests.every((url) => url === '/v1/traces'))
      server.close().closeAllConnections()
    })`)
  t.deepEqual([stdout, stderr, code], ['true\n', '', 0])
})

test('a listener may turn tracing off: earlier spans are in the file', async (t) => {
  const { stdout, stderr, spans } = await run(t, `
    trace.disable()
    let heard = 0
    trace.on('span', () => { if (heard++ === 0) trace.disable() })
    trace.enable({ spans: undefined })
    trace.enable({ spans: process.env.LONGSTACK_SPANS })
    // Listeners are called at once until the event loop has begun its second iteration
    setImmediate(() => setImmediate(() => { for (let i = 0; i < 5; i++) span(i) }))
    setTimeout(() => console.log(heard), 200)`)
  t.deepEqual([stdout, stderr], ['5\n', ''])
  t.deepEqual(numbers(spans), range(5))
})

patiently('a span open while the file changes has its stack and figures', async (t) => {
  const { file, stderr } = await run(t, `
    ;(async () => {
      for (let i = 0; i < 20; i++) { span(i); await wait(10) }
      const across = trace.span('n across', { i: 21 }, async () => { await wait(100); await wait(100) })
      span(20)
      await wait(100)
      trace.enable({ spans: process.env.LONGSTACK_SPANS + '.2' })
      await across
      span(22)
    })()`)
  t.is(stderr, '')
  t.deepEqual(numbers(read(file)), range(21))
  const [across, last] = read(`${file}.2`)
  t.deepEqual(numbers([across, last]), [21, 22])
  t.is(across.attributes['longstack.waits'].length, 2)
  t.true(across.attributes['longstack.waited_ms'] > 150)
  t.regex(across.attributes['code.stacktrace'], /\[eval\]/)
})

patiently('nothing is forgotten of a thread that died silently', async (t) => {
  const { stdout, code } = await run(t, `
    ;(async () => {
      for (let i = 0; i < 40; i++) { span(i); await wait(10) }
      trace.stats()
      const { ended } = trace.stats().spans
      made[0].terminate()
      for (let i = 40; i < 60; i++) span(i)
      const first = trace.stats().spans
      while (trace.stats().spans.dropped === 0) await wait(20)
      const last = trace.stats().spans
      console.log(JSON.stringify([ended, first.written + first.waiting, last.written + last.dropped]))
    })()`)
  t.is(code, 0)
  t.deepEqual(JSON.parse(stdout), [40, 60, 60])
})

patiently('a termination by V8 loses only the data on the way', async (t) => {
  const { spans, stdout, stderr } = await run(t, `
    const vm = require('node:vm')
    const context = vm.createContext({ trace })
    ;(async () => {
      for (let i = 0; i < 40; i++) { span(i); await wait(10) }
      trace.stats()
      const [thread] = made
      const post = thread.postMessage
      thread.postMessage = function (message, list) {
        if (message.take !== undefined) for (;;);
        return post.call(this, message, list)
      }
      try {
        vm.runInContext('trace.span("lost", {}, () => {}); trace.stats()', context, { timeout: 200 })
      } catch (error) { console.log(error.code) }
      thread.postMessage = post
      for (let i = 40; i < 80; i++) { span(i); trace.span('lost', { i: 100 + i }, () => {}); await wait(10) }
    })()`)
  t.deepEqual([stdout, stderr], ['ERR_SCRIPT_EXECUTION_TIMEOUT\n', ''])
  const named = spans.filter(({ name }) => name === 'lost')
  t.deepEqual(numbers(spans.filter(({ name }) => name !== 'lost')).slice(-38), range(80).slice(42))
  t.deepEqual(numbers(named).slice(-38), range(80).slice(42).map((i) => 100 + i))
})

patiently('an enable() terminated by V8 may be called again', async (t) => {
  const { file, stdout } = await run(t, `
    const vm = require('node:vm')
    const other = process.env.LONGSTACK_SPANS + '.2'
    const context = vm.createContext({ trace, other })
    ;(async () => {
      for (let i = 0; i < 40; i++) { span(i); await wait(10) }
      trace.stats()
      const post = made[0].postMessage
      made[0].postMessage = () => { for (;;); }
      span(40)
      try { vm.runInContext('trace.enable({ spans: other })', context, { timeout: 200 }) } catch (error) { console.log(error.code) }
      made[0].postMessage = post
      trace.enable({ spans: other })
      for (let i = 50; i < 60; i++) { span(i); await wait(10) }
    })()`)
  t.is(stdout, 'ERR_SCRIPT_EXECUTION_TIMEOUT\n')
  t.deepEqual(numbers(read(file)).slice(0, 40), range(40))
  t.deepEqual(numbers(read(`${file}.2`)).slice(-9), range(60).slice(51))
})

test('without a thread, spans are in the file while the loop is blocked', async (t) => {
  const { stdout, code } = await run(t, `
    setTimeout(() => span(0), 50)
    setTimeout(() => {
      span(1)
      for (const end = Date.now() + 2500; Date.now() < end;);
      console.log(fs.readFileSync(process.env.LONGSTACK_SPANS, 'utf8').match(/"name":"(n 1|blocked)"/g).length)
    }, 300)
    const fs = require('node:fs')`, { change: "if (/apart/.test(file)) throw new Error('forbidden')", env: { LONGSTACK_BLOCKED: '100' } })
  t.deepEqual([stdout, code], ['2\n', 0])
})
