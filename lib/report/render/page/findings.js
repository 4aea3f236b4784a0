'use strict'

// The verdict and the failures of the page.

const { NAME_CHARS, figures, number, optionalText, records, text } = require('./values')
const { sparse } = require('./series')

/**
 * @typedef {import('./thinning').Thinning} Thinning
 *
 * @typedef {object} PageFinding
 * @property {string} rule
 * @property {string} sentence
 * @property {string} advice
 * @property {string} [route]
 * @property {string} [at]
 * @property {Record<string, number>} figures lostMs and share
 *
 * @typedef {object} PageFailure
 * @property {string} type
 * @property {string} message
 * @property {string} [at]
 * @property {Array<{ name: string, count: number }>} routes
 * @property {Record<string, number>} figures count, firstUnixMs, lastUnixMs
 * @property {number} [stack]
 * @property {string} [traceId]
 * @property {string} [spanId]
 * @property {import('./series').Sparse} [byBucket] count
 */

const MAX_FINDINGS = 20
const MAX_ROUTES = 20
const SENTENCE_CHARS = 1000

/** @param {unknown} list @returns {PageFinding[]} */
function createVerdict (list) {
  const valid = records(list).filter(({ sentence }) => typeof sentence === 'string')
  return valid.slice(0, MAX_FINDINGS).map((finding) => ({
    rule: text(finding.rule ?? '', 40),
    sentence: text(finding.sentence, SENTENCE_CHARS),
    advice: text(finding.advice ?? '', SENTENCE_CHARS),
    route: optionalText(finding.route, NAME_CHARS),
    at: optionalText(finding.at, NAME_CHARS),
    figures: figures(finding, ['lostMs', 'share'])
  }))
}

/** @param {unknown} list @param {number} buckets @param {Thinning} thinning @returns {PageFailure[]} */
function createFailures (list, buckets, thinning) {
  return thinning.first(list, thinning.limits.rows, 'kinds of failures').map((failure) => ({
    type: text(failure.type ?? '', 100),
    message: text(failure.message ?? '', SENTENCE_CHARS),
    at: optionalText(failure.at, NAME_CHARS),
    routes: records(failure.routes).slice(0, MAX_ROUTES).map(({ name, count }) =>
      ({ name: text(name ?? ''), count: number(count) ?? 0 })),
    figures: figures(failure, ['count', 'firstUnixMs', 'lastUnixMs']),
    stack: thinning.addStack(failure.stack),
    traceId: optionalText(failure.traceId, 32),
    spanId: optionalText(failure.spanId, 16),
    byBucket: sparse(failure.byBucket, 1, buckets, thinning)
  }))
}

module.exports = { createFailures, createVerdict }
