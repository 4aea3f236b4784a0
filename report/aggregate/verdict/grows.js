'use strict'

// Handles that are opened again and again, and never closed: files, sockets, timers.

const { amount, isRecord, list, text } = require('../../read/values')
const { shortFrame } = require('../../../lib/text')

const MAX_GROUPS = 20 // per record
const MAX_RECORDS = 1000
const MIN_MORE = 20
const MIN_MS = 3000
const MAX_NAMED = 3

/** @typedef {{ noun: string, at: string, more: number, count: number, ms: number }} Grown */

class GrowthFacts {
  /** @type {Grown[]} */
  grown = []

  /** @param {import('../../read/span-line').Span} record */
  add ({ attributes }) {
    for (const group of list(attributes['longstack.growth'], MAX_GROUPS).filter(isRecord)) {
      const [noun, place] = [text(group.noun, 100), text(group.at, 1000)]
      const [more, count, ms] = [group.more, group.count, group.ms].map(amount)
      if (noun === undefined || place === undefined || this.grown.length === MAX_RECORDS) continue
      if (more === undefined || count === undefined || ms === undefined) continue
      this.grown.push({ noun, at: place, more, count, ms })
    }
  }
}

/**
 * Reports handles of one opener whose number grew steadily.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules: intervals of requests
 * @returns {import('./index').Fault[]}
 */
function grows ({ growth: { grown } }, faults) {
  const known = new Set(faults.map(({ rule, at: frame }) => rule === 'interval' ? frame : undefined))
  const isFrame = (/** @type {string} */ site) => shortFrame(site) !== site
  return grown.filter(({ at: site }) => isFrame(site) && !known.has(site))
    .filter(({ more, ms }) => more >= MIN_MORE && ms >= MIN_MS)
    .sort((a, b) => b.more - a.more).slice(0, MAX_NAMED)
    .map(({ noun, at: site, more, count, ms }) =>
      ({ rule: 'grows', at: site, lostMs: 0, share: 0, figures: { noun, more, open: count, ms } }))
}

module.exports = { GrowthFacts, grows }
