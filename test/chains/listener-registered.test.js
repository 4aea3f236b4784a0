'use strict'

// The option `listeners`: an error made in an event listener shows where that listener was registered.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { both } = require('../helpers/both')
const { node, register, root } = require('../helpers/run')

const engines = process.env.ENGINE === 'js' ? ['js'] : ['native', 'js']
const env = { LONGSTACK_LISTENERS: '1' }

/**
 * Runs a program from a file, which finds `trace`, `tell(name, error)` and `events`.
 * @param {string} source
 * @param {Record<string, string>} [more] of the environment
 * @returns {Promise<Record<string, string[]>>} lines about listeners, by name
 */
async function told (source, more = env) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-listeners-'))
  try {
    const file = path.join(folder, 'app.js')
    fs.writeFileSync(file, `const { EventEmitter } = require('node:events')
      const trace = require(${JSON.stringify(root)})
      const texts = {}; const tell = (name, error) => { (texts[name] ??= []).push(error.stack) }
      process.on('exit', () => console.log(JSON.stringify(texts)))\n${source}`)
    const { stdout, stderr } = await node(['-r', register, file], { env: more })
    if (stderr !== '') throw new Error(stderr)
    const texts = Object.entries(/** @type {Record<string, string[]>} */ (JSON.parse(stdout)))
    return Object.fromEntries(texts.map(([name, stacks]) => [name, stacks.map((stack) => {
      return stack.split('\n').find((line) => /── (?:emitter|target)\./.test(line))?.replaceAll('\u00a0', ' ') ?? ''
    })]))
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

for (const engine of engines) {
  test(`listeners of all forms are found, ${engine}`, async (t) => {
    const lines = await told(`
      const e = new EventEmitter()
      function onData () { tell('named', new Error('x')) }
      function wire () {
        e.on('data', onData)
        e.once('end', (a) => { (() => tell('once', new Error('x')))() })
        e.prependListener('p', async function (b) { tell('async', new Error('x')) })
        e.prependOnceListener('q', x => tell('identifier', new Error('x')))
        e.addListener(Symbol('s'), async (q) => tell('asyncArrow', new Error('y')))
        for (const n of ['a', 'b']) e.on(n, function both () { tell('both', new Error('x')) })
      }
      class Connection { constructor () { e.on('m', this.m) } m () { tell('method', new Error('x')) } }
      wire()
      new Connection()
      setTimeout(() => { for (const n of e.eventNames()) e.emit(n) }, 1)`, { ...env, LONGSTACK_CAPTURE: engine })
    t.deepEqual(lines, {
      named: ["  ── emitter.on('data') in wire (app.js:9) ──"],
      once: ["  ── emitter.once('end') in wire (app.js:10) ──"],
      async: ["  ── emitter.prependListener('p') in wire (app.js:11) ──"],
      identifier: ["  ── emitter.prependOnceListener('q') in wire (app.js:12) ──"],
      asyncArrow: ['  ── emitter.on(Symbol(s)) in wire (app.js:13) ──'],
      both: Array(2).fill("  ── emitter.on('a' or 'b') in wire (app.js:14) ──"),
      method: ["  ── emitter.on('m') in new Connection (app.js:16) ──"]
    })
  })
}

for (const engine of engines) {
  test(`listeners of an EventTarget are found, ${engine}`, async (t) => {
    const lines = await told(`
      class Bus extends EventTarget {}
      const bus = new Bus()
      const { signal } = new AbortController()
      const { port1, port2 } = new MessageChannel()
      function wire () {
        bus.addEventListener('a', () => tell('arrow', new Error('x')))
        bus.addEventListener('b', { handleEvent (b) { tell('object', new Error('x')) } }, { once: true })
        AbortSignal.timeout(1).addEventListener('abort', function late () { tell('signal', new Error('x')) })
        port1.on('message', (m) => { tell('port', new Error('x')); port1.close() })
        for (const n of [1, 2]) bus.addEventListener('c', function other () { tell('twice', new Error('x')) })
        bus.onc = (c) => {}
      }
      wire()
      bus.addEventListener('d', { handleEvent: (d) => tell('emitted', new Error('x')) })
      new EventEmitter().on('d', (d) => tell('emitted', new Error('x')))
      port2.postMessage('hello')
      setTimeout(() => { for (const n of ['a', 'b', 'c', 'd']) bus.dispatchEvent(new Event(n)) }, 50)`,
    { ...env, LONGSTACK_CAPTURE: engine })
    t.deepEqual(lines, {
      arrow: ["  ── target.addEventListener('a') in wire (app.js:11) ──"],
      object: ["  ── target.addEventListener('b') in wire (app.js:12) ──"],
      signal: ["  ── target.addEventListener('abort') in wire (app.js:13) ──"],
      port: ["  ── emitter.on('message') in wire (app.js:14) ──"],
      twice: Array(2).fill("  ── target.addEventListener('c') in wire (app.js:15) ──"),
      emitted: ['']
    })
  })
}

test('a listener of a socket is found', async (t) => {
  const source = `
    const net = require('node:net')
    function connect () {
      const client = net.connect(server.address().port, '127.0.0.1')
      client.on('data', (chunk) => { tell('data', new Error('x')) })
      return client.on('close', () => server.close())
    }
    const server = net.createServer((socket) => socket.end('hello')).listen(0, '127.0.0.1', connect)`
  const line = "  ── emitter.on('data') in connect (app.js:9) ──"
  t.deepEqual(await told(source), { data: [line] })
  t.deepEqual(await told(source, {}), { data: [''] }, 'it is off where nobody asks for it')
})

test('no registration is shown if it is not known which one it was', async (t) => {
  const lines = await told(`
    const e = new EventEmitter()
    const first = (z) => { tell('equal', new Error('x')) }
    const second = (z) => { tell('equal', new Error('x')) }
    e.on('equal', first)
    const twice = (y) => { tell('twice', new Error('x')) }
    e.on('twice', twice)
    e.on('other', twice)
    const late = () => { tell('manyAndLate', new Error('x')) }
    e.on('late', late)
    for (let i = 0; i < 20; i++) for (const event of ['i' + i, 'j' + i]) e.on(event, i ? late : [].at)
    function called () { tell('called', new Error('x')) }
    e.on('called', called)
    e.on('outer', function outer () {
      const inner = eval('(w) => { tell("evaluated", new Error("x")) }')
      e.on('inner', inner)
      e.emit('inner')
    })
    const { on } = EventEmitter.prototype
    trace.disable()
    e.on('before', function before () { tell('before', new Error('x')) })
    trace.enable()
    e.removeAllListeners('i0').removeAllListeners('j0')
    setTimeout(() => { for (const n of e.eventNames()) if (n !== 'called') e.emit(n); called() }, 1)`)
  t.deepEqual(Object.keys(lines).sort(), ['before', 'called', 'equal', 'evaluated', 'manyAndLate', 'twice'])
  for (const [name, list] of Object.entries(lines)) for (const line of list) t.is(line, '', name)
})

test('the program runs the same with the option', async (t) => {
  const { bare, traced } = await both(`
    const { EventEmitter, once, on } = require('node:events')
    const { Readable } = require('node:stream')
    class Odd extends EventEmitter { on (...args) { return super.on(...args) } }
    const e = new Odd()
    const log = []
    const f = function f (a) { log.push(['f', a, this === e, arguments.length]) }
    const methods = ['on', 'addListener', 'once', 'prependListener', 'prependOnceListener', 'off']
    for (const name of methods) {
      const { [name]: method } = EventEmitter.prototype
      const property = Object.getOwnPropertyDescriptor(EventEmitter.prototype, name)
      log.push([name, method.name, method.length, property.writable, property.enumerable, Object.keys(method)])
    }
    log.push(EventEmitter.prototype.on === EventEmitter.prototype.addListener, Object.keys(EventEmitter.prototype))
    e.on('newListener', (name, listener) => log.push(['new', String(name), listener === f, listener.name]))
    for (const name of methods.slice(0, 5)) e[name]('x', f)
    log.push(e.listeners('x').every((listener) => listener === f))
    log.push(e.rawListeners('x').map((listener) => [listener === f, listener.name, listener.listener === f]))
    log.push(e.on('y', f) === e, e.listenerCount('x'), e.emit('x', 1, 2), e.listenerCount('x'))
    e.off('x', f).removeListener('x', f)
    log.push(e.listenerCount('x'))
    const attempt = (work) => { try { work() } catch (error) { log.push([error.code, error.message]) } }
    for (const wrong of [undefined, 5, null, {}]) attempt(() => e.on('x', wrong))
    attempt(() => EventEmitter.prototype.on.call(undefined, 'x', f))
    attempt(() => EventEmitter.prototype.on())
    process.on('warning', ({ name, message }) => log.push([name, message]))
    for (let i = 0; i < 25; i++) e.on('many', () => {})
    const capturing = new EventEmitter({ captureRejections: true })
    capturing.on('error', (error) => log.push(['captured', error.message]))
    capturing.on('work', async () => { throw new Error('rejected') })
    capturing.emit('work')
    const { addEventListener } = EventTarget.prototype
    log.push(addEventListener.name, addEventListener.length, 'prototype' in addEventListener)
    log.push(Object.keys(EventTarget.prototype), Object.keys(addEventListener))
    const target = new EventTarget()
    const handler = { handleEvent (event) { log.push(['handled', event.type, this === handler]) } }
    const g = function (event) { log.push(['g', event.type, this === target]); event.stopImmediatePropagation() }
    target.addEventListener('t', handler, { once: true })
    for (let i = 0; i < 2; i++) target.addEventListener('t', g)
    target.addEventListener('t', () => log.push('never'), { signal: AbortSignal.abort() })
    for (let i = 0; i < 2; i++) target.dispatchEvent(new Event('t'))
    target.removeEventListener('t', g)
    target.addEventListener('t', handler)
    target.removeEventListener('t', handler)
    target.addEventListener('t', null)
    target.addEventListener('t', new Proxy(g, { getOwnPropertyDescriptor () { log.push('read') } }))
    target.addEventListener('t', { get handleEvent () { log.push('got'); return g } })
    target.dispatchEvent(new Event('t'))
    for (const args of [[], ['x'], ['x', 5], ['x', 'y']]) attempt(() => target.addEventListener(...args))
    attempt(() => EventTarget.prototype.addEventListener.call({}, 'x', g))
    const stream = Readable.from(['a', 'b'])
    stream.on('data', (data) => log.push(['data', data]))
    stream.on('end', async () => {
      setTimeout(() => e.emit('later', 7), 1)
      log.push(await once(e, 'later'))
      setTimeout(() => e.emit('item', 8), 1)
      for await (const [value] of on(e, 'item')) { log.push(value); break }
      log.push(e.eventNames(), e.listenerCount('item'))
      console.log(JSON.stringify(log, null, 1))
      console.log(e)
    })`, { env })
  t.regex(bare.stdout, /captured/)
  t.regex(bare.stdout, /MaxListenersExceededWarning/)
  t.is(traced.stdout, bare.stdout)
  t.is(traced.code, 0)
})

test('disable restores the methods', async (t) => {
  const { stdout } = await node(['-e', `
    const { EventEmitter } = require('node:events')
    const names = ['on', 'addListener', 'prependListener', 'once']
    const methods = () => [...names.map((name) => EventEmitter.prototype[name]), EventTarget.prototype.addEventListener]
    const before = methods()
    const trace = require(${JSON.stringify(root)}).enable({ listeners: true })
    const during = methods()
    trace.enable({ listeners: false })
    const off = methods()
    trace.enable({ listeners: true }).disable()
    const after = methods()
    const same = (list) => list.map((method, i) => method === before[i])
    console.log(JSON.stringify([during, off, after].map(same)))`])
  const kept = [true, true, true, true]
  // addEventListener notes who listens for aborts, with and without the option
  t.deepEqual(JSON.parse(stdout), [[false, false, false, true, false], [...kept, false], [...kept, true]])
})

test('a place is the program\'s innermost frame, even of an anonymous function called by a package', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-places-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  fs.mkdirSync(path.join(folder, 'node_modules/router'), { recursive: true })
  fs.writeFileSync(path.join(folder, 'node_modules/router/index.js'), `
    exports.handle = function handle (handler) { handler() }
    exports.listen = function listen (bus, listener) { bus.on('paid', listener) }`)
  fs.writeFileSync(path.join(folder, 'app.js'), `
    const bus = new (require('node:events'))()
    const router = require('router')
    router.handle(() => {
      router.listen(bus, function notify () { console.log(new Error('x').stack) })
    })
    setTimeout(() => bus.emit('paid'), 1)`)
  const { stdout } = await node(['-r', register, path.join(folder, 'app.js')], { env })
  t.regex(stdout, /^ {2}── emitter\.on\('paid'\) in app\.js:5 ──$/m)
})
