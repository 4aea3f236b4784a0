'use strict'

// Shortens chains for printing: repetitions of a loop (periods of up to MAX_PERIOD contexts with the same
// type and stack) become one with a count, and what is older than MAX steps is dropped. Records count the
// repetitions of loops (LOOPED in record-words.js), so a loop of any length is read in a few steps; what
// remains to be done here are loops whose stacks have other numbers and the same text.

const { loopOf } = require('../context/context')

const MAX = 64
const MAX_PERIOD = 8
const MIN_DEPTH = 8
const MAX_IDENTITIES = 200 // remembered
const LINKS = 3 // kept for each hop of the depth: internal steps make no hop

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Stack} Stack
 * @typedef {(context: Context) => unknown} Identify what contexts with the same stack have in common
 */

/**
 * Folds the chain that ends in a context.
 * @param {Context} newest
 * @param {Identify} identify
 * @param {number} keep links kept after folding
 * @returns {number} contexts that were cut off, folded repetitions not counted
 */
function fold (newest, identify, keep) {
  const line = readLine(newest).reverse()
  /** @type {Context[]} */
  const kept = []
  // Branches share what is dropped here: only what stays may be counted up, or they would count it again.
  /** @type {number[]} */
  const counts = []
  for (const context of line) {
    kept.push(context)
    counts.push(context.repeats)
    foldLast(kept, counts, identify)
    joinNextRepetition(kept, counts, identify)
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
 * @param {Identify} identify
 */
function foldLast (kept, counts, identify) {
  for (let period = 1; period <= MAX_PERIOD && period * 2 <= kept.length; period++) {
    if (!isRepeated(kept, period, identify)) continue
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
 * @param {Identify} identify
 */
function isRepeated (line, period, identify) {
  for (let i = line.length - period; i < line.length; i++) {
    if (!isSameStep(line[i], line[i - period], identify)) return false
  }
  return true
}

/**
 * Joins the newest step to the folded loop before it, if it begins one more repetition: then the loop ends
 * with this step.
 * @param {Context[]} kept
 * @param {number[]} counts
 * @param {Identify} identify
 */
function joinNextRepetition (kept, counts, identify) {
  const last = kept.length - 1
  for (let i = last - 1; i >= Math.max(0, last - MAX_PERIOD) && counts[i] > 1; i--) {
    if (!isSameStep(kept[last], kept[i], identify)) continue
    counts[last] += counts[i]
    kept.splice(i, 1)
    counts.splice(i, 1)
    return
  }
}

/**
 * @param {Context} a
 * @param {Context} b
 * @param {Identify} identify
 */
function isSameStep (a, b, identify) {
  return a.type === b.type && a.origin === b.origin && a.detail === b.detail && identify(a) === identify(b)
}

/**
 * @param {object} deps
 * @param {(context: Context) => Stack | undefined} deps.stackOf
 * @param {() => import('../options').Options} deps.options
 * @param {(count: number) => void} deps.dropped contexts were cut off
 */
function createLoopFolding ({ stackOf, options, dropped }) {
  /** @type {WeakMap<Stack, string>} */
  let identities = new WeakMap()
  let count = 0
  /** the context that was folded last, and its parent then @type {Context | undefined} */
  let lastFolded
  /** @type {Context | undefined} */
  let lastParent

  /** @param {Context} context @returns {string | undefined} */
  function identify (context) {
    const stack = stackOf(context)
    if (stack === undefined) return undefined
    let identity = identities.get(stack)
    if (identity !== undefined) return identity
    if (++count > MAX_IDENTITIES) {
      identities = new WeakMap()
      count = 1
    }
    identities.set(stack, identity = identityOf(stack.frames))
    return identity
  }

  /** @param {Context} context @param {number} [keep] links */
  return (context, keep = Math.max(options().depth, MIN_DEPTH) * LINKS) => {
    if (context === lastFolded && context.parent === lastParent) return
    dropped(fold(context, identify, keep))
    lastFolded = context
    lastParent = context.parent
  }
}

/**
 * Returns what the stacks of two turns of a loop have in common. V8 prints "[as _onImmediate]" until it
 * optimizes, and the frames by which the event loop called the program are not the program's.
 * @param {import('./frames').Frame[]} frames
 */
function identityOf (frames) {
  let end = frames.length
  while (end > 0 && frames[end - 1].kind === 'core') end--
  return frames.slice(0, end || frames.length).map((frame) => withoutAliases(frame.text)).join('\n')
}

/** Removes every " [as alias]". @param {string} line */
function withoutAliases (line) {
  for (let start = line.indexOf(' [as '); start !== -1; start = line.indexOf(' [as ', start)) {
    const end = line.indexOf(']', start)
    if (end === -1) break
    line = line.slice(0, start) + line.slice(end + 1)
  }
  return line
}

module.exports = { MAX, createLoopFolding, fold }
