'use strict'

// Open handles of a thread over its recording, by opener: one record at the end, of those that became more.

const { BoundedMap, newMap } = require('../../lib/group-by')
const { factsRecord } = require('./facts-record')

const MAX_OPENERS = 1000
const MAX_LOOKS = 64 // every second one is dropped when there are more
const MIN_MORE = 10

class HandleCounts {
  #looks = 0
  #stride = 1 // looks per look that is kept
  /** ms of the clock @type {number[]} */
  #times = []
  /** counts by time, by noun and place of the opener @type {BoundedMap<string, Map<number, number>>} */
  #openers = new BoundedMap(MAX_OPENERS)
  /**
   * the last look, the most first; keeping: of count, those that keep the process alive
   * @type {Array<{ noun: string, at: string, count: number, keeping: unknown }>}
   */
  latest = []
  /** ms of the clock @type {number | undefined} */
  lookedAt
  /** number of all, also of those that are not in `latest` @type {unknown} */
  all

  /** @param {unknown} handles of a text */
  add (handles) {
    if (!Array.isArray(handles)) return
    const [at, groups, all] = handles
    if (!Number.isFinite(at) || !Array.isArray(groups)) return
    this.latest = groups.filter((group) => Array.isArray(group) && Number.isFinite(group[2]))
      .map(([noun, place, count, keeping]) => ({ noun: String(noun), at: String(place), count, keeping }))
    this.lookedAt = at
    this.all = all
    if (this.#looks++ % this.#stride !== 0) return
    this.#times.push(at)
    for (const { noun, at: place, count } of this.latest) {
      this.#openers.find(JSON.stringify([noun, place]), newMap)?.set(at, count)
    }
    if (this.#times.length > MAX_LOOKS) this.#thinOut()
  }

  #thinOut () {
    const dropped = this.#times.filter((_, i) => i % 2 === 1)
    this.#times = this.#times.filter((_, i) => i % 2 === 0)
    this.#stride *= 2
    for (const counts of this.#openers.values()) for (const at of dropped) counts.delete(at)
  }

  /**
   * @param {import('./source-texts').SourceTexts} texts
   * @returns {object | undefined} undefined if there are no more than at first
   */
  record (texts) {
    const [first, last] = [this.#times[0], this.#times[this.#times.length - 1]]
    const openers = [...this.#openers].flatMap(([key, counts]) => {
      if (!((counts.get(last) ?? 0) - (counts.get(first) ?? 0) >= MIN_MORE)) return []
      const [noun, place] = JSON.parse(key)
      return [{ noun, at: place, counts: this.#times.map((at) => [at - first, counts.get(at) ?? 0]) }]
    })
    if (openers.length === 0) return undefined
    return factsRecord('open handles', { 'longstack.handles': openers }, last, texts)
  }
}

module.exports = { HandleCounts }
