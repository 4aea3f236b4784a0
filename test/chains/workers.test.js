'use strict'

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { program, register, split, root } = require('../helpers/run')

/** @param {string} source @param {object} [options] */
async function told (source, options) {
  const { stdout, stderr, code } = await program(`const trace = require(${JSON.stringify(root)})\n${source}`, options)
  if (code !== 0 || stderr !== '') throw new Error(`${code}: ${stderr}`)
  return JSON.parse(stdout)
}

const inWorker = `
  const trace = require(${JSON.stringify(root)})
  const { parentPort, threadId } = require('node:worker_threads')
  function work () {
    const error = new Error('in the worker')
    parentPort.postMessage({
      enabled: trace.enabled,
      text: error.stack,
      chain: trace.chain().map(({ label, origin, ageMs, frames }) => ({ label, origin, ageMs, name: frames[0] && frames[0].functionName }))
    })
  }
  setTimeout(work, 2)`

const outside = `
  const { Worker } = require('node:worker_threads')
  function hire (options) { return new Worker(${JSON.stringify(inWorker)}, { eval: true, ...options }) }`

test('a worker that preloads with --import, after another preload, has the chain of its creator', async (t) => {
  const { stdout, stderr } = await program(`
    import { Worker, isMainThread } from 'node:worker_threads'
    if (isMainThread) setImmediate(function begin () { new Worker(new URL(import.meta.url)) })
    else setTimeout(() => console.log(new Error('told').stack), 1)
  `, { type: 'mjs', preload: false, args: ['-r', 'node:path', '--import', register] })
  t.is(stderr, '')
  t.deepEqual(split(stdout).hops.map(({ title }) => title.split(' · ')[0]), ['setTimeout(1)', 'new Worker', 'setImmediate'])
})

test("a worker's chain continues in the thread that made it", async (t) => {
  const { chain, text } = await told(`${outside}
    function start () { setTimeout(later, 5) }
    function later () { hire().on('message', (message) => console.log(JSON.stringify(message))) }
    start()`)
  t.deepEqual(chain.map(({ label }) => label), ['setTimeout(2)', 'new Worker', 'setTimeout(5)'])
  t.deepEqual(chain.slice(1).map(({ name }) => name), ['hire', 'start'])
  t.deepEqual(chain.map(({ origin }) => origin), ['registered', 'worker', 'worker'])
  t.true(chain[0].ageMs <= chain[1].ageMs && chain[1].ageMs + 4 <= chain[2].ageMs)
  const { hops } = split(text)
  t.regex(hops[1].title, /^new Worker · [\d.]+ m?s earlier · in the parent thread ──$/)
  t.regex(hops[1].frames, /at hire .*program\.cjs/)
})

test('a chain continues through several threads', async (t) => {
  const inner = `new (require('node:worker_threads').Worker)(${JSON.stringify(inWorker)}, { eval: true })
    .on('message', (message) => require('node:worker_threads').parentPort.postMessage(message))`
  const { chain } = await told(`
    const { Worker } = require('node:worker_threads')
    function outermost () { return new Worker(${JSON.stringify(inner)}, { eval: true }) }
    outermost().on('message', (message) => console.log(JSON.stringify(message)))`)
  t.deepEqual(chain.map(({ label }) => label), ['setTimeout(2)', 'new Worker', 'new Worker'])
  t.is(chain[2].name, 'outermost')
})

test('without longstack in its parent, a worker has no chain of its grandparent', async (t) => {
  const inner = `
    const trace = require(${JSON.stringify(root)}).enable()
    setTimeout(() => require('node:worker_threads').parentPort.postMessage(trace.chain().map(({ label }) => label)), 1)`
  const middle = `
    const { parentPort, Worker } = require('node:worker_threads')
    setTimeout(() => new Worker(${JSON.stringify(inner)}, { eval: true }).on('message', (message) => parentPort.postMessage(message)), 1)`
  const labels = await told(`
    const { Worker } = require('node:worker_threads')
    function grandparent () { return new Worker(${JSON.stringify(middle)}, { eval: true, execArgv: [] }) }
    grandparent().on('message', (message) => console.log(JSON.stringify(message)))`)
  t.deepEqual(labels, ['setTimeout(1)'])
})

test('each worker has the chain of its own creator', async (t) => {
  const chains = await told(`${outside}
    function one () { return hire() }
    function two () { return hire() }
    const chains = {}
    function got (name) { return ({ chain }) => { chains[name] = chain.length; if (Object.keys(chains).length === 3) console.log(JSON.stringify(chains)) } }
    one().on('message', got('one'))
    setTimeout(function later () { two().on('message', got('two')) }, 1)
    setImmediate(() => setImmediate(() => hire().on('message', got('three'))))`)
  t.deepEqual(chains, { one: 2, two: 3, three: 4 })
})

test('tracers of threads are independent', async (t) => {
  const { enabled, mine, yours } = await told(`${outside}
    const worker = hire({ env: { ...process.env } })
    trace.disable()
    worker.on('message', ({ enabled }) => {
      console.log(JSON.stringify({ enabled, mine: trace.enabled, yours: Object.getOwnPropertyNames(globalThis).filter((name) => /longstack/i.test(name)) }))
    })`)
  t.deepEqual({ enabled, mine, yours }, { enabled: true, mine: false, yours: [] })
})

test('the program sees nothing of what a worker inherits', async (t) => {
  const { workerData, data } = await told(`
    const { Worker, setEnvironmentData } = require('node:worker_threads')
    setEnvironmentData('mine', 1)
    const code = 'const { parentPort, workerData, getEnvironmentData } = require("node:worker_threads");' +
      'parentPort.postMessage({ workerData, data: [getEnvironmentData("mine"), process.env.LONGSTACK ?? null] })'
    new Worker(code, { eval: true, workerData: { a: 1 } }).on('message', (message) => console.log(JSON.stringify(message)))`)
  t.deepEqual({ workerData, data }, { workerData: { a: 1 }, data: [1, null] })
})

test('a worker without the preload runs as usual, and can enable longstack itself', async (t) => {
  const { before, chain } = await told(`
    const { Worker } = require('node:worker_threads')
    const code = ${JSON.stringify(`const trace = require(${JSON.stringify(root)})
      const before = trace.enabled
      trace.enable()
      setTimeout(() => require('node:worker_threads').parentPort.postMessage({ before, chain: trace.chain().map(({ label }) => label) }), 1)`)}
    function hire () { new Worker(code, { eval: true, execArgv: [] }).on('message', (message) => console.log(JSON.stringify(message))) }
    hire()`)
  t.is(before, false)
  t.deepEqual(chain, ['setTimeout(1)', 'new Worker'])
})

test('the chain exists from the first line of a worker', async (t) => {
  const labels = await told(`
    const { Worker } = require('node:worker_threads')
    const code = ${JSON.stringify(`const trace = require(${JSON.stringify(root)})
      const { parentPort } = require('node:worker_threads')
      const { stack } = new Error('at the top')
      parentPort.postMessage([trace.chain().map(({ label }) => label), /── new Worker/.test(stack)])`)}
    function hire () { new Worker(code, { eval: true }).on('message', (message) => console.log(JSON.stringify(message))) }
    hire()`)
  t.deepEqual(labels, [['new Worker'], true])
})

test('two copies of the package share one tracer', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-copy-'))
  try {
    for (const part of ['index.js', 'lib', 'package.json']) fs.cpSync(path.join(root, part), path.join(folder, part), { recursive: true })
    fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
    const source = `
      const copy = require(${JSON.stringify(folder)})
      require(${JSON.stringify(path.join(folder, 'lib', 'register.js'))})
      let inits = 0
      copy.hook({ init: () => { inits++ } })
      function start () { setTimeout(done, 1) }
      function done () {
        const { stack } = new Error('once')
        const seen = inits
        trace.disable()
        console.log(JSON.stringify({ same: copy === trace, enabled: copy.enabled, hops: stack.split('\\n  ── ').length - 1, seen }))
      }
      start()`
    t.deepEqual(await told(source), { same: true, enabled: false, hops: 1, seen: 1 })
    const { copies, problems } = await told(`require(${JSON.stringify(folder)}); console.log(JSON.stringify(trace.doctor()))`)
    const { version } = require('../../package.json')
    t.deepEqual(copies, [root, folder].map((directory) => `${version} in ${directory}`))
    const several = problems.find(({ code }) => code === 'SEVERAL_COPIES')
    t.is(several.message, `Several copies of longstack are loaded: ${copies[0]} traces; it also serves ${copies[1]}.`)
    // The copy may also come first.
    const { stdout } = await program(`console.log(require(${JSON.stringify(folder)}) === require(${JSON.stringify(root)}))`,
      { preload: false, args: ['-r', path.join(folder, 'lib', 'register.js')] })
    t.is(stdout, 'true\n')
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
