'use strict'

// By how much each await site and each blocker changed from the first run to the second one, per request.

const { figure } = require('./columns')
const { foreign, h } = require('./dom')
const { matchesText } = require('./filter')
const { change, NONE, time } = require('./format')
const { data } = require('./page-data')
const { createTable } = require('./table')
const { siteName } = require('./waits-table')

/**
 * @typedef {import('../findings').PageChange} PageChange
 * @typedef {import('./filter').Filter} Filter
 */

const MIN_SHARE = 0.02 // smaller changes have no colour

/** @param {Filter} filter @param {import('./waits-table').Links} links */
function createChangesTables (filter, links) {
  const { sites, blockers } = data.changes
  return [
    sites.length > 0 && changesTable('Waits by await site, per request', sites, filter, {
      title: 'Waited at',
      text: true,
      class: 'site',
      value: ({ at: frame = '' }) => frame,
      cell: (site) => siteName(site, openOf(site, links))
    }),
    blockers.length > 0 && changesTable('Blockers, per request', blockers, filter, {
      title: 'What ran',
      text: true,
      class: 'site',
      value: ({ name = '' }) => name,
      cell: ({ name = '', at: frame }) =>
        [foreign(name), frame !== undefined && h('small', { class: 'until' }, 'in ', foreign(frame))]
    })
  ]
}

/** @param {PageChange} site @param {import('./waits-table').Links} links */
function openOf ({ route, at: frame, callers }, { openFlame }) {
  if (route === undefined || frame === undefined || openFlame === undefined) return undefined
  return () => openFlame(route, [...callers].reverse().concat(frame))
}

/**
 * @param {string} title
 * @param {PageChange[]} rows
 * @param {Filter} filter
 * @param {import('./table').Column<PageChange>} nameColumn
 */
function changesTable (title, rows, filter, nameColumn) {
  const hasRoutes = rows.some(({ route }) => route !== undefined)
  /** @type {import('./table').Column<PageChange>} */
  const routeColumn = {
    title: 'Route', text: true, value: ({ route = '' }) => route, cell: ({ route = '' }) => foreign(route)
  }
  const table = createTable({
    caption: title,
    rows,
    columns: [
      nameColumn,
      ...(hasRoutes ? [routeColumn] : []),
      figure('Before', 'beforeMs', time),
      figure('After', 'afterMs', time),
      { title: 'Change', value: ({ figures }) => figures.change, cell: changeCell }
    ]
  })
  filter.follow((selection) => table.show(rows.filter(({ route, name, at: frame }) =>
    matchesText(selection, route, name, frame))))
  return [h('h3', {}, title), filter.noteOf('These changes are', ['range', 'status']), table.element]
}

/** @param {PageChange} row */
function changeCell ({ figures: { beforeMs, afterMs, change: ms } }) {
  const share = Math.abs(ms) / Math.max(beforeMs, afterMs)
  const style = !(share >= MIN_SHARE) ? 'same' : ms > 0 ? 'slower' : 'faster'
  const ratio = change(beforeMs, afterMs)
  return [h('span', { class: `change ${style}` }, `${ms > 0 ? '+' : ms < 0 ? '−' : ''}${time(Math.abs(ms))}`),
    ratio !== NONE && h('small', {}, ratio)]
}

module.exports = { createChangesTables }
