'use strict'

// Stacks that have no distinct key of walked frames are recognized by their contents: a stack is learned only
// once.

const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { program, root } = require('../helpers/run')

const why = loadBinding().failure?.code
const native = why === undefined ? test.serial : () => {}
const env = { LONGSTACK_CAPTURE: 'native' }

test('the native engine is available', (t) => {
  if (why !== undefined) t.log(`nothing to test: ${why}`)
  if (process.env.CI || process.env.NODES === 'all') t.is(why, undefined)
  t.is(typeof loadBinding().binding, why === undefined ? 'object' : 'undefined')
})

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source prints JSON
 * @param {string[]} [args] of node
 */
async function run (t, source, args = []) {
  const prelude = `'use strict'
    const trace = require(${JSON.stringify(root)})
    const misses = () => trace.stats().misses
    const pause = () => new Promise((resolve) => setTimeout(resolve, 2))\n`
  const { stdout, stderr, code } = await program(prelude + source, { env, args })
  t.is(code, 0, stderr)
  return JSON.parse(stdout)
}

native('two functions of one name are learned once', async (t) => {
  const { learned } = await run(t, `
    async function load2 () { await 1; return Promise.resolve(1) }
    Object.defineProperty(load2, 'name', { value: 'load' })
    async function load () { return load2() }
    const many = async () => { for (let i = 0; i < 3000; i++) await load() }
    setTimeout(async () => {
      await many()
      const before = misses()
      await many()
      console.log(JSON.stringify({ learned: misses() - before }))
    }, 5)`)
  t.true(learned < 100, `${learned} misses`)
})

native('fetch is learned once', async (t) => {
  const { learned } = await run(t, `
    const http = require('node:http')
    const server = http.createServer((_, res) => res.end('hello')).listen(0, '127.0.0.1', async () => {
      const url = 'http://127.0.0.1:' + server.address().port
      const many = async (count) => { for (let i = 0; i < count; i++) await (await fetch(url)).text() }
      await many(300)
      const before = misses()
      await many(300)
      console.log(JSON.stringify({ learned: misses() - before }))
      process.exit()
    })`)
  t.true(learned < 300, `${learned} misses in 300 requests`)
})

native('promises made below WebAssembly are learned once', async (t) => {
  const { learned } = await run(t, `
    // (import "" "f" (func)) (func (export "run") call 0)
    const bytes = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 6, 1, 0, 1, 102, 0, 0, 3, 2, 1, 0,
      7, 7, 1, 3, 114, 117, 110, 0, 1, 10, 6, 1, 4, 0, 16, 0, 11])
    const f = () => { new Promise((resolve) => resolve()) }
    const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { '': { f } })
    const many = () => { for (let i = 0; i < 3000; i++) instance.exports.run() }
    setTimeout(async () => {
      many()
      await pause()
      const before = misses()
      many()
      console.log(JSON.stringify({ learned: misses() - before }))
    }, 5)`)
  t.true(learned < 50, `${learned} misses`)
})

native('a mark-sweep causes nothing to be learned again', async (t) => {
  const { before, after } = await run(t, `
    const places = []
    eval(Array.from({ length: 1000 }, (_, i) => 'places.push(function place' + i + ' () { return new Promise((resolve) => resolve()) })').join('\\n'))
    const all = () => { for (const place of places) place() }
    let before = 0
    setTimeout(function rounds (turn = 0) {
      if (turn === 10) {
        before = misses()
        gc()
      }
      all()
      if (turn < 14) return setTimeout(rounds, 1, turn + 1)
      console.log(JSON.stringify({ before, after: misses() - before }))
    }, 1)`, ['--expose-gc'])
  t.true(before >= 1000, `${before} misses`)
  t.true(after < 100, `${after} misses after a collection`)
})
