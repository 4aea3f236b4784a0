'use strict'

// Waits and blockers that changed most between two runs, as text.

const { grouped, time, word } = require('./text-parts')
const { changeText } = require('./text-limits')
const { placeText } = require('./text-sites')
const { glued } = require('./wrap')

/**
 * @typedef {import('../aggregate/changes').Changes} Changes
 * @typedef {import('../aggregate/changes').SiteChange} SiteChange
 * @typedef {import('../aggregate/changes').BlockerChange} BlockerChange
 * @typedef {import('./text-context').Context} Context
 */

const [SHORT_CHANGES, FULL_CHANGES] = [5, 20]
const MIN_CHANGE = 0.02 // of the largest change, below which one is left out

/**
 * @param {Changes | undefined} changes
 * @param {string[]} routes that are printed
 * @param {Context} context
 * @returns {string[][]} a section for waits, one for blockers
 */
function changeLines (changes, routes, context) {
  if (changes === undefined) return []
  const names = new Set(routes)
  const sites = notable(changes.sites.filter(({ route }) => names.has(route)), ({ changeMs }) => changeMs)
  const blockers = notable(changes.blockers, ({ change }) => change)
  return [
    section('Waits that changed most', sites, context, (site) =>
      `${glued(word(site.route))} ${placeText(site, context)}`),
    section('Blockers that changed most', blockers, context, ({ name, at: frame }) =>
      `${glued(word(name))}${frame === undefined ? '' : ` ${placeText({ at: frame }, context)}`}`)
  ]
}

/**
 * Keeps the changes that matter beside the largest, in their order.
 * @template T
 * @param {T[]} changes
 * @param {(change: T) => number} size
 */
function notable (changes, size) {
  const largest = Math.max(0, ...changes.map((change) => Math.abs(size(change))))
  return changes.filter((change) => Math.abs(size(change)) >= MIN_CHANGE * largest)
}

/**
 * @template {SiteChange | BlockerChange} T
 * @param {string} title
 * @param {T[]} changes
 * @param {Context} context
 * @param {(change: T) => string} nameOf
 */
function section (title, changes, { colours, isFull, top, paragraph }, nameOf) {
  if (changes.length === 0) return []
  const max = top ?? (isFull ? FULL_CHANGES : SHORT_CHANGES)
  const lines = changes.slice(0, max).flatMap((change) => {
    const { beforeMs, afterMs } = change
    const difference = `${change.change < 0 ? '−' : '+'}${time(Math.abs(change.change))}`
    const colour = change.change > 0 ? colours.red : colours.green
    const figures = glued(`(${time(beforeMs)} → ${time(afterMs)}, ${changeText(beforeMs, afterMs)})`)
    return paragraph(`${colour(glued(difference.padStart(9)))} ${nameOf(change)} ${figures}`, ' ', '    ')
  })
  const more = changes.length > max ? [`  … ${grouped(changes.length - max)} more`] : []
  return [`${colours.bold(title)}  per request`, ...lines, ...more]
}

module.exports = { changeLines, notable }
