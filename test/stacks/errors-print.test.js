'use strict'

// errors: 'print': code that reads `.stack` gets V8's stack, and people get the hops in printed errors.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, program, register, root } = require('../helpers/run')

const print = { LONGSTACK_ERRORS: 'print' }
const flow = (/** @type {string} */ body) => `
  const { inspect } = require('node:util')
  setTimeout(function outer () { setImmediate(function inner () { ${body} }) }, 1)
`
const told = /\n {2}── setImmediate · .* ──\n {4}at outer .*\n {2}── setTimeout\(1\) · .* ──\n {4}at /

/** @param {import('ava').ExecutionContext} t @param {string} body */
async function output (t, body) {
  const { stdout, stderr, code } = await program(flow(body), { env: print })
  t.is(stderr, '')
  t.is(code, 0)
  return stdout
}

test('console and util.inspect print hops, also of causes and nested errors', async (t) => {
  const stdout = await output(t, `
    const error = Object.assign(new TypeError('deep', { cause: new Error('because') }), { code: 'X' })
    console.log(error)
    console.log('----')
    console.log(inspect({ list: [error] }, { depth: 5 }))`)
  const [first, second] = stdout.split('----\n')
  t.regex(first, told)
  t.regex(first, / \{\n {2}code: 'X',\n {2}\[cause\]: Error: because\n(?: {6}at .*\n)+ {4}── setImmediate /)
  t.is(second.split('── setImmediate').length, 3)
  t.regex(second, /^\{\n {2}list: \[\n {4}TypeError: deep\n(?: {8}at .*\n)+ {6}── setImmediate .*\n {8}at outer /)
})

test('other readers of the error see V8\'s stack', async (t) => {
  const stdout = await output(t, `
    const error = new Error('x')
    const before = Object.getOwnPropertyDescriptors(error)
    inspect(error)
    const after = Object.getOwnPropertyDescriptors(error)
    const isSame = Object.keys(before.stack).every((key) => before.stack[key] === after.stack[key])
    console.log(isSame, Object.keys(after).join(), error.stack.includes('──'), structuredClone(error).stack === error.stack,
      JSON.stringify(error), typeof error[inspect.custom], inspect.custom in {}, Object.keys(Error.prototype).length)`)
  t.is(stdout, 'true stack,message false true {} undefined false 0\n')
})

test('an error printed by other code stays unchanged', async (t) => {
  const stdout = await output(t, `
    class Own extends Error { [inspect.custom] () { return 'own text' } }
    const set = new Error('set')
    set[inspect.custom] = () => 'set text'
    const frozen = Object.freeze(new Error('frozen'))
    const circular = new Error('circular')
    circular.self = circular
    console.log(inspect(new Own('x')), inspect(set), inspect(frozen).includes('.inner'), /\\[Circular \\*1\\]/.test(inspect(circular)),
      Object.getOwnPropertySymbols(set).length)`)
  t.is(stdout, 'own text set text true true 1\n')
})

for (const [what, body] of Object.entries({
  'an uncaught error': "throw new Error('x', { cause: new Error('y') })",
  'an unhandled rejection': "Promise.reject(new Error('x', { cause: new Error('y') }))"
})) {
  test(`${what} is printed with hops, and its listeners read V8's stack`, async (t) => {
    const { stdout, stderr, code } = await program(
      `process.on('uncaughtExceptionMonitor', ({ stack }) => console.log(stack.includes('──')))
      process.on('exit', () => console.log('exit'))
      ${flow(body)}`, { env: print })
    t.is(stdout, 'false\nexit\n')
    t.is(code, 1)
    t.regex(stderr, told)
    t.is(stderr.split('── setImmediate').length, 3, stderr)
    t.regex(stderr, /\nNode\.js v/)
  })
}

test('handlers of uncaughtException and unhandledRejection print hops, and read none', async (t) => {
  const { stdout, stderr } = await program(`
    for (const name of ['uncaughtException', 'unhandledRejection']) process.on(name, (error) => { console.log(name, error.stack.includes('──'), error) })
    ${flow("Promise.reject(new Error('x')); throw new Error('y')")}`, { env: print })
  t.is(stderr, '')
  t.regex(stdout, /^uncaughtException false Error: y\n/)
  t.regex(stdout, /^unhandledRejection false Error: x\n/m)
  t.is(stdout.split('── setTimeout(1)').length, 3, stdout)
})

test('errors in a worker, also one that ends it, have hops', async (t) => {
  const { stdout, stderr } = await program(`
    const { Worker, isMainThread } = require('node:worker_threads')
    if (isMainThread) {
      const worker = new Worker(__filename)
      worker.on('error', (error) => {
        console.log('error', error.stack.includes('──'), Object.keys(error).join(), error)
        throw error
      })
    } else {
      setTimeout(function later () {
        console.log('inside', new Error('a'))
        throw new Error('b')
      }, 1)
    }`, { env: print })
  t.regex(stdout, /inside Error: a\n[^]* {2}── setTimeout\(1\) /)
  t.regex(stdout, /error false {2}Error: b\n(?: {4}at .*\n)+ {2}── setTimeout\(1\) [^]*── new Worker · /)
  t.regex(stderr, /Error: b\n(?: {4}at .*\n)+ {2}── setTimeout\(1\) [^]*── new Worker · [^]*\nNode\.js v/)
})

test('a program of ES modules prints hops', async (t) => {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-print-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'app.mjs')
  fs.writeFileSync(file, 'await new Promise((resolve) => setTimeout(resolve, 1))\nconst error = new Error("x")\nconsole.log(error.stack.includes("──"), error)\nthrow error')
  const { stdout, stderr } = await node(['--import', register, file], { env: print })
  t.regex(stdout, /^false Error: x\n(?: {4}at .*\n)+ {2}── /)
  t.regex(stderr, /Error: x\n(?: {4}at .*\n)+ {2}── /)
})

test('the option can change during tracing, and disable undoes it', async (t) => {
  const { stdout } = await program(`
    const { inspect } = require('node:util')
    const trace = require(${JSON.stringify(root)})
    trace.enable({ errors: 'print' })
    setTimeout(function later () {
      const told = () => { const error = new Error('x'); return [error.stack.includes('──'), inspect(error).includes('──')].join() }
      const states = [told(), trace.stats().errors]
      trace.enable({ errors: true })
      states.push(told())
      trace.enable({ errors: false })
      states.push(told())
      trace.enable({ errors: 'print' })
      states.push(told())
      trace.disable()
      states.push(told(), Object.getOwnPropertySymbols(Error.prototype).length)
      console.log(states.join(' '))
    }, 1)`, { preload: false })
  t.is(stdout, 'false,true print true,true false,false false,true false,false 0\n')
})

test('a program that prints all errors itself, like Next.js, has hops after its frames', async (t) => {
  const source = `
    const { inspect } = require('node:util')
    const custom = Symbol.for('nodejs.util.inspect.custom')
    const print = function (depth, options, again) {
      const copy = Object.assign(new Error(this.message), this)
      copy.stack = this.stack.split('\\n').filter((line) => !line.includes('node:')).join('\\n')
      Object.defineProperty(copy, custom, { value: undefined })
      return again(copy, options)
    }
    Error.prototype[custom] = print
    if (Error.prototype[custom] !== print) throw new TypeError('it is not there')
    setTimeout(function late () {
      console.log(Object.assign(new Error('broke'), { code: 'E' }))
      console.log(inspect({ inner: new TypeError('inside') }))
      require(${JSON.stringify(root)}).disable()
      if (Error.prototype[custom] !== print) throw new TypeError('it is not put back')
    }, 1)`
  const { stdout, stderr } = await node(['-r', register, '-e', source], { env: { LONGSTACK_ERRORS: 'print' } })
  t.is(stderr, '')
  t.regex(stdout, /^Error: broke\n {4}at .*late.*\n {2}── setTimeout\(1\) · [^\n]* ──\n(?: {4}at .*\n)* {4}at [^\n]* \{\n {2}code: 'E'\n\}\n/)
  t.is(stdout.match(/── setTimeout/g)?.length, 2, stdout)
})
