'use strict'

// Known stacks are not captured again: the number of new steps in a program that repeats itself. It is
// counted, not timed.

const test = require('ava')
const path = require('node:path')
const { loadBinding } = require('../../lib/stacks/binding')
const { program } = require('../helpers/run')

const INDEX = path.join(__dirname, '..', '..', 'index.js')
const isNative = loadBinding().failure === undefined && process.env.ENGINE !== 'js'
const native = isNative ? test : test.skip

// (module (import "m" "f" (func $f)) (func (export "g") call $f))
const WASM = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 109, 1, 102, 0, 0, 3,
  2, 1, 0, 7, 5, 1, 1, 103, 0, 1, 10, 6, 1, 4, 0, 16, 0, 11
]

/**
 * Returns the steps of a call, and those that were new, once the program has run for a while.
 * @param {string} source defines `many(calls)`
 * @param {number} calls
 * @param {string[]} [args] of node
 */
async function perCall (source, calls, args = []) {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(INDEX)})
    const wasm = new WebAssembly.Module(new Uint8Array(${JSON.stringify(WASM)}))
    setTimeout(async () => {
      ${source}
      await many(${3 * calls})
      await new Promise((resolve) => setTimeout(resolve, 5))
      const before = trace.stats()
      await many(${calls})
      const { captured, misses } = trace.stats()
      console.log(JSON.stringify([captured - before.captured, misses - before.misses]))
      process.exit()
    }, 1)`, { args })
  const [captured, misses] = stdout === '' ? [stderr] : JSON.parse(stdout)
  return { captured: captured / calls, misses: misses / calls }
}

native('functions of the same name have keys: esbuild names two functions alike', async (t) => {
  const { captured, misses } = await perCall(`
    async function load2 () { await 1; return Promise.resolve(1) }
    Object.defineProperty(load2, 'name', { value: 'load' })
    async function load () { return load2() }
    const many = async (calls) => { for (let i = 0; i < calls; i++) await load() }`, 1000)
  t.true(captured >= 3, `${captured} a call`)
  t.true(misses < 0.02, `${misses} of ${captured} a call`)
})

native('frames of fetch have keys', async (t) => {
  const { captured, misses } = await perCall(`
    const server = require('node:http').createServer((request, response) => response.end('ok'))
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = 'http://127.0.0.1:' + server.address().port
    const many = async (calls) => { for (let i = 0; i < calls; i++) await (await fetch(url)).text() }`, 100)
  t.true(captured >= 30, `${captured} a call`)
  t.true(misses < 3, `${misses} of ${captured} a call`) // 24 to 30 where two functions of one name had no key
})

native('frames above WebAssembly have keys', async (t) => {
  const { captured, misses } = await perCall(`
    const { exports: { g } } = new WebAssembly.Instance(wasm, { m: { f () { Promise.resolve().then(() => {}) } } })
    const many = async (calls) => {
      for (let i = 0; i < calls; i++) {
        g()
        await 1
      }
    }`, 1000)
  t.true(captured >= 2, `${captured} a call`)
  t.true(misses < 0.02, `${misses} of ${captured} a call`)
})

native('a mark-sweep causes no second capture of a stack', async (t) => {
  const { captured, misses } = await perCall(`
    const places = Array.from({ length: 300 }, (_, i) => new Function('return async function place' + i + ' () { await 1 }')())
    const many = async (calls) => {
      for (let i = 0; i < calls; i++) for (const place of places) await place()
      gc()
    }`, 2, ['--expose-gc'])
  t.true(captured >= 600, `${captured} a call`)
  t.true(misses < 30, `${misses} of ${captured} a call`)
})

const hasSuspending = Number(process.versions.node.split('.')[0]) >= 24
const suspending = hasSuspending ? test : test.skip
const args = process.version.startsWith('v24') ? ['--experimental-wasm-jspi'] : []

if (isNative) {
  suspending('steps on a WebAssembly stack have keys', async (t) => {
    const { captured, misses } = await perCall(`
      const f = new WebAssembly.Suspending(async () => { await 1; Promise.resolve().then(() => {}) })
      const call = WebAssembly.promising(new WebAssembly.Instance(wasm, { m: { f } }).exports.g)
      const many = async (calls) => { for (let i = 0; i < calls; i++) await call() }`, 1000, args)
    t.true(captured >= 3, `${captured} a call`)
    t.true(misses < 0.02, `${misses} of ${captured} a call`)
  })
}

suspending('both engines agree on a WebAssembly stack, even if V8 reports two stacks alike', async (t) => {
  const source = `
    const wasm = new WebAssembly.Module(new Uint8Array(${JSON.stringify(WASM)}))
    let seen
    const later = () => { setTimeout(() => seen.push(new Error('x').stack.split('\\n').filter((line) => !/ earlier|node:/.test(line)).join('\\n')), 1) }
    const direct = () => later()
    const through = () => [1].forEach(later)
    const ways = [direct, through]
    const f = new WebAssembly.Suspending(async () => { ways[turn % 2](); await 1 })
    let turn = 0
    const call = WebAssembly.promising(new WebAssembly.Instance(wasm, { m: { f } }).exports.g)
    setTimeout(async () => {
      seen = []
      for (; turn < 6; turn++) await call()
      setTimeout(() => console.log(seen.join('\\n')), 20)
    }, 1)`
  const [first, second] = await Promise.all(['auto', 'js'].map((capture) => program(source, { args, env: { LONGSTACK_CAPTURE: capture } })))
  const plain = (/** @type {string} */ text) => text.replace(/\/tmp\/[^/]*\//g, '')
  t.is(first.stderr, '')
  t.regex(first.stdout, /at through[^]*at direct/)
  t.is(plain(first.stdout), plain(second.stdout))
})

/**
 * Plays functions of one place that have names of their own, in three rounds, with a mark-sweep between.
 * @param {number} count
 * @param {string[]} [flags] of V8
 * @returns {Promise<{
 *   named: number, nameless: number, wrong: string[], steps: number, misses: number, stacks: number
 * }>} of the last round
 */
async function playNames (count, flags = []) {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(INDEX)})
    const make = (name) => ({ [name] (done) { setTimeout(() => look(name, done), 0) } })[name]
    const functions = Array.from({ length: ${count} }, (_, i) => make('read' + i))
    let told
    function look (name, done) {
      const { functionName } = trace.chain()[0].frames[0]
      if (functionName === undefined) told.nameless++
      else if (functionName.endsWith('.' + name) || functionName === name) told.named++
      else told.wrong.push(functionName + ' of ' + name)
      done()
    }
    ;(async () => {
      for (let round = 0; round < 3; round++) {
        const before = trace.stats()
        told = { named: 0, nameless: 0, wrong: [] }
        for (let i = 0; i < functions.length; i += 100) {
          await Promise.all(functions.slice(i, i + 100).map((read) => new Promise((resolve) => read(resolve))))
        }
        gc()
        const { captured, misses, stacks } = trace.stats()
        Object.assign(told, { steps: captured - before.captured, misses: misses - before.misses, stacks })
      }
      console.log(JSON.stringify(told))
    })()`, { args: ['--expose-gc', ...flags] })
  if (stderr !== '') throw new Error(stderr)
  return JSON.parse(stdout)
}

native('functions of one place have their names, unless there are too many', async (t) => {
  // What is inlined has no name, and when V8 inlines depends on the machine
  const { named, nameless, wrong } = await playNames(256, ['--no-opt', '--no-maglev'])
  t.deepEqual(wrong, [])
  t.deepEqual([named, nameless], [256, 0])
})

native('functions of one place with many names have keys, and never another function\'s name', async (t) => {
  const { named, nameless, wrong, steps, misses, stacks } = await playNames(3000)
  t.deepEqual(wrong, [])
  t.is(named + nameless, 3000)
  t.true(steps > 3000)
  t.true(misses < steps / 50, `${misses} of ${steps} steps`)
  t.true(stacks < 1500, `${stacks} stacks`)
})
