'use strict'

// Shortens chains for printing: repetitions of a loop (periods of up to MAX_PERIOD contexts with the same
// type and stack) become one with a count, and what is older than MAX steps is dropped. Records count the
// repetitions of loops (LOOPED in record-words.js), so a loop of any length is read in a few steps; what
// remains to be done here is what they do not see: loops in loops, and the steps that a loop skips at times.

const { loopOf } = require('../core/context')
const { settings } = require('../settings')

const MAX = 64
const MAX_PERIOD = 8
const MIN_DEPTH = 8
const LINKS = 3 // kept for each hop of the depth: internal steps make no hop

let dropped = 0
/** the context that was folded last, and its parent then @type {Context | undefined} */
let lastFolded
/** @type {Context | undefined} */
let lastParent

/**
 * @typedef {import('../core/context').Context} Context
 */

/**
 * Folds the chain that ends in a context.
 * @param {Context} newest
 * @param {number} keep links kept after folding
 * @returns {number} contexts that were cut off, folded repetitions not counted
 */
function fold (newest, keep) {
  const line = readLine(newest).reverse()
  /** @type {Context[]} */
  const kept = []
  // Branches share what is dropped here: only what stays may be counted up, or they would count it again.
  /** @type {number[]} */
  const counts = []
  for (const context of line) {
    kept.push(context)
    counts.push(context.repeats)
    foldLast(kept, counts)
    joinNextRepetition(kept, counts)
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
 * Reads the contexts of a chain, newest first; of loops that the records know, one repetition.
 * @param {Context} newest
 * @returns {Context[]}
 */
function readLine (newest) {
  /** @type {Context[]} */
  const line = []
  let context = /** @type {Context | undefined} */ (newest)
  while (context !== undefined && line.length < MAX) {
    line.push(context)
    const loop = context.folded ? undefined : loopOf(context)
    if (loop === undefined) {
      context = context.parent
      continue
    }
    context.repeats = loop.repeats
    let step = loop.distance > 1 ? context.parent : undefined
    for (let i = 1; i < loop.distance && step !== undefined; i++) {
      const inner = step.folded ? undefined : loopOf(step)
      step.repeats = Math.max(loop.repeats - 1, inner?.repeats ?? 1)
      line.push(step)
      step = inner === undefined ? step.parent : inner.outer
    }
    context = loop.outer
  }
  return line
}

/**
 * Drops the last period where it repeats the one before, and adds their counts.
 * @param {Context[]} kept
 * @param {number[]} counts
 */
function foldLast (kept, counts) {
  for (let period = 1; period <= MAX_PERIOD && period * 2 <= kept.length; period++) {
    if (!isRepeated(kept, period)) continue
    kept.splice(kept.length - 2 * period, period)
    const older = counts.splice(counts.length - 2 * period, period)
    for (let i = 0; i < period; i++) counts[counts.length - period + i] += older[i]
    return
  }
}

/**
 * Returns whether the last `period` contexts are the same steps as those before them.
 * @param {Context[]} line
 * @param {number} period
 */
function isRepeated (line, period) {
  for (let i = line.length - period; i < line.length; i++) {
    if (!isSameStep(line[i], line[i - period])) return false
  }
  return true
}

/**
 * Joins the newest step to the folded loop before it, if it begins one more repetition: then the loop ends
 * with this step.
 * @param {Context[]} kept
 * @param {number[]} counts
 */
function joinNextRepetition (kept, counts) {
  const last = kept.length - 1
  for (let i = last - 1; i >= Math.max(0, last - MAX_PERIOD) && counts[i] > 1; i--) {
    if (!isSameStep(kept[last], kept[i])) continue
    counts[last] += counts[i]
    kept.splice(i, 1)
    counts.splice(i, 1)
    return
  }
}

/**
 * @param {Context} a
 * @param {Context} b
 */
function isSameStep (a, b) {
  return a.type === b.type && a.origin === b.origin && a.detail === b.detail && a.stack === b.stack
}

/**
 * Folds the chain that ends in a context, once.
 * @param {Context} context
 * @param {number} [keep] links
 */
function foldLoops (context, keep = Math.max(settings.options.depth, MIN_DEPTH) * LINKS) {
  if (context === lastFolded && context.parent === lastParent) return
  dropped += fold(context, keep)
  lastFolded = context
  lastParent = context.parent
}

/** Returns how many steps were cut off from chains. */
const droppedHops = () => dropped

module.exports = { MAX, droppedHops, fold, foldLoops }
