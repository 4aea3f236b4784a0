'use strict'

// longstack is invisible: the same programs print the same with and without it.

const path = require('node:path')
const test = require('ava')
const { program, root } = require('../helpers/run')

const programs = {
  'inspect of promises, timers, sockets and servers': `
    const util = require('node:util'), net = require('node:net')
    const show = (value) => console.log(util.inspect(value, { showHidden: true, depth: 1, breakLength: Infinity }).replace(/,? \\[?Symbol\\((trigger_)?async_id_symbol\\)\\]?: \\d+/g, ''))
    setTimeout(() => {
      show(Promise.resolve(1)); show((async () => { await 1 })()); show(new Promise(() => {}))
      show(new Error('x').message); show(Object.assign(new Error('y'), { stack: 'fixed' }))
      const timer = setTimeout(() => {}, 1); console.log(Object.keys(timer), Reflect.ownKeys(timer).length)
      const socket = new net.Socket(); console.log(Reflect.ownKeys(socket).map(String).join()); socket.destroy()
      console.log(Reflect.ownKeys(Promise.resolve()).filter((key) => !/^Symbol\\((async|trigger)/i.test(String(key))).length)
    }, 2)`,
  'own keys of errors, globals, Error and process': `
    setTimeout(() => {
      const error = new Error('x')
      console.log(Reflect.ownKeys(error).map(String).sort(), Object.keys(error), JSON.stringify(error))
      console.log(Object.keys(globalThis).sort().join(), Object.getOwnPropertyNames(globalThis).length)
      console.log(Object.keys(Error), Error.stackTraceLimit, typeof Error.prepareStackTrace)
      console.log(JSON.stringify(Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')))
      console.log(Object.keys(Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')))
      console.log(process.listenerCount('uncaughtException'), process.listenerCount('unhandledRejection'), process.listenerCount('exit'))
      console.log(Object.keys(process).length, process.eventNames().filter((name) => name !== 'uncaughtExceptionMonitor').join())
    }, 2)`,
  "proxies' traps": `
    const seen = []
    const traps = new Proxy({}, { get: (target, trap) => (...args) => { seen.push(trap); return Reflect[trap](...args) } })
    const proxy = new Proxy({ then: undefined }, traps)
    Promise.resolve(proxy).then(async (value) => { await value; process.nextTick(() => {}, value); setTimeout(() => {}, 1, value) })
    require('node:async_hooks').executionAsyncResource()
    Promise.reject(proxy).catch(() => {})
    setTimeout(() => console.log(seen.join()), 10)`,
  'handles and resources that keep the process': `
    const net = require('node:net')
    const server = net.createServer().listen(0, () => {
      console.log(process._getActiveHandles().map((handle) => handle.constructor.name).join())
      console.log(process._getActiveRequests().length, process.getActiveResourcesInfo().join())
      server.close(() => console.log(process._getActiveHandles().map((handle) => handle.constructor.name).join(), process.getActiveResourcesInfo().join()))
    })`,
  'the order of events': `
    const log = []
    const say = (word) => log.push(word)
    setTimeout(() => say('timer 0'), 0); setImmediate(() => say('immediate'))
    process.nextTick(() => { say('tick 1'); process.nextTick(() => say('tick 2')) })
    queueMicrotask(() => { say('micro 1'); process.nextTick(() => say('tick 3')) })
    Promise.resolve().then(() => { say('then 1') }).then(() => say('then 2'))
    ;(async () => { await null; say('await 1'); await null; say('await 2') })()
    new Promise((resolve) => resolve({ then: (done) => { say('thenable'); done() } })).then(() => say('after thenable'))
    process.on('beforeExit', () => say('beforeExit')); process.on('exit', () => console.log(log.filter((word) => word !== 'timer 0' && word !== 'immediate').join()))`,
  'exit codes and output at exit': `
    process.on('exit', (code) => { console.log('exit', code) })
    setTimeout(() => { process.exitCode = 3 }, 2)`,
  'a finished stack overflow': `
    let depth = 0
    function down () { depth++; Promise.resolve().then(() => {}); setTimeout(() => {}, 0).unref(); down() }
    let caught = 0
    for (let i = 0; i < 20; i++) { try { down() } catch (error) { if (error instanceof RangeError) caught++ } }
    console.log(caught)`,
  'errors of the main script': `
    const { inspect } = require('node:util')
    console.log(inspect(new Error('x', { cause: new TypeError('y') })).replace(/longstack-\\w+/g, ''))
    console.log(inspect(new AggregateError([new Error('a'), new RangeError('b')], 'all')).replace(/longstack-\\w+/g, ''))
    class Own extends Error { get name () { return 'Own' } }
    console.log(new Own('z').stack.replace(/longstack-\\w+/g, ''))
    try { require('node:fs').readFileSync('/nowhere') } catch (error) { console.log(error.stack.replace(/longstack-\\w+/g, '')) }
    try { null.x } catch (error) { console.log(error.stack.replace(/longstack-\\w+/g, '')) }
    try { new (require('node:stream').Readable)({ read: 1 }).read() } catch (error) { console.log(error.stack.replace(/longstack-\\w+/g, '')) }`,
  'call sites as they are': `
    const old = Error.prepareStackTrace
    setTimeout(() => {
      Error.prepareStackTrace = (error, sites) => sites
      const { stack } = new Error('x')
      Error.prepareStackTrace = old
      console.log(Array.isArray(stack), stack.map((site) => site.getFunctionName() + site.getTypeName() + site.getLineNumber()).join())
    }, 2)`
}

for (const [name, source] of Object.entries(programs)) {
  test(name, async (t) => {
    // A small stack overflows in the same places, and sooner: with the JavaScript engine a whole one takes
    // many seconds.
    const args = /overflow/.test(name) ? ['--stack-size=300'] : []
    const bare = await program(source, { args, preload: false })
    const long = await program(source, { args })
    t.is(long.stdout, bare.stdout)
    t.is(long.stderr.replace(/longstack-\w+/g, ''), bare.stderr.replace(/longstack-\w+/g, ''))
    t.is(long.code, bare.code)
    t.not(bare.stdout, '')
  })
}

for (const theme of ['web', 'promises', 'files', 'timers', 'sockets', 'others']) {
  test(`no hook sees a fault of longstack itself: ${theme}`, async (t) => {
    const { stdout } = await program(`
      process.on('exit', () => console.log(JSON.stringify({ fault: String(require(${JSON.stringify(root)}).stats().fault) })))
      require(${JSON.stringify(path.join(__dirname, '..', 'fixtures', 'chains', `${theme}.js`))})
    `)
    t.deepEqual(JSON.parse(stdout.trim().split('\n').at(-1)), { fault: 'undefined' })
  })
}
