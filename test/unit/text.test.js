'use strict'

const test = require('ava')
const { formatDuration, clean, shortFrame } = require('../../lib/text')

test('formatDuration uses the largest unit that is at least 1', (t) => {
  t.deepEqual([0, 0.4, 999.4, 1000, 59_940].map(formatDuration), ['0 ms', '0 ms', '999 ms', '1.0 s', '59.9 s'])
  t.deepEqual([60_000, 150_001, 3_600_000, 5_400_000].map(formatDuration), ['1 min', '3 min', '1.0 h', '1.5 h'])
})

test('shortFrame leaves out directories and columns', (t) => {
  t.is(shortFrame('load (/app/lib/pool.js:34:9) via pg'), 'load (pool.js:34) via pg')
  t.is(shortFrame('load (C:\\app\\pool.js:34:9)'), 'load (pool.js:34)')
  t.is(shortFrame('/app/lib/pool.js:34:9'), 'pool.js:34')
  t.is(shortFrame('node:net:12:3 via pg'), 'node:net:12 via pg')
  t.is(shortFrame('without a place'), 'without a place')
})

test('clean replaces control and bidi characters, each by one question mark', (t) => {
  t.is(clean('a\nb\u001bc\u007f\u009b'), 'a?b?c??')
  t.is(clean('\u061c\u200e\u200f\u2028\u202e\u2066\u2069'), '???????')
})

test('clean leaves all other characters', (t) => {
  const harmless = 'tab-free ~ \u00a0é \u0436 中 \u{1f600} \u200d \u2027\u202f \u2065\u206a'
  t.is(clean(harmless), harmless)
})
