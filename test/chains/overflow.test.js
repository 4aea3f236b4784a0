'use strict'

// A program catches a stack overflow and reads `.stack` while unwinding. V8 in Node 20 and 22 aborts the
// process if it compiles a regular expression with little stack left; see lib/stacks/text-scan.js.

const os = require('node:os')
const test = require('ava')
const { program } = require('../helpers/run')

const STACK_KB = [96, 121, 146, 171, 196, 221, 246, 271, 296, 321, 346, 371] // --stack-size

const reading = `
  new Error('warm').stack
  // Deeper than the frames of an error: only then is code loaded for it.
  function deep (left) { return left > 0 ? [deep(left - 1)] : new Error('warm').stack }
  deep(20)
  function down () {
    const error = new Error('x')
    let below
    try { below = down() } catch {}
    try { error.stack } catch {}
    return below
  }
  down(); console.log('survived')`

// Behind timers and an await, through functions without names: labels and the ends of functions are asked
// for.
const deeper = `
  const readers = [(error) => error.stack, ({ stack }) => stack]
  function down (depth) {
    const error = new Error('x')
    let below
    try { below = [() => down(depth + 1)].map((call) => call())[0] } catch {}
    try { readers[depth & 1](error) } catch {}
    return below
  }
  setTimeout(async function () {
    new Error('warm').stack
    await null
    down(0)
    setImmediate(() => { down(0); console.log('survived') })
  }, 1)`

/** Returns every n-th size. @param {number} n @param {number} from */
function every (n, from) {
  return STACK_KB.filter((_, i) => i % n === from)
}

/** @param {string} source @param {number} size @param {Record<string, string>} env */
async function outcome (source, size, env) {
  const { code, signal, stdout, stderr } = await program(source, { args: [`--stack-size=${size}`], env })
  if (code === 0 && signal === null && stdout === 'survived\n') return undefined
  return { size, code, signal, stdout, stderr: stderr.slice(0, 500) }
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {number[]} sizes
 * @param {Record<string, string>} env
 */
async function survives (t, source, sizes, env) {
  const waiting = [...sizes]
  const failed = []
  await Promise.all(os.cpus().slice(0, 4).map(async () => {
    for (let size = waiting.pop(); size !== undefined; size = waiting.pop()) {
      const failure = await outcome(source, size, env)
      if (failure !== undefined) failed.push(failure)
    }
  }))
  t.deepEqual(failed, [])
}

for (const engine of ['native', 'js']) {
  /** @type {Array<[string, Record<string, string>]>} */
  const modes = [
    ['full', {}],
    ['with spans', { LONGSTACK_SPANS: '/dev/null' }]
  ]
  for (const [mode, env] of modes) {
    const sizes = mode === 'full' ? STACK_KB : every(3, 0)
    const title = `.stack is read behind a caught stack overflow: ${engine}, ${mode}`
    test.serial(title, survives, reading, sizes, { LONGSTACK_CAPTURE: engine, ...env })
  }
  const title = `behind timers and awaits: ${engine}`
  test.serial(title, survives, deeper, every(3, 1), { LONGSTACK_CAPTURE: engine })
}

const hide = '/node_modules|internal|^(a|b|c)+$/'
test.serial('frames are hidden by an expression', survives, deeper, every(3, 2), { LONGSTACK_HIDE: hide })
