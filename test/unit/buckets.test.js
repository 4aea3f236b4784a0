'use strict'

const test = require('ava')
const { COUNT, addPacked, bucketOf, pack, quantiles, startOf } = require('../../lib/buckets')

test('every duration is in its bucket, which is at most 1/16 as wide', (t) => {
  for (let us = 0; us < 2 ** 32; us = us < 5000 ? us + 1 : Math.ceil(us * 1.003)) {
    const bucket = bucketOf(us)
    const [start, end] = [startOf(bucket), startOf(bucket + 1)]
    if (us < start || us >= end || (us >= 16 && end - start > start / 16)) t.fail(`${us}: ${start} to ${end}`)
  }
  t.is(bucketOf(0), 0)
  t.is(bucketOf(1e15), COUNT - 1)
  t.is(bucketOf(2 ** 32 - 1), COUNT - 1)
})

test('quantiles of added histograms are those of all values, but for half a bucket', (t) => {
  const values = Array.from({ length: 5000 }, (_, i) => (i * 7919) % 5000 ** 1.5 + 20)
  const halves = [new Uint32Array(COUNT), new Uint32Array(COUNT)]
  for (const [i, us] of values.entries()) halves[i % 2][bucketOf(us)]++
  const sum = new Map()
  for (const half of halves) addPacked(sum, pack(half))
  const sorted = values.sort((a, b) => a - b)
  const shares = [0, 0.5, 0.9, 0.99, 1]
  for (const [i, us] of quantiles(sum, shares).entries()) {
    const exact = sorted[Math.max(0, Math.ceil(shares[i] * sorted.length) - 1)]
    t.true(Math.abs(us - exact) <= exact / 16, `${shares[i]}: ${us} for ${exact}`)
  }
  t.deepEqual(quantiles(new Map(), [0.5]), [NaN])
})
