'use strict'

// Whether two contexts are of one flow: one is the other, or an ancestor of it.

/** @typedef {import('../core/context').Context} Context */

const MAX_ANCESTORS = 256 // the records of a loop lead through all of its turns

/** @param {Context | undefined} first @param {Context} second */
function isOneFlow (first, second) {
  return first !== undefined && (descends(first, second) || descends(second, first))
}

/**
 * Whether a context is another or descends from it.
 * @param {Context | undefined} descendant
 * @param {Context} ancestor
 */
function descends (descendant, ancestor) {
  let context = descendant
  for (let count = 0; context !== undefined && count < MAX_ANCESTORS; count++) {
    if (isSame(context, ancestor)) return true
    context = context.parent
  }
  return false
}

/**
 * Compares chains where a record is gone: nothing else is known of such a step.
 * @param {Context} first
 * @param {Context} second
 */
function isSame (first, second) {
  if (first === second) return true
  return first.ref !== 0 && second.ref !== 0 ? first.ref === second.ref : first.chain === second.chain
}

module.exports = { descends, isOneFlow, isSame }
