'use strict'

const test = require('ava')
const { columnsOf, glued, painted, prose, wrap } = require('../../../../report/render/wrap')

const red = (/** @type {string} */ text) => `\u001b[31m${text}\u001b[39m`

test('wrap breaks only at spaces, and fills lines', (t) => {
  t.deepEqual(wrap('one two three four five six', 22), ['one two three four', 'five six'])
  t.deepEqual(wrap('aaaa bbbb cccc dddd eeee ffff', 24, '* '), ['* aaaa bbbb cccc dddd', '  eeee ffff'])
  t.deepEqual(wrap('', 40), [''])
})

test('wrap never breaks words or non-breaking text, however long', (t) => {
  const long = 'x'.repeat(60)
  t.deepEqual(wrap(`see ${long} there`, 40), ['see', long, 'there'])
  const frame = glued('load users (/app/lib/a long directory/users.js:24:9)')
  t.deepEqual(wrap(`waited at ${frame} until TCP`, 40), ['waited at', frame.replaceAll('\u00a0', ' '), 'until TCP'])
})

test('colours take no columns, wide characters two', (t) => {
  t.is(columnsOf(red('four')), 4)
  t.is(columnsOf('東京'), 4)
  t.is(columnsOf('µs … ░'), 6)
  const text = 'one two three four five six seven'
  const plain = wrap(text, 24)
  t.deepEqual(wrap(painted(text, red), 24), plain.map((line) => line.split(' ').map(red).join(' ')))
})

test('frames, routes and figures stay on one line', (t) => {
  const text = 'GET /users waits 12.5 ms, 62 % of its time, at pool.query (pool.js:34), for GET db:5432.'
  const lines = Array.from({ length: 60 }, (_, i) => wrap(prose(text), i + 20)).flat()
  for (const whole of ['GET /users', '12.5 ms,', '62 %', 'pool.query (pool.js:34),', 'GET db:5432.']) {
    const [first] = whole.split(' ')
    t.true(lines.filter((line) => line.includes(first)).every((line) => line.includes('GET') || line.includes(whole)), whole)
    t.false(lines.some((line) => line.endsWith(first) && whole.split(' ').length > 1), whole)
  }
})
