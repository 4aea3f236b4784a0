'use strict'

// Code outside of any request: the time it ran, summed by the place that scheduled it, in one record at the
// end.

const { textsOf } = require('../../lib/encoding/span-form')
const { getOrAdd } = require('../../lib/group-by')
const { factsRecord } = require('./facts-record')
const { Latest } = require('./latest')

const MAX_CHAINS = 5000
const MAX_PLACES = 10 // in the record, longest first
const MIN_BUSY = 0.2 // share of the recorded time; less does not matter

/**
 * @typedef {import('./source-texts').SourceTexts} SourceTexts
 * @typedef {{ ms: number, count: number, maxMs: number }} Sums count: parts that ran without a break
 */

class Background {
  /** @type {Latest<Sums>} */
  #chains = new Latest(MAX_CHAINS)

  /** @param {number} chain @param {number} ms that it ran without a break */
  add (chain, ms) {
    const sums = getOrAdd(this.#chains, chain, () => ({ ms: 0, count: 0, maxMs: 0 }))
    sums.ms += ms
    sums.count++
    sums.maxMs = Math.max(sums.maxMs, ms)
  }

  /**
   * @param {import('./thread-load').LoopLoad} load
   * @param {SourceTexts} texts
   * @returns {object | undefined} undefined if little ran
   */
  record ({ begin, end }, texts) {
    /** @type {Map<string, Sums & ReturnType<typeof textsOf>>} */
    const places = new Map()
    for (const [chain, { ms, count, maxMs }] of this.#chains) {
      const site = textsOf(texts.siteOf(chain))
      const sums = getOrAdd(places, JSON.stringify(site), () => ({ ...site, ms: 0, count: 0, maxMs: 0 }))
      sums.ms += ms
      sums.count += count
      sums.maxMs = Math.max(sums.maxMs, maxMs)
    }
    const all = [...places.values()].sort((a, b) => b.ms - a.ms)
    const ranMs = all.reduce((sum, place) => sum + place.ms, 0)
    if (ranMs < (end - begin) * MIN_BUSY) return undefined
    const sums = { ranMs, recordedMs: end - begin }
    const longest = all.slice(0, MAX_PLACES).map((place) => ({ ...place, ...sums }))
    return factsRecord('background', { 'longstack.background': longest }, end, texts)
  }
}

module.exports = { Background }
