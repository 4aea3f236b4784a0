'use strict'

// Where requests waited, as text: the await site with its callers, what ended the wait, how long it was.

const { counted, percent, time, word } = require('./text-parts')
const { glued } = require('./wrap')

/**
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/sites').Site} Site
 * @typedef {import('./text-context').Context} Context
 *
 * @typedef {object} Place
 * @property {string} [at] frame
 * @property {string[]} [callers]
 * @property {string} [until]
 * @property {string} [label]
 */

const [SHORT_SITES, FULL_SITES] = [2, 10]
const LARGE_SHARE = 0.2 // of all time, below which a route has one site in short
const [SHORT_SHARE, FULL_SHARE] = [0.08, 0.001] // of a route's time, below which one is left out
const SHORT_CALLERS = 1
const SHARE_COLUMNS = 8

/**
 * Lists the sites where the requests of a route waited, worst first.
 * @param {Route} route
 * @param {number} routeShare of all time
 * @param {Context} context
 * @returns {string[]}
 */
function siteLines ({ sites, otherSites, totalMs, weighted }, routeShare, context) {
  const { isFull, paragraph, top } = context
  const max = isFull ? Math.max(top ?? 0, FULL_SITES) : routeShare < LARGE_SHARE ? 1 : SHORT_SITES
  const minShare = isFull ? FULL_SHARE : SHORT_SHARE
  const printed = sites.filter(({ ms, delayed }) => (ms + delayed) >= minShare * totalMs).slice(0, max)
  const lines = printed.flatMap((site) => siteLine(site, totalMs, context))
  if (!isFull) return lines
  const ms = sites.reduce((sum, site) => sum + (printed.includes(site) ? 0 : site.ms), otherSites?.ms ?? 0)
  if (ms < FULL_SHARE * totalMs) return lines
  const count = sites.length - printed.length + (otherSites?.count ?? 0)
  const name = count > 0 ? counted(count, 'other site') : 'other sites'
  const text = `${name}, ${glued(`${time(ms / weighted)} a request`)}`
  return [...lines, ...paragraph(text, indentOf(ms / totalMs))]
}

/** @param {Site} site @param {number} totalMs of the route @param {Context} context */
function siteLine (site, totalMs, context) {
  const { ms, count, spans, delayed, summary } = site
  const { colours, isFull, paragraph } = context
  const figures = [glued(`${time(ms)} in ${counted(count, 'wait')}`)]
  if (summary !== undefined) {
    const { q1, median, q3 } = summary
    figures.push(glued(`${time(median)} a request`) + ' ' + glued(`(${time(q1)} to ${time(q3)})`))
  }
  if (isFull && delayed >= FULL_SHARE * totalMs) {
    figures.push(glued(spans > 0 ? `delayed ${time(delayed / spans)} a request` : `delayed ${time(delayed)}`))
  }
  const place = placeText(site, context)
  return [
    ...paragraph(place, indentOf(ms / totalMs), ' '.repeat(SHARE_COLUMNS + 4)),
    ...paragraph(figures.join(', '), ' '.repeat(SHARE_COLUMNS + 2)).map((line) => colours.dim(line))
  ]
}

/** @param {number} share */
function indentOf (share) {
  return `${percent(share).padStart(SHARE_COLUMNS)}  `
}

/**
 * Formats a site: `at pool.query (pool.js:34) ← report (app.js:24) until TCP 127.0.0.1:5432`.
 * @param {Place} place
 * @param {Context} context
 */
function placeText ({ at: frame, callers = [], until, label }, { colours, frame: nameOf, isFull }) {
  const printed = isFull ? callers : callers.slice(0, SHORT_CALLERS)
  const site = frame === undefined ? glued('at an unknown site') : glued('at ') + colours.cyan(nameOf(frame))
  const chain = printed.map((caller) => `${glued('← ')}${nameOf(caller)}`)
  const end = until === undefined ? label && glued(`(${word(label)})`) : glued(`until ${word(until)}`)
  return [site, ...chain, end].filter(Boolean).join(' ')
}

module.exports = { placeText, siteLines }
