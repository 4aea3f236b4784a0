'use strict'

// Whether a count grew steadily: its values lie on a line. Those that go up and down do not, nor do those
// that level off.

const MIN_MORE = 10
const MIN_LOOKS = 4
const MIN_FIT = 0.9 // coefficient of determination
const MIN_LAST_THIRD = 0.15 // share of the growth

/**
 * Returns the increase of counts that grew steadily.
 * @param {number[][]} points ms and count
 * @returns {number | undefined} undefined if they did not
 */
function growthOf (points) {
  if (points.length < MIN_LOOKS) return undefined
  const [, first] = points[0]
  const [, last] = points[points.length - 1]
  const [, late] = points[Math.floor(points.length * 2 / 3)]
  const more = last - first
  if (more < MIN_MORE || last - late < more * MIN_LAST_THIRD) return undefined
  const mean = (/** @type {number} */ i) => points.reduce((sum, point) => sum + point[i], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const product = (/** @type {number} */ i, /** @type {number} */ j) =>
    points.reduce((sum, point) => sum + (point[i] - (i === 0 ? x : y)) * (point[j] - (j === 0 ? x : y)), 0)
  return product(0, 1) ** 2 / (product(0, 0) * product(1, 1)) >= MIN_FIT ? more : undefined
}

module.exports = { growthOf }
