'use strict'

const test = require('ava')
const { Numbers, insert, isLarge } = require('../../../../report/aggregate/numbers')

test('Numbers are sorted, however many there are', (t) => {
  const numbers = new Numbers()
  for (let i = 0; i < 1000; i++) numbers.add((i * 617) % 1000, 1)
  const { values, total, cumulative } = numbers.sorted()
  t.deepEqual([...values], Array.from({ length: 1000 }, (_, i) => i))
  t.is(total, 1000)
  t.is(cumulative, undefined)
})

test('Numbers keep their weights', (t) => {
  const numbers = new Numbers()
  for (const [value, weight] of [[3, 1], [1, 1], [2, 4]]) numbers.add(value, weight)
  const { values, total, cumulative } = numbers.sorted()
  t.deepEqual([...values], [1, 2, 3])
  t.deepEqual([...(cumulative ?? [])], [1, 5, 6])
  t.is(total, 6)
})

test('insert keeps the largest in descending order, the first of equal ones', (t) => {
  /** @type {Array<{ ms: number, name: string }>} */
  const items = []
  for (const [ms, name] of /** @type {Array<[number, string]>} */ ([[1, 'a'], [5, 'b'], [3, 'c'], [5, 'd'], [4, 'e']])) {
    insert(items, 3, { ms, name })
  }
  t.deepEqual(items.map(({ name }) => name), ['b', 'd', 'e'])
  t.false(isLarge(items, 3, 4))
  t.true(isLarge(items, 3, 4.1))
})

test('isLarge accepts anything while there are few', (t) => {
  const items = [{ ms: 5 }]
  t.true(isLarge(items, 2, -1))
  insert(items, 2, { ms: -1 })
  t.deepEqual(items.map(({ ms }) => ms), [5, -1])
})
