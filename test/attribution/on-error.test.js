'use strict'

// Uncaught errors: trace.onError sees them first; Node treats unhandled ones as usual.

const test = require('ava')
const { program, withoutHops } = require('../helpers/run')

const watch = `
const trace = require(${JSON.stringify(require.resolve('../..'))})
const say = (...words) => require('node:fs').writeSync(1, words.join(' ') + '\\n')
`

test('after a handled error the program continues in its context, and no other handler is called', async (t) => {
  const { stdout, stderr, code } = await program(`${watch}
    process.on('uncaughtException', () => say('WRONG'))
    trace.onError((error, context) => { say('saw', error.message, context.type, context.label); return true })
    setTimeout(() => { process.nextTick(() => say('tick goes on')); Promise.resolve().then(() => say('promise goes on')); throw new Error('one') }, 1)
    setTimeout(() => say('timer goes on'), 5)
    setTimeout(() => setImmediate(() => { throw new Error('two') }), 10)
    setTimeout(() => { queueMicrotask(() => { throw new Error('three') }) }, 15)
    setTimeout(() => { Promise.reject(new Error('four')) }, 20)
    setTimeout(() => { require('node:fs').stat('/', () => { throw new Error('five') }) }, 25)
    setTimeout(() => say('end', process.listenerCount('uncaughtException')), 60)
  `)
  t.is(stderr, '')
  t.is(code, 0)
  const lines = stdout.trim().split('\n')
  t.deepEqual(lines.slice(0, 3), ['saw one Timeout setTimeout(1)', 'tick goes on', 'promise goes on'])
  t.deepEqual(lines.slice(3).sort(), [
    'end 1',
    'saw five FSREQCALLBACK fs.stat',
    'saw four PROMISE Promise.reject',
    'saw three Microtask queueMicrotask',
    'saw two Immediate setImmediate',
    'timer goes on'
  ])
})

test('a filter selects by subsystem, also for an "error" event', async (t) => {
  const { stdout, stderr, code } = await program(`${watch}
    trace.onError(['TCP'], (error, context) => { 
      say('tcp', error.code, context.type)
      setTimeout(() => { throw new Error('fatal') }, 1)
      return true
    })
    trace.onError(['TIMER'], (error, context) => { say('timer', error.message, context.type) })
    setTimeout(() => require('node:net').connect(1, '127.0.0.1'), 1)
  `)
  t.deepEqual(stdout.trim().split('\n'), ['tcp ECONNREFUSED TCPCONNECTWRAP', 'timer fatal Timeout'])
  t.is(code, 1)
  t.regex(stderr, /Error: fatal\n {4}at Timeout/)
})

test('handlers run in order until one handles the error, and can be removed', async (t) => {
  const { stdout, code } = await program(`${watch}
    const remove = trace.onError(() => { say('first'); return 'not true' })
    trace.onError(() => { say('second'); return true })
    trace.onError(() => { say('WRONG') })
    setTimeout(() => { throw new Error('a') }, 1)
    setTimeout(() => { remove(); throw new Error('b') }, 5)
  `)
  t.deepEqual(stdout.trim().split('\n'), ['first', 'second', 'second'])
  t.is(code, 0)
})

/** What Node does with an error that is not handled, with and without a handler that only looks. */
const untouched = {
  'message and exit code': 'setTimeout(() => { throw new TypeError("plain") }, 1)',
  'a thrown string': 'setTimeout(() => { throw "text" }, 1)',
  'a thrown null': 'setTimeout(() => { throw null }, 1)',
  'an unhandled rejection of undefined': 'setTimeout(() => { Promise.reject() }, 1)',
  'existing listeners': 'process.on("uncaughtException", (error, origin) => say(error.message, origin)); setTimeout(() => { throw new Error("x") }, 1)',
  'a monitor': 'process.on("uncaughtExceptionMonitor", (error) => say("monitor", error.message)); setTimeout(() => { throw new Error("x") }, 1)',
  'a capture callback': 'process.setUncaughtExceptionCaptureCallback((error) => say("captured", error.message)); setTimeout(() => { throw new Error("x") }, 1)',
  'exit handlers': 'process.on("exit", (code) => say("exit", code)); setTimeout(() => { throw new Error("x") }, 1)',
  'a changed exit code': 'process.on("exit", () => { process.exitCode = 7 }); setTimeout(() => { throw new Error("x") }, 1)',
  'unhandledRejection listeners': 'process.on("unhandledRejection", (r) => say("unhandled", r.message)); setTimeout(() => { Promise.reject(new Error("x")) }, 1)',
  'a domain': `const d = require('node:domain').create(); d.on('error', (e) => say('domain', e.message))
    d.run(() => setTimeout(() => { throw new Error('x') }, 1)); setTimeout(() => say('on'), 20)`
}

for (const [name, source] of Object.entries(untouched)) {
  test(`Node deals with an error that no handler handles: ${name}`, async (t) => {
    const text = `${watch}; if (trace.enabled) trace.onError(() => { process.looked = true })\n${source}`
    const [bare, long] = [await program(text, { preload: false }), await program(text)]
    t.is(long.code, bare.code)
    t.is(long.stdout, bare.stdout)
    const shape = (stderr) => withoutHops(stderr).replace(/longstack-\w+/g, '')
    t.is(shape(long.stderr), shape(bare.stderr))
  })
}

test('a handled error inside a domain leaves the domain, and the next error is handled on its own', async (t) => {
  const { stdout, stderr, code } = await program(`${watch}
    const d = require('node:domain').create()
    d.on('error', (error) => say('domain got', error.message))
    trace.onError((error) => error.message === 'ours')
    d.run(() => setTimeout(() => { throw new Error('ours') }, 1))
    setTimeout(() => say('outside', process.domain), 5)
    d.run(() => setTimeout(() => { throw new Error('theirs') }, 10))
    setTimeout(() => say('end'), 30)
    setTimeout(() => { throw new Error('nobody') }, 40)
  `)
  t.deepEqual(stdout.trim().split('\n').map((line) => line.replace(/(null|undefined)$/, '').trim()), ['outside', 'domain got theirs', 'end'])
  t.regex(stderr, /Error: nobody/)
  t.is(code, 1)
})

test('a handler that throws is reported in one line and hides no error', async (t) => {
  const { stderr, code } = await program(`${watch}
    trace.onError(() => { throw new Error('handler broke') })
    setTimeout(() => { throw new Error('the real one') }, 1)
  `)
  t.is(stderr.match(/handler broke/g).length, 1)
  t.regex(stderr, /Error: the real one/)
  t.is(code, 1)
})

test('disable removes the handlers from the process, enable adds them again', async (t) => {
  const { stdout } = await program(`${watch}
    const before = process._fatalException
    trace.enable()
    const enabled = process._fatalException === before
    trace.onError(() => { say('seen'); return true })
    trace.disable()
    say(enabled, process._fatalException === before, process.listenerCount('uncaughtExceptionMonitor'))
    trace.enable()
    setTimeout(() => { throw new Error('x') }, 1)
  `, { preload: false })
  t.deepEqual(stdout.trim().split('\n'), ['true true 0', 'seen'])
})

test('--abort-on-uncaught-exception still aborts when the error is thrown', async (t) => {
  const { code, signal } = await program(`${watch}
    trace.onError(() => true)
    setTimeout(() => { throw new Error('x') }, 1)
  `, { args: ['--abort-on-uncaught-exception'] })
  t.true(signal === 'SIGABRT' || signal === 'SIGTRAP' || signal === 'SIGILL', `${code} ${signal}`)
})
