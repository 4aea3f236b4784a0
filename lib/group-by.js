'use strict'

/**
 * Returns the elements that have the same key, for each key (Map.groupBy comes with Node 21).
 * @template T
 * @param {T[]} list
 * @param {(element: T) => string} keyOf
 * @returns {T[][]} in the order of their first ones
 */
function groupBy (list, keyOf) {
  /** @type {Map<string, T[]>} */
  const groups = new Map()
  for (const element of list) {
    const key = keyOf(element)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [element])
    else group.push(element)
  }
  return [...groups.values()]
}

module.exports = { groupBy }
