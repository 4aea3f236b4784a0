'use strict'

// A formatter set by a program in a vm context: hops are appended to its result from the next iteration of
// the event loop, and the context is collected once the program releases it.

const test = require('ava')
const { program, root, split } = require('../helpers/run')

const prelude = `
  const vm = require('node:vm')
  const trace = require(${JSON.stringify(root)})
  const realm = (code, more) => vm.runInContext(code, vm.createContext({ setTimeout, console, ...more }), { filename: '/realm.js' })
`
const own = "Error.prepareStackTrace = function mine (error, sites) { return ['OWN ' + error.message, ...sites.map((site) => '    at ' + site)].join('\\n') }\n"

for (const env of [{}, { LONGSTACK_CAPTURE: 'js' }]) {
  test(`an error of a realm with a formatter has hops (${Object.values(env).join() || 'full'})`, async (t) => {
    const { stdout, stderr } = await program(`${prelude}
      realm(${JSON.stringify(`${own}setTimeout(function outer () { setTimeout(function inner () { console.log(new Error('x').stack) }, 1) }, 5)`)})`, { env })
    t.is(stderr, '')
    const { head, hops } = split(stdout)
    t.regex(head, /^OWN x\n {4}at .*inner \(?.*\/realm\.js:2:/)
    t.deepEqual(hops.map(({ title }) => title.split(' · ')[0]), ['setTimeout(1)', 'setTimeout(5)'])
  })
}

test('vm.createContext of an existing context runs none of its microtasks, and works with new', async (t) => {
  const { stdout } = await program(`
    require(${JSON.stringify(root)}).enable()
    const vm = require('node:vm')
    const log = []
    const context = new vm.createContext({ log: (text) => log.push(text) }, { microtaskMode: 'afterEvaluate' })
    vm.runInContext('() => { Promise.resolve().then(() => log("microtask")) }', context)()
    log.push('before')
    vm.createContext(context)
    log.push('behind')
    vm.runInContext('0', context)
    let code
    try { vm.createContext(1) } catch (error) { code = error.code }
    console.log(log.join(), vm.isContext(context), code)`)
  t.is(stdout, 'before,behind,microtask true ERR_INVALID_ARG_TYPE\n')
})

test('disable() restores a realm\'s formatter, and vm.createContext', async (t) => {
  const { stdout } = await program(`
    const vm = require('node:vm')
    const trace = require(${JSON.stringify(root)})
    const before = Object.getOwnPropertyDescriptor(vm, 'createContext')
    trace.enable()
    const context = vm.createContext({})
    vm.runInContext(${JSON.stringify(`${own}mine = Error.prepareStackTrace`)}, context)
    setTimeout(() => setTimeout(() => {
      const isWrapped = vm.runInContext('Error.prepareStackTrace !== mine', context)
      trace.disable()
      const isBack = vm.runInContext('Error.prepareStackTrace === mine', context)
      const after = Object.getOwnPropertyDescriptor(vm, 'createContext')
      console.log(isWrapped, isBack, JSON.stringify(before) === JSON.stringify(after) && before.value === after.value)
      console.log(vm.runInContext('new Error("y").stack.split("\\\\n")[0]', context))
    }, 5), 5)`, { preload: false })
  t.is(stdout, 'true true true\nOWN y\n')
})

test('a realm with a trapping sandbox, or its own Error, is unaffected', async (t) => {
  const source = `
    const vm = require('node:vm')
    const seen = []
    const traps = new Proxy({}, { get: (_, trap) => (...args) => { seen.push(trap + ' ' + String(args[1])); return Reflect[trap](...args) } })
    const context = vm.createContext(new Proxy({}, traps))
    vm.createContext({ get Error () { seen.push('Error is read') } })
    try { vm.createContext(1) } catch (error) { seen.push(error.code) }
    console.log(vm.isContext(context), vm.createContext.name, vm.createContext.length, seen.join())`
  const bare = await program(source, { preload: false })
  const traced = await program(source)
  t.is(traced.stdout, bare.stdout)
  t.is(traced.stderr, bare.stderr)
})

for (const formatter of ['', own]) {
  test(`realms are collected${formatter && ', wrapped ones as well'}`, async (t) => {
    const { stdout, stderr } = await program(`${prelude}
      const code = ${JSON.stringify(`${formatter}setTimeout(() => { report(new Error('x').stack) }, 2)`)}
      let living = 0
      const registry = new FinalizationRegistry(() => { living-- })
      const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
      async function make () {
        let stack
        const context = vm.createContext({ setTimeout, report: (text) => { stack = text } })
        living++
        registry.register(vm.runInContext('Error', context), 1)
        vm.runInContext(code, context)
        await sleep(5)
        if (typeof stack !== 'string') throw new Error('no stack')
      }
      ;(async () => {
        for (let i = 0; i < 20; i++) await make()
        for (let i = 0; i < 50 && living > 2; i++) { await sleep(20); gc() }
        console.log(living <= 2 ? 'collected' : living + ' live')
      })()`, { args: ['--expose-gc'] })
    t.is(stderr, '')
    t.is(stdout, 'collected\n')
  })
}

test('realms are collected even if a mark-sweep takes longer than the interval between checks', async (t) => {
  const { stdout, stderr } = await program(`${prelude}
    let living = 0
    const registry = new FinalizationRegistry(() => { living-- })
    function make () {
      const context = vm.createContext({})
      living++
      registry.register(vm.runInContext('Error', context), 1)
      vm.runInContext(${JSON.stringify(own)}, context)
    }
    let rounds = 0
    function waitLong () {
      const end = performance.now() + 300
      while (performance.now() < end);
      setTimeout(collect, 1)
    }
    function collect () { // in the job in which checks are made, if they are due
      gc()
      if (living > 1 && ++rounds < 12) return waitLong()
      console.log(living <= 1 ? 'collected' : living + ' live')
    }
    for (let i = 0; i < 5; i++) make()
    let iterations = 0
    setTimeout(function first () { ++iterations < 40 ? setTimeout(first, 1) : waitLong() }, 1)`, { args: ['--expose-gc'] })
  t.is(stderr, '')
  t.is(stdout, 'collected\n')
})
