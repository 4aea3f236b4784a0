'use strict'

// The sites where the requests of a route waited, packed: each name once in a table.

const { figures, isRecord, number, records, roundMs, text } = require('./values')
const { sparse } = require('./series')

/**
 * @typedef {import('./thinning').Thinning} Thinning
 *
 * @typedef {object} PageSite names are indexes in the table of names
 * @property {number} [at]
 * @property {number[]} callers innermost first
 * @property {number} [until]
 * @property {Record<string, number>} figures ms, count, spans, delayed, min … max of what one request waited
 * @property {import('./series').Sparse} [byBucket] ms, count
 */

const MAX_CALLERS = 8
const MAX_TIMED = 12 // sites of a route with sums along time
const FIGURES = ['ms', 'count', 'spans', 'delayed']
const SUMMARY = ['min', 'q1', 'median', 'q3', 'max']

/**
 * @param {unknown} list
 * @param {number} max
 * @param {number} buckets
 * @param {Thinning} thinning
 * @returns {PageSite[]} worst first
 */
function createSites (list, max, buckets, thinning) {
  const valid = records(list).filter(({ ms }) => number(ms) !== undefined)
  return valid.slice(0, max).map((site, rank) => {
    const callers = Array.isArray(site.callers) ? site.callers.slice(0, MAX_CALLERS) : []
    return {
      at: nameOf(site.at, thinning),
      callers: callers.map((/** @type {unknown} */ caller) => thinning.addName(text(caller))),
      until: nameOf(site.until ?? site.label, thinning),
      figures: rounded({ ...figures(site, FIGURES), ...figures(site.summary, SUMMARY) }),
      byBucket: rank < MAX_TIMED ? sparse(site.byBucket, 2, buckets, thinning, 'siteSums') : undefined
    }
  })
}

/** @param {unknown} name @param {Thinning} thinning */
function nameOf (name, thinning) {
  return typeof name === 'string' && name !== '' ? thinning.addName(text(name)) : undefined
}

/** @param {Record<string, number>} source */
function rounded (source) {
  return Object.fromEntries(Object.entries(source).map(([name, value]) => [name, roundMs(value)]))
}

/** @param {any} source @returns {{ count: number, ms: number } | undefined} what sites past the list took */
function createOtherSites (source) {
  if (!isRecord(source) || number(source.ms) === undefined) return undefined
  return { count: number(source.count) ?? 0, ms: roundMs(source.ms) }
}

module.exports = { createOtherSites, createSites }
