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
 * @param {(context: Context) => unknown} identify the interned stack of a context
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
  for (const context of line) {
    kept.push(context)
    for (let period = 1; period <= PERIOD && period * 2 <= kept.length; period++) {
      if (!turns(kept, period, identify)) continue
      const older = kept.splice(kept.length - 2 * period, period)
      for (let i = 0; i < period; i++) kept[kept.length - period + i].repeats += older[i].repeats
      break
    }
  }
  const cut = Math.max(0, kept.length - keep)
  kept.splice(0, cut)
  for (let i = 0; i < kept.length; i++) {
    kept[i].parent = kept[i - 1]
    kept[i].depth = i
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
  for (let i = line.length - period; i < line.length; i++) {
    const now = line[i]
    const before = line[i - period]
    if (now.type !== before.type || now.origin !== before.origin || now.detail !== before.detail) return false
    if (identify(now) !== identify(before)) return false
  }
  return true
}

module.exports = { fold, MAX }
