'use strict'

// Locates the waits of a span between its runs. A line has the length of each wait of the critical path and
// the times of the runs, but not which wait lies between which runs. A wait is placed if exactly one gap has
// its length and no other wait does, first to the microsecond, then roughly among the rest. The remaining
// gaps are assigned if they can only belong to one site.

const { sum } = require('../aggregate/lists')

/**
 * @typedef {import('../aggregate/digest').Digest} Digest
 * @typedef {import('../aggregate/digest').Wait} Wait
 *
 * @typedef {object} WaitGap
 * @property {number} start ms since the span's start
 * @property {number} end
 * @property {Wait} wait
 */

const ROUNDING_MS = 0.004 // for three times with three decimals
const [ROUGH_MS, ROUGH_PART] = [0.05, 0.01] // runs too short to be listed are part of a gap
const MIN_MS = 0.05 // shorter gaps cannot be told apart

/** @typedef {{ start: number, end: number }} Gap */

/**
 * @param {Pick<Digest, 'runs' | 'waits'>} span
 * @returns {WaitGap[]} in order of time
 */
function waitGapsOf ({ runs, waits }) {
  const gaps = gapsBetween(runs)
  const single = waits.filter(({ count, ms }) => count === 1 && ms >= MIN_MS)
  /** @type {WaitGap[]} */
  const found = []
  const isGapOpen = (/** @type {Gap} */ { start }) => found.every((gap) => gap.start !== start)
  const isWaitOpen = (/** @type {Wait} */ wait) => found.every((gap) => gap.wait !== wait)
  for (const tolerance of [() => ROUNDING_MS, roughly]) {
    found.push(...placed(gaps.filter(isGapOpen), single.filter(isWaitOpen), tolerance))
  }
  const longGaps = gaps.filter((gap) => isGapOpen(gap) && gap.end - gap.start >= MIN_MS)
  const longWaits = waits.filter((wait) => isWaitOpen(wait) && lengthOf(wait) >= MIN_MS)
  return [...found, ...gapsOfOne(longGaps, longWaits)].sort((a, b) => a.start - b.start)
}

/** @param {Wait} wait */
function lengthOf ({ ms, delayed = 0 }) {
  return ms + delayed
}

/** @param {number} length length of a gap */
function roughly (length) {
  return ROUGH_MS + length * ROUGH_PART
}

/**
 * Assigns all gaps to the only remaining wait, if its count and total length match.
 * @param {Gap[]} gaps
 * @param {Wait[]} waits
 * @returns {WaitGap[]}
 */
function gapsOfOne (gaps, [wait, ...others]) {
  if (wait === undefined || others.length > 0 || wait.count !== gaps.length) return []
  const lengths = gaps.map(({ start, end }) => end - start)
  const isFitting = Math.abs(lengthOf(wait) - sum(lengths, Number)) <= sum(lengths, roughly)
  return isFitting ? gaps.map((gap) => ({ ...gap, wait })) : []
}

/** @param {Digest['runs']} runs @returns {Gap[]} */
function gapsBetween (runs) {
  const sorted = [...runs].sort((a, b) => a[0] - b[0])
  return sorted.slice(1).map(([end], i) => ({ start: sorted[i][0] + sorted[i][1], end }))
}

/**
 * Places each wait that is the only one to fit a gap and fits no other gap.
 * @param {Gap[]} gaps
 * @param {Wait[]} waits
 * @param {(length: number) => number} tolerance in ms
 * @returns {WaitGap[]}
 */
function placed (gaps, waits, tolerance) {
  const fits = (/** @type {Wait} */ wait, /** @type {Gap} */ { start, end }) =>
    Math.abs(lengthOf(wait) - (end - start)) <= tolerance(end - start)
  return gaps.flatMap((gap) => {
    const fitting = waits.filter((wait) => fits(wait, gap))
    const isOnly = fitting.length === 1 && gaps.filter((other) => fits(fitting[0], other)).length === 1
    return isOnly ? [{ ...gap, wait: fitting[0] }] : []
  })
}

module.exports = { waitGapsOf }
