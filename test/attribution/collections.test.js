'use strict'

// Garbage collections: the maker of an error is reported while its address is known to be a time, and
// otherwise none is.

const path = require('node:path')
const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { node, program, register, split } = require('../helpers/run')

const isNative = loadBinding().failure === undefined && process.env.ENGINE !== 'js'
const known = isNative ? test : test.skip
const KEPT_ERRORS = path.join(__dirname, '..', 'fixtures', 'attribution', 'kept-errors.js')

// Before the addon knew of pages beyond the capacity, 2 of 3 seeds named a stranger on Node 24 and 26.
for (const flags of [[], ['--max-semi-space-size=1'], ['--expose-gc']]) {
  known(`errors kept while V8 marks incrementally never name an unrelated creator, ${flags}`, async (t) => {
    for (const seed of [11, 18]) {
      const { stdout, stderr } = await node([...flags, '-r', register, KEPT_ERRORS, String(seed)])
      t.is(stderr, '')
      const { right, reader, none, wrong, sample } = JSON.parse(stdout)
      t.is(wrong + none, 0, sample)
      t.true(right > reader / 4, stdout)
    }
  })
}

const TRIES = 5 // in the last page of new space nothing is known
const ROOMY = ['--expose-gc', '--min-semi-space-size=16'] // MB: it has many

const afterwards = {
  'a scavenge': 'for (let i = 0; i < 3e6; i++) last = { i, last: undefined }',
  'a scavenge with survivors': 'const all = []; for (let i = 0; i < 3e5; i++) all.push({ i })',
  'a full collection': 'gc()',
  'a minor collection': 'gc({ type: "minor" })',
  'several collections': 'gc(); gc({ type: "minor" }); gc({ type: "minor" })'
}

for (const [what, collects] of Object.entries(afterwards)) {
  known(`an error made and read after ${what} in the same callback is known`, async (t) => {
    const source = `'use strict'
      let last
      async function works () {
        await null
        ${collects}
        console.log(new Error('afterwards').stack)
      }
      setTimeout(function begins () { works() }, 1)`
    let stdout = 'reader'
    for (let i = 0; i < TRIES && stdout.includes('reader'); i++) ({ stdout } = await program(source, { args: ROOMY }))
    const { hops } = split(stdout)
    t.notRegex(stdout, /reader/)
    t.regex(hops[0].frames, /at works .*\n.*begins /, stdout)
  })
}

known('a resource made before a collection is not dated after it', async (t) => {
  const { stdout } = await program(`'use strict'
    const kept = []
    function makes () { kept.push(new Error('made here')) }
    function flowA () { setImmediate(makes) }
    function flowB () {
      setImmediate(function reads () {
        gc({ type: 'minor' })
        const between = new Error('between')
        gc({ type: 'minor' })
        console.log([...kept, between].map((error) => error.stack).join('\\n\\n'))
      })
    }
    setTimeout(flowA, 1)
    setTimeout(flowB, 5)`, { args: ['--expose-gc'] })
  const [made] = stdout.split('\n\n')
  t.true(/ · reader/.test(made) || !/flowB/.test(made), stdout)
})
