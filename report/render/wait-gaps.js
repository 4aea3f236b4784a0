'use strict'

// Where between two runs of a span one of its waits lay. A line has the length of each wait of the critical
// path and the times of the runs, not which wait lay between which runs: one is placed where exactly one gap
// has its length and no other wait has that, first to the microsecond, then roughly among what is left; what
// is left then if the gaps can be divided among the sites in one way only.

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
const [ROUGH_MS, ROUGH_PART] = [0.05, 0.01] // runs too short to be listed are part of a gap
const MIN_MS = 0.05 // shorter gaps look alike
const MAX_TRIES = 1000 // of dividing gaps among sites

/** @typedef {{ start: number, end: number }} Gap */

/**
 * @param {Pick<Digest, 'runs' | 'waits'>} span
 * @returns {WaitGap[]} in order of time
 */
function waitGapsOf ({ runs, waits }) {
  const gaps = gapsBetween(runs)
  const single = waits.filter(({ count, ms }) => count === 1 && ms >= MIN_MS)
  const exact = placed(gaps, single, () => ROUNDING_MS)
  const rough = placed(
    gaps.filter(({ start }) => exact.every((gap) => gap.start !== start)),
    single.filter((wait) => exact.every((gap) => gap.wait !== wait)),
    roughly
  )
  const placedAlone = [...exact, ...rough]
  const divided = divide(
    gaps.filter(({ start, end }) => end - start >= MIN_MS && placedAlone.every((gap) => gap.start !== start)),
    waits.filter((wait) => lengthOf(wait) >= MIN_MS && placedAlone.every((gap) => gap.wait !== wait))
  )
  return [...placedAlone, ...divided].sort((a, b) => a.start - b.start)
}

/** @param {Wait} wait */
function lengthOf ({ ms, delayed = 0 }) {
  return ms + delayed
}

/** @param {number} length of a gap */
function roughly (length) {
  return ROUGH_MS + length * ROUGH_PART
}

/**
 * Divides gaps among waits, so that each has as many as it counts and they add up to its length.
 * @param {Gap[]} gaps
 * @param {Wait[]} waits
 * @returns {WaitGap[]} empty if there is no way to do it, or more than one
 */
function divide (gaps, waits) {
  if (gaps.length === 0 || waits.reduce((sum, { count }) => sum + count, 0) !== gaps.length) return []
  /** @type {WaitGap[][]} */
  const ways = []
  let tries = 0
  const remaining = waits.map((wait) => ({ wait, count: wait.count, ms: lengthOf(wait), tolerance: 0 }))

  /** Gives the gap of an index to each wait in turn. @param {number} index @param {WaitGap[]} given */
  function give (index, given) {
    if (ways.length > 1 || ++tries > MAX_TRIES) return
    if (index === gaps.length) {
      if (remaining.every(({ ms, tolerance }) => Math.abs(ms) <= tolerance)) ways.push(given)
      return
    }
    const length = gaps[index].end - gaps[index].start
    for (const part of remaining) {
      if (part.count === 0 || length > part.ms + part.tolerance + roughly(length)) continue
      change(part, -1, length)
      give(index + 1, [...given, { ...gaps[index], wait: part.wait }])
      change(part, 1, length)
    }
  }

  give(0, [])
  return ways.length === 1 && tries <= MAX_TRIES ? ways[0] : []
}

/**
 * Takes a gap from what a wait lacks, or gives it back.
 * @param {{ count: number, ms: number, tolerance: number }} part
 * @param {1 | -1} sign
 * @param {number} length
 */
function change (part, sign, length) {
  part.count += sign
  part.ms += sign * length
  part.tolerance -= sign * roughly(length)
}

/** @param {Digest['runs']} runs @returns {Gap[]} */
function gapsBetween (runs) {
  const sorted = [...runs].sort((a, b) => a[0] - b[0])
  return sorted.slice(1).map(([end], i) => ({ start: sorted[i][0] + sorted[i][1], end }))
}

/**
 * Places each wait that fits one gap, which no other fits.
 * @param {Gap[]} gaps
 * @param {Wait[]} waits
 * @param {(length: number) => number} tolerance in ms
 * @returns {WaitGap[]}
 */
function placed (gaps, waits, tolerance) {
  const fits = (/** @type {Wait} */ { ms, delayed = 0 }, /** @type {Gap} */ { start, end }) =>
    Math.abs(ms + delayed - (end - start)) <= tolerance(end - start)
  return gaps.flatMap((gap) => {
    const fitting = waits.filter((wait) => fits(wait, gap))
    const isOnly = fitting.length === 1 && gaps.filter((other) => fits(fitting[0], other)).length === 1
    return isOnly ? [{ ...gap, wait: fitting[0] }] : []
  })
}

module.exports = { waitGapsOf }
