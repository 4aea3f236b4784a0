'use strict'

// trace.handles: exactly the open handles. The registry stays small and keeps nothing alive, and queries run
// no code of the program.

const { setFlagsFromString } = require('node:v8')
const { runInNewContext } = require('node:vm')
const test = require('ava')
const { reports, functions } = require('../helpers/reports')
const registry = require('../../lib/core/registry')

const summary = (/** @type {any[]} */ all) => all.map((one) => [one.type, one.side, one.state].filter(Boolean).join(' ')).sort()

test('open handles are listed once, unreferenced ones too; closed ones and Node\'s own are not', async (t) => {
  const { told, stderr, code } = await reports(`
    const { Worker, MessageChannel } = require('node:worker_threads')
    const { spawn } = require('node:child_process')
    list('nothing')
    const agent = new http.Agent({ keepAlive: true, timeout: 5000 })
    const waiting = []
    const server = http.createServer((request, response) => waiting.push(response))
    server.listen(0, '127.0.0.1', async function main () {
      const request = http.get({ agent, port: server.address().port, host: '127.0.0.1', timeout: 5000 })
      await until(() => waiting.length === 1)
      const timers = [setTimeout(() => {}, 1e6), setInterval(() => {}, 1e6).unref()]
      clearTimeout(setTimeout(() => {}, 1e6)); setTimeout(() => {}, 1)
      const signal = AbortSignal.timeout(1e6)
      const { port1, port2 } = new MessageChannel()
      port1.unref(); port2.on('message', () => {})
      const code = 'const { parentPort } = require("node:worker_threads"); parentPort.on("message", () => {}).postMessage("loaded")'
      const worker = new Worker(code, { eval: true, stdin: true })
      const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 1e6)'], { stdio: 'ignore' })
      child.unref()
      const watcher = fs.watch(__dirname, { persistent: false })
      const file = await fs.promises.open(__filename)
      const udp = require('node:dgram').createSocket('udp4').bind(0, '127.0.0.1')
      process.on('SIGTERM', () => {}); process.on('SIGHUP', () => {}); process.removeAllListeners('SIGHUP')
      process.stdout.write('')
      // What a worker still loads is open in this process, too
      await Promise.all([once(udp, 'listening'), once(worker, 'message')])
      await wait(10)
      list('open'); list('open again')
      list('TCP', ['TCP']); list('TIMER', ['TIMER']); list('none', ['DNS']); list('without', ['*', '-TCP', '-TIMER']); list('raw', ['UDPWRAP'])
      const over = [once(child, 'exit'), once(worker, 'exit'), once(request, 'response')]
      process.removeAllListeners('SIGTERM'); udp.close(); await file.close(); watcher.close(); child.ref(); child.kill(); worker.terminate()
      port1.close(); timers.forEach(clearTimeout); waiting[0].end()
      await Promise.all(over)
      agent.destroy(); server.close(); server.closeAllConnections()
      await wait(20)
      list('closed', ['*', '-Timeout'])
      process.exit()
    })`)
  t.is(stderr, '')
  t.is(code, 0)
  t.deepEqual(told.nothing.all, [])
  t.deepEqual(summary(told.open.all), [
    'FILEHANDLE open', 'FSEVENTWRAP open', 'MESSAGEPORT open', 'MESSAGEPORT open', 'PROCESSWRAP open', 'SIGNALWRAP open',
    'TCPSERVERWRAP listening', 'TCPWRAP client open', 'TCPWRAP server open',
    'Timeout pending', 'Timeout pending', 'Timeout pending', 'UDPWRAP open', 'WORKER open'
  ])
  t.deepEqual(summary(told['open again'].all), summary(told.open.all))
  const ids = told.open.all.map((one) => one.asyncId)
  t.is(new Set(ids).size, ids.length, 'no duplicates')
  t.true(told.open.all.filter((one) => one.side !== 'server' && one.type !== 'TCPSERVERWRAP').every((one) => functions(one.opened).includes('main')))
  t.deepEqual(summary(told.TCP.all), ['TCPSERVERWRAP listening', 'TCPWRAP client open', 'TCPWRAP server open'])
  t.is(told.TIMER.all.length, 3)
  t.deepEqual(told.none.all, [])
  t.is(told.without.all.length, told.open.all.length - 6)
  t.deepEqual(summary(told.raw.all), ['UDPWRAP open'])
  t.deepEqual(summary(told.closed.all), [])
})

test('handles made by longstack and its callbacks are not listed', async (t) => {
  const { told, stderr } = await reports(`
    let made = 0
    trace.hook({ init () { if (made++ > 3) return; net.createServer().listen(0, '127.0.0.1').unref(); setTimeout(() => {}, 1e5).unref() } })
    const timer = setTimeout(() => {}, 1e6)
    setTimeout(function mine () { list('mine'); process.exit() }, 10)`, { env: { LONGSTACK_SIGNAL: 'SIGUSR2' } })
  t.is(stderr, '')
  t.deepEqual(summary(told.mine.all), ['Timeout pending'])
})

test('a wrong filter is rejected', async (t) => {
  const { told } = await reports(`
    for (const filter of [['TPC'], 'TCP', [1]]) try { trace.handles(filter); say('no', {}) } catch (error) { say(error.code, { message: error.message }) }`)
  t.deepEqual(Object.keys(told).sort(), ['LONGSTACK_ERR_INVALID_FILTER', 'LONGSTACK_ERR_UNKNOWN_SUBSYSTEM'])
  t.regex(told.LONGSTACK_ERR_UNKNOWN_SUBSYSTEM.message, /Did you mean "TCP"\?/)
})

test('10,000 connections, opened and closed, leave a small registry', async (t) => {
  const { told, stderr, code } = await reports(`
    let accepted = 0
    const server = net.createServer((socket) => { accepted++; socket.on('error', () => {}).resume() })
    server.listen(0, '127.0.0.1', async () => {
      for (let i = 0; i < 10000; i += 100) {
        await Promise.all(Array.from({ length: 100 }, () => new Promise((resolve) => {
          const socket = net.connect(server.address().port, '127.0.0.1', () => socket.end())
          socket.on('error', () => {}).on('close', resolve).resume()
        })))
      }
      await wait(20)
      say('before', { open: trace.handles(['TCP']).length })
      for (let i = 0; i < 4; i++) { await wait(30); gc() }
      await wait(30)
      say('after', { accepted, handles: trace.stats().handles, fault: trace.stats().fault, open: trace.handles(['TCP']).length })
      process.exit()
    })`, { args: ['--expose-gc'], timeout: 120_000 })
  t.is(stderr, '')
  t.is(code, 0)
  t.is(told.before.open, 1, 'the server')
  t.like(told.after, { accepted: 10000, fault: undefined, open: 1 })
  t.true(told.after.handles <= 1100, `${told.after.handles} entries`)
})

test('the registry keeps no socket, server, request, timer or worker alive', async (t) => {
  const { told, stderr, code } = await reports(`
    const waiting = []
    const refs = {}
    const hold = (name, object) => { refs[name] = new WeakRef(object) }
    function use (port, agent) {
      return new Promise((resolve) => {
        const request = http.get({ agent, port, host: '127.0.0.1' }, (response) => { hold('response', response); response.resume().on('end', resolve) })
        hold('request', request); trace.why(request)
        request.on('socket', (socket) => { hold('socket', socket); hold('report', trace.why(socket)) })
      })
    }
    async function all () {
      const server = http.createServer((request, response) => { hold('accepted', request.socket); trace.why(request); trace.handles().map(String); response.end('x') })
      hold('server', server)
      server.listen(0, '127.0.0.1'); await once(server, 'listening')
      const agent = new http.Agent({ keepAlive: true })
      await use(server.address().port, agent)
      await fetch('http://127.0.0.1:' + server.address().port).then((response) => response.text())
      agent.destroy(); server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      const closure = { big: true }; hold('closure', closure)
      const timer = setTimeout(() => closure, 1e6); hold('timer', timer); trace.why(timer); clearTimeout(timer)
      const worker = new (require('node:worker_threads').Worker)('', { eval: true }); hold('worker', worker); trace.why(worker)
      await once(worker, 'exit')
    }
    setTimeout(async () => {
      await all()
      for (let i = 0; i < 6; i++) { await wait(30); gc() }
      say('alive', { names: Object.keys(refs).filter((name) => refs[name].deref() !== undefined), count: Object.keys(refs).length })
    }, 1)`, { args: ['--expose-gc'] })
  t.is(stderr, '')
  t.is(code, 0)
  t.is(told.alive.count, 9)
  t.deepEqual(told.alive.names, [])
})

test('a query runs no getter, method or proxy trap of the program, and leaves its objects unchanged', async (t) => {
  const { told, stderr, code } = await reports(`
    const touched = []
    const trap = (name) => ({ configurable: true, get () { touched.push(name); throw new Error('touched ' + name) } })
    const names = ('_handle socket client req fd destroyed connecting readyState server _server _httpMessage _readableState _writableState hasRef bytesRead ' +
      'bytesWritten remoteAddress method path url host origin constructor _tlsOptions _parent toString toJSON then pid spawnfile _repeat').split(' ')
    const trapped = (target) => { for (const name of names) Object.defineProperty(target, name, trap(name)); return target }
    const proxied = (target) => new Proxy(target, new Proxy({}, { get (_, name) { touched.push('trap ' + String(name)); throw new Error('trap') } }))
    class Odd extends net.Socket {
      get destroyed () { touched.push('Odd.destroyed'); return false }
      get bytesWritten () { touched.push('Odd.bytesWritten'); return 1 }
      get _bytesDispatched () { touched.push('Odd._bytesDispatched'); return 1 }
      get writableBuffer () { touched.push('Odd.writableBuffer'); return [] }
      get readyState () { touched.push('Odd.readyState'); return 'odd' }
      static get [Symbol.hasInstance] () { touched.push('hasInstance'); return () => true }
    }
    const server = net.createServer(() => {}).listen(0, '127.0.0.1', () => {
      const odd = new Odd()
      odd.connect(server.address().port, '127.0.0.1', () => {
        odd.write('abc')
        for (const name of ['remoteAddress', 'toString', 'toJSON', 'server']) Object.defineProperty(odd, name, trap(name))
        const called = (name) => () => { touched.push('fake ' + name) }
        const fake = { _handle: { hasRef: called('hasRef'), getsockname: called('name'), getAsyncId: called('id').bind(null), get fd () { touched.push('fake fd') } } }
        const native = { _handle: Object.create(Object.getPrototypeOf(odd._handle)) }
        const behind = { socket: proxied({}), client: proxied({}) }
        touched.length = 0
        const before = require('node:util').inspect(Object.getOwnPropertyDescriptors(server), { showHidden: true })
        const targets = { trapped: trapped({}), proxied: proxied({}), prototype: Object.create(proxied({})), fake, native, behind, inner: trapped(Object.create(odd)), odd }
        for (const [name, target] of Object.entries(targets)) ask(name, target)
        ask('server', server); list('all'); trace.chain(targets.proxied); trace.chain(targets.trapped)
        say('touched', { touched, same: before === require('node:util').inspect(Object.getOwnPropertyDescriptors(server), { showHidden: true }) })
        process.exit()
      })
    })`)
  t.is(stderr, '')
  t.is(code, 0)
  t.deepEqual(told.touched, { touched: [], same: true })
  t.like(told.odd.why, { type: 'TCPWRAP', side: 'client', state: 'open', bytesWritten: 3 })
  for (const name of ['trapped', 'proxied', 'prototype', 'fake', 'behind']) t.is(told[name].why.opened.length, 0, name)
  t.is(told.all.all.filter((one) => one.side === 'client').length, 1)
})

test('disable restores wrapped traffic methods each time, and calls others\' wrappers', async (t) => {
  const { told, stderr, code } = await reports(`
    const descriptor = () => Object.getOwnPropertyDescriptor(net.Socket.prototype, '_unrefTimer')
    const original = descriptor()
    const same = () => descriptor().value === original.value
    const server = net.createServer((socket) => socket.resume()).listen(0, '127.0.0.1', async () => {
      const dial = async () => { const socket = net.connect(server.address().port, '127.0.0.1'); await once(socket, 'connect'); return socket }
      const before = same()
      for (let i = 0; i < 20; i++) { trace.enable(); (await dial()).destroy(); trace.disable() }
      const undone = same() && Object.keys(original).every((key) => descriptor()[key] === original[key])
      trace.enable()
      const socket = await dial()
      const during = same()
      const ours = descriptor().value
      let calls = 0
      net.Socket.prototype._unrefTimer = function () { calls++; return ours.apply(this, arguments) }
      trace.disable()
      const kept = descriptor().value
      trace.enable()
      await wait(60); socket.write('x')
      const idle = trace.why(socket).idleMs
      say('undo', { before, undone, during, named: ours.name === original.value.name, calls, kept: kept !== ours && !same(), idle, age: trace.why(socket).ageMs })
      process.exit()
    })`, { preload: false })
  t.is(stderr, '')
  t.is(code, 0)
  const { idle, age, calls, ...others } = told.undo
  t.deepEqual(others, { before: true, undone: true, during: false, named: true, kept: true })
  t.true(calls > 0)
  t.true(idle < age - 55, `idle for ${idle} ms, ${age} ms old`)
})

test('a recently opened file is not kept alive', async (t) => {
  const { told } = await reports(`
    process.on('uncaughtException', () => {}) // Node 26: one that was not closed is collected
    process.on('warning', () => {})
    let file
    const open = async () => { file = new WeakRef(await require('node:fs/promises').open(__filename)) }
    open().then(() => setImmediate(() => setImmediate(() => {
      gc()
      say('file', { isHeld: file.deref() !== undefined })
      process.exit()
    })))`, { args: ['--expose-gc', '--no-warnings'] })
  t.false(told.file.isHeld)
})

test('ended handles are found in time, with longer pauses while nothing ends', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  const context = (/** @type {number} */ asyncId) => /** @type {any} */ ({ asyncId, time: 0, type: 'TCPWRAP', kind: { brief: false } })
  const open = {}
  let gone = /** @type {object | undefined} */ ({})
  registry.opened(context(1), open)
  registry.opened(context(2), gone)
  // The program held it, so it cannot be asked for any more.
  Object.assign(registry.get(2) ?? {}, { isOwnerKnown: true })
  gone = undefined
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  registry.startIteration(999)
  t.truthy(registry.get(2))
  registry.startIteration(1000)
  t.is(registry.get(2), undefined)
  t.is(registry.get(1)?.resource.deref(), open)
})

test('each of many concurrent timers is checked only a few times', async (t) => {
  const { told } = await reports(`
    const { deref } = WeakRef.prototype
    let looks = 0
    WeakRef.prototype.deref = function () { looks++; return deref.call(this) }
    let left = 20_000
    for (let i = 0; i < left; i++) setTimeout(() => { if (--left === 0) say('looks', { looks }) }, 100 + i % 50)
  `)
  const { looks } = told.looks
  t.true(looks < 300_000, `${looks}: each timer of a batch must not look at all others`)
})

test('opened handles use no finalizers', async (t) => {
  const { told } = await reports(`
    const { register } = FinalizationRegistry.prototype
    let count = 0
    FinalizationRegistry.prototype.register = function (...args) { if (/[\\\\/]handles[\\\\/]/.test(new Error().stack)) count++; return register.apply(this, args) }
    const server = net.createServer().listen(0, '127.0.0.1', async () => {
      for (let i = 0; i < 50; i++) { setTimeout(() => {}, 1e6).unref(); await wait(3) }
      server.close()
      say('finalizers', { count, open: trace.handles(['TIMER']).length })
    })`, { env: { LONGSTACK: 'TCP,TIMER' } })
  t.deepEqual(told.finalizers, { count: 0, open: 50 })
})
