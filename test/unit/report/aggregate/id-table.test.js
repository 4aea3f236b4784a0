'use strict'

const test = require('ava')
const { IdTable } = require('../../../../report/aggregate/id-table')

test('ids that were added are found, however many', (t) => {
  const ids = new IdTable()
  const numbers = Array.from({ length: 5000 }, (_, i) => i + 1)
  t.true(numbers.every((i) => ids.add(i, i * 7)))
  t.false(numbers.some((i) => ids.add(i, i * 7)))
  t.true(numbers.every((i) => ids.has(i, i * 7)))
  t.false(numbers.some((i) => ids.has(i, i * 7 + 1)))
  t.is(ids.size, 5000)
})

test('ids are unsigned', (t) => {
  const ids = new IdTable()
  ids.add(-1, -1)
  t.true(ids.has(0xffffffff, 0xffffffff))
  t.false(ids.has(0, 0))
  ids.add(0, 0)
  t.true(ids.has(0, 0))
})

test('the largest value of each id is kept', (t) => {
  const ids = new IdTable(true)
  t.is(ids.raise(1, 2, 5), -1)
  t.is(ids.raise(1, 2, 3), 5)
  t.is(ids.raise(1, 2, 8), 5)
  for (let i = 0; i < 2000; i++) ids.raise(100, i + 10, i)
  t.is(ids.raise(1, 2, 0), 8, 'also behind many others')
})
