'use strict'

// Endless loops must not keep their history. Before a chain grows past MAX links it is folded: turns of a loop
// (periods of up to PERIOD contexts with the same type and stack) become one turn with a count, and what is
// then still older than KEEP links is let go. Each context is folded a bounded number of times, so the cost a
// context is constant.

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
  /** @type {Context[]} */
  const line = []
  for (let context = /** @type {Context | undefined} */ (newest); context !== undefined; context = context.parent) line.push(context)
  line.reverse()
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
    kept[i].depth = i
    kept[i].repeats = counts[i]
  }
  return cut
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
