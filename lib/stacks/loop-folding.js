'use strict'

// Shortens chains for printing. Repetitions of a loop (periods of up to MAX_PERIOD contexts with the same
// type and stack) become one with a count, and steps beyond KEPT are dropped. Records already count loop
// repetitions (LOOPED in record-words.js), so a loop of any length is read in a few steps. This module folds
// the loops that records miss: nested loops, and loops that sometimes skip a step.

const { loopOf } = require('../core/context')

const MAX = 256
const KEPT = 192 // a package's call may take a hundred steps, and the request should be printed
const MAX_PERIOD = 8

let dropped = 0
/** the last folded context, and its parent at that time @type {Context | undefined} */
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
 * @returns {number} contexts cut off, not counting folded repetitions
 */
function fold (newest, keep) {
  // Branches share the dropped contexts: count up only kept ones, or each branch counts the others again
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
 * Reads the contexts of a chain, newest first, with one repetition of each loop that the records counted.
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
 * Merges the last two periods if they are equal, and adds their counts.
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
 * Returns whether the last `period` contexts repeat the steps before them.
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
 * Joins the newest step to the folded loop before it if it starts another repetition; the loop then ends with
 * this step.
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

/** Folds the chain that ends in a context, unless it is already folded. @param {Context} context */
function foldLoops (context) {
  if (context === lastFolded && context.parent === lastParent) return
  dropped += fold(context, KEPT)
  lastFolded = context
  lastParent = context.parent
}

/** Returns the number of steps cut off from chains. */
const droppedHops = () => dropped

module.exports = { MAX, droppedHops, fold, foldLoops }
