'use strict'

const test = require('ava')
const { program, root } = require('../helpers/run')

/** @param {string} source @param {Record<string, string>} [env] */
async function run (source, env) {
  const { stdout, stderr, code } = await program(`'use strict'\nconst trace = require(${JSON.stringify(root)})\n${source}`, { env })
  return { stdout, stderr, code, lines: stdout.trim().split('\n') }
}

/**
 * Runs a program that prints JSON and nothing else.
 * @param {string} source
 * @param {Record<string, string>} [env]
 */
async function told (source, env) {
  const { stdout, stderr, code } = await run(source, env)
  if (code !== 0 || stderr !== '') throw new Error(`${code}: ${stderr}${stdout}`)
  return JSON.parse(stdout)
}

// Keeps events of a hook as [stage, type, asyncId, ...]; own hooks beside it check the ids.
const record = `
  const events = []
  const note = (stage) => ({ asyncId, triggerAsyncId, type }) => { events.push([stage, type, asyncId, triggerAsyncId]) }
  const remove = trace.hook({ init: note('init'), before: note('before'), after: note('after') })`

test('init, before and after are emitted as by async_hooks, with the same ids', async (t) => {
  const { ours, nodes } = await told(`
    const { createHook } = require('node:async_hooks')
    const nodes = []
    const known = new Map()
    const add = (stage) => (id) => { if (known.has(id)) nodes.push([stage, ...known.get(id)]) }
    createHook({
      init (id, type, trigger) { known.set(id, [type, id, trigger]); nodes.push(['init', type, id, trigger]) },
      before: add('before'),
      after: add('after')
    }).enable()
    ${record}
    setTimeout(() => process.nextTick(() => setImmediate(() => Promise.resolve().then(() => {
      require('node:fs').stat(__filename, () => {
        new (require('node:async_hooks').AsyncResource)('my:Job').runInAsyncScope(() => {})
        remove()
        const end = nodes.length
        console.log(JSON.stringify({ ours: events, nodes: nodes.slice(0, end) }))
      })
    }))), 1)`)
  t.deepEqual(ours, nodes)
  const timer = ours.filter((/** @type {any[]} */ [, type]) => type === 'Timeout').map((/** @type {any[]} */ [stage]) => stage)
  t.deepEqual(timer, ['init', 'before', 'after'])
  t.true(ours.length > 15)
})

test('a callback receives the context that trace.current() returns inside', async (t) => {
  const seen = await told(`
    let seen
    trace.hook({ init (context) { seen ??= context } })
    function start () { setTimeout(run, 7) }
    function run () {
      const { label, frames, parent, origin, type, ageMs } = seen
      const readOnly = (() => { try { seen.type = 'x' } catch (error) { return error.name } })()
      console.log(JSON.stringify({ same: trace.current() === seen, label, name: frames[0].functionName, type, origin, readOnly,
        parent: parent.type, age: ageMs >= 6 }))
    }
    start()`, { LONGSTACK: 'TIMER' })
  t.deepEqual(seen, {
    same: true, label: 'setTimeout(7)', name: 'start', type: 'Timeout', origin: 'registered', readOnly: 'TypeError', parent: 'process', age: true
  })
})

// Whatever a callback does: the program's own events are the same as with a callback that does nothing.
const deeds = {
  'calls console.log': "console.log('said')",
  'makes promises': 'Promise.resolve().then(() => Promise.resolve().then(() => {}))',
  awaits: ';(async () => { await null; await null })()',
  'makes timers': 'setTimeout(() => setTimeout(() => {}, 1), 1); setImmediate(() => {}); process.nextTick(() => {}); queueMicrotask(() => {})',
  'makes sockets': "require('node:net').connect(1, '127.0.0.1').on('error', () => {})",
  'reads files': "require('node:fs').readFile(__filename, () => require('node:fs').stat(__filename, () => {}))",
  throws: "throw new Error('from the hook')",
  'throws what is no error': 'throw null',
  'overflows the stack': ';(function again () { again() })()',
  'asks longstack': "trace.chain(); trace.stack(); trace.stats(); trace.handles(['TIMER']); trace.current(); new Error('x').stack",
  'enables longstack': "trace.enable(['TIMER', 'my:Job'])",
  'runs a resource': "new (require('node:async_hooks').AsyncResource)('my:Job').runInAsyncScope(() => setTimeout(() => {}, 1))"
}

const job = `
  const { AsyncResource } = require('node:async_hooks')
  function start () { setTimeout(second, 1) }
  function second () { setTimeout(third, 1); new AsyncResource('my:Job').runInAsyncScope(() => {}) }
  function third () { setTimeout(last, 60) }
  const labels = []
  function last () { labels.push(...trace.chain().map(({ label, frames }) => label + ' ' + frames[0].functionName)) }
  start()
  process.on('exit', () => require('node:fs').writeSync(1, '\\n' + JSON.stringify({ events, labels })))`

const names = ['init', 'before', 'after']
const once = ['init', 'before', 'after']

for (const [name, deed] of Object.entries(deeds)) {
  test(`a callback that ${name} makes no events, now or later, and does no harm`, async (t) => {
    const { stderr, code, lines } = await run(`
      const events = {}
      const act = (stage) => ({ type }) => {
        (events[type] ??= []).push(stage)
        ${deed}
      }
      trace.hook({ ${names.map((stage) => `${stage}: act('${stage}')`).join(', ')} })
      ${job}`, { LONGSTACK: 'TIMER,my:Job' })
    t.is(code, 0, stderr)
    const { events, labels } = JSON.parse(lines[lines.length - 1])
    t.deepEqual([...events.Timeout].sort(), [...once, ...once, ...once].sort(), 'three timers, each once')
    t.deepEqual(events['my:Job'], once)
    t.deepEqual(Object.keys(events).sort(), ['Timeout', 'my:Job'])
    t.deepEqual(labels, ['setTimeout(60) third', 'setTimeout(1) second', 'setTimeout(1) start'])
    const complaints = stderr.split('\n').filter(Boolean)
    t.true(complaints.length <= 1, stderr)
    if (/throws|overflows/.test(name)) t.regex(stderr, /^longstack: a callback of trace\.hook threw: .+\n$/)
    else t.is(stderr, '')
  })
}

test('long-running work started by a hook is never traced', async (t) => {
  const { types, labels } = await told(`
    const types = new Set()
    let made = false
    trace.hook({ init ({ type }) {
      types.add(type)
      if (made) return
      made = true
      const server = require('node:net').createServer((socket) => socket.end('x')).listen(0, () => {
        const socket = require('node:net').connect(server.address().port)
        socket.on('data', () => require('node:fs').readFile(__filename, async () => {
          await null
          labels.push(...trace.chain(), trace.current())
          server.close()
        }))
      })
    } })
    const labels = []
    setTimeout(() => {}, 1)
    process.on('exit', () => console.log(JSON.stringify({ types: [...types], labels })))`)
  t.deepEqual(types.filter((/** @type {string} */ type) => /TCP|FS|PROMISE/.test(type)), [])
  t.deepEqual(labels, [null])
})

test('several hooks run in the order of registration', async (t) => {
  const order = await told(`
    const order = []
    const note = (stage, name) => () => order.push(stage + ' ' + name)
    const hook = (name) => trace.hook({ init: note('init', name), before: note('before', name), after: note('after', name) })
    hook('a')
    const removeB = hook('b')
    trace.hook({ init: () => order.push('init c') })
    setTimeout(() => {}, 1)
    removeB()
    removeB()
    setTimeout(() => console.log(JSON.stringify(order)), 20)`, { LONGSTACK: 'TIMER' })
  t.deepEqual(order, ['init a', 'init b', 'init c', 'init a', 'init c', 'before a', 'after a', 'before a'])
})

test('a hook that throws does not affect others', async (t) => {
  const { stderr, lines } = await run(`
    const order = []
    trace.hook({ init () { order.push('a'); throw new Error('from a') } })
    trace.hook({ init () { order.push('b') } })
    setTimeout(() => {}, 1)
    setTimeout(() => console.log(order.join('')), 1)`, { LONGSTACK: 'TIMER' })
  t.deepEqual(lines, ['abab'])
  t.is(stderr, 'longstack: a callback of trace.hook threw: from a\n')
})

test('hooks can be removed and added while they run', async (t) => {
  const order = await told(`
    const order = []
    const removeA = trace.hook({ init () { order.push('a'); removeA(); removeC(); trace.hook({ init () { order.push('d') } }) } })
    trace.hook({ init () { order.push('b') } })
    const removeC = trace.hook({ init () { order.push('c') } })
    for (let i = 0; i < 2; i++) setImmediate(() => {})
    console.log(JSON.stringify(order))`, { LONGSTACK: 'IMMEDIATE' })
  t.deepEqual(order.slice(-2), ['b', 'd'])
  t.is(order.filter((/** @type {string} */ name) => name === 'a').length, 1)
  // In the round that was under way one that is removed is not called any more, one that is added not yet.
  t.deepEqual(order, ['a', 'b', 'b', 'd'])
})

test('a hook that disables longstack ends tracing, not the program', async (t) => {
  const { enabled, inits, turns } = await told(`
    let inits = 0
    trace.hook({ init () { inits++; trace.disable() } })
    let turns = 0
    ;(async () => { await null; turns++; setTimeout(() => { turns++; console.log(JSON.stringify({ enabled: trace.enabled, inits, turns })) }, 1) })()`)
  t.deepEqual({ enabled, inits, turns }, { enabled: false, inits: 1, turns: 2 })
})

test('hooks survive disable and enable', async (t) => {
  const types = await told(`
    const types = []
    trace.hook({ init ({ type }) { types.push(type) } })
    setImmediate(() => {})
    trace.disable()
    setImmediate(() => {})
    trace.enable(['TIMER', 'IMMEDIATE'])
    setTimeout(() => {}, 1)
    console.log(JSON.stringify(types))`, { LONGSTACK: 'TIMER,IMMEDIATE' })
  t.deepEqual(types, ['Immediate', 'Timeout'])
})

test('a program that overflows its stack under a hook is not harmed', async (t) => {
  const { caught, inits } = await told(`
    let inits = 0
    trace.hook({ init () { inits++ } })
    function deep () { setTimeout(() => {}, 1).unref(); Promise.resolve().then(() => {}); deep() }
    let caught
    try { deep() } catch (error) { caught = error.name }
    setTimeout(() => console.log(JSON.stringify({ caught, inits })), 1)`)
  t.is(caught, 'RangeError')
  t.true(inits > 10)
})

test('a warning goes to its listener instead of stderr, each kind once', async (t) => {
  const warnings = await told(`
    const warnings = []
    trace.on('warning', ({ code, message }) => warnings.push([code, message]))
    trace.hook({ init () { throw new Error('from the hook') } })
    for (let i = 0; i < 3; i++) setImmediate(() => {})
    console.log(JSON.stringify(warnings))`, { LONGSTACK: 'IMMEDIATE' })
  t.deepEqual(warnings, [['LONGSTACK_WARN_HOOK', 'a callback of trace.hook threw: from the hook']])
})

test('an invalid hook is rejected with a code and a sentence', (t) => {
  const trace = require('../..')
  for (const wrong of [undefined, null, 42, 'init', {}, { destroy () {} }]) {
    const error = t.throws(() => trace.hook(/** @type {any} */ (wrong)), { instanceOf: TypeError })
    t.is(/** @type {any} */ (error).code, 'LONGSTACK_ERR_INVALID_HOOK')
  }
  const error = t.throws(() => trace.hook(/** @type {any} */ ({ init: 42 })), { instanceOf: TypeError })
  t.is(/** @type {any} */ (error).code, 'LONGSTACK_ERR_INVALID_HANDLER')
  t.regex(String(error?.message), /The hook's init must be a function\. Received 42/)
})
