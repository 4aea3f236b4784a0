'use strict'

// Workers in Atomics.wait, like the idle ones of Piscina and Tinypool: they wait for work and block nothing.

const test = require('ava')
const { livePrograms, longstack } = require('../helpers/live')

const { start } = livePrograms(test)

const waiting = `
  const { Worker, isMainThread } = require('node:worker_threads')
  if (isMainThread) {
    new Worker(__filename).on('online', () => setTimeout(() => console.log('ready'), 500))
    setInterval(() => {}, 1000)
  } else {
    (function waitForTask () { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) })()
  }`
const spinning = waiting.replace('Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)', 'for (;;);')

// Without /proc and before Node 23.9 no thread tells its CPU time
const isKnown = process.platform === 'linux'

for (const traced of [true, false]) {
  const how = traced ? 'traced' : 'untraced'
  test.serial(`a worker in Atomics.wait is reported as waiting: ${how}`, async (t) => {
    if (!isKnown) return t.pass('CPU time of threads is read from /proc')
    const { pid } = await start(waiting, { traced })
    const sentence = /^Thread \d+ of process \d+ waits in Atomics\.wait \(waitForTask \(app\d+\.js:7\)\)\.$/m
    for (const args of [['why', pid], ['--seconds', 2, pid]]) {
      const { code, stdout, stderr } = await longstack(...args)
      t.is(code, 0, `${args} ${stdout}${stderr}`)
      t.regex(stdout, sentence)
      t.notRegex(stdout, /blocked/)
    }
    const { code, stderr } = await longstack('top', '--once', pid)
    t.is(code, 0)
    t.regex(stderr, /waits in Atomics\.wait/)
  })
}

test.serial('a worker that uses the CPU is blocked', async (t) => {
  const { pid } = await start(spinning)
  const { code, stdout } = await longstack('why', pid)
  t.is(code, 1)
  t.regex(stdout, /^Thread \d+ of process \d+ has been blocked/m)
})

for (const flag of ['why-still-running', 'fail-on-leak']) {
  test.serial(`--${flag} reports a worker in Atomics.wait, and waits for one that works`, async (t) => {
    if (!isKnown) return t.pass('CPU time of threads is read from /proc')
    const { node, cliMain, files } = prepare(t)
    const { code, stderr } = await node([cliMain, 'run', `--${flag}=500`, files.waiting], { timeout: 20_000 })
    t.is(code, flag === 'fail-on-leak' ? 3 : 0, stderr)
    t.regex(stderr, /^worker thread/m)
    const working = await node([cliMain, 'run', `--${flag}=500`, files.working], { timeout: 20_000 })
    t.is(working.code, 0, working.stderr)
    t.is(working.stderr, '')
  })
}

/** @param {import('ava').ExecutionContext} t */
function prepare (t) {
  const fs = require('node:fs')
  const path = require('node:path')
  const { node } = require('../helpers/run')
  const { main: cliMain } = require('../helpers/live')
  const folder = fs.mkdtempSync(path.join(require('node:os').tmpdir(), 'longstack-waiting-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const files = { waiting: path.join(folder, 'waiting.js'), working: path.join(folder, 'working.js') }
  const program = (/** @type {string} */ work) => `
    const { Worker, isMainThread } = require('node:worker_threads')
    if (isMainThread) new Worker(__filename)
    else ${work}`
  fs.writeFileSync(files.waiting, program('Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4000)'))
  fs.writeFileSync(files.working, program('for (const end = Date.now() + 2500; Date.now() < end;);'))
  return { node, cliMain, files }
}
