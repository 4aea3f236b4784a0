'use strict'

// Where between two runs of a span one of its waits lay. A line tells the length of each wait of the critical
// path and the times of the runs, not which wait lay between which runs: one is placed where exactly one gap
// has its length, and no other wait has that.

/**
 * @typedef {import('../aggregate/digest').Digest} Digest
 * @typedef {import('../aggregate/digest').Wait} Wait
 *
 * @typedef {object} WaitGap
 * @property {number} start ms since the span's own
 * @property {number} end
 * @property {Wait} wait
 */

const ROUNDING_MS = 0.004 // of three times with three decimals
const MIN_MS = 0.05 // shorter gaps look alike

/**
 * @param {Pick<Digest, 'runs' | 'waits'>} span
 * @returns {WaitGap[]} in order of time
 */
function waitGapsOf ({ runs, waits }) {
  const gaps = gapsBetween(runs)
  const single = waits.filter(({ count, ms }) => count === 1 && ms >= MIN_MS)
  return gaps.flatMap(([start, end]) => {
    const fitting = single.filter((wait) => fits(wait, end - start))
    if (fitting.length !== 1) return []
    const [wait] = fitting
    const isOnly = gaps.filter(([from, to]) => fits(wait, to - from)).length === 1
    return isOnly ? [{ start, end, wait }] : []
  })
}

/** @param {Digest['runs']} runs @returns {Array<[start: number, end: number]>} */
function gapsBetween (runs) {
  const sorted = [...runs].sort((a, b) => a[0] - b[0])
  return sorted.slice(1).map(([start], i) => [sorted[i][0] + sorted[i][1], start])
}

/** @param {Wait & { delayed?: number }} wait @param {number} length of a gap in ms */
function fits ({ ms, delayed = 0 }, length) {
  return Math.abs(ms + delayed - length) <= ROUNDING_MS
}

module.exports = { waitGapsOf }
