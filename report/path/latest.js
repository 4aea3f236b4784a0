'use strict'

/**
 * A map that keeps the latest entries.
 * @template V
 * @template [K=number]
 * @extends {Map<K, V>}
 */
class Latest extends Map {
  /** @param {number} max entries */
  constructor (max) {
    super()
    this.max = max
  }

  /** @param {K} key @param {V} value */
  set (key, value) {
    if (this.size >= this.max && !this.has(key)) this.delete(/** @type {K} */ (this.keys().next().value))
    return super.set(key, value)
  }
}

module.exports = { Latest }
