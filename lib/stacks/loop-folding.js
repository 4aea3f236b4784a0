'use strict'

// Folds the loops of a chain: steps with the same type and stack that repeat (context/fold.js).

const { fold } = require('../context/fold')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Stack} Stack
 */

const MIN_DEPTH = 8
const MAX_IDENTITIES = 200 // remembered
const LINKS = 3 // kept for each hop of the depth: internal steps make no hop

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

module.exports = { createLoopFolding }
