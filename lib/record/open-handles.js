'use strict'

// Counts open handles by opener, so that a reader can see which ones grow. This happens at most once a second
// and takes at most 1 % of the time.

const { drain } = require('../handles/list')
const { SiteFigures } = require('../handles/site-figures')

const MIN_GROWN = 10 // of one opener; fewer cannot have grown
const MAX_GROUPS = 20 // the largest ones
const REST = 100 // ms per ms of counting

/** @type {SiteFigures | undefined} */
let figures

/**
 * @param {boolean} isWhole openers of few, too
 * @returns {Array<[noun: string, site: string, count: number]> | undefined} undefined if it is too early
 */
function read (isWhole) {
  figures ??= new SiteFigures(REST)
  const before = figures.open
  drain(figures.countHandles())
  if (figures.open === before) return undefined
  const minCount = isWhole ? 1 : MIN_GROWN
  const groups = figures.open.groups.filter(({ count }) => count >= minCount).slice(0, MAX_GROUPS)
  return groups.map(({ noun, site, count }) => [noun, site, count])
}

module.exports = { read }
