'use strict'

// The watchdog of blocking callbacks gets no thread, as under a container limit: the process reports that
// once and continues, and workers end as usual. A preloaded library refuses threads with a small stack.

const test = require('ava')
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { strict } = require('../helpers/installed')
const { program } = require('../helpers/run')

const source = path.join(__dirname, '..', 'fixtures', 'blocked', 'no-threads.c')
const WARNING = 'longstack: blocking callbacks cannot be detected: no thread for that, or no memory.\n'

/**
 * Compiles the library.
 * @param {import('ava').ExecutionContext} t
 * @returns {string | undefined} undefined where that cannot be done
 */
function noThreads (t) {
  if (process.platform !== 'linux') {
    t.log('skipped: LD_PRELOAD is used on Linux only')
    return undefined
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-threads-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const library = path.join(folder, 'no-threads.so')
  const { status, error } = spawnSync(process.env.CC ?? 'cc', ['-shared', '-fPIC', '-o', library, source, '-ldl'])
  if (status === 0) return library
  if (strict) throw error ?? new Error('the library is not compiled')
  t.log('skipped: there is no compiler')
  return undefined
}

/** @type {Array<[string, string]>} */
const programs = [
  ['a worker that does nothing', "new Worker('', { eval: true }).on('exit', (code) => console.log(code))"],
  ['a worker that ends at once', "new Worker('process.exit(3)', { eval: true }).on('exit', (code) => console.log(code))"],
  ['a worker that is terminated', `const worker = new Worker('setInterval(() => {}, 1000)', { eval: true })
    worker.on('online', () => worker.terminate().then((code) => console.log(code)))`],
  ['workers in turn', `let left = 6
    const next = () => { if (left-- > 0) new Worker('', { eval: true }).on('exit', next); else console.log(0) }
    next()`],
  ['tracing that is turned off and on', `const trace = require(process.env.INDEX)
    for (let i = 0; i < 20; i++) trace.disable().enable({ blocked: 60000 })
    const worker = new Worker(\`const trace = require(process.env.INDEX)
      for (let i = 0; i < 20; i++) trace.disable().enable({ blocked: 60000 })
      trace.disable()
      process.exit(4)\`, { eval: true })
    worker.on('exit', (code) => console.log(code))`]
]
const codes = ['0', '3', '1', '0', '4']

for (const [i, [name, text]] of programs.entries()) {
  test(`the watchdog has no thread: ${name}`, async (t) => {
    const library = noThreads(t)
    if (library === undefined) return t.pass()
    const env = { LD_PRELOAD: library, LONGSTACK_BLOCKED: '60000', INDEX: path.join(__dirname, '..', '..', 'index.js') }
    const result = await program(`const { Worker } = require('node:worker_threads')\n${text}`, { env })
    const { stdout, stderr, code, signal } = result
    t.is(signal, null, stderr)
    t.is(code, 0, stderr)
    t.is(stdout, `${codes[i]}\n`)
    // Node's own line is of the thread that waits for SIGUSR1.
    t.is(stderr.replace(/^node\[.*\n/gm, ''), WARNING)
  })
}

test('a worker may turn its watchdog off as it ends', async (t) => {
  const { stdout, stderr, code } = await program(`const { Worker } = require('node:worker_threads')
    const text = \`const trace = require(process.env.INDEX)
      for (let i = 0; i < 5; i++) trace.disable().enable({ blocked: 60000 })
      trace.disable()
      process.exit(4)\`
    let left = 5
    const next = (code) => left-- > 0 ? new Worker(text, { eval: true }).on('exit', next) : console.log(code)
    next()`, { env: { LONGSTACK_BLOCKED: '60000', INDEX: path.join(__dirname, '..', '..', 'index.js') } })
  t.is(code, 0, stderr)
  t.is(stdout, '4\n')
  t.is(stderr, '')
})
