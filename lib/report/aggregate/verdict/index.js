'use strict'

// What is certainly at fault, by rules with names. A rule that is not sure returns nothing.

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
 */

/**
 * @param {import('../model').Model} model complete but for the verdict
 * @returns {Finding[]} worst first; empty if no fault is certain
 */
function verdictOf (model) {
  return []
}

module.exports = { verdictOf }
