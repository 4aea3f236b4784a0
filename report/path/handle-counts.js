'use strict'

// Open handles of a thread over its recording, by opener: one record at the end, of those that grew steadily.

const { growthOf } = require('../aggregate/growth')
const { factsRecord } = require('./facts-record')
const { getOrAdd } = require('../../lib/group-by')

const MAX_OPENERS = 1000
const MAX_LOOKS = 64 // every second one is dropped when there are more

class HandleCounts {
  #looks = 0
  #stride = 1 // looks per look that is kept
  /** ms of the clock @type {number[]} */
  #times = []
  /** counts by time, by noun and place of the opener @type {Map<string, Map<number, number>>} */
  #counts = new Map()

  /** @param {unknown} handles of a text */
  add (handles) {
    if (!Array.isArray(handles)) return
    const [at, groups] = handles
    if (!Number.isFinite(at) || !Array.isArray(groups)) return
    if (this.#looks++ % this.#stride !== 0) return
    this.#times.push(at)
    for (const group of groups) {
      if (!Array.isArray(group) || !Number.isFinite(group[2])) continue
      const key = JSON.stringify([String(group[0]), String(group[1])])
      if (!this.#counts.has(key) && this.#counts.size >= MAX_OPENERS) continue
      getOrAdd(this.#counts, key, () => new Map()).set(at, group[2])
    }
    if (this.#times.length > MAX_LOOKS) this.#thinOut()
  }

  #thinOut () {
    const dropped = this.#times.filter((_, i) => i % 2 === 1)
    this.#times = this.#times.filter((_, i) => i % 2 === 0)
    this.#stride *= 2
    for (const counts of this.#counts.values()) for (const at of dropped) counts.delete(at)
  }

  /**
   * @param {import('./source-texts').SourceTexts} texts
   * @returns {object | undefined} undefined if nothing grew
   */
  record (texts) {
    const times = this.#times
    const [first, last] = [times[0], times[times.length - 1]]
    const groups = [...this.#counts].flatMap(([key, counts]) => {
      const more = growthOf(times.map((at) => [at, counts.get(at) ?? 0]))
      if (more === undefined) return []
      const [noun, place] = JSON.parse(key)
      return [{ noun, at: place, more, count: counts.get(last), ms: last - first }]
    })
    if (groups.length === 0) return undefined
    return factsRecord('open handles', { 'longstack.growth': groups }, last, texts)
  }
}

module.exports = { HandleCounts }
