'use strict'

// What is certainly at fault, first of all: each finding with its advice and links to where it shows, the row
// of its wait or blocker, its frame, its route.

const { openFlame } = require('./critical-paths')
const { isComparison, labels, runs } = require('./data')
const { badge, foreign, h, link, moveTo } = require('./dom')
const { percent, time } = require('./format')
const { EVERYTHING, select } = require('./selection')
const { tables } = require('./tables')
const { framesOf } = require('./words')

/** @typedef {import('../data').PageRun['verdict'][number]} Finding */

/** @type {Record<string, string>} */
const rules = {
  blocker: 'blocked event loop',
  pool: 'pool is the limit',
  sequence: 'one after the other',
  dependency: 'slow dependency',
  interval: 'leaked interval',
  delayer: 'delays others'
}

/** @returns {any} undefined where nothing is known */
function verdict () {
  const [{ verdict: findings, tree }] = runs
  if (findings.length === 0) {
    return tree && h('p', { class: 'note verdict' }, 'No rule of the verdict is sure of a fault.')
  }
  const title = findings.length === 1 ? 'What to change' : `What to change: ${findings.length} findings`
  const inRun = isComparison && h('small', {}, ' in ', foreign(labels[0]))
  return h('section', { class: 'verdict', id: 'verdict' }, h('h2', {}, title, inRun),
    h('ol', { class: 'findings' }, findings.map(item)))
}

/** @param {Finding} finding */
function item (finding) {
  const { rule, sentence, advice, lostMs, share } = finding
  const remarks = [lostMs > 0 && `explains ${time(lostMs)}`, share > 0 && `${percent(share)} of the time`]
  return h('li', {},
    h('p', { class: 'rule' }, badge(rules[rule] ?? rule), h('small', {}, remarks.filter(Boolean).join(', '))),
    h('p', { class: 'sentence' }, foreign(sentence)),
    h('p', { class: 'advice' }, foreign(sentenceOf(advice))),
    h('p', { class: 'see' }, linksOf(finding)))
}

/** Begins with a capital letter and ends with a full stop. @param {string} text */
function sentenceOf (text) {
  return `${text[0].toUpperCase()}${text.slice(1)}`.replace(/[^.!?]$/, '$&.')
}

/** @param {Finding} finding */
function linksOf ({ route, at: frame }) {
  if (frame === undefined) return route === undefined ? [] : [linkToRoute(route)]
  const sites = runs[0].routes.flatMap(({ name, sites: ofRoute }) => ofRoute.map((site) => ({ name, site })))
  const isThere = (/** @type {{ at?: string, callers: string[] }} */ site) =>
    site.at === frame || site.callers.includes(frame)
  const first = sites.find(({ name, site }) => isThere(site) && (route === undefined || name === route))
  const frames = first === undefined ? [] : framesOf(first.site)
  const open = first && openFlame(first.name, frames.slice(0, frames.indexOf(frame) + 1))
  /** @param {string} text @param {any} table @param {(row: any) => boolean} matches */
  const linkToRow = (text, table, matches) => link(text, () => { select(EVERYTHING); table?.reveal(matches) })
  return [
    first && linkToRow('show its waits', tables.waits,
      (row) => isThere(row) && row.route.name === first.name),
    open && link('show it in the flame graph', open),
    runs[0].blockers.some((row) => row.at === frame) &&
      linkToRow('show the blocker', tables.blockers, (row) => row.at === frame),
    route !== undefined && linkToRoute(route)
  ]
}

/** @param {string} route */
const linkToRoute = (route) => link(`show only ${route}`, () => {
  select({ ...EVERYTHING, text: route.toLowerCase() })
  moveTo('time')
})

module.exports = { verdict }
