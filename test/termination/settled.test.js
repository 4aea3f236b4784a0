'use strict'

// Promises settled by code that V8 may terminate.

const test = require('ava')
const { program } = require('../helpers/run')

const trace = `const trace = require(${JSON.stringify(require.resolve('../..'))})`

const variants = [
  { LONGSTACK_CAPTURE: 'native' },
  { LONGSTACK_CAPTURE: 'js' }
]

for (const env of variants) {
  const name = Object.values(env).join(', ')

  // With JavaScript as the hook of settled promises some 60 % of these processes were ended
  test(`V8 does not end the process when rejecting code is terminated: ${name}`, async (t) => {
    const { stdout, stderr, code, signal } = await program(`
      const vm = require('node:vm')
      process.on('unhandledRejection', () => {})
      // A bare Node, too, loses some terminations of such code: it ends by itself, then
      const isLate = () => process.cpuUsage(start).user > 60_000
      let start
      const context = vm.createContext({ HostPromise: Promise, isLate })
      const script = new vm.Script(\`for (let i = 1; i % 64 > 0 || !isLate(); i++) {
        new HostPromise((_, reject) => reject(1)).catch(() => {})
        ;(async () => { throw 1 })().catch(() => {})
      }\`)
      let count = 0
      function run () {
        start = process.cpuUsage()
        try { script.runInContext(context, { timeout: 1 + count % 4 }) } catch {}
        if (++count < 25) return setTimeout(run, 0)
        setTimeout(function later () {
          console.log(count, new Error('later').stack.includes('── setTimeout'))
          process.exit()
        }, 1)
      }
      setTimeout(run, 1)`, { env })
    t.is(stderr, '')
    t.is(code, 0, String(signal))
    t.is(stdout, '25 true\n')
  })

  test(`a promise that such code may have settled is not listed as pending: ${name}`, async (t) => {
    const { stdout, stderr } = await program(`
      ${trace}
      const vm = require('node:vm')
      const settle = []
      const wait = () => new Promise((resolve) => settle.push(resolve))
      const promises = [wait(), wait(), wait()]
      setTimeout(() => {
        const context = vm.createContext({ settle })
        vm.runInContext('settle[0](); settle[1]()', context, { timeout: 60_000 })
        console.log(promises.some((promise) => trace.why(promise).state === 'pending'))
      }, 1)`, { env })
    t.is(stderr, '')
    t.is(stdout, 'false\n')
  })

  test(`no code is named for a rejection that such code may have made: ${name}`, async (t) => {
    const { stderr } = await program(`
      const vm = require('node:vm')
      const deferred = []
      let error
      function makePromise () {
        const parts = {}
        parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }))
        deferred.push(parts)
      }
      async function makeError () {
        await null
        error = new Error('old')
      }
      setTimeout(() => {
        makePromise()
        makePromise()
      }, 1)
      makeError()
      setTimeout(() => {
        process.nextTick(function unrelated () {})
        const context = vm.createContext({ deferred, error })
        vm.runInContext('deferred[0].reject(error); deferred[1].resolve()', context, { timeout: 60_000 })
      }, 5)`, { env })
    t.regex(stderr, /Error: old/)
    t.notRegex(stderr, /thrown here|rejected here/)
  })
}

test('a step that begins in such code is distinguished from what the code settles', async (t) => {
  const { stdout, stderr } = await program(`
    ${trace}
    const vm = require('node:vm')
    const { AsyncResource } = require('node:async_hooks')
    const settle = []
    const wait = () => new Promise((resolve) => settle.push(resolve))
    const promises = [wait(), wait(), wait()]
    let bound
    setTimeout(function maker () { bound = AsyncResource.bind((resolve) => resolve()) }, 1)
    function startRun () {
      setTimeout(() => {
        const context = vm.createContext({ settle, bound })
        vm.runInContext('settle[0](); bound(settle[1]); settle[2]()', context, { timeout: 60_000 })
        for (const promise of promises) {
          const hop = trace.chain(promise).find(({ origin }) => origin === 'settled')
          console.log(/startRun|maker/.exec(JSON.stringify(hop))?.[0])
        }
      }, 5)
    }
    startRun()`)
  t.is(stderr, '')
  t.is(stdout, 'startRun\nmaker\nstartRun\n')
})

test('the hook is restored: promises settled after such code are known', async (t) => {
  const { stdout, stderr } = await program(`
    ${trace}
    const vm = require('node:vm')
    const settle = []
    const wait = () => new Promise((resolve) => settle.push(resolve))
    const promises = [wait(), wait()]
    setTimeout(function runner () {
      const context = vm.createContext({})
      for (const code of ['1', 'throw 1', 'for (;;);']) {
        try { vm.runInContext(code, context, { timeout: 5 }) } catch {}
      }
      settle[0]()
      settle[1]()
      console.log(promises.map((promise) => trace.chain(promise)[0].origin).join())
    }, 1)`)
  t.is(stderr, '')
  t.is(stdout, 'settled,settled\n')
})
