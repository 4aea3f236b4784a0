'use strict'

// Where the requests of each route waited: a row for each site, with who called it and what ended the wait.

const { heading, routeName } = require('./columns')
const { foreign, h } = require('./dom')
const { count, percent, time } = require('./format')
const { data, isComparison, ofRun } = require('./page-data')
const { areSitesTimed, selectedSites, timedWaits } = require('./selected')
const { createTable } = require('./table')
const { shortFrame } = require('../../../../lib/text')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('./selected').SelectedSite} SelectedSite
 * @typedef {import('./filter').Filter} Filter
 *
 * @typedef {object} Links
 * @property {((route: string, frames: string[]) => void) | undefined} openFlame
 * @property {(traceId: string, spanId?: string) => void} openRequest
 */

const QUARTILES = /** @type {Array<[string, string]>} */ ([
  ['1st Qu.', 'q1'], ['Median', 'median'], ['3rd Qu.', 'q3'], ['Max', 'max']
])

/** @param {PageRun} run @param {Filter} filter @param {Links} links */
function waitsTable (run, filter, links) {
  const table = createTable({
    caption: `Waits by await site${ofRun('of', run)}`,
    rows: selectedSites(run, filter.selection),
    sorted: 2,
    columns: [
      {
        title: 'Waited at',
        text: true,
        class: 'site',
        value: ({ at: frame = '' }) => frame,
        cell: (site) => siteCell(site, links)
      },
      {
        title: 'Route',
        text: true,
        class: 'route',
        value: ({ route }) => route.name,
        cell: ({ route }) => routeName(route)
      },
      { title: 'Total', value: ({ figures }) => figures.ms, cell: ({ figures }) => time(figures.ms) },
      {
        title: 'Of its route',
        text: true,
        class: 'share',
        value: ({ figures }) => figures.share,
        cell: shareCell
      },
      ...QUARTILES.map(([title, name]) => ({
        title,
        hint: 'of what one request waited there',
        value: (/** @type {SelectedSite} */ { figures }) => figures[name],
        cell: (/** @type {SelectedSite} */ { figures }) => time(figures[name])
      })),
      { title: 'Waits', value: ({ figures }) => figures.count, cell: ({ figures }) => count(figures.count) },
      {
        title: 'Requests',
        hint: 'that waited there',
        value: ({ figures }) => figures.spans,
        cell: (site) => requestsCell(site, isComparison ? undefined : links)
      }
    ]
  })
  filter.follow((selection) => table.show(selectedSites(run, selection)))
  const isTimed = areSitesTimed(run)
  const note = filter.noteOf('Waits are', isTimed ? ['status'] : ['status', 'range'])
  const sites = selectedSites(run, filter.selection)
  const missing = 1 - timedWaits(run)
  const unknown = h('p', { class: 'note unfiltered' }, 'Quartiles and requests of a range are not known.',
    missing > 0.001 && ` Small sites, ${percent(missing)} of the waits, are left out.`)
  filter.follow(({ range }) => { unknown.hidden = range === undefined || !isTimed })
  return { table, sites, element: [heading(run), note, unknown, table.element] }
}

/** @param {SelectedSite} site @param {Links} links */
function siteCell (site, { openFlame }) {
  const { route, at: frame, callers, until } = site
  const frames = [...callers].reverse().concat(frame ?? [], until ?? [])
  return siteName(site, openFlame && (() => openFlame(route.name, frames)))
}

/**
 * Names a site with its callers and what ended the waits.
 * @param {{ at?: string, callers: string[], until?: string }} site
 * @param {(() => void) | undefined} open shows it in the flame graph
 */
function siteName ({ at: frame, callers, until }, open) {
  const name = frame === undefined ? 'not known' : shortFrame(frame)
  const button = frame !== undefined && open !== undefined
    ? h('button', {
      type: 'button', class: 'link code', title: `${frame}: show in the flame graph`, on: { click: open }
    }, foreign(name))
    : foreign(name, { class: 'code', title: frame })
  return [button, callers.length > 0 && h('span', { class: 'callers' }, callers.map((caller) =>
    h('span', { title: caller }, ' ← ', foreign(shortFrame(caller), { class: 'code' })))),
  until !== undefined && h('small', { class: 'until' }, 'until ', foreign(until))]
}

/** @param {SelectedSite} site */
function shareCell ({ figures: { share }, route }) {
  const part = Math.max(0, Math.min(1, share || 0))
  return h('span', { class: 'share-bar', role: 'img', 'aria-label': `${percent(share)} of ${route.name}` },
    h('span', { class: 'part waited', css: { '--part': `${part * 100}%` } }), h('span', {}, percent(share)))
}

/**
 * Counts the requests of a site; the slowest of them on the page can be opened.
 * @param {SelectedSite} site
 * @param {Links | undefined} links
 */
function requestsCell ({ at: frame, until, figures }, links) {
  const number = count(figures.spans)
  if (figures.spans === undefined) return number
  const isHere = (/** @type {import('../rows').Wait} */ wait) => wait.at === frame && wait.until === until
  for (const { id, spans } of frame === undefined || links === undefined ? [] : data.traces) {
    const span = spans.find(({ waits }) => waits.some(isHere))
    if (span === undefined) continue
    const open = () => links?.openRequest(id, span.id)
    const title = 'open the slowest of them'
    return h('button', { type: 'button', class: 'link', title, on: { click: open } }, number)
  }
  return number
}

module.exports = { siteName, waitsTable }
