'use strict'

// Histograms of durations in constant memory: buckets whose width doubles with every 16 of them, from 1 µs to
// 71 min. A bucket is at most 1/16 as wide as its values. Histograms are added bucket by bucket, so the
// quantiles of several threads and intervals are as exact as those of one.

const BITS = 4
const PARTS = 1 << BITS // buckets from one power of two to the next
const MAX_US = 0xffffffff
const COUNT = (32 - BITS + 1) << BITS

/** Returns the bucket of a duration. @param {number} us */
function bucketOf (us) {
  const value = us < MAX_US ? us >>> 0 : MAX_US
  if (value < PARTS) return value
  const shift = 31 - BITS - Math.clz32(value)
  return (shift << BITS) + (value >>> shift)
}

/** Returns the shortest duration of a bucket, in µs. @param {number} bucket */
function startOf (bucket) {
  if (bucket < PARTS) return bucket
  const shift = (bucket >> BITS) - 1
  return (bucket - (shift << BITS)) * 2 ** shift
}

/**
 * Returns the buckets that are not empty: bucket, count, bucket, count.
 * @param {ArrayLike<number>} counts of all buckets
 */
function pack (counts) {
  /** @type {number[]} */
  const packed = []
  for (let bucket = 0; bucket < COUNT; bucket++) if (counts[bucket] !== 0) packed.push(bucket, counts[bucket])
  return packed
}

/**
 * Adds a packed histogram to another.
 * @param {Map<number, number>} counts by bucket
 * @param {readonly number[]} packed
 */
function addPacked (counts, packed) {
  for (let i = 0; i + 1 < packed.length; i += 2) {
    counts.set(packed[i], (counts.get(packed[i]) ?? 0) + packed[i + 1])
  }
}

/**
 * Returns quantiles.
 * @param {Map<number, number>} counts by bucket
 * @param {readonly number[]} shares from 0 to 1, ascending
 * @returns {number[]} µs, at most half a bucket off; NaN where nothing was counted
 */
function quantiles (counts, shares) {
  const buckets = [...counts].sort(([a], [b]) => a - b)
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  let index = -1
  let before = 0
  let until = 0
  return shares.map((share) => {
    if (total === 0) return NaN
    const rank = Math.max(1, Math.ceil(share * total))
    while (until < rank) {
      index++
      before = until
      until += buckets[index][1]
    }
    const [bucket, count] = buckets[index]
    const start = startOf(bucket)
    return start + (startOf(bucket + 1) - start) * (rank - before - 0.5) / count
  })
}

module.exports = { COUNT, addPacked, bucketOf, pack, quantiles, startOf }
