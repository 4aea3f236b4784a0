'use strict'

// Messages between a worker and its creating thread carry the chain of their sender.

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
  const isNative = name !== 'js' && process.env.ENGINE !== 'js'
  test(`a message has the chain of its sender, in both directions: ${name}`, async (t) => {
    const lines = await told(ask, answer, { env })
    t.deepEqual(lines.map((line) => line.name), ['first', 'second'])
    for (const { name, seen, here } of lines) {
      const sent = [`worker.postMessage worker 0 ${name}`, ...later]
      t.deepEqual(seen, sent)
      t.deepEqual(here, ['parentPort.postMessage worker 1 work', 'setImmediate worker 1 asked', ...sent])
    }
    const { hops } = split(lines[0].stack)
    const isReader = isNative ? '' : ' · reader: only where \\.stack was read is known'
    t.regex(hops[0].title, new RegExp(`^worker\\.postMessage · in the main thread${isReader} ──$`))
    t.regex(hops[0].frames, /at first .*program\.cjs:\d+/)
    t.is(hops[1].title, `setTimeout(5) · ${isNative ? 'worker' : 'in the main thread'} ──`)
  })
}

test('messages keep their order and number, even if some fail', async (t) => {
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

for (const capture of ['auto', 'js']) {
  test(`a message never has the chain of an earlier caller of the function that sent it: ${capture}`, async (t) => {
    const main = `
      const worker = hire()
      const list = [function two () { setTimeout(poll, 1) }]
      worker.on('message', (seen) => {
        print(seen)
        if (seen[1] === 'two') worker.terminate()
      })
      function poll () { setImmediate(work) }
      function work () {
        const next = list.shift()
        worker.postMessage(next === undefined ? 'two' : 'one')
        next?.()
      }
      setTimeout(function one () { setTimeout(poll, 1) }, 1)`
    const worker = 'parentPort.on("message", (name) => parentPort.postMessage([chain(), name]))'
    const lines = await told(main, worker, { env: { LONGSTACK_CAPTURE: capture } })
    t.deepEqual(lines.map(([, name]) => name), ['one', 'two'])
    t.deepEqual(lines[0][0].slice(0, 3), [
      'worker.postMessage worker 0 work', 'setImmediate worker 0 poll', 'setTimeout(1) worker 0 one'
    ])
    t.deepEqual(lines[1][0], ['worker.postMessage worker 0 work', 'setImmediate worker 0 poll'])
  })
}

test('a message that sends another one while it is read ends the known chain', async (t) => {
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

test('if threads answer each other forever, the chain has one round', async (t) => {
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

test('the oldest and the newest chains are passed on, however many there are', async (t) => {
  const [{ right, count }] = await told(`
    const worker = hire()
    const senders = Array.from({ length: 1000 }, (_, i) => {
      const name = 'sender' + i + '_'.repeat(800)
      return new Function('worker', 'name', \`return function \${name} () { worker.postMessage(name) }\`)(worker, name)
    })
    const order = [...senders, ...senders.slice(0, 100)]
    let right = 0
    let count = 0
    worker.on('message', ({ name, newest }) => {
      if (newest === 'worker.postMessage worker 0 ' + name) right++
      if (++count < order.length) return order[count]()
      print({ right, count })
      worker.terminate()
    })
    order[0]()`, `
    parentPort.on('message', (name) => {
      const [newest] = chain()
      setImmediate(() => parentPort.postMessage({ name, newest }))
    })`)
  t.deepEqual({ right, count }, { right: 1100, count: 1100 })
})

test('nothing is guessed if one side does not trace, or stopped tracing', async (t) => {
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

/** Both ends of a channel, one of them in a worker. */
const channel = `
  const worker = hire()
  const { port1, port2 } = new threads.MessageChannel()
  worker.postMessage({ port: port2 }, [port2])
`
const withPort = (/** @type {string} */ body) => `parentPort.on('message', ({ port }) => { ${body} })`

for (const [name, env] of Object.entries({ full: {}, js: { LONGSTACK_CAPTURE: 'js' } })) {
  test(`a message through a port in another thread has the chain of its sender, in both directions: ${name}`, async (t) => {
    const lines = await told(`${channel}
      port1.on('message', function answered ({ name, seen }) {
        print({ name, seen, here: chain() })
        if (name === 'second') { port1.close(); worker.terminate() }
      })
      function first () { port1.postMessage('first') }
      function second () { port1.postMessage('second') }
      setTimeout(function later () { first(); second() }, 5)`, withPort(`
      port.on('message', function asked (name) {
        const seen = chain()
        setImmediate(function work () { port.postMessage({ name, seen }) })
      })`), { env })
    t.deepEqual(lines.map((line) => line.name), ['first', 'second'])
    for (const { name, seen, here } of lines) {
      const sent = [`port.postMessage worker 0 ${name}`, ...later]
      t.deepEqual(seen, sent)
      t.deepEqual(here, ['port.postMessage worker 1 work', 'setImmediate worker 1 asked', ...sent])
    }
  })
}

test('a worker that calls receiveMessageOnPort continues the chain of each message', async (t) => {
  const results = await told(`${channel}
    const flag = new Int32Array(new SharedArrayBuffer(4))
    port1.postMessage(flag)
    function send (name) { port1.postMessage(name); Atomics.add(flag, 0, 1); Atomics.notify(flag, 0) }
    function one () { send('one') }
    function two () { send('two') }
    one()
    setTimeout(two, 1)
    port1.on('message', ({ name, seen }) => { print([name, seen]); if (name === 'two') { port1.close(); worker.terminate() } })`,
  withPort(`
    const { receiveMessageOnPort: take } = threads
    let flag
    while (flag === undefined) flag = take(port)?.message
    for (let count = 0; count < 2;) {
      Atomics.wait(flag, 0, count, 50)
      for (let entry; (entry = take(port)) !== undefined; count++) port.postMessage({ name: entry.message, seen: chain()[0] })
    }`))
  t.deepEqual(results, [['one', 'port.postMessage worker 0 send'], ['two', 'port.postMessage worker 0 send']])
})

test('nothing is guessed for ports of unknown origin, used before, or read unobserved', async (t) => {
  const results = await told(`
    const old = threads.receiveMessageOnPort
    const worker = hire({ workerData: null })
    const ends = ['early', 'two a', 'two b', 'taken'].map((name) => ({ name, ...new threads.MessageChannel() }))
    const [early, a, b, taken] = ends
    early.port1.postMessage('early')
    worker.postMessage({ ports: [early.port2] }, [early.port2])
    worker.postMessage({ ports: [a.port2, b.port2] }, [a.port2, b.port2])
    worker.postMessage({ ports: [taken.port2] }, [taken.port2])
    taken.port1.postMessage('first')
    let count = 0
    const seen = []
    function note (value) { seen.push(value); if (seen.length === 5) { print(seen.sort()); process.exit() } }
    for (const { name, port1 } of ends.slice(0, 3)) {
      if (name !== 'early') port1.postMessage(name)
      port1.on('message', ([told, newest]) => note(told + ': ' + /port.postMessage/.test(newest) + ' ' + /port.postMessage/.test(chain()[0]) ))
    }
    setTimeout(function take () {
      const first = old(taken.port1)
      if (first === undefined) return setTimeout(take, 5)
      taken.port1.on('message', ([told, newest]) => note(told + ': ' + /port.postMessage/.test(newest) + ' ' + /port.postMessage/.test(chain()[0])))
      taken.port1.postMessage('second')
      taken.port1.postMessage('third')
    }, 5)`, `
    parentPort.on('message', ({ ports }) => {
      for (const port of ports) port.on('message', (name) => setImmediate(() => port.postMessage([name, chain()[1]])))
    })`)
  t.deepEqual(results, [['early: false false', 'second: true false', 'third: true false', 'two a: false false', 'two b: false false']])
})

test('a queued task that a pool sends after the response to another names its submitter', async (t) => {
  const lines = await told(`${channel}
    const { AsyncResource } = require('node:async_hooks')
    const queue = []
    let busy = false
    let id = 7
    class Task extends AsyncResource {
      constructor (name) { super('Tinypool.Task'); this.filename = 'f'; this.name = name; this.taskId = id++ }
    }
    function next () {
      const { taskId, filename, name } = queue.shift()
      busy = true
      port1.postMessage({ taskId, filename, name, task: null })
    }
    function run (name) { queue.push(new Task(name)); if (!busy) next() }
    port1.on('message', ({ name, seen }) => {
      print([name, seen])
      if (queue.length > 0) return next()
      port1.close()
      worker.terminate()
    })
    setTimeout(function alice () { run('alice'); setTimeout(function bob () { run('bob') }, 1) }, 1)
    setTimeout(function carol () { run('carol') }, 3)`, withPort(`
    port.on('message', ({ name }) => {
      const seen = trace.chain().slice(0, 2).map(({ label, frames }) => [label, ...frames.slice(0, 3).map((frame) => frame.functionName)].join(' '))
      setTimeout(() => port.postMessage({ name, seen }), 20)
    })`))
  t.deepEqual(lines.map(([name]) => name).sort(), ['alice', 'bob', 'carol'])
  for (const [name, [first]] of lines) t.is(first, `new AsyncResource(Tinypool.Task) Task run ${name}`)
})

test('a message that an idle pool sends from its own callback has no sender', async (t) => {
  const fs = require('node:fs')
  const folder = fs.mkdtempSync(path.join(require('node:os').tmpdir(), 'longstack-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true }))
  const pool = path.join(folder, 'node_modules', 'pool.js')
  fs.mkdirSync(path.dirname(pool))
  fs.writeFileSync(pool, `module.exports = (worker) => {
    const queue = []
    let busy = false
    const next = () => { busy = true; worker.postMessage(queue.shift()) }
    worker.on('message', () => { if (queue.length > 0) next() })
    return (name) => { queue.push(name); if (!busy) next() }
  }`)
  const seen = await told(`
    const worker = hire()
    const run = require(${JSON.stringify(pool)})(worker)
    worker.on('message', ({ name, seen }) => { print([name, seen.join()]); if (name === 'bob') worker.terminate() })
    setTimeout(function alice () { run('alice') }, 1)
    setTimeout(function bob () { run('bob') }, 1)`, `
    parentPort.on('message', (name) => { const seen = chain(); setTimeout(() => parentPort.postMessage({ name, seen }), 20) })`)
  t.deepEqual(seen, [['alice', 'worker.postMessage worker 0 next,setTimeout(1) worker 0 main'], ['bob', '']])
})

test('the program sees the same functions and messages', async (t) => {
  const [keys] = await told(`${channel}
    const { postMessage } = threads.MessagePort.prototype
    const seen = [postMessage.name, postMessage.length, threads.receiveMessageOnPort.length, Object.keys(port1), Reflect.ownKeys(port1).length]
    for (const bad of [{}, undefined, 1]) try { postMessage.call(bad, 1) } catch (error) { seen.push(error.name) }
    try { port1.postMessage() } catch (error) { seen.push(error.code) }
    try { port1.postMessage(() => {}) } catch (error) { seen.push(error.name) }
    try { threads.receiveMessageOnPort({}) } catch (error) { seen.push(error.code) }
    port1.on('message', (value) => {
      if (value !== 'last') return seen.push(value)
      const calls = Reflect.ownKeys(threads.MessagePort.prototype).length
      trace.disable()
      print([...seen, calls - Reflect.ownKeys(threads.MessagePort.prototype).length, threads.MessagePort.prototype.postMessage !== postMessage])
      port1.close(); worker.terminate()
    })
    const buffer = new ArrayBuffer(8)
    port1.postMessage({ buffer, map: new Map([[1, 2]]) }, { transfer: [buffer] })
    seen.push(buffer.byteLength)
    port1.postMessage('last', new Set())`, withPort(`
    const answer = ({ buffer, map }) => [buffer.byteLength, map.get(1)]
    port.on('message', (value) => port.postMessage(value === 'last' ? value : answer(value)))`))
  t.deepEqual(keys, ['postMessage', 0, 1, [], 7, 'TypeError', 'TypeError', 'TypeError', 'ERR_MISSING_ARGS', 'DataCloneError', 'ERR_INVALID_ARG_TYPE', 0, [8, 2], 1, true])
})
