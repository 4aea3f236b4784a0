'use strict'

/**
 * Lists a node of a tree and all below it, parents first.
 * @template {{ children: N[] }} N
 * @param {...N} roots
 * @returns {N[]}
 */
function allOf (...roots) {
  for (const { children } of roots) for (const child of children) roots.push(child)
  return roots
}

module.exports = { allOf }
