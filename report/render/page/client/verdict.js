'use strict'

// What is certainly at fault, first of all: each finding with its advice and links to where it shows, the row
// of its wait or blocker, its frame, its route.

/* global document */

const { badge } = require('./columns')
const { foreign, h } = require('./dom')
const { isNumber, percent, time } = require('./format')
const { isComparison, labels, runs } = require('./page-data')
const { finding } = require('./overview')

/**
 * @typedef {import('../findings').PageFinding} PageFinding
 * @typedef {import('./filter').Filter} Filter
 * @typedef {import('./selected').SelectedSite} SelectedSite
 *
 * @typedef {object} Targets of the first run, as far as the page has them
 * @property {{ table: import('./table').Table<SelectedSite>, sites: SelectedSite[] } | undefined} waits
 * @property {{ table: import('./table').Table<import('../rows').PageRow> } | undefined} blockers
 * @property {{ open: (route: string, frames: string[]) => void } | undefined} paths
 */

const NOTHING = { range: undefined, text: '', status: /** @type {const} */ ('all') }

/** @type {Record<string, string>} */
const rules = {
  blocker: 'blocked event loop',
  pool: 'pool is the limit',
  sequence: 'one after the other',
  dependency: 'slow dependency',
  interval: 'leaked interval',
  delayer: 'delays others'
}

/**
 * @param {(found: PageFinding) => Array<[text: string, open: () => void]>} linksOf
 * @returns {any} an HTMLElement or undefined
 */
function createVerdict (linksOf) {
  const [{ verdict, tree }] = runs
  if (verdict.length === 0) {
    const none = tree !== undefined && h('p', { class: 'note' }, 'No rule of the verdict is sure of a fault.')
    const worst = finding()
    return worst || none ? h('div', { class: 'verdict' }, worst, none) : undefined
  }
  const title = verdict.length === 1 ? 'What to change' : `What to change: ${verdict.length} findings`
  const inRun = isComparison && h('small', {}, ' in ', foreign(labels[0]))
  return h('section', { class: 'verdict', id: 'verdict' }, h('h2', {}, title, inRun),
    h('ol', { class: 'findings' }, verdict.map((found) => item(found, linksOf(found)))))
}

/** @param {PageFinding} found @param {Array<[string, () => void]>} links */
function item ({ rule, sentence, advice, figures: { lostMs, share } }, links) {
  const lost = isNumber(lostMs) && lostMs > 0 && `explains ${time(lostMs)}`
  const part = isNumber(share) && share > 0 && `${percent(share)} of the time`
  const remark = [lost, part].filter(Boolean).join(', ')
  return h('li', {},
    h('p', { class: 'rule' }, badge(rules[rule] ?? rule), h('small', {}, remark)),
    h('p', { class: 'sentence' }, foreign(sentence)),
    advice !== '' && h('p', { class: 'advice' }, foreign(sentenceOf(advice))),
    links.length > 0 && h('p', { class: 'see' }, links.map(([text, open]) =>
      h('button', { type: 'button', class: 'link', on: { click: open } }, text))))
}

/** Begins with a capital letter and ends with a full stop. @param {string} text */
function sentenceOf (text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** @param {Filter} filter @param {Targets} targets */
function createLinks (filter, { waits, blockers, paths }) {
  /**
   * Returns the links of a finding.
   * @param {PageFinding} found
   * @returns {Array<[text: string, open: () => void]>}
   */
  return ({ route, at: frame }) => {
    /** @type {Array<[string, () => void]>} */
    const links = []
    const site = waits?.sites.find((candidate) =>
      isAt(candidate, frame) && (route === undefined || candidate.route.name === route))
    if (frame !== undefined && site !== undefined) {
      const isSame = (/** @type {SelectedSite} */ candidate) =>
        isAt(candidate, frame) && candidate.route.name === site.route.name
      links.push(['show its waits', () => { filter.set(NOTHING); waits?.table.reveal(isSame) }])
      if (paths !== undefined) {
        links.push(['show it in the flame graph', () => paths.open(site.route.name, framesTo(site, frame))])
      }
    }
    if (frame !== undefined && runs[0].blockers.some((row) => row.at === frame)) {
      const reveal = () => { filter.set(NOTHING); blockers?.table.reveal((row) => row.at === frame) }
      links.push(['show the blocker', reveal])
    }
    if (route !== undefined) links.push([`show only ${route}`, () => showOnly(route, filter)])
    return links
  }
}

/** @param {SelectedSite} site @param {string | undefined} frame */
function isAt (site, frame) {
  if (frame === undefined) return false
  return site.at === frame || site.callers.includes(frame)
}

/** @param {SelectedSite} site @param {string} frame @returns {string[]} from the outermost caller to it */
function framesTo ({ at: innermost, callers }, frame) {
  const frames = [...callers].reverse().concat(innermost ?? [])
  return frames.slice(0, frames.indexOf(frame) + 1)
}

/** @param {string} route @param {Filter} filter */
function showOnly (route, filter) {
  filter.set({ ...NOTHING, text: route.toLowerCase() })
  document.getElementById('time')?.scrollIntoView()
}

module.exports = { createLinks, createVerdict }
