'use strict'

// What is certainly at fault, by rules with names. A rule that is not sure returns nothing: each states where
// it speaks, and why its limits are what they are.

const { blocker } = require('./blocker')
const { delayer } = require('./delayer')
const { dependency } = require('./dependency')
const { interval } = require('./interval')
const { pool } = require('./pool')
const { sequence } = require('./sequence')

const MIN_SHARE_OF_ALL = 0.01 // of the time of all requests
const MAX_FINDINGS = 20

/**
 * @typedef {object} Finding
 * @property {'blocker' | 'pool' | 'sequence' | 'dependency' | 'interval' | 'delayer'} rule
 * @property {string} [route]
 * @property {string} [at]
 * @property {number} lostMs time of requests that it explains
 * @property {number} share from 0 to 1, of the time of the requests of that route, or of all
 * @property {string} sentence
 * @property {string} advice
 * @property {Record<string, number | string>} figures
 *
 * @typedef {object} Evidence
 * @property {import('../model').Model} model
 * @property {Array<{ name: string, facts: import('./facts').RouteFacts }>} routes of requests
 * @property {number} totalMs of all requests
 * @property {import('./interval').IntervalFacts} intervals
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
  /** @type {Finding[]} */
  const findings = []
  for (const rule of [blocker, pool, sequence, dependency, delayer, interval]) {
    findings.push(...rule(evidence, findings))
  }
  return findings
    .filter(({ rule, lostMs }) => rule === 'interval' || lostMs >= totalMs * MIN_SHARE_OF_ALL)
    .sort((a, b) => b.lostMs - a.lostMs)
    .slice(0, MAX_FINDINGS)
}

module.exports = { verdictOf }
