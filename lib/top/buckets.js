'use strict'

// Counts of requests with a histogram of their latency, in constant memory. The width of the buckets doubles
// every 16 buckets, from 1 µs to 71 min, so a bucket is at most 1/16 as wide as its values. Histograms are
// added bucket by bucket, so the quantiles of several threads and intervals are as exact as those of one.

const BITS = 4
const PARTS = 1 << BITS // buckets from one power of two to the next
const MAX_US = 0xffffffff

/**
 * @typedef {object} RouteCounts
 * @property {number} count of finished responses
 * @property {number} errors of them with a status of 500 and above
 * @property {number} lost requests whose connection was closed before the response was finished
 * @property {number} sumUs
 * @property {number} maxUs
 * @property {Map<number, number>} buckets of the time from request to response
 *
 * @typedef {Omit<RouteCounts, 'buckets'> & { buckets: readonly number[] }} PackedCounts buckets: a bucket,
 *   its count, the next bucket, its count
 */

/** @returns {RouteCounts} */
function newCounts () {
  return { count: 0, errors: 0, lost: 0, sumUs: 0, maxUs: 0, buckets: new Map() }
}

/** @param {RouteCounts} counts @param {RouteCounts | PackedCounts} added */
function addCounts (counts, { count, errors, lost, sumUs, maxUs, buckets }) {
  counts.count += count
  counts.errors += errors
  counts.lost += lost
  counts.sumUs += sumUs
  counts.maxUs = Math.max(counts.maxUs, maxUs)
  const packed = buckets instanceof Map ? [...buckets].flat() : buckets
  for (let i = 0; i + 1 < packed.length; i += 2) {
    counts.buckets.set(packed[i], (counts.buckets.get(packed[i]) ?? 0) + packed[i + 1])
  }
}

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

/** @param {Map<number, number>} buckets @returns {Array<[bucket: number, count: number]>} ascending */
const sorted = (buckets) => [...buckets].sort(([a], [b]) => a - b)

/** @param {Map<number, number>} buckets @returns {number[]} ascending, each followed by its count */
const pack = (buckets) => sorted(buckets).flat()

/**
 * Returns quantiles.
 * @param {Map<number, number>} counts by bucket
 * @param {readonly number[]} shares from 0 to 1
 * @returns {number[]} µs, at most half a bucket off; NaN if nothing was counted
 */
function quantiles (counts, shares) {
  const buckets = sorted(counts)
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  return shares.map((share) => {
    let rank = Math.max(1, Math.ceil(share * total)) // among the remaining ones
    for (const [bucket, count] of buckets) {
      const start = startOf(bucket)
      if (rank <= count) return start + (startOf(bucket + 1) - start) * (rank - 0.5) / count
      rank -= count
    }
    return NaN
  })
}

module.exports = { addCounts, bucketOf, newCounts, pack, quantiles, startOf }
