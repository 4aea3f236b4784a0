'use strict'

// AsyncResources that are older than the ring of records (lib/context/records.js): they run with their chain,
// again and again, and those that never run leave nothing behind.

const test = require('ava')
const { program, root } = require('../helpers/run')

const setUp = `
  const trace = require(${JSON.stringify(root)})
  const { AsyncResource } = require('node:async_hooks')
  const older = require(${JSON.stringify(`${root}/lib/context/older-records`)})
  const RING = 1 << 15
  const goRound = (then) => {
    for (let i = 0; i < RING; i++) new AsyncResource('OTHER')
    setImmediate(then)
  }
`

for (const filter of ['', 'TIMER']) {
  test(`an old AsyncResource runs with its chain, filter: ${filter || 'none'}`, async (t) => {
    const { stdout, stderr } = await program(`${setUp}
      const hops = (target) => trace.chain(target).map(({ type, frames }) => type + ' ' + frames[0].functionName)
      let resource
      setTimeout(function first () {
        (function makeJob () { resource = new AsyncResource('JOB') })()
        goRound(function later () {
          const asked = hops(resource)
          const runs = [1, 2].map(() => resource.runInAsyncScope(() => hops()))
          resource.runInAsyncScope(() => setTimeout(function child () {
            console.log(JSON.stringify({ asked, runs, child: hops() }))
          }))
        })
      }, 1)
    `, { env: filter === '' ? {} : { LONGSTACK: filter } })
    t.is(stderr, '')
    const { asked, runs, child } = JSON.parse(stdout)
    const timer = asked.at(-1)
    t.true(timer.startsWith('Timeout '))
    t.deepEqual(asked, filter === '' ? ['JOB makeJob', timer] : [timer])
    t.deepEqual(runs, [asked, asked])
    t.deepEqual(child.slice(1), asked)
  })
}

test('resources that never run, and those that ran, are not kept', async (t) => {
  const { stdout, stderr } = await program(`${setUp}
    const kept = older.countKept
    AsyncResource.bind(() => {})
    goRound(() => {
      const unused = kept()
      for (let i = 0; i < RING; i++) new AsyncResource('USED').runInAsyncScope(() => {})
      goRound(() => console.log(unused < 100, kept() < 100))
    })
  `)
  t.is(stderr, '')
  t.is(stdout.trim(), 'true true')
})

test('a span is kept while it is open, and not afterwards', async (t) => {
  const { stdout, stderr } = await program(`${setUp}
    let close
    const open = trace.span('open', {}, () => new Promise((resolve) => { close = resolve }))
    const before = older.countKept()
    goRound(async () => {
      const during = older.countKept() - before
      for (let i = 0; i < 100; i++) trace.span('short', {}, () => {})
      close()
      await open
      goRound(() => console.log(during >= 1, older.countLive() - before < 10))
    })
  `, { env: { LONGSTACK_SPANS: '/dev/null' } })
  t.is(stderr, '')
  t.is(stdout.trim(), 'true true')
})
