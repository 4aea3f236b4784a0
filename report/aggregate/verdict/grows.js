'use strict'

// Handles that are opened again and again, and never closed: files, sockets, timers.

const { shortFrame } = require('../../../lib/text')
const { amount, isRecord, list, text } = require('../../read/values')
const { growthOf } = require('../growth')

const MAX_OPENERS = 1000 // per record
const MAX_LOOKS = 100
const MAX_GROWN = 1000
const MIN_MORE = 20
const MIN_MS = 3000
const MIN_PER_CLIENT = 2 // with more clients, there may be a timer or a connection for each
const ACCEPTED = /^(?:TLS )?connection accepted/ // opener of connections from clients
const MAX_NAMED = 3

/** @typedef {{ noun: string, at: string, more: number, count: number, ms: number }} Grown */

class GrowthFacts {
  /** @type {Grown[]} */
  grown = []

  /** @param {import('../../read/span-line').Span} record */
  add ({ attributes }) {
    const openers = list(attributes['longstack.handles'], MAX_OPENERS).filter(isRecord)
    const clients = openers.filter(({ at: place }) => ACCEPTED.test(String(place)))
    const moreClients = Math.max(0, ...clients.map((opener) => moreOf(countsOf(opener))))
    const minMore = Math.max(MIN_MORE, MIN_PER_CLIENT * moreClients)
    for (const opener of openers) {
      const [noun, place, counts] = [text(opener.noun, 100), text(opener.at, 1000), countsOf(opener)]
      const more = growthOf(counts)
      if (noun === undefined || place === undefined || more === undefined || more < minMore) continue
      const [ms, count] = counts[counts.length - 1]
      if (this.grown.length < MAX_GROWN) this.grown.push({ noun, at: place, more, count, ms })
    }
  }
}

/** @param {Record<string, unknown>} opener @returns {number[][]} ms and count of each look */
const countsOf = ({ counts }) =>
  list(counts, MAX_LOOKS).map((point) => list(point, 2).map((figure) => amount(figure) ?? NaN))

/** @param {number[][]} counts */
const moreOf = (counts) => counts.length === 0 ? 0 : counts[counts.length - 1][1] - counts[0][1] || 0

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
    .filter(({ ms }) => ms >= MIN_MS)
    .sort((a, b) => b.more - a.more).slice(0, MAX_NAMED)
    .map(({ noun, at: site, more, count, ms }) =>
      ({ rule: 'grows', at: site, lostMs: 0, share: 0, figures: { noun, more, open: count, ms } }))
}

module.exports = { GrowthFacts, grows }
