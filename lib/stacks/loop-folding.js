'use strict'

// Shortens chains for printing: repetitions of a loop (periods of up to MAX_PERIOD contexts with the same
// type and stack) become one with a count, and what is older than KEPT steps is dropped. Records count the
// repetitions of loops (LOOPED in record-words.js), so a loop of any length is read in a few steps; what
// remains to be done here is what they do not see: loops in loops, and the steps that a loop skips at times.

const { loopOf } = require('../core/context')

const MAX = 256
const KEPT = 192 // a call of a package may take a hundred steps, and the request is to be told
const MAX_PERIOD = 8

let dropped = 0
/** the context that was folded last, and its parent then @type {Context | undefined} */
let lastFolded
/** @type {Context | undefined} */
let lastParent

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {{ context: Context, repeats: number }} Kept
 */

/**
 * Folds the chain that ends in a context.
 * @param {Context} newest
 * @param {number} keep links kept after folding
 * @returns {number} contexts that were cut off, folded repetitions not counted
 */
function fold (newest, keep) {
  // Branches share what is dropped here: only what stays may be counted up, or they would count it again.
  /** @type {Kept[]} */
  const kept = []
  for (const context of readLine(newest).reverse()) {
    kept.push({ context, repeats: context.repeats })
    foldLast(kept)
    joinNextRepetition(kept)
  }
  const cut = Math.max(0, kept.length - keep)
  kept.splice(0, cut)
  for (let i = 0; i < kept.length; i++) {
    const { context, repeats } = kept[i]
    context.parent = kept[i - 1]?.context
    context.repeats = repeats
    context.folded = true
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
 * @param {Kept[]} kept
 */
function foldLast (kept) {
  for (let period = 1; period <= MAX_PERIOD && period * 2 <= kept.length; period++) {
    if (!isRepeated(kept, period)) continue
    const older = kept.splice(kept.length - 2 * period, period)
    for (let i = 0; i < period; i++) kept[kept.length - period + i].repeats += older[i].repeats
    return
  }
}

/**
 * Returns whether the last `period` contexts are the same steps as those before them.
 * @param {Kept[]} kept
 * @param {number} period
 */
function isRepeated (kept, period) {
  for (let i = kept.length - period; i < kept.length; i++) {
    if (!isSameStep(kept[i].context, kept[i - period].context)) return false
  }
  return true
}

/**
 * Joins the newest step to the folded loop before it, if it begins one more repetition: then the loop ends
 * with this step.
 * @param {Kept[]} kept
 */
function joinNextRepetition (kept) {
  const last = kept[kept.length - 1]
  const end = Math.max(0, kept.length - 1 - MAX_PERIOD)
  for (let i = kept.length - 2; i >= end && kept[i].repeats > 1; i--) {
    if (!isSameStep(last.context, kept[i].context)) continue
    last.repeats += kept[i].repeats
    kept.splice(i, 1)
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

/** Folds the chain that ends in a context, once. @param {Context} context */
function foldLoops (context) {
  if (context === lastFolded && context.parent === lastParent) return
  dropped += fold(context, KEPT)
  lastFolded = context
  lastParent = context.parent
}

/** Returns how many steps were cut off from chains. */
const droppedHops = () => dropped

module.exports = { MAX, droppedHops, fold, foldLoops }
