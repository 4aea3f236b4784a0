'use strict'

// Open handles over a recording: which openers have more of them at the end, and whether they grew steadily.

const test = require('ava')
const { GrowthFacts } = require('../../report/aggregate/verdict/grows')
const { HandleCounts } = require('../../report/path/handle-counts')

const texts = /** @type {any} */ ({ origin: 1e12, resource: { 'process.pid': 7 } })

/** @param {number[][]} looks ms and counts of the openers a, b, … */
function grown (looks) {
  const counts = new HandleCounts()
  for (const [at, ...open] of looks) {
    counts.add([at, open.map((count, i) => ['timer', String.fromCharCode(97 + i), count])])
  }
  const record = /** @type {any} */ (counts.record(texts))
  const facts = new GrowthFacts()
  if (record !== undefined) facts.add(record)
  return facts.grown
}

test('steady growth is found, with its length', (t) => {
  t.deepEqual(grown([[0, 0, 50], [1000, 20, 52], [2000, 41, 49], [3000, 60, 51]]), [
    { noun: 'timer', at: 'a', more: 60, count: 60, ms: 3000 }
  ])
})

test('counts that level off, fall, jump, or are small are no growth', (t) => {
  t.deepEqual(grown([]), [])
  t.deepEqual(grown([[0, 10], [1000, 30], [2000, 50]]), [])
  t.deepEqual(grown([[0, 0], [1000, 30], [2000, 60], [3000, 60], [4000, 60], [5000, 60]]), [])
  t.deepEqual(grown([[0, 60], [1000, 40], [2000, 20], [3000, 10]]), [])
  t.deepEqual(grown([[0, 0], [1000, 0], [2000, 0], [3000, 0], [4000, 0], [5000, 80]]), [])
  t.deepEqual(grown([[0, 1], [1000, 3], [2000, 5], [3000, 7]]), [])
})

test('an opener missing from a sample had no handles', (t) => {
  t.is(grown([[0], [1000, 20], [2000, 40], [3000, 60]])[0].more, 60)
  t.deepEqual(grown([[0, 20], [1000], [2000, 40], [3000]]), [])
})

test('a long recording is thinned out', (t) => {
  const looks = Array.from({ length: 5000 }, (_, i) => [i * 1000, i])
  const [{ more, ms }] = grown(looks)
  t.true(more > 4900 && more === ms / 1000, `${more} in ${ms} ms`)
})

test('values that no recorder writes are ignored', (t) => {
  const counts = new HandleCounts()
  for (const text of [undefined, 5, [], ['x', []], [1, 5], [1, [5, ['file'], ['file', 'a', 'b'], [{}, {}, 1]]]]) counts.add(text)
  t.is(counts.record(texts), undefined)
})
