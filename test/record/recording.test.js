'use strict'

// The option `record` in real programs: the times at which blocks are written, for all ways a process ends,
// with several threads and processes, and the effects on the program.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { setTimeout } = require('node:timers/promises')
const test = require('ava')
const { HEAD, POLL, REF, REQUEST, RUN, TURNED, WORDS, X } = require('../../lib/core/run-log-words')
const { loadBinding } = require('../../lib/stacks/binding')
const { prelude, readRecordings } = require('../helpers/recordings')
const { inherited, program, register } = require('../helpers/run')
const { folder, read } = require('../helpers/sinks')

const onLinux = process.platform === 'linux' ? test : test.skip
const whereHeld = process.platform !== 'win32' && loadBinding().binding !== undefined ? test : test.skip
const engine = process.env.ENGINE ? { LONGSTACK_CAPTURE: process.env.ENGINE } : {}
const range = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => i)

/**
 * Runs a program that records itself.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Parameters<typeof program>[1]} [options]
 */
async function record (t, source, { env, ...options } = {}) {
  const dir = folder(t)
  const file = path.join(dir, 'app.rec')
  const result = await program(prelude + source, { env: { LONGSTACK_RECORD: file, ...env }, ...options })
  return { ...result, dir, file }
}

/** @type {Array<[name: string, source: string, code: number]>} */
const ends = [
  ['the end of the loop', '', 0],
  ['process.exit()', 'process.exit(3)', 3],
  ['process.exit() in a tick', 'process.nextTick(() => process.exit(4))', 4],
  ['an uncaught error', "throw new Error('no')", 1],
  ['an unhandled rejection', "Promise.reject(new Error('no'))", 1],
  ['process.exit() in a handler of a signal', "process.on('SIGTERM', () => process.exit(5)); process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)", 5]
]
for (const [name, source, code] of ends) {
  test(`${name}: everything that ended is recorded, and the recording is complete`, async (t) => {
    const { file, ...end } = await record(t, `
      work('first')
      setTimeout(() => { for (let i = 0; i < 5; i++) work('late ' + i); ${source} }, 30)`)
    t.is(end.code, code, end.stderr)
    const { sources: [source1, ...others], missing } = readRecordings(file)
    t.is(others.length, 0)
    t.deepEqual([...source1.spans].sort(), ['first', ...range(5).map((i) => `late ${i}`)])
    t.is(source1.head.pid > 0, true)
    t.true(source1.state.isComplete)
    t.is(source1.state.entries + source1.state.blocks + missing.skipped, 0)
  })
}

/**
 * @param {import('../helpers/recordings').Source} source
 * @returns {Array<{ words: Int32Array, slept: number }>} slept: of polls
 */
const entriesOf = ({ blocks }) => blocks.flatMap(({ entries: { buffer, byteOffset, length } }) =>
  range(length / 48).map((i) => ({
    words: new Int32Array(buffer, byteOffset + i * 48, WORDS),
    slept: new Float64Array(buffer, byteOffset + i * 48, WORDS / 2)[X]
  })))

test('a concurrent profile changes nothing; sleep interrupted by its signals counts as sleep', async (t) => {
  const { file, stderr } = await record(t, `
    trace.profile({ seconds: 60 }).then(() => work('after'))
    const sleeps = async () => { for (let i = 0; i < 5; i++) { await wait(60); work('sleep ' + i) } }
    setImmediate(sleeps)`)
  const { sources: [source, ...others] } = readRecordings(file)
  t.is(others.length, 0, stderr)
  t.deepEqual([...source.spans].sort(), ['after', ...range(5).map((i) => `sleep ${i}`)])
  t.true(source.state.isComplete)
  const polls = entriesOf(source).filter(({ words }) => (words[HEAD] & 0xff) === POLL)
  t.true(polls.reduce((sum, { slept }) => sum + slept, 0) > 200, String(polls.map(({ slept }) => slept)))
})

test('a request of a server is one run of its callback, with or without spans', async (t) => {
  const { file } = await record(t, `
    const http = require('node:http')
    const server = http.createServer((request, response) => response.end('x')).listen(0, '127.0.0.1', async () => {
      for (let i = 0; i < 3; i++) await fetch('http://127.0.0.1:' + server.address().port).then((answer) => answer.text())
      server.close()
      server.closeAllConnections()
    })`)
  const turns = entriesOf(readRecordings(file).sources[0]).map(({ words }) => words)
    .filter((words) => (words[HEAD] & 0xff) === RUN && (words[HEAD] >> 8 & TURNED) !== 0 && words[REF] < 0)
  t.is(turns.length, 3)
  t.is(new Set(turns.map((words) => words[REF])).size, 3)
  t.is(new Set(turns.map((words) => words[REQUEST])).size, 3)
})

test('a span open at the end is marked as open', async (t) => {
  const { file } = await record(t, "trace.span('open', () => wait(1e6)); setTimeout(() => process.exit(), 20)")
  const { texts } = readRecordings(file).sources[0]
  t.deepEqual(texts.filter(({ open }) => open === true).map((text) => text.name), ['open'])
})

/**
 * Starts a program that records itself.
 * @param {string} file of the recording
 * @param {string} source
 */
function start (file, source) {
  const env = { ...inherited, ...engine, LONGSTACK_RECORD: file }
  return spawn(process.execPath, ['-r', register, '-e', prelude + source], { env })
}

for (const signal of /** @type {const} */ (['SIGTERM', 'SIGKILL'])) {
  test(`everything is written within a short time, even while the loop sleeps; then ${signal} loses nothing`, async (t) => {
    const file = path.join(folder(t), 'app.rec')
    const child = start(file, `
      setTimeout(() => { for (let i = 0; i < 5; i++) work('late ' + i) }, 30)
      setInterval(() => {}, 1e6)`)
    const ended = new Promise((resolve) => child.on('close', (code, name) => resolve(name)))
    const text = () => fs.existsSync(file) ? fs.readFileSync(file, 'latin1') : ''
    while (!text().includes('late 4')) await setTimeout(10) // it does nothing more
    child.kill(signal)
    t.is(await ended, process.platform === 'win32' ? null : signal)
    const { sources, missing } = readRecordings(file)
    t.deepEqual(sources[0].spans.sort(), range(5).map((i) => `late ${i}`))
    t.false(sources[0].state.isComplete)
    t.is(missing.skipped, 0)
  })
}

/**
 * Sends a signal to a program that makes spans, and writes number and time of each.
 * @param {string} file of its recording
 * @param {number} ms after its first span
 * @param {NodeJS.Signals} signal
 * @returns {Promise<{ end: string, told: number[][], before: number }>} before: how many were told by then
 */
async function killed (file, ms, signal) {
  const child = start(file, `
    let i = 0
    const next = () => {
      work(String(i))
      fs.writeSync(1, i++ + ' ' + performance.now() + '\\n')
      if (i % 3 === 0) setTimeout(next, i % 5)
      else setImmediate(next)
    }
    next()`)
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => { text += chunk })
  const lines = () => text.split('\n').slice(0, -1).map((line) => line.split(' ').map(Number))
  const closed = new Promise((resolve) => child.on('close', (code, name) => resolve(name)))
  await new Promise((resolve) => child.stdout.once('data', resolve))
  await setTimeout(ms)
  const before = lines().length
  child.kill(signal)
  const end = await closed
  return { end, told: lines(), before }
}

onLinux('kill -9 at any instant: the file is readable, with everything that ended 250 ms before', async (t) => {
  const dir = folder(t)
  for (const [round, ms] of range(6).map((i) => [i, 300 + i * 190])) {
    const file = path.join(dir, `${round}.rec`)
    const { told } = await killed(file, ms, 'SIGKILL')
    const { sources: [source], missing } = readRecordings(file)
    const { spans = [], state } = source ?? {} // nothing yet in the first 250 ms
    t.is(state?.blocks ?? 0, 0)
    t.true(missing.skipped < 1 << 17, 'at most the last block is torn')
    const names = new Set(spans)
    t.is(names.size, spans.length)
    const lost = told.filter(([i]) => !names.has(String(i)))
    // A busy machine may have stopped the program in between
    const pause = Math.max(...told.map(([, time], i) => time - (told[i - 1]?.[1] ?? time)))
    const since = lost.length === 0 ? 0 : told[told.length - 1][1] - lost[0][1]
    t.true(since <= 260 + pause, `${lost.length} of ${told.length} lost, ${since} ms, pause ${pause} ms`)
  }
})

test('eight processes record into one file', async (t) => {
  const { file, ...end } = await record(t, `
    const { fork } = require('node:child_process')
    if (process.argv[2] === undefined) for (let i = 0; i < 7; i++) fork(__filename, [String(i)])
    let n = 0
    const timer = setInterval(() => {
      for (let i = 0; i < 40; i++) work((process.argv[2] ?? 'main') + ':' + n++)
      if (n === 800) clearInterval(timer)
    }, 3)`)
  t.is(end.code, 0, end.stderr)
  const { sources, missing } = readRecordings(file)
  t.is(sources.length, 8)
  t.is(missing.skipped, 0)
  t.is(new Set(sources.map(({ head }) => head.pid)).size, 8)
  for (const { spans, state } of sources) {
    t.is(new Set(spans).size, 800)
    t.like(state, { blocks: 0, entries: 0, isComplete: true })
  }
})

test('workers are recorded, also terminated ones', async (t) => {
  const { file, ...end } = await record(t, `
    const { Worker, isMainThread, threadId, parentPort } = require('node:worker_threads')
    if (isMainThread) {
      for (let i = 0; i < 4; i++) {
        const worker = new Worker(__filename)
        if (i < 2) worker.on('message', () => setTimeout(() => worker.terminate(), 300))
      }
      work('main')
    } else {
      for (let i = 0; i < 100; i++) work(threadId + ':' + i)
      if (threadId < 3) {
        setTimeout(() => parentPort.postMessage('done'), 20)
        setInterval(() => work('again'), 5)
      }
    }`)
  t.is(end.code, 0, end.stderr)
  const { sources, missing } = readRecordings(file)
  t.is(missing.skipped, 0)
  t.deepEqual(sources.map(({ texts }) => texts[0].resource['longstack.thread'] ?? 0).sort(), [0, 1, 2, 3, 4])
  for (const { spans, texts, state } of sources) {
    const thread = texts[0].resource['longstack.thread']
    t.is(state.isComplete, !(thread < 3))
    t.is(state.blocks + state.entries, 0)
    t.is(spans.filter((name) => name !== 'again').length, thread === undefined ? 1 : 100)
  }
})

test('one long callback overwrites no unread entry', async (t) => {
  const { file, ...end } = await record(t, `
    const { AsyncResource } = require('node:async_hooks')
    setTimeout(() => {
      for (let i = 0; i < 150_000; i++) new AsyncResource('TEST').runInAsyncScope(() => {})
      console.log(JSON.stringify(trace.stats().record))
    }, 10)`)
  t.is(end.code, 0, end.stderr)
  const stats = JSON.parse(end.stdout)
  const { sources: [{ entries, state }] } = readRecordings(file)
  t.true(entries > 150_000, `${entries} entries`)
  t.is(state.entries, 0)
  t.like(stats, { to: file, lost: 0, waiting: 0, dropped: 0 })
  t.true(stats.ringBytes > 7e5 && stats.written > 50 && stats.bytes > 1e6)
})

/** @type {Record<string, string>} */
const watched = {
  // Node's own timers of HTTP depend on time
  'a server': `
    const http = require('node:http')
    const server = http.createServer((request, response) => {
      log.push(request.url)
      setTimeout(() => response.end('x'), 5)
    })
    server.listen(0, async () => {
      for (let i = 0; i < 20; i++) {
        const { port } = server.address()
        await new Promise((resolve) => {
          http.get({ port, agent: false }, (response) => response.resume().on('end', resolve))
        })
        setImmediate(() => log.push('immediate ' + i))
        process.nextTick(() => log.push('tick ' + i))
        Promise.resolve().then(() => log.push('then ' + i))
      }
      delete types.Timeout
      server.close(() => setTimeout(tell, 10))
    })`,
  timers: `
    let n = 0
    const timer = setInterval(() => {
      require('node:fs').stat('.', () => log.push('stat'))
      if (n++ < 100) return
      clearInterval(timer)
      setTimeout(tell, 700)
    }, 7)`
}
for (const [name, source] of Object.entries(watched)) {
  test(`the program notices nothing: ${name}`, async (t) => {
    const text = `
      const log = []
      const types = {}
      const hook = require('node:async_hooks').createHook({
        init (id, type) { types[type] = (types[type] ?? 0) + 1 }
      }).enable()
      function tell () {
        const handles = process._getActiveHandles().length
        const resources = process.getActiveResourcesInfo()
        console.log(JSON.stringify({ log, types, handles, resources }))
      }
      ${source}`
    const env = { LONGSTACK_SPANS: path.join(folder(t), 'spans.jsonl') }
    const file = path.join(folder(t), 'app.rec')
    const bare = await program(text, { env })
    const recorded = await program(text, { env: { ...env, LONGSTACK_RECORD: file } })
    t.is(recorded.stderr, '')
    t.is(recorded.code, 0)
    const [seen, expected] = [recorded, bare].map(({ stdout }) => JSON.parse(stdout))
    if (process.env.ENGINE === 'js') seen.types.Timeout = expected.types.Timeout // a timer replaces the work before polls
    t.deepEqual(seen, expected)
    t.true(readRecordings(file).sources[0].entries > 100)
  })
}

/** @type {Array<[name: string, file: string, code: string, before?: string]>} */
const faults = [
  ['a full disk', '/dev/full', 'ENOSPC'],
  ['a missing directory', 'DIR/none/app.rec', 'ENOENT'],
  ['a directory', 'DIR', 'EISDIR'],
  ['a FIFO without a reader', 'DIR/fifo', 'ENXIO', 'mkfifo DIR/fifo']
]
for (const [name, to, code, before] of faults) {
  onLinux(`${name} ends the recording with one line`, async (t) => {
    const dir = folder(t)
    const at = (/** @type {string} */ text) => text.replace('DIR', dir)
    if (before !== undefined) require('node:child_process').execSync(at(before))
    const result = await record(t, `
      console.log('out')
      setTimeout(() => { for (let i = 0; i < 3000; i++) work(String(i)) }, 20)
      setTimeout(() => work('late'), 1200)
      process.exitCode = 7`, { env: { LONGSTACK_RECORD: at(to) } })
    t.is(result.code, 7, result.stderr)
    t.is(result.stdout, 'out\n')
    const lines = result.stderr.split('\n').slice(0, -1)
    t.is(lines.length, 1, result.stderr)
    t.true(lines[0].startsWith(`longstack: blocks of the recording cannot be written to ${at(to)}: `), lines[0])
    t.true(lines[0].includes(`(${code})`), lines[0])
  })
}

test('waiting data are written once the directory exists', async (t) => {
  const dir = path.join(folder(t), 'later')
  const file = path.join(dir, 'app.rec')
  const { stderr } = await record(t, `
    work('before')
    setTimeout(() => { fs.mkdirSync(${JSON.stringify(dir)}) }, 100)
    const timer = setInterval(() => {
      if (!fs.existsSync(${JSON.stringify(file)})) return
      work('after')
      clearInterval(timer)
    }, 20)`, { env: { LONGSTACK_RECORD: file } })
  t.is(stderr.split('\n').length, 2)
  const { sources: [{ spans, state }] } = readRecordings(file)
  t.deepEqual(spans.sort(), ['after', 'before'])
  t.like(state, { blocks: 0, entries: 0, isComplete: true })
})

for (const way of ['renamed', 'truncated']) {
  test(`a file that is ${way}: each part has all texts that it needs`, async (t) => {
    const { file, dir, ...end } = await record(t, `
      const file = process.env.LONGSTACK_RECORD
      const size = () => { try { return fs.statSync(file).size } catch { return 0 } }
      let n = 0
      const load = setInterval(() => { for (let i = 0; i < 10; i++) work(String(n++)) }, 2)
      const until = async (holds) => { while (!holds()) await wait(5) }
      setTimeout(async () => {
        await until(() => size() > 5000)
        ${way === 'truncated' ? "fs.copyFileSync(file, file + '.1'); fs.truncateSync(file)" : "fs.renameSync(file, file + '.1')"}
        await until(() => size() > 0 && n > 500)
        await wait(1200)
        clearInterval(load)
        process.on('exit', () => console.log(n))
      }, 50)`)
    t.is(end.code, 0, end.stderr)
    const { sources: [{ spans, state }] } = readRecordings(file, `${file}.1`)
    if (way !== 'truncated') {
      t.like(state, { blocks: 0, entries: 0, isComplete: true })
      t.is(new Set(spans).size, Number(end.stdout))
    }
    const { sources: [{ blocks, texts, head }] } = readRecordings(file)
    t.true(blocks[0].hasAllTexts || way === 'truncated')
    t.true(head.pid > 0)
    t.true(texts.some((text) => text.chain !== undefined))
  })
}

for (const type of /** @type {const} */ (['cjs', 'mjs'])) {
  test(`the program enables and disables it, into one file and another: ${type}`, async (t) => {
    const dir = folder(t)
    const head = type === 'cjs' ? prelude : prelude.replace(/^const (\w+) = require\((.*)\)$/gm, 'import $1 from $2')
    const { code, stdout, stderr } = await program(`${head}
      const [a, b] = ['a', 'b'].map((name) => ${JSON.stringify(dir)} + '/' + name + '.rec')
      const run = async () => {
        work('none')
        trace.enable({ record: a })
        work('one')
        trace.enable({ record: a, frames: 5 })
        await wait(20)
        trace.enable({ record: b })
        await wait(20)
        work('two')
        trace.disable()
        work('none')
        trace.enable({ record: a })
        work('three')
        console.log(trace.stats().record.to === a, String(trace.stats().record))
        trace.enable({})
        console.log(trace.stats().record)
        work('none')
        trace.enable({ record: a })
        trace.enable({ record: a })
      }
      run()`, { type, preload: false })
    t.is(code, 0, stderr)
    t.is(stderr, '')
    t.is(stdout, 'true [object Object]\nundefined\n')
    const a = readRecordings(path.join(dir, 'a.rec')).sources
    const b = readRecordings(path.join(dir, 'b.rec')).sources
    t.deepEqual([a, b].map((sources) => sources.map(({ spans }) => spans)), [[['one'], ['three'], []], [['two']]])
    t.true([...a, ...b].every(({ state }) => state.isComplete && state.entries === 0))
  })
}

test('a recording and spans can be written together', async (t) => {
  const spans = path.join(folder(t), 'spans.jsonl')
  const { file } = await record(t, "work('a'); setTimeout(() => work('b'), 10)", { env: { LONGSTACK_SPANS: spans } })
  t.deepEqual(read(spans).map(({ name }) => name), ['a', 'b'])
  t.deepEqual(readRecordings(file).sources[0].spans, ['a', 'b'])
})

test('a path other than a file is rejected in one line, and the program runs', async (t) => {
  for (const value of ['-', 'http://localhost/x']) {
    const { stderr, stdout, code } = await record(t, "console.log('out')", { env: { LONGSTACK_RECORD: value } })
    t.is(code, 0)
    t.is(stdout, 'out\n')
    t.regex(stderr, /^longstack: LONGSTACK_RECORD: .*the name of a file, for example "app\.rec".*\n$/)
  }
})

/** What a program does when a signal ends it. @type {Record<string, string>} */
const pastimes = {
  'the loop sleeps': 'setInterval(() => {}, 1e6)',
  'a callback never ends': 'for (;;);',
  'a callback waits for a thread': 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'
}
for (const [name, source] of Object.entries(pastimes)) {
  whereHeld(`a signal ends the process as usual, and everything that ended is recorded: ${name}`, async (t) => {
    for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP'])) {
      const file = path.join(folder(t), 'app.rec')
      const child = start(file, `setTimeout(() => {
        for (let i = 0; i < 5; i++) work('late ' + i)
        fs.writeSync(1, 'ready')
        ${source}
      }, 30)`)
      child.stdout.once('data', () => child.kill(signal))
      const ended = new Promise((resolve) => child.on('close', (code, name) => resolve(name)))
      t.is(await ended, signal)
      t.deepEqual(readRecordings(file).sources[0].spans.sort(), range(5).map((i) => `late ${i}`))
    }
  })
}

/** @type {Array<[name: string, call: string, end: unknown[], node: number]>} */
const suddenEnds = [
  ['process.kill', "process.kill(process.pid, 'SIGTERM')", [null, 'SIGTERM'], 20],
  ['process.abort', 'process.abort()', [null, 'SIGABRT'], 20],
  ['process.reallyExit', 'process.reallyExit(4)', [4, null], 20],
  ['process.execve', "process.execve(process.execPath, ['node', '-e', 'process.exitCode = 5'], {})", [5, null], 22]
]
for (const [name, call, wanted, since] of suddenEnds) {
  if (Number(process.versions.node.split('.')[0]) < since) continue
  test(`${name} ends the process at once, and everything that ended is recorded`, async (t) => {
    const file = path.join(folder(t), 'app.rec')
    const child = start(file, `setTimeout(() => {
      work('late')
      ${call}
      fs.writeSync(1, 'after')
      process.exit(3)
    }, 30)`)
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => { text += chunk })
    const end = await new Promise((resolve) => child.on('close', (code, signal) => resolve([code, signal])))
    t.deepEqual([text, end], ['', wanted])
    const { missing, sources } = readRecordings(file)
    t.is(missing.skipped, 0)
    t.deepEqual(sources[0].spans, ['late'])
  })
}

test('process.kill works as before if the recording is off, or the signal ends nothing', async (t) => {
  const { stdout, code, stderr } = await record(t, `
    const wrapped = process.kill
    const seen = [wrapped.name, wrapped.length, process.kill(process.pid, 0)]
    try { process.kill('x') } catch (error) { seen.push(error.code) }
    const timer = setInterval(() => {}, 1000)
    process.once('SIGUSR2', () => {
      clearInterval(timer)
      trace.disable()
      console.log(JSON.stringify([...seen, process.kill === wrapped, process.kill.name]))
    })
    process.kill(process.pid, 'SIGUSR2')`)
  t.is(code, 0, stderr)
  t.deepEqual(JSON.parse(stdout), ['kill', 2, true, 'ERR_INVALID_ARG_TYPE', false, 'kill'])
})

whereHeld('SIGTERM at any instant: everything that ended is recorded', async (t) => {
  const dir = folder(t)
  for (const [round, ms] of range(Number(process.env.ROUNDS ?? 8)).map((i) => [i, (i * 37) % 300])) {
    const file = path.join(dir, `${round}.rec`)
    const { end, told, before } = await killed(file, ms, 'SIGTERM')
    t.is(end, 'SIGTERM')
    const { sources: [{ spans, state }], missing } = readRecordings(file)
    t.is(missing.skipped + state.blocks + state.entries, 0)
    const names = new Set(spans)
    t.is(names.size, spans.length)
    t.true(range(names.size).every((i) => names.has(String(i))), 'without gaps')
    t.true(names.size >= before && before > 0, `${names.size} of ${before}, and ${told.length} in all`)
  }
})
