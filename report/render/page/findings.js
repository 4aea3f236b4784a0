'use strict'

// The verdict of the page, its failures, and what changed between two runs.

const { NAME_CHARS, array, figures, number, optionalText, records, text } = require('./values')
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
 *
 * @typedef {object} PageChange of a site where requests waited, or of a blocker
 * @property {string} [route]
 * @property {string} [name] of a blocker
 * @property {string} [at]
 * @property {string[]} callers innermost first
 * @property {string} [until]
 * @property {Record<string, number>} figures beforeMs, afterMs, change: per request
 */

const MAX_FINDINGS = 20
const MAX_CALLERS = 8
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

/** @param {unknown} list @param {number} max @returns {PageChange[]} */
function createChanges (list, max) {
  return records(list).slice(0, max).map((change) => ({
    route: optionalText(change.route, NAME_CHARS),
    name: optionalText(change.name, NAME_CHARS),
    at: optionalText(change.at, NAME_CHARS),
    callers: array(change.callers).slice(0, MAX_CALLERS).map((caller) => text(caller)),
    until: optionalText(change.until, NAME_CHARS),
    figures: figures(change, ['beforeMs', 'afterMs', 'change'])
  }))
}

module.exports = { createChanges, createFailures, createVerdict }
