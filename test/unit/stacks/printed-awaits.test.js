'use strict'

const test = require('ava')
const { PrintedAwaits } = require('../../../lib/stacks/chain')
const { framesOf } = require('../../helpers/contexts')

const load = framesOf('load (/app/a.js:5:2)')
const main = framesOf('main (/app/b.js:5:2)')

test('an await of a function printed as "at async" is omitted', (t) => {
  const awaits = new PrintedAwaits(framesOf('query (/app/c.js:1:2)', 'async load (/app/a.js:1:2)'))
  t.deepEqual(awaits.remaining(load, 1), [])
  t.deepEqual(awaits.remaining([...load, ...main], 1), main)
})

test('functions of the same name in other files are different', (t) => {
  const awaits = new PrintedAwaits(framesOf('query (/app/c.js:1:2)', 'async load (/app/other.js:1:2)'))
  t.deepEqual(awaits.remaining(load, 1), load)
})

test('a name with a receiver is the same function', (t) => {
  const awaits = new PrintedAwaits(framesOf('query (/app/c.js:1:2)', 'async load (/app/a.js:1:2)'))
  t.deepEqual(awaits.remaining(framesOf('Pool.load (/app/a.js:5:2)'), 1), [])
})

test('without such functions, an await stays', (t) => {
  t.deepEqual(new PrintedAwaits([]).remaining(load, 1), load)
})

test('of several awaits of one execution the newest stays, unless they are repeated', (t) => {
  const awaits = new PrintedAwaits(load)
  const first = awaits.remaining(load, 1)
  t.deepEqual(first, load)
  awaits.add(first)
  awaits.add(load)
  t.deepEqual(awaits.remaining(load, 3), load)
})

test('an await begins at the first unprinted function, and loses none after it', (t) => {
  const awaits = new PrintedAwaits(framesOf('async load (/app/a.js:5:2)'))
  t.deepEqual(awaits.remaining([...main, ...load], 1), [...main, ...load])
})

test('a function counts as shown above only at the same line', (t) => {
  const awaits = new PrintedAwaits(framesOf('async load (/app/a.js:5:9)', 'async main (/app/b.js:7:9)'))
  t.deepEqual(awaits.toldOf([...load, ...main]), [true, false])
  t.is(awaits.toldOf(main), undefined)
})
