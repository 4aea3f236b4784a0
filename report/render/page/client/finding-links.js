'use strict'

// Links of a finding to what it speaks of: the row of its wait or blocker, its frame, its route.

/* global document */

const { runs } = require('./page-data')

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

module.exports = { createLinks }
