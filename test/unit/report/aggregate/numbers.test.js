'use strict'

const test = require('ava')
const { Numbers, Top } = require('../../../../report/aggregate/numbers')

test('Numbers are sorted, however many', (t) => {
  const numbers = new Numbers()
  for (let i = 0; i < 1000; i++) numbers.add((i * 617) % 1000, 1)
  const { values, total, cumulative } = numbers.sorted()
  t.deepEqual([...values], Array.from({ length: 1000 }, (_, i) => i))
  t.is(total, 1000)
  t.is(cumulative, undefined)
})

test('Numbers: weights go with their values', (t) => {
  const numbers = new Numbers()
  for (const [value, weight] of [[3, 1], [1, 1], [2, 4]]) numbers.add(value, weight)
  const { values, total, cumulative } = numbers.sorted()
  t.deepEqual([...values], [1, 2, 3])
  t.deepEqual([...(cumulative ?? [])], [1, 5, 6])
  t.is(total, 6)
})

test('Top keeps the largest in descending order, of equal ones the first', (t) => {
  const top = new Top(3)
  for (const [value, item] of [[1, 'a'], [5, 'b'], [3, 'c'], [5, 'd'], [4, 'e']]) top.add(value, item)
  t.deepEqual(top.items(), ['b', 'd', 'e'])
  t.false(top.accepts(4))
  t.true(top.accepts(4.1))
})

test('Top accepts anything while it is not full', (t) => {
  const top = new Top(2)
  top.add(5, 'a')
  t.true(top.accepts(-1))
  top.add(-1, 'b')
  t.deepEqual(top.items(), ['a', 'b'])
})
