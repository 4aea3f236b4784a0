'use strict'

// Messages between a worker and the thread that made it have the chain of their sender.

const test = require('ava')
const path = require('node:path')
const { node, program, register, split, root } = require('../helpers/run')

/**
 * Runs a program that is main thread and worker, and prints lines of JSON.
 * @param {string} main begins in the main thread; `worker` is to be made by hire()
 * @param {string} worker
 * @param {object} [options]
 * @returns {Promise<any[]>}
 */
async function told (main, worker, options) {
  const { stdout, stderr, code } = await program(`
    const threads = require('node:worker_threads')
    const { isMainThread, parentPort, Worker } = threads
    const trace = require(${JSON.stringify(root)})
    const chain = () => trace.chain().map(({ label, origin, threadId, frames: [frame] }) =>
      [label, origin, threadId, frame?.functionName].filter((part) => part !== undefined).join(' '))
    const print = (value) => console.log(JSON.stringify(value))
    const hire = (options) => new Worker(__filename, options)
    if (isMainThread) main()
    else worker()
    function main () { ${main} }
    function worker () { ${worker} }`, options)
  if (code !== 0 || stderr !== '') throw new Error(`${code}: ${stderr}`)
  return stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line))
}

const ask = `
  const worker = hire()
  worker.on('message', function answered ({ name, seen, stack }) {
    print({ name, seen, here: chain(), stack })
    if (name === 'second') worker.terminate()
  })
  function first () { worker.postMessage('first') }
  function second () { worker.postMessage('second') }
  setTimeout(function later () { first(); second() }, 5)`
const answer = `
  parentPort.on('message', function asked (name) {
    const { stack } = new Error(name)
    const seen = chain()
    setImmediate(function work () { parentPort.postMessage({ name, seen, stack }) })
  })`

const later = ['setTimeout(5) worker 0 main']

for (const [name, env] of Object.entries({ full: {}, js: { LONGSTACK_CAPTURE: 'js' } })) {
  test(`a message has the chain of its sender, there and back: ${name}`, async (t) => {
    const lines = await told(ask, answer, { env })
    t.deepEqual(lines.map((line) => line.name), ['first', 'second'])
    for (const { name, seen, here } of lines) {
      const sent = [`worker.postMessage worker 0 ${name}`, ...later]
      t.deepEqual(seen, sent)
      t.deepEqual(here, ['parentPort.postMessage worker 1 work', 'setImmediate worker 1 asked', ...sent])
    }
    const { hops } = split(lines[0].stack)
    const isReader = name === 'js' ? ' · reader: only where \\.stack was read is known' : ''
    t.regex(hops[0].title, new RegExp(`^worker\\.postMessage · in the main thread${isReader} ──$`))
    t.regex(hops[0].frames, /at first .*program\.cjs:\d+/)
    t.is(hops[1].title, `setTimeout(5) · ${name === 'js' ? 'in the main thread' : 'worker'} ──`)
  })
}

test('messages keep their order and number, whatever becomes of some of them', async (t) => {
  const [results] = await told(`
    const worker = hire()
    const seen = []
    const { port1, port2 } = new threads.MessageChannel()
    worker.on('message', ({ name, seen: [newest] }) => {
      seen.push(name + ': ' + newest)
      if (name === 'last') { print(seen); worker.terminate() }
    })
    function one () { worker.postMessage('one') }
    function unsent () { try { worker.postMessage(() => {}) } catch { one() } }
    function transferred () { worker.postMessage('port', [port2]) }
    function last () { worker.postMessage('last') }
    one(); unsent(); transferred(); last()`, `
    const { receiveMessageOnPort } = threads
    let taken = 0
    // The first is taken past the callbacks.
    while (taken === 0) if (receiveMessageOnPort(parentPort) !== undefined) taken++
    parentPort.on('message', (name) => parentPort.postMessage({ name, seen: chain() }))`)
  const line = (/** @type {string} */ name, maker = name) => `${name}: worker.postMessage worker 0 ${maker}`
  t.deepEqual(results, [line('one'), line('port', 'transferred'), line('last')])
})

test('no message has the chain of another one', async (t) => {
  const { stdout, stderr } = await node(['-r', register, path.join(root, 'test', 'fixtures', 'messages', 'random.js')])
  t.is(stderr, '')
  const { right, wrong } = JSON.parse(stdout)
  t.is(wrong, 0)
  t.true(right > 1500, stdout) // of 2,400; those that receiveMessageOnPort took are in no callback
})

test('a message that sends another one while it is read ends what is known', async (t) => {
  const [results] = await told(`
    const worker = hire()
    const seen = []
    worker.on('message', ({ name, seen: [newest] }) => {
      seen.push(name + ': ' + newest)
      if (name === 'last') { print(seen); worker.terminate() }
    })
    function outer () { worker.postMessage({ get name () { inner(); return 'outer' } }) }
    function inner () { worker.postMessage({ name: 'inner' }) }
    outer()
    worker.postMessage({ name: 'last' })`, `
    parentPort.on('message', ({ name }) => parentPort.postMessage({ name, seen: chain() }))`)
  t.deepEqual(results, ['inner', 'outer', 'last'].map((name) => `${name}: new Worker worker hire`))
})

test('threads that answer each other for ever have one turn of it', async (t) => {
  const [{ length, turns, chains, growth }] = await told(`
    const worker = hire()
    let turns = 0
    let chains
    worker.on('message', function back () {
      if (++turns === 200) chains = trace.stats().chains
      if (turns < 1000) return setImmediate(function again () { worker.postMessage(turns) })
      print({ length: chain().length, turns, chains: chain(), growth: trace.stats().chains - chains })
      worker.terminate()
    })
    setTimeout(function begin () { worker.postMessage(0) }, 1)`, `
    parentPort.on('message', function forth () { parentPort.postMessage(1) })`)
  t.is(turns, 1000)
  t.true(length <= 8, chains.join('\n'))
  t.is(chains[length - 1], 'setTimeout(1) worker 0 main')
  t.is(growth, 0)
})

test('where one side does not trace, or no longer, nothing is guessed', async (t) => {
  const bare = `
    const method = threads.MessagePort.prototype.postMessage
    parentPort.on('message', (name) => {
      if (name === 'disable') trace.disable()
      if (name === 'enable') trace.enable()
      const same = method === threads.MessagePort.prototype.postMessage
      parentPort.postMessage({ enabled: trace.enabled, seen: chain(), keys: Reflect.ownKeys(parentPort).length, same })
    })`
  const hiring = (/** @type {string} */ options) => `
    const worker = hire(${options})
    const names = ['one', 'disable', 'enable', 'two']
    const lines = []
    worker.on('message', (line) => {
      lines.push({ ...line, here: chain() })
      if (names.length > 0) return worker.postMessage(names.shift())
      print(lines)
      worker.terminate()
    }).postMessage(names.shift())`
  const [lines] = await told(hiring(''), bare)
  const known = lines.map((/** @type {any} */ { enabled, seen, here }) => [enabled, seen[0], here[0]].join(', '))
  t.deepEqual(known, [
    'true, worker.postMessage worker 0 main, parentPort.postMessage worker 1',
    'false, , new Worker registered hire',
    'true, new Worker worker hire, new Worker registered hire',
    'true, new Worker worker hire, new Worker registered hire'
  ])
  const [plain] = await told(hiring('{ execArgv: [] }'), bare)
  t.deepEqual(plain[0].seen, [])
  t.deepEqual(plain[0].here, ['new Worker registered hire'])
  for (const { keys } of lines) t.is(keys, plain[0].keys)
  t.deepEqual(lines.map((/** @type {any} */ { same }) => same), [true, false, false, false])
})
