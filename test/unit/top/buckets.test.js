'use strict'

const test = require('ava')
const { addCounts, bucketOf, newCounts, quantiles, startOf } = require('../../../lib/top/buckets')

test('every duration falls in its bucket, which is at most 1/16 of it wide', (t) => {
  for (let us = 0; us < 2 ** 32; us = us < 5000 ? us + 1 : Math.ceil(us * 1.003)) {
    const bucket = bucketOf(us)
    const [start, end] = [startOf(bucket), startOf(bucket + 1)]
    if (us < start || us >= end || (us >= 16 && end - start > start / 16)) t.fail(`${us}: ${start} to ${end}`)
  }
  t.is(bucketOf(0), 0)
  t.is(bucketOf(1e15), bucketOf(2 ** 32 - 1))
  t.is(startOf(bucketOf(1e15) + 1), 2 ** 32)
})

test('quantiles of added histograms are within half a bucket of the exact ones', (t) => {
  const values = Array.from({ length: 5000 }, (_, i) => (i * 7919) % 5000 ** 1.5 + 20)
  const halves = [newCounts(), newCounts()]
  for (const [i, us] of values.entries()) {
    addCounts(halves[i % 2], { ...newCounts(), count: 1, buckets: [bucketOf(us), 1] })
  }
  const sum = newCounts()
  for (const half of halves) addCounts(sum, half)
  t.is(sum.count, values.length)
  const sorted = values.sort((a, b) => a - b)
  const shares = [0, 0.5, 0.9, 0.99, 1]
  for (const [i, us] of quantiles(sum.buckets, shares).entries()) {
    const exact = sorted[Math.max(0, Math.ceil(shares[i] * sorted.length) - 1)]
    t.true(Math.abs(us - exact) <= exact / 16, `${shares[i]}: ${us} for ${exact}`)
  }
  t.deepEqual(quantiles(new Map(), [0.5]), [NaN])
})
