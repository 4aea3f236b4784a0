'use strict'

// Values by key. For queries, not for the hot path: hooks do not call it.

/**
 * Returns a map's value for a key; makes and adds the value if it is missing.
 * @template K
 * @template V
 * @param {Pick<Map<K, V>, 'get' | 'has'> & { set: (key: K, value: V) => unknown }} map Map or WeakMap
 * @param {K} key
 * @param {(key: K) => V} make
 * @returns {V}
 */
function getOrAdd (map, key, make) {
  let value = map.get(key)
  if (value === undefined && !map.has(key)) map.set(key, value = make(key))
  return /** @type {V} */ (value)
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

/**
 * A map with a maximum number of entries.
 * @template K, V
 * @extends {Map<K, V>}
 */
class BoundedMap extends Map {
  omitted = 0 // number of times that there was no room

  /** @param {number} [max] */
  constructor (max = Infinity) {
    super()
    this.max = max
  }

  /**
   * Returns the value of a key, and creates it if it is missing.
   * @param {K} key
   * @param {() => V} create
   * @returns {V | undefined} undefined if there is no room for it
   */
  find (key, create) {
    if (!this.has(key) && this.size >= this.max) {
      this.omitted++
      return undefined
    }
    return getOrAdd(this, key, create)
  }
}

/** @returns {any[]} */
const newList = () => []

/** @returns {Map<any, any>} */
const newMap = () => new Map()

module.exports = { BoundedMap, getOrAdd, groupBy, newList, newMap }
