'use strict'

// What is certainly at fault, by rules with names. A rule that is not sure returns nothing: each states where
// it speaks, and why its limits are what they are.

const { pool } = require('./pool')
const { blocker, delayer, dependency, interval } = require('./rules')
const { findingOf } = require('./sentences')
const { sequence } = require('./sequence')

const MIN_SHARE_OF_ALL = 0.01 // of the time of all requests
const MAX_FINDINGS = 20

/**
 * @typedef {object} Fault what a rule found
 * @property {'blocker' | 'pool' | 'sequence' | 'dependency' | 'interval' | 'delayer'} rule
 * @property {string} [route]
 * @property {string} [at]
 * @property {number} lostMs time of requests that it explains
 * @property {number} share from 0 to 1, of the time of the requests of that route, or of all
 * @property {Record<string, number | string | undefined>} figures
 * @property {Record<string, unknown>} [details] what its sentence says besides
 *
 * @typedef {Omit<Fault, 'details' | 'figures'>
 *   & { figures: Record<string, number | string>, sentence: string,
 *   advice: string }} Finding
 *
 * @typedef {object} Evidence
 * @property {import('../model').Model} model
 * @property {Array<{ name: string, facts: import('./facts').RouteFacts }>} routes of requests
 * @property {number} totalMs of all requests
 * @property {import('./facts').IntervalFacts} intervals
 */

/**
 * @param {import('../model').Model} model complete but for the verdict
 * @param {Evidence['routes']} routes
 * @param {Evidence['intervals']} intervals
 * @returns {Finding[]} worst first; empty if no fault is certain
 */
function verdictOf (model, routes, intervals) {
  const totalMs = routes.reduce((sum, { facts }) => sum + facts.totalMs, 0)
  const evidence = { model, routes, totalMs, intervals }
  /** @type {Fault[]} */
  const faults = []
  for (const rule of [blocker, pool, sequence, dependency, delayer, interval]) {
    faults.push(...rule(evidence, faults))
  }
  return faults
    .filter(({ rule, lostMs }) => rule === 'interval' || lostMs >= totalMs * MIN_SHARE_OF_ALL)
    .sort((a, b) => b.lostMs - a.lostMs)
    .slice(0, MAX_FINDINGS)
    .map(findingOf)
}

module.exports = { verdictOf }
