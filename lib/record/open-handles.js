'use strict'

// Counts open handles by opener, so that a reader can see which ones grow. This happens at most once a second
// and takes at most 1 % of the time.

const { drain } = require('../handles/list')
const { groupBy } = require('../group-by')
const { SiteFigures } = require('../handles/site-figures')

const MIN_GROWN = 10 // minimum of handles of one opener; fewer cannot have grown
const MAX_GROUPS = 20 // number of largest openers
const REST = 100 // ms per ms of counting

/** @type {SiteFigures | undefined} */
let figures

/**
 * @param {boolean} isWhole openers with few handles, too
 * @returns {[groups: Array<[noun: string, site: string, count: number, keeping: number]>, all: number]
 *   | undefined} keeping: those of `count` that keep the process alive; undefined if it is too early
 */
function read (isWhole) {
  figures ??= new SiteFigures(REST)
  const before = figures.open
  drain(figures.countHandles())
  if (figures.open === before) return undefined
  const minCount = isWhole ? 1 : MIN_GROWN
  const byOpener = groupBy(figures.open.groups, ({ noun, site }) => JSON.stringify([noun, site]))
  /** @type {Array<[string, string, number, number]>} */
  const groups = byOpener.map((same) => {
    const [count, keeping] = [sum(same.map(({ count }) => count)), sum(same.map(({ keeping }) => keeping))]
    return [same[0].noun, same[0].site, count, keeping]
  })
  const largest = groups.filter(([, , count]) => count >= minCount).sort((a, b) => b[2] - a[2])
  return [largest.slice(0, MAX_GROUPS), figures.open.count]
}

/** @param {number[]} counts */
const sum = (counts) => counts.reduce((all, count) => all + count, 0)

module.exports = { read }
