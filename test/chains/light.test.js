'use strict'

// mode: 'light': no promise hooks, and the chain crosses await all the same. Where Node cannot, it is full
// and says so.

const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { same } = require('../helpers/both')
const { node, program, register, root } = require('../helpers/run')
const { stories, major } = require('../helpers/stories')

const light = { LONGSTACK_MODE: 'light' }
const can = major >= 24
/** V8's own hooks tell of promises, so that async_hooks need not. */
const leavesPromises = can && loadBinding().failure === undefined && process.env.ENGINE !== 'js'
const where = can ? test : () => {}

const prelude = `
  const trace = require(${JSON.stringify(root)})
  const { setTimeout: wait } = require('node:timers/promises')
  const told = {}
  const hops = () => trace.chain().map(({ label, frames }) => label + ' | ' + frames.map(({ functionName }) => functionName).filter(Boolean).join(' < '))
  const tell = (name) => { told[name] = hops() }
  process.on('exit', () => console.log(JSON.stringify(told)))
`

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Parameters<typeof program>[1]} [options]
 */
async function answers (t, source, options = {}) {
  const { stdout, stderr, code } = await program(source, { env: light, ...options })
  t.is(stderr, '')
  t.is(code, 0)
  return JSON.parse(stdout)
}

test('it is in force where this Node can, else full is, and stats() says why', async (t) => {
  const stats = await answers(t, `console.log(JSON.stringify(require(${JSON.stringify(root)}).stats()))`)
  t.is(stats.mode, can ? 'light' : 'full')
  t.is(stats.modeWhy, can ? 'asked for' : 'light was asked for, but this Node cannot keep promise hooks off')
  t.is(stats.fault, undefined)
  if (!can) return
  const without = await answers(t, `console.log(JSON.stringify([require(${JSON.stringify(root)}).stats().mode, require(${JSON.stringify(root)}).stats().modeWhy]))`,
    { args: ['--no-async-context-frame'] })
  t.deepEqual(without, ['full', 'light was asked for, but this Node cannot keep promise hooks off'])
})

test('where it falls back, promises have their hops', async (t) => {
  const args = can ? ['--no-async-context-frame'] : []
  const told = await answers(t, `${prelude}
    setTimeout(async function timer () { await null; Promise.resolve().then(function end () { tell('then') }) }, 1)`, { args })
  t.regex(told.then[0], /^promise.then \| timer$/)
  t.is(told.then.at(-1), 'setTimeout(1) | ')
})

const probe = `
  const { AsyncLocalStorage } = require('node:async_hooks')
  const hooked = () => Object.getOwnPropertySymbols(Promise.resolve()).length > 0 // a hook marks every promise
`

where('promises make no events', async (t) => {
  const source = `${probe}
    const trace = require(${JSON.stringify(root)})
    const types = new Set()
    trace.hook({ init: ({ type }) => types.add(type) })
    setTimeout(async () => {
      await null
      await Promise.all([import('node:fs'), new Promise((resolve) => setImmediate(resolve))])
      console.log(JSON.stringify([hooked(), types.has('PROMISE'), types.has('Immediate'), trace.stats().captured > 0]))
    }, 1)`
  t.deepEqual(await answers(t, source), [false, false, true, true])
  t.deepEqual(await answers(t, source, { env: { LONGSTACK_MODE: 'full' } }), [true, true, true, true])
  t.deepEqual(await answers(t, source, { env: { LONGSTACK: '*,-PROMISE' } }), [false, false, true, true], 'also where the filter leaves promises out')
})

where('the chain crosses await, then, thenables, for await and combinators', async (t) => {
  const told = await answers(t, `${prelude}
    const fs = require('node:fs')
    const flow = (name, body) => setTimeout(async function timer () { setImmediate(() => body(name)) }, name.length)
    flow('await', async (name) => { await null; await wait(2); tell(name) })
    flow('file', async (name) => { await fs.promises.readFile(__filename); tell(name) })
    flow('all', async (name) => { await Promise.all([wait(2), fs.promises.stat(__filename), null]); tell(name) })
    flow('settled', async (name) => { await Promise.allSettled([Promise.reject(1), wait(1)]); tell(name) })
    flow('any', async (name) => { await Promise.any([Promise.reject(1), wait(1)]); tell(name) })
    flow('then', (name) => wait(1).then(() => wait(1)).then(() => tell(name)))
    flow('catch', (name) => wait(1).then(() => { throw new Error('no') }).catch(() => {}).finally(() => tell(name)))
    flow('thenable', async (name) => { await { then (done) { setTimeout(done, 1) } }; tell(name) })
    flow('insideThenable', async (name) => { await { then (done) { tell(name); done() } } })
    flow('forAwait', async (name) => { for await (const one of [wait(1), wait(2)]) await one; tell(name) })
    flow('generator', async (name) => { for await (const one of (async function * () { yield 1; await wait(1); yield 2 })()) if (one === 2) tell(name) })
    flow('stream', async (name) => { for await (const chunk of fs.createReadStream(__filename)) tell(name) })
    flow('caught', async (name) => { try { await wait(1).then(() => { throw new Error('no') }) } catch { tell(name) } })
    flow('import', async (name) => { await import('node:os'); tell(name) })`)
  const names = ['await', 'file', 'all', 'settled', 'any', 'then', 'catch', 'thenable', 'insideThenable', 'forAwait', 'generator', 'stream', 'caught', 'import']
  t.deepEqual(Object.keys(told).sort(), names.sort())
  for (const [name, chain] of Object.entries(told)) {
    t.deepEqual(chain, ['setImmediate | timer', `setTimeout(${name.length}) | flow`], name)
  }
})

where('a resource made after an await leads back over it', async (t) => {
  const told = await answers(t, `${prelude}
    setTimeout(async function timer () {
      await wait(1)
      await step()
      setImmediate(function last () { tell('last') })
    }, 1)
    async function step () { await wait(1); process.nextTick(function tick () { tell('tick') }) }`)
  t.deepEqual(told.tick, ['process.nextTick | step', 'setTimeout(1) | '])
  t.deepEqual(told.last, ['setImmediate | timer', 'setTimeout(1) | '])
})

where('two flows at once are not mixed', async (t) => {
  const told = await answers(t, `${prelude}
    const names = Array.from({ length: 20 }, (_, i) => 'flow' + i)
    for (const name of names) setTimeout({ [name]: () => setImmediate({ [name] () { work(name) } }[name]) }[name], 1)
    async function work (name) {
      for (let i = 0; i < 10; i++) await (i % 3 === 0 ? wait(i % 2) : i % 3 === 1 ? null : new Promise(setImmediate))
      tell(name)
    }`)
  t.is(Object.keys(told).length, 20)
  for (const [name, [first]] of Object.entries(told)) t.is(first, `setImmediate | ${name}`)
})

where('a scope tells its hop, and leaves nothing behind', async (t) => {
  const told = await answers(t, `${prelude}
    const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks')
    setTimeout(function maker () {
      const pool = new AsyncResource('POOL')
      const within = AsyncLocalStorage.snapshot()
      setTimeout(function user () {
        pool.runInAsyncScope(function inside () { tell('scope') })
        within(function inside () { tell('snapshot') })
        tell('behind')
        Promise.resolve().then(function later () { tell('then') })
        setImmediate(function last () { tell('immediate') })
      }, 1)
    }, 1)`)
  const user = 'setTimeout(1) | maker'
  t.deepEqual(told.scope, ['new AsyncResource(POOL) | maker', 'setTimeout(1) | '])
  t.deepEqual(told.snapshot, ['AsyncLocalStorage.snapshot | maker', 'setTimeout(1) | '])
  t.deepEqual(told.behind, [user, 'setTimeout(1) | '])
  t.deepEqual(told.then, [user, 'setTimeout(1) | '])
  t.deepEqual(told.immediate, ['setImmediate | user', user, 'setTimeout(1) | '])
})

where('a module with top-level await', async (t) => {
  const { stdout, stderr } = await program(`
    import trace from ${JSON.stringify(`${root}/index.js`)}
    import { setTimeout as wait } from 'node:timers/promises'
    await wait(2)
    setTimeout(async function timer () {
      await wait(1)
      console.log(JSON.stringify([trace.stats().mode, trace.chain().map(({ label }) => label)]))
    }, 1)
    await wait(20)`, { type: 'mjs', env: light })
  t.is(stderr, '')
  t.deepEqual(JSON.parse(stdout), ['light', ['setTimeout(1)']])
})

where('a worker has its own', async (t) => {
  const told = await answers(t, `${prelude}
    const { Worker, isMainThread, parentPort } = require('node:worker_threads')
    if (isMainThread) {
      setTimeout(function hire () { new Worker(__filename).on('message', (inside) => Object.assign(told, inside)) }, 1)
    } else {
      process.removeAllListeners('exit')
      setTimeout(async function inside () {
        await wait(1)
        tell('worker')
        parentPort.postMessage({ ...told, mode: trace.stats().mode })
      }, 1)
    }`)
  t.is(told.mode, 'light')
  t.deepEqual(told.worker.map((hop) => hop.split(' | ')[0]), ['setTimeout(1)', 'new Worker', 'setTimeout(1)'])
})

where("the program's own AsyncLocalStorage is untouched", async (t) => {
  await same(t, `
    const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks')
    const { setTimeout: wait } = require('node:timers/promises')
    const [a, b] = [new AsyncLocalStorage(), new AsyncLocalStorage()]
    const lines = []
    const say = (name) => lines.push(name + ' ' + JSON.stringify([a.getStore(), b.getStore()]))
    process.on('exit', () => console.log(lines.sort().join('\\n')))
    say('top')
    a.run('outer', () => {
      say('run')
      setTimeout(() => say('timer in run'), 1)
      b.run('inner', async () => {
        await wait(1)
        say('nested')
        a.exit(() => { say('exit'); process.nextTick(() => say('tick in exit')) })
        await null
        say('after exit')
        a.run('again', () => Promise.resolve().then(() => say('then in again')))
      })
    })
    setImmediate(async () => {
      a.enterWith('entered')
      say('enterWith')
      await wait(1)
      say('after await')
      const within = AsyncLocalStorage.snapshot()
      a.run('elsewhere', () => within(() => say('snapshot')))
      const bound = AsyncResource.bind(() => say('bound'))
      a.run('elsewhere', bound)
      const resource = new AsyncResource('MINE')
      a.run('elsewhere', () => resource.runInAsyncScope(() => { say('scope'); queueMicrotask(() => say('microtask in scope')) }))
      say('after scopes')
      a.disable()
      say('disabled')
    })
    setTimeout(() => say('unrelated'), 5)`, { env: light })
})

where('enable, disable, and from one mode to the other leave nothing behind', async (t) => {
  const seen = await answers(t, `${probe}
    const { getHookArrays } = require('internal/async_hooks')
    const trace = require(${JSON.stringify(root)})
    const seen = []
    const program = new AsyncLocalStorage()
    program.enterWith('mine')
    const look = async (name) => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      const labels = await new Promise((resolve) => setTimeout(async function timer () {
        await null
        setImmediate(async function immediate () { await null; resolve(trace.chain().filter(({ type }) => type !== 'PROMISE').map(({ label }) => label)) })
      }, 1))
      const { mode, fault } = trace.stats()
      seen.push([name, trace.enabled ? mode : 'off', getHookArrays()[0].length, hooked(), labels.slice(0, name === 'filter' ? 1 : 2), program.getStore(), fault])
    }
    ;(async () => {
      await look('off')
      for (let i = 0; i < 2; i++) {
        trace.enable({ mode: 'light' }); await look('light')
        trace.enable({ mode: 'full' }); await look('full')
        trace.enable({ mode: 'light' }); await look('back')
        trace.disable(); await look('off')
        trace.enable({ mode: 'light' }); await look('again')
        trace.enable({ mode: 'light', filter: ['TIMER'] }); await look('filter')
        trace.disable(); await look('off')
      }
      console.log(JSON.stringify(seen))
    })()`, { preload: false, env: {}, args: ['--expose-internals', '--no-warnings'] })
  const expected = {
    off: ['off', 0, false, []],
    light: ['light', 1, false, ['setImmediate', 'setTimeout(1)']],
    full: ['full', 1, !leavesPromises, ['setImmediate', 'setTimeout(1)']],
    back: ['light', 1, false, ['setImmediate', 'setTimeout(1)']],
    again: ['light', 1, false, ['setImmediate', 'setTimeout(1)']],
    filter: ['light', 1, false, ['setTimeout(1)']]
  }
  t.is(seen.length, 15)
  for (const [name, mode, hooks, hooked, labels, store, fault] of seen) {
    t.deepEqual([mode, hooks, hooked, labels], expected[name], name)
    t.is(store, 'mine')
    t.falsy(fault)
  }
})

/** A story without promises, equal neighbours as one. @param {import('../helpers/stories').Hop[]} chain */
function withoutPromises (chain) {
  const steps = chain.filter(({ type }) => type !== 'PROMISE').map(({ label, type, origin, functions }) =>
    JSON.stringify([label.replace(/:\d{4,5}\)|longstack-[\w-]+/g, ''), type, origin, functions]))
  return steps.filter((step, i) => step !== steps[i - 1])
}

for (const theme of ['beats', 'files', 'loops', 'others', 'promises', 'sockets', 'timers', 'web']) {
  where(`it tells what full tells, without the hops of promises: ${theme}`, async (t) => {
    const [full, told] = [await stories(theme, { LONGSTACK_DEPTH: '200' }), await stories(theme, { LONGSTACK_DEPTH: '200', ...light })]
    t.deepEqual(Object.keys(told).sort(), Object.keys(full).sort())
    for (const [name, { chain }] of Object.entries(told)) {
      if (name === 'long') continue // promises made inside queueMicrotask: see docs/light.md
      t.deepEqual(withoutPromises(chain), withoutPromises(full[name].chain), name)
      t.false(chain.some(({ type }) => type === 'PROMISE'), name)
    }
  })
}

test('the mode of the preload is that of the process', async (t) => {
  const { stdout } = await node(['-r', register, '-p', 'require("longstack").enable({ mode: "full" }).stats().mode'], { env: light })
  t.is(stdout.trim(), 'full')
})
