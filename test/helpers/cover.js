'use strict'

// Selects some of all combinations of values, so that each possible group of `strength` values occurs in at
// least one: strength 1 covers each value, 2 each pair of values, 3 each triple. The selection is
// deterministic.

/** @typedef {Record<string, string>} Combination value of each dimension, by its name */

/**
 * @param {Record<string, readonly string[]>} dimensions
 * @param {number} strength
 * @param {(combination: Partial<Combination>) => boolean} isPossible also called with partial combinations:
 *   returns false only if no value of the missing dimensions helps
 * @returns {Combination[]}
 */
function cover (dimensions, strength, isPossible) {
  const names = Object.keys(dimensions)
  const missing = new Set()
  /** @type {Map<string, Partial<Combination>>} */
  const groups = new Map()
  for (const chosen of subsets(names, strength)) {
    for (const group of product(chosen, dimensions)) {
      if (!isPossible(group)) continue
      groups.set(keyOf(group, chosen), group)
      missing.add(keyOf(group, chosen))
    }
  }
  const others = subsets(names, strength - 1)
  /** Counts missing groups completed by a value. @param {Partial<Combination>} row @param {string} name */
  const gain = (row, name) => {
    let count = 0
    for (const rest of others) {
      if (rest.includes(name) || rest.some((other) => row[other] === undefined)) continue
      if (missing.has(keyOf(row, names.filter((other) => other === name || rest.includes(other))))) count++
    }
    return count
  }
  /** @type {Combination[]} */
  const rows = []
  for (const [key, group] of groups) {
    if (!missing.has(key)) continue
    const row = { ...group }
    for (const name of names.filter((one) => row[one] === undefined)) {
      const all = dimensions[name]
      const start = rows.length % all.length // rotates values of equal gain
      const values = [...all.slice(start), ...all.slice(0, start)]
        .filter((value) => isPossible({ ...row, [name]: value }))
      const gains = values.map((value) => gain({ ...row, [name]: value }, name))
      row[name] = values[gains.indexOf(Math.max(...gains))]
    }
    for (const chosen of subsets(names, strength)) missing.delete(keyOf(row, chosen))
    rows.push(/** @type {Combination} */ (row))
  }
  return rows
}

/** @param {Partial<Combination>} row @param {string[]} names */
const keyOf = (row, names) => names.map((name) => `${name}=${row[name]}`).join('|')

/** @param {string[]} names @param {number} size @returns {string[][]} */
function subsets (names, size) {
  if (size === 0) return [[]]
  return names.flatMap((name, i) => subsets(names.slice(i + 1), size - 1).map((rest) => [name, ...rest]))
}

/** @param {string[]} names @param {Record<string, readonly string[]>} dimensions @returns {Combination[]} */
function product ([name, ...others], dimensions) {
  if (name === undefined) return [{}]
  const rests = product(others, dimensions)
  return dimensions[name].flatMap((value) => rests.map((rest) => ({ [name]: value, ...rest })))
}

module.exports = { cover }
