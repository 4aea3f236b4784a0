'use strict'

// A worker's chain is that of the call that created it, never another worker's.

const test = require('ava')
const path = require('node:path')
const { program } = require('../helpers/run')

const INDEX = path.join(__dirname, '..', '..', 'index.js')

/** What is done between the first worker and the second one. @type {Array<[string, string]>} */
const changes = [
  ['tracing is turned off', 'trace.disable()'],
  ['workers are filtered out', "trace.enable(['TIMER'])"]
]
/** When. @type {Array<[string, string]>} */
const moments = [
  ['at once', 'change(); makeSecond()'],
  ['later', "first.on('exit', () => { change(); makeSecond() })"]
]

for (const [what, change] of changes) {
  for (const [when, go] of moments) {
    test(`a worker has no chain of another worker if ${what} ${when}`, async (t) => {
      const { stdout, stderr } = await program(`
        const { Worker } = require('node:worker_threads')
        const trace = require(${JSON.stringify(INDEX)})
        const text = \`const trace = require(${JSON.stringify(INDEX)}).enable()
          setTimeout(function later () { console.log(trace.stack()) }, 1)\`
        const change = () => { ${change} }
        function makeFirst () { return new Worker('', { eval: true }) }
        function makeSecond () { return new Worker(text, { eval: true }) }
        trace.enable()
        const first = makeFirst()
        ${go}`, { preload: false })
      t.regex(stdout, /at later/, stderr)
      t.false(stdout.includes('makeFirst'), stdout)
    })
  }
}

test('a nested worker has the chain of its creator', async (t) => {
  const { stdout, stderr } = await program(`
    const { Worker } = require('node:worker_threads')
    const leaf = "setTimeout(function later () { console.log(new Error('x').stack) }, 1)"
    const middle = \`require(${JSON.stringify(INDEX)}).disable()
      const { Worker } = require('node:worker_threads')
      new Worker(\${JSON.stringify(leaf)}, { eval: true })\`
    function makeMiddle () { new Worker(middle, { eval: true }) }
    makeMiddle()`)
  t.regex(stdout, /at .*later/, stderr)
  t.false(stdout.includes('makeMiddle'), stdout)
})

test('a worker has the chain of its creator, also if two are made in turn', async (t) => {
  const { stdout, stderr } = await program(`
    const { Worker } = require('node:worker_threads')
    const text = "setTimeout(function later () { console.log(new Error('x').stack.split('\\\\n').slice(2).join('\\\\n')) }, 1)"
    function makeFirst () { return new Worker(text, { eval: true }) }
    function makeSecond () { return new Worker(text, { eval: true }) }
    const first = makeFirst()
    first.on('exit', makeSecond)`)
  t.is(stdout.split('new Worker').length - 1 >= 2, true, stdout + stderr)
  t.regex(stdout, /at makeFirst [^]*at makeSecond /)
})
