'use strict'

// Promises that V8's promise hooks never numbered: they are older than longstack, or were made while
// async_hooks reported promises to a user's hook. Their rejecter is known all the same.

const test = require('ava')
const { program, root } = require('../helpers/run')

const reject = `setTimeout(function outer () {
  globalThis.remove?.()
  require('node:fs').readFile('/nonexistent', (error) => {
    gc({ type: 'minor' }) // nor does the allocation clock know of the error
    setImmediate(() => reject(error))
  })
}, 1)`

/** @param {import('ava').ExecutionContext} t @param {string} source */
async function isRead (t, source) {
  const options = { preload: false, args: ['--expose-gc'] }
  const whole = `const trace = require(${JSON.stringify(root)})\n${source}\n${reject}`
  const { stdout, stderr } = await program(whole, options)
  t.is(stderr, '')
  t.notRegex(stdout, /reader/)
  const hops = /── fs\.readFile ·.*\n {4}at outer .*\n {2}── setTimeout\(1\)/
  t.regex(stdout, hops)
}

const promise = `let reject
new Promise((resolve, give) => { reject = give }).catch((error) => console.log(error.stack))`

test('the promise was made before longstack was enabled', (t) => isRead(t, `${promise}\ntrace.enable()`))

test('the promise was made while the program had a hook', (t) => isRead(t, `
  trace.enable()
  globalThis.remove = trace.hook({ before () {} })
  ${promise}
`))

test('the promise was rejected with a value that nobody handles', async (t) => {
  const { stderr } = await program(`
    const trace = require(${JSON.stringify(root)})
    let reject
    globalThis.kept = new Promise((resolve, give) => { reject = give })
    trace.enable()
    setTimeout(() => reject('value'), 1)
  `, { preload: false })
  t.regex(stderr, /── setTimeout\(1\) ·.* rejected here ──/)
})

test('too many promises wait: one whose record was dropped is not taken for longstack\'s own work', async (t) => {
  const { stdout, stderr } = await program(`
    setTimeout(async function main () {
      const held = []
      await new Promise((resolve) => setTimeout(() => {
        for (let i = 0; i < 300_000; i++) held.push(new Promise(() => {}))
        resolve()
      }, 1))
      console.log('hops:', trace.chain().length)
      setTimeout(function later () { console.log(new Error('late').stack) }, 1)
    }, 1)
    const trace = require(${JSON.stringify(root)})
  `)
  t.is(stderr, '')
  t.regex(stdout, /^hops: 0$/m) // nothing is known of it, so nothing is told
  t.regex(stdout, /Error: late\n(?: {4}at .*\n)+ {2}── setTimeout\(1\) ·.*\n {4}at main /)
})
