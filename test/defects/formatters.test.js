'use strict'

// The program's formatter is called for the program's errors, and never with anything of longstack's.

const test = require('ava')
const path = require('node:path')
const { program } = require('../helpers/run')

const INDEX = path.join(__dirname, '..', '..', 'index.js')

/** @type {Array<[string, string]>} */
const slots = [
  ['an accessor', 'configurable: true, get: () => format, set () {}'],
  ['an accessor for good', 'configurable: false, get: () => format, set () {}'],
  ['a constant', 'configurable: true, writable: false, value: format'],
  ['a value', 'configurable: true, writable: true, value: format']
]

for (const capture of ['auto', 'js']) {
  for (const [what, descriptor] of slots) {
    const isForGood = what.endsWith('for good')
    test(`${capture}: a formatter that is ${what} receives only the program's errors`, async (t) => {
      const { stdout, stderr } = await program(`
        const trace = require(${JSON.stringify(INDEX)})
        const strangers = []
        let calls = 0
        function format (error) {
          calls++
          if (!(error instanceof Error) || error.message !== 'one') {
            strangers.push(error)
            throw new Error('strange')
          }
          return 'formatted'
        }
        const descriptor = { ${descriptor} }
        Object.defineProperty(Error, 'prepareStackTrace', descriptor)
        setTimeout(function later () {
          const first = new Error('one').stack.split('\\n')[0]
          const text = trace.stack()
          trace.why(setTimeout(() => {}, 1))
          trace.handles()
          setImmediate(() => {
            Promise.resolve().then(() => new Promise((resolve) => setTimeout(resolve, 1)))
            const present = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
            const isSame = present.get === descriptor.get && (what === 'value' || present.value === descriptor.value)
            console.log(JSON.stringify([first, calls, strangers.length, /later/.test(text), isSame]))
          })
        }, 1)
        const what = ${JSON.stringify(what === 'a value' ? 'value' : '')}`, { env: { LONGSTACK_CAPTURE: capture } })
      t.is(stderr, '')
      const [first, calls, strangers, hasFrames, isSame] = JSON.parse(stdout)
      t.is(first, 'formatted')
      t.true(isSame)
      if (isForGood) return // nobody else can be asked
      t.is(calls, 1)
      t.is(strangers, 0)
      t.true(hasFrames)
    })
  }
}
