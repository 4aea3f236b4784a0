'use strict'

// Expected values come from R 4: quantile(type = 7), fivenum(), boxplot.stats(), bw.nrd0().

const test = require('ava')
const { boxOf, densityOf, nrd0, quantile, summarize } = require('../../../../report/aggregate/summary')

/** @param {number[]} values ascending @param {number[]} [weights] */
function sampleOf (values, weights) {
  let total = 0
  const cumulative = weights && Float64Array.from(weights, (weight) => (total += weight))
  return {
    values: Float64Array.from(values),
    cumulative,
    total: weights === undefined ? values.length : total
  }
}
const oneToTen = sampleOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])

test('quantile interpolates between neighbours', (t) => {
  t.deepEqual([0, 0.25, 0.5, 0.75, 1].map((p) => quantile(oneToTen, p)), [1, 3.25, 5.5, 7.75, 10])
  t.is(quantile(sampleOf([7]), 0.99), 7)
})

test('summarize: all figures of one sample', (t) => {
  const { p99, p999, ...figures } = summarize(oneToTen)
  t.deepEqual(figures, { min: 1, q1: 3.25, median: 5.5, mean: 5.5, q3: 7.75, max: 10 })
  t.true(Math.abs(p99 - 9.91) < 1e-9)
  t.true(Math.abs(p999 - 9.991) < 1e-9)
})

test('a value of weight 3 counts as three values', (t) => {
  const weighted = sampleOf([1, 2, 5, 9], [1, 3, 2, 4])
  const repeated = sampleOf([1, 2, 2, 2, 5, 5, 9, 9, 9, 9])
  t.deepEqual(summarize(weighted), summarize(repeated))
  t.like(boxOf(weighted), { q1: 2, median: 5, q3: 9 })
})

test("boxOf: Tukey's hinges, whiskers at 1.5 times their distance, and outliers", (t) => {
  const sample = sampleOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100])
  t.deepEqual(boxOf(sample), {
    low: 1,
    q1: 3.5,
    median: 6,
    q3: 8.5,
    high: 10,
    outliers: [100],
    outlierCount: 1
  })
  t.deepEqual(boxOf(sampleOf([4])), {
    low: 4,
    q1: 4,
    median: 4,
    q3: 4,
    high: 4,
    outliers: [],
    outlierCount: 0
  })
})

test('boxOf: a value at the fence is not an outlier, on either side', (t) => {
  // Hinges 3 and 5 of nine values: fences 0 and 8.
  const box = boxOf(sampleOf([0, 3, 3, 4, 4, 4, 5, 5, 8]))
  t.deepEqual([box.q1, box.q3, box.low, box.high, box.outlierCount], [3, 5, 0, 8, 0])
})

test('boxOf keeps 200 of many outliers, the first and the last among them', (t) => {
  const values = [...Array(1000).fill(0), ...Array.from({ length: 300 }, (_, i) => i + 1)].sort(
    (a, b) => a - b
  )
  const { outliers, outlierCount } = boxOf(sampleOf(values))
  t.is(outlierCount, 300)
  t.is(outliers.length, 200)
  t.deepEqual([outliers[0], outliers.at(-1)], [1, 300])
})

test('nrd0: 0.9 times the smaller of the deviation and the quartile distance / 1.34, by the fifth root', (t) => {
  t.true(Math.abs(nrd0(sampleOf([1, 2, 3, 4, 5])) - 0.9 * (2 / 1.34) * 5 ** -0.2) < 1e-12)
})

test('a density has the area 1', (t) => {
  const values = Array.from({ length: 400 }, (_, i) => 50 + 10 * Math.sin(i)).sort((a, b) => a - b)
  const { x, y, beyond } = densityOf(sampleOf(values), 512)
  const area = x.slice(1).reduce((sum, value, i) => sum + (value - x[i]) * (y[i] + y[i + 1]) / 2, 0)
  t.true(Math.abs(area - 1) < 0.02, String(area))
  t.true(y.every((height) => height >= 0))
  t.is(beyond, 0)
})

test('a density is symmetric if its values are, and highest where most of them are', (t) => {
  const { x, y } = densityOf(sampleOf([40, 50, 50, 50, 60]), 301)
  t.true(Math.abs(x[y.indexOf(Math.max(...y))] - 50) < 0.5)
  for (let i = 0; i < 150; i++) t.true(Math.abs(y[i] - y[300 - i]) < 1e-9)
})

test('a density of one value is undefined', (t) => {
  t.is(densityOf(sampleOf([1]), 512), undefined)
})
