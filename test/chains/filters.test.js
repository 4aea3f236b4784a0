'use strict'

const test = require('ava')
const { asyncWrapProviders } = require('node:async_hooks')
const { program, root } = require('../helpers/run')
const { compile, subsystems } = require('../../lib/subsystems')

/**
 * Runs a program text without the preload; what it prints is JSON.
 * @param {string} source
 * @param {Record<string, string>} [env]
 */
async function told (source, env) {
  const preload = env !== undefined
  const { stdout, stderr, code } = await program(`const trace = require(${JSON.stringify(root)})\n${source}`, { preload, env })
  if (code !== 0) throw new Error(stderr)
  return { data: JSON.parse(stdout), stderr }
}

/** @param {string[]} filter @param {string[]} types */
function selects (filter, ...types) {
  const selected = compile(filter, Object.keys(asyncWrapProviders))
  return types.filter(selected)
}

/** @param {import('ava').ExecutionContext} t @param {unknown} filter */
function refused (t, filter) {
  const error = t.throws(() => compile(/** @type {string[]} */ (filter), Object.keys(asyncWrapProviders)), {
    instanceOf: TypeError
  })
  return /** @type {TypeError & { code: string }} */ (error)
}

test('every provider type of this Node is in a subsystem', (t) => {
  const homeless = Object.keys(asyncWrapProviders)
    .filter((type) => type !== 'NONE' && ![...subsystems.values()].some((types) => types.has(type)))
  t.deepEqual(homeless, [])
  t.true(Object.keys(asyncWrapProviders).length > 50)
})

test('the documented subsystems exist', (t) => {
  const promised = ('TCP PIPE UDP TLS HTTP HTTP2 DNS FS TIMER IMMEDIATE TICK PROMISE STREAM CRYPTO ZLIB PROCESS WORKER ' +
    'MESSAGE SIGNAL TTY WASI QUIC').split(' ')
  for (const name of promised) t.true(subsystems.has(name), name)
})

test('names add up from left to right', (t) => {
  t.deepEqual(selects(['TCP'], 'TCPWRAP', 'TCPCONNECTWRAP', 'PIPEWRAP', 'PROMISE'), ['TCPWRAP', 'TCPCONNECTWRAP'])
  t.deepEqual(selects(['TCP', 'PIPE'], 'TCPWRAP', 'PIPEWRAP', 'Timeout'), ['TCPWRAP', 'PIPEWRAP'])
  t.deepEqual(selects(['*'], 'TCPWRAP', 'POOL'), ['TCPWRAP', 'POOL'])
  t.deepEqual(selects([], 'TCPWRAP', 'POOL'), [])
})

test('-NAME removes a subsystem; alone, it removes it from all', (t) => {
  t.deepEqual(selects(['*', '-PROMISE'], 'PROMISE', 'Timeout'), ['Timeout'])
  t.deepEqual(selects(['-PROMISE'], 'PROMISE', 'Timeout'), ['Timeout'])
  t.deepEqual(selects(['TCP', '-TCPSERVERWRAP'], 'TCPWRAP', 'TCPSERVERWRAP', 'Timeout'), ['TCPWRAP'])
  t.deepEqual(selects(['-*', 'FS'], 'FSREQCALLBACK', 'Timeout'), ['FSREQCALLBACK'])
  t.deepEqual(selects(['*', '-TCP', 'TCPWRAP'], 'TCPWRAP', 'TCPCONNECTWRAP'), ['TCPWRAP'])
})

test('a filter accepts raw provider types and types of the program', (t) => {
  t.deepEqual(selects(['TCPCONNECTWRAP'], 'TCPWRAP', 'TCPCONNECTWRAP'), ['TCPCONNECTWRAP'])
  t.deepEqual(selects(['Timeout', 'my:Pool'], 'Timeout', 'my:Pool', 'Immediate'), ['Timeout', 'my:Pool'])
  t.deepEqual(selects(['type:POOL'], 'POOL', 'Timeout'), ['POOL'])
})

test('a wrong name gets a suggestion', (t) => {
  const wrong = [['TPC', 'TCP'], ['-TPC', 'TCP'], ['PROMISES', 'PROMISE'], ['tcp', 'TCP'], ['timeout', 'Timeout'], ['TIMERS', 'TIMER'],
    ['TCPCONECTWRAP', 'TCPCONNECTWRAP'], ['Zlib', 'ZLIB']]
  for (const [given, meant] of wrong) {
    const error = refused(t, [given])
    t.is(error.code, 'LONGSTACK_ERR_UNKNOWN_SUBSYSTEM')
    t.true(error.message.includes(`Unknown subsystem "${given.replace('-', '')}". Did you mean "${meant}"?`), error.message)
  }
  t.false(refused(t, ['XYZZYX']).message.includes('Did you mean'))
})

test('a filter may be an array of names', (t) => {
  for (const wrong of ['TCP', 42, null, {}, [42], [''], [null], [['TCP']]]) t.is(refused(t, wrong).code, 'LONGSTACK_ERR_INVALID_FILTER')
})

test('a wrong filter changes nothing', async (t) => {
  const { data } = await told(`
    trace.enable(['TIMER'])
    const codes = []
    for (const filter of [['TPC'], ['TCP', 7]]) try { trace.enable(filter) } catch (error) { codes.push(error.code) }
    setTimeout(() => console.log(JSON.stringify([codes, trace.enabled, trace.chain()[0].label])), 1)`)
  t.deepEqual(data, [['LONGSTACK_ERR_UNKNOWN_SUBSYSTEM', 'LONGSTACK_ERR_INVALID_FILTER'], true, 'setTimeout(1)'])
})

test('a wrong filter in a variable is reported once, and the program runs', async (t) => {
  const { data, stderr } = await told('setTimeout(() => console.log(JSON.stringify(trace.chain().length)), 1)', { LONGSTACK: 'TPC' })
  t.is(data, 1)
  t.deepEqual(stderr.match(/Did you mean "TCP"\?/g), ['Did you mean "TCP"?'])
})

test('unlisted types are not captured', async (t) => {
  const { data } = await told(`
    const before = trace.stats().captured
    for (let i = 0; i < 100; i++) {
      Promise.resolve().then(() => {})
      setImmediate(() => {})
      process.nextTick(() => {})
    }
    const none = trace.stats().captured - before
    for (let i = 0; i < 5; i++) setTimeout(() => {}, 1)
    console.log(JSON.stringify([none, trace.stats().captured - before]))`, { LONGSTACK: 'TIMER' })
  t.deepEqual(data, [0, 5])
})

test('a chain continues across hops that the filter excludes', async (t) => {
  const { data } = await told(`
    const { AsyncResource } = require('node:async_hooks')
    const { readFile } = require('node:fs')
    function first () { setTimeout(second, 1) }
    async function second () {
      await null
      setImmediate(() => readFile(__filename, () => Promise.resolve().then(third)))
    }
    function third () { new AsyncResource('my:Job').runInAsyncScope(() => process.nextTick(fourth)) }
    function fourth () { setTimeout(last, 1) }
    function last () { console.log(JSON.stringify(trace.chain().map(({ type, frames }) => [type, frames[0].functionName]))) }
    first()`, { LONGSTACK: 'TIMER,my:Job' })
  t.deepEqual(data, [['Timeout', 'fourth'], ['my:Job', 'third'], ['Timeout', 'first']])
})

test('a chain continues across a server that the filter excludes', async (t) => {
  const { data } = await told(`
    const net = require('node:net')
    function first () { setTimeout(serve, 1) }
    function serve () {
      const server = net.createServer(accept).listen(0, () => net.connect(server.address().port).resume())
      function accept (socket) { server.close(); socket.end(); setTimeout(last, 1) }
    }
    function last () { console.log(JSON.stringify(trace.chain().map(({ frames }) => frames[0].functionName))) }
    first()`, { LONGSTACK: 'TIMER' })
  t.deepEqual(data, ['accept', 'first'])
})

test('the filter selects what hooks receive', async (t) => {
  const { data } = await told(`
    const types = new Set()
    trace.hook({ init: ({ type }) => types.add(type), before: ({ type }) => types.add(type), after: ({ type }) => types.add(type) })
    const server = require('node:net').createServer((socket) => socket.end()).listen(0, () => {
      require('node:net').connect(server.address().port).resume().on('close', () => server.close())
    }).on('close', () => console.log(JSON.stringify([...types].sort())))`, { LONGSTACK: 'TCP' })
  t.deepEqual(data, ['TCPCONNECTWRAP', 'TCPSERVERWRAP', 'TCPWRAP'])
})

test('a filter can change while the program runs', async (t) => {
  const { data } = await told(`
    trace.enable(['PROMISE'])
    function one () { setTimeout(two, 1) }
    function two () {
      trace.enable(['TIMER'])
      setTimeout(three, 1)
    }
    function three () { console.log(JSON.stringify(trace.chain().map(({ type, frames }) => [type, frames[0].functionName]))) }
    one()`)
  t.deepEqual(data, [['Timeout', 'two']])
})

test('a listening server is one hop, even if tracing is enabled late', async (t) => {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(root)})
    const net = require('node:net')
    setTimeout(function late () {
      trace.enable(['TCP'])
      ;[undefined, 'localhost'].map(function openServer (host) {
        return net.createServer(() => {}).listen(0, host, function () {
          console.log(trace.chain(this).filter(({ label }) => label.startsWith('server.listen')).length)
          this.close()
        })
      })
    }, 5)`, { preload: false })
  t.deepEqual(stdout.trim().split('\n'), ['1', '1'], stderr)
})
