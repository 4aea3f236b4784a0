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

/**
 * Groups items by a key, in the order in which they come.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @returns {T[][]}
 */
function groupsOf (items, key) {
  /** @type {Map<string, T[]>} */
  const groups = new Map()
  for (const item of items) {
    const group = groups.get(key(item))
    if (group === undefined) groups.set(key(item), [item])
    else group.push(item)
  }
  return [...groups.values()]
}

/** @template T @param {T[]} list @param {(item: T) => number} figure */
function sum (list, figure) {
  return list.reduce((total, item) => total + figure(item), 0)
}

module.exports = { allOf, groupsOf, sum }
