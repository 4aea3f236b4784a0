'use strict'

// Values by key. For queries, not for the hot path: hooks do not call it.

/**
 * Returns a map's value for a key; makes and adds the value if it is missing (Node 24 lacks
 * @template K
 * @template V
 * @param {Map<K, V>} map
 * @param {K} key
 * @param {(key: K) => V} make
 * @returns {V}
 */
function getOrAdd (map, key, make) {
  if (!map.has(key)) map.set(key, make(key))
  return /** @type {V} */ (map.get(key))
}

/**
 * Groups elements by key (Map.groupBy comes with Node 21).
 * @template T
 * @param {T[]} list
 * @param {(element: T) => string} keyOf
 * @returns {T[][]} in the order of their first elements
 */
function groupBy (list, keyOf) {
  /** @type {Map<string, T[]>} */
  const groups = new Map()
  for (const element of list) getOrAdd(groups, keyOf(element), newList).push(element)
  return [...groups.values()]
}

/** @returns {any[]} */
const newList = () => []

/** @returns {Map<any, any>} */
const newMap = () => new Map()

module.exports = { getOrAdd, groupBy, newList, newMap }
