'use strict'

// longstack keeps no object of the program alive, its memory does not grow, and disable restores the process.

const path = require('node:path')
const test = require('ava')
const { node, program, root, register } = require('../helpers/run')

const RECORDS = 2 ** 17 // numbers alone, of promises that may still be settled: see lib/core/records.js

for (const name of ['timers', 'immediates', 'promises', 'awaits', 'ticks', 'pending', 'connections', 'toggles']) {
  test.serial(`100,000 hops, ${name}: the heap does not grow`, async (t) => {
    const { stdout, stderr } = await node(['--expose-gc', '-r', register, path.join(root, 'bench', 'memory.js'), name, '100000'])
    t.is(stderr, '')
    const { left, contexts, handles } = JSON.parse(stdout)
    t.true(left < 5, `${left} MB are left`)
    t.true(contexts < (name === 'pending' ? RECORDS : 5000), `${contexts} contexts are held`)
    t.true(handles <= 1100, `${handles} handles are held`)
  })
}

const collect = `
  const refs = new Map()
  const watch = (name, object) => { refs.set(name, new WeakRef(object)); return object }
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  async function left () {
    for (let i = 0; i < 5; i++) { await wait(20); gc() }
    return [...refs].filter(([, ref]) => ref.deref() !== undefined).map(([name]) => name)
  }
`

test('no receiver, closure, error or resource of the program is kept alive', async (t) => {
  const { stdout, stderr } = await program(`${collect}
    const net = require('node:net')
    const keep = []
    class Receiver {
      start () { setTimeout(() => { this.x = 1 }, 1); keep.push(new Promise(() => {})) }
      async wait () { await null; keep.push(new Promise(() => {})); await wait(1) }
    }
    function round (i) {
      watch('receiver' + i, new Receiver()).start()
      watch('async receiver' + i, new Receiver()).wait()
      const closure = watch('closure' + i, () => { keep.push(Promise.resolve(1)) })
      closure()
      const error = watch('error' + i, new Error('unread')); const read = watch('read error' + i, new Error('read')); read.stack
      Promise.reject(error).catch(() => {}); Promise.reject(read).catch(() => {})
      const socket = watch('socket' + i, net.connect(1, '127.0.0.1')).on('error', (e) => { watch('socket error' + i, e).stack })
      watch('promise' + i, new Promise(() => {})); watch('timer' + i, setTimeout(() => {}, 1))
    }
    for (let i = 0; i < 20; i++) setTimeout(round, 1, i)
    setTimeout(async () => console.log(JSON.stringify(await left()), refs.size), 60)
  `, { args: ['--expose-gc'] })
  t.is(stderr, '')
  t.is(stdout.trim(), '[] 180')
})

test('a long-held promise keeps its chain, not its creator', async (t) => {
  const { stdout } = await program(`${collect}
    const trace = require(${JSON.stringify(root)})
    let held
    function openDatabase () { const big = watch('big', { data: 1 }); (function inner () { held = Promise.resolve(big.data) })() }
    setTimeout(openDatabase, 1)
    setTimeout(async () => {
      const rest = await left()
      console.log(rest.length, trace.chain(held)[0].frames.map((frame) => frame.functionName).join())
    }, 10)
  `, { args: ['--expose-gc'] })
  t.regex(stdout, /^0 inner,openDatabase/)
})

test('disable restores the process', async (t) => {
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(root)})
    const channels = require('node:diagnostics_channel')
    const names = ['net.server.socket', 'http.client.request.start', 'undici:request:create', 'tracing:net.server.listen:asyncStart']
    const look = () => JSON.stringify([
      Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace'), Error.prepareStackTrace === original,
      Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit'), process.eventNames().map((name) => [name, process.listenerCount(name)]),
      process._fatalException === fatal, names.map((name) => channels.hasSubscribers(name)), Object.keys(globalThis).length,
      process._getActiveHandles().length, process.getActiveResourcesInfo()
    ])
    const original = Error.prepareStackTrace, fatal = process._fatalException
    const before = look()
    for (let i = 0; i < 3; i++) {
      trace.enable({ signal: 'SIGUSR2' })
      const remove = trace.onError(() => true)
      new Error('x').stack
      if (look() === before) console.log('enable does nothing')
      trace.disable()
      if (i === 1) remove()
    }
    console.log(look() === before ? 'same' : before + look())
    setTimeout(() => console.log(new Error('late').stack.includes('──')), 1)
  `, { preload: false })
  t.is(stdout.trim(), 'same\nfalse')
})

test('enabling again keeps known chains and continues', async (t) => {
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(root)})
    const socket = require('node:net').connect(1, '127.0.0.1').on('error', () => {
      trace.disable()
      console.log(/net\\.connect/.test(String(trace.why(socket))), trace.enabled)
      trace.enable()
      setTimeout(function again () { console.log(/setTimeout\\(3\\)/.test(new Error('x').stack), trace.enabled) }, 3)
    })
  `)
  t.is(stdout.trim(), 'true false\ntrue true')
})

test('stand-ins for contexts are dropped after a mark-sweep', async (t) => {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(root)})
    const { AsyncResource } = require('node:async_hooks')
    const { cachedCount, contextTag } = require(${JSON.stringify(`${root}/lib/core/context`)})
    const ask = (count) => { for (let i = 0; i < count; i++) trace.chain(new AsyncResource('JOB')) }
    setImmediate(() => {
      const held = new AsyncResource('HELD')
      const context = contextTag.read(held)
      ask(5000)
      const before = cachedCount()
      setImmediate(() => {
        gc()
        setImmediate(() => {
          ask(300)
          console.log(before > 4000, cachedCount() < 1000, contextTag.read(held) === context)
        })
      })
    })
  `, { args: ['--expose-gc'] })
  t.is(stderr, '')
  t.is(stdout.trim(), 'true true true')
})
