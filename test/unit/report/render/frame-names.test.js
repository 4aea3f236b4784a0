'use strict'

const test = require('ava')
const { createFrameNames } = require('../../../../report/aggregate/frames')

/** @param {string[]} frames */
function short (...frames) {
  return frames.map(createFrameNames(frames))
}

test('frames are function, file and line', (t) => {
  t.deepEqual(
    short('load (/app/lib/pool.js:34:9) via pg', 'C.run (C:\\app\\c.js:3:4)', '/app/d.js:1:2', 'file:///app/e.mjs:1:2', 'no place'),
    ['load (pool.js:34) via pg', 'C.run (c.js:3)', 'd.js:1', 'e.mjs:1', 'no place']
  )
  t.deepEqual(short('load (/app (copy)/pool.js:34:9)'), ['load (pool.js:34)'])
  t.is(createFrameNames([])('load (/app/lib/pool.js:34:9)'), 'load (pool.js:34)', 'also frames that were not named before')
})

test('files of the same name stay distinguishable', (t) => {
  t.deepEqual(
    short('a (/app/users/index.js:1:1)', 'b (/app/orders/index.js:1:1)', 'c (/lib/orders/index.js:1:1)', 'd (/index.js:1:1)', 'e (/app/pool.js:2:2)'),
    ['a (users/index.js:1)', 'b (app/orders/index.js:1)', 'c (lib/orders/index.js:1)', 'd (/index.js:1)', 'e (pool.js:2)']
  )
  t.deepEqual(short('a (x.js:1:1)', 'a (/x.js:1:1)'), ['a (x.js:1)', 'a (/x.js:1)'])
})

test('an awaiting frame without a function is in the same file as the others', (t) => {
  t.deepEqual(
    short('async /app/d.js:1:2', 'load (/app/d.js:3:4)', 'async run (/app/d.js:5:6)'),
    ['async d.js:1', 'load (d.js:3)', 'async run (d.js:5)']
  )
})

test('two frames in one line keep their columns', (t) => {
  t.deepEqual(short('a (/x.js:1:5)', 'a (/x.js:1:20)', 'b (/x.js:1:5)'), ['a (x.js:1:5)', 'a (x.js:1:20)', 'b (x.js:1)'])
})

test('hostile frames are parsed fast', (t) => {
  const start = Date.now()
  short(' ('.repeat(300), ':1'.repeat(300), `${'a ('.repeat(150)}${':1:1'.repeat(30)}`, ' via '.repeat(120), 'x'.repeat(1e6))
  t.true(Date.now() - start < 5000)
})
