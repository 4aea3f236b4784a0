'use strict'

// Chains as a person reads them: turns of a loop (periods of up to PERIOD contexts with the same type and stack) become one
// turn with a count, and what is older than MAX steps is let go. Records count the turns of loops (LOOPED in records.js),
// so a loop of any length is read in a few steps; what is left to do here are loops that the records have not noticed.

const { loopOf } = require('./context')

const MAX = 64
const PERIOD = 8

/** @typedef {import('./context').Context} Context */

/**
 * Folds the chain that ends in a context.
 * @param {Context} newest
 * @param {(context: Context) => unknown} identify what contexts with the same stack have in common
 * @param {number} keep links kept after folding
 * @returns {number} contexts that were cut off, folded turns not counted
 */
function fold (newest, identify, keep) {
  const line = lineOf(newest).reverse()
  /** @type {Context[]} */
  const kept = []
  // Branches share what is dropped here: only what stays may be counted up, or they would count it again.
  /** @type {number[]} */
  const counts = []
  for (const context of line) {
    kept.push(context)
    counts.push(context.repeats)
    for (let period = 1; period <= PERIOD && period * 2 <= kept.length; period++) {
      if (!turns(kept, period, identify)) continue
      kept.splice(kept.length - 2 * period, period)
      const older = counts.splice(counts.length - 2 * period, period)
      for (let i = 0; i < period; i++) counts[counts.length - period + i] += older[i]
      break
    }
    begun(kept, counts, identify)
  }
  const cut = Math.max(0, kept.length - keep)
  kept.splice(0, cut)
  counts.splice(0, cut)
  for (let i = 0; i < kept.length; i++) {
    kept[i].parent = kept[i - 1]
    kept[i].repeats = counts[i]
    kept[i].folded = true
  }
  return cut
}

/**
 * The contexts of a chain, newest first, the loops that the records know as one turn.
 * @param {Context} newest
 * @returns {Context[]}
 */
function lineOf (newest) {
  /** @type {Context[]} */
  const line = []
  let one = /** @type {Context | undefined} */ (newest)
  while (one !== undefined && line.length < MAX) {
    line.push(one)
    const loop = one.folded ? undefined : loopOf(one)
    if (loop === undefined) {
      one = one.parent
      continue
    }
    one.repeats = loop.turns
    let step = loop.distance > 1 ? one.parent : undefined
    for (let i = 1; i < loop.distance && step !== undefined; i++) {
      const inner = step.folded ? undefined : loopOf(step)
      step.repeats = Math.max(loop.turns - 1, inner?.turns ?? 1)
      line.push(step)
      step = inner === undefined ? step.parent : inner.outer
    }
    one = loop.outer
  }
  return line
}

/**
 * Says whether the last `period` contexts are the same steps as those before them.
 * @param {Context[]} line
 * @param {number} period
 * @param {(context: Context) => unknown} identify
 */
function turns (line, period, identify) {
  for (let i = line.length - period; i < line.length; i++) if (!same(line[i], line[i - period], identify)) return false
  return true
}

/**
 * The newest step may begin one more turn of the folded loop before it: then the loop ends with this step.
 * @param {Context[]} kept
 * @param {number[]} counts
 * @param {(context: Context) => unknown} identify
 */
function begun (kept, counts, identify) {
  const last = kept.length - 1
  for (let i = last - 1; i >= Math.max(0, last - PERIOD) && counts[i] > 1; i--) {
    if (!same(kept[last], kept[i], identify)) continue
    counts[last] += counts[i]
    kept.splice(i, 1)
    counts.splice(i, 1)
    return
  }
}

/**
 * @param {Context} a
 * @param {Context} b
 * @param {(context: Context) => unknown} identify
 */
function same (a, b, identify) {
  return a.type === b.type && a.origin === b.origin && a.detail === b.detail && identify(a) === identify(b)
}

module.exports = { fold, MAX }
