'use strict'

// A filter without promises: they create no hops, but the chain still crosses await.

const test = require('ava')
const { same } = require('../helpers/both')
const { program, root } = require('../helpers/run')
const { stories } = require('../helpers/stories')

const filter = { LONGSTACK: '*,-PROMISE' }

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
  const { stdout, stderr, code } = await program(source, { env: filter, ...options })
  t.is(stderr, '')
  t.is(code, 0)
  return JSON.parse(stdout)
}

test('the chain crosses await, then, thenables, for await and combinators', async (t) => {
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

test('a resource made after an await leads back across it', async (t) => {
  const told = await answers(t, `${prelude}
    setTimeout(async function timer () {
      await wait(1)
      await step()
      setImmediate(function last () { tell('last') })
    }, 1)
    async function step () { await wait(1); process.nextTick(function tick () { tell('tick') }) }`)
  t.deepEqual(told.tick, ['process.nextTick | step < timer', 'setTimeout(1) | '])
  t.deepEqual(told.last, ['setImmediate | timer', 'setTimeout(1) | '])
})

test('a long await is known even if many other promises are made', async (t) => {
  const told = await answers(t, `${prelude}
    setImmediate(function flow () { setTimeout(async function timer () { await wait(200); tell('late') }, 1) })
    setTimeout(async function () { for (let i = 0; i < 100_000; i++) await null }, 20)`)
  t.deepEqual(told.late, ['setTimeout(1) | flow', 'setImmediate | '])
})

test('two concurrent flows are not mixed', async (t) => {
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

test('a scope has its hop, and leaves nothing behind', async (t) => {
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

test('a module with top-level await has its chain', async (t) => {
  const { stdout, stderr } = await program(`
    import trace from ${JSON.stringify(`${root}/index.js`)}
    import { setTimeout as wait } from 'node:timers/promises'
    await wait(2)
    setTimeout(async function timer () {
      await wait(1)
      console.log(JSON.stringify(trace.chain().map(({ label }) => label)))
    }, 1)
    await wait(20)`, { type: 'mjs', env: filter })
  t.is(stderr, '')
  t.deepEqual(JSON.parse(stdout), ['setTimeout(1)'])
})

test('a worker has its own chains', async (t) => {
  const told = await answers(t, `${prelude}
    const { Worker, isMainThread, parentPort } = require('node:worker_threads')
    if (isMainThread) {
      setTimeout(function hire () { new Worker(__filename).on('message', (inside) => Object.assign(told, inside)) }, 1)
    } else {
      process.removeAllListeners('exit')
      setTimeout(async function inside () {
        await wait(1)
        tell('worker')
        parentPort.postMessage(told)
      }, 1)
    }`)
  t.deepEqual(told.worker.map((hop) => hop.split(' | ')[0]), ['setTimeout(1)', 'new Worker', 'setTimeout(1)'])
})

test("the program's own AsyncLocalStorage is untouched", async (t) => {
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
    setTimeout(() => say('unrelated'), 5)`, { env: filter })
})

/** A story without promises, equal neighbours as one. @param {import('../helpers/stories').Hop[]} chain */
function withoutPromises (chain) {
  const steps = chain.filter(({ type }) => type !== 'PROMISE').map(({ label, type, origin, functions }) =>
    JSON.stringify([label.replace(/:\d{4,5}\)|longstack-[\w-]+/g, ''), type, origin, functions]))
  return steps.filter((step, i) => step !== steps[i - 1])
}

for (const theme of ['beats', 'files', 'loops', 'others', 'promises', 'sockets', 'timers', 'web']) {
  test(`the chain is the same as without a filter, except for promise hops: ${theme}`, async (t) => {
    const [full, told] = [await stories(theme, { LONGSTACK_DEPTH: '200' }), await stories(theme, { LONGSTACK_DEPTH: '200', ...filter })]
    t.deepEqual(Object.keys(told).sort(), Object.keys(full).sort())
    for (const [name, { chain }] of Object.entries(told)) {
      t.deepEqual(withoutPromises(chain), withoutPromises(full[name].chain), name)
      t.false(chain.some(({ type }) => type === 'PROMISE'), name)
    }
  })
}
