'use strict'

const test = require('ava')
const { PrintedAwaits } = require('../../../lib/stacks/chain')
const { framesOf } = require('../../helpers/contexts')

const load = framesOf('load (/app/a.js:5:2)')
const main = framesOf('main (/app/b.js:5:2)')

test('an await of a function that is printed as "at async" is left out', (t) => {
  const awaits = new PrintedAwaits(framesOf('query (/app/c.js:1:2)', 'async load (/app/a.js:1:2)'))
  t.deepEqual(awaits.remaining(load, 1), [])
  t.deepEqual(awaits.remaining([...load, ...main], 1), main)
})

test('functions of one name in other files are others', (t) => {
  const awaits = new PrintedAwaits(framesOf('query (/app/c.js:1:2)', 'async load (/app/other.js:1:2)'))
  t.deepEqual(awaits.remaining(load, 1), load)
})

test('an owner before the name makes no other function', (t) => {
  const awaits = new PrintedAwaits(framesOf('query (/app/c.js:1:2)', 'async load (/app/a.js:1:2)'))
  t.deepEqual(awaits.remaining(framesOf('Pool.load (/app/a.js:5:2)'), 1), [])
})

test('without such functions an await stays', (t) => {
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

test('an await begins at the first function that is not printed, and loses none behind it', (t) => {
  const awaits = new PrintedAwaits(framesOf('async load (/app/a.js:5:2)'))
  t.deepEqual(awaits.remaining([...main, ...load], 1), [...main, ...load])
})

test('a function is told further up only at the same line', (t) => {
  const awaits = new PrintedAwaits(framesOf('async load (/app/a.js:5:9)', 'async main (/app/b.js:7:9)'))
  t.deepEqual(awaits.toldOf([...load, ...main]), [true, false])
  t.is(awaits.toldOf(main), undefined)
})
