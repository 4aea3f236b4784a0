'use strict'

// Values by key. For what is asked now and then: hooks call no function for it.

/**
 * Returns what a map has by a key; where it has nothing, that is made and added (Node 24 lacks
 * Map.prototype.getOrInsertComputed).
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
 * Returns the elements that have the same key, for each key (Map.groupBy comes with Node 21).
 * @template T
 * @param {T[]} list
 * @param {(element: T) => string} keyOf
 * @returns {T[][]} in the order of their first ones
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
