'use strict'

// By how much each await site and each blocker changed from the first run to the second, per request.

const { openFlame } = require('./critical-paths')
const { data, isComparison, labels } = require('./data')
const { foreign, h, section } = require('./dom')
const { change, NONE, time } = require('./format')
const { changed } = require('./routes')
const { matchesText, noteOf } = require('./selection')
const { createTable, figure, textual } = require('./table')
const { framesOf, siteName } = require('./words')

/**
 * @typedef {object} Changed
 * @property {string} [route]
 * @property {string} [name]
 * @property {string} [at]
 * @property {number} beforeMs
 * @property {number} afterMs
 * @property {number} change
 */

/** @returns {any} undefined for a single run */
function changesSection () {
  if (!isComparison) return undefined
  const { sites, blockers } = data.changes
  return section('changes', 'Changes',
    h('p', { class: 'lead' }, 'From ', foreign(labels[0]), ' to ', foreign(labels[1]), '.'),
    changesTable('Waits by await site, per request', sites, [
      textual('Waited at', ({ at: frame }) => frame ?? '', {
        class: 'site', cell: (site) => siteName(site, openFlame(site.route, framesOf(site)))
      }),
      textual('Route', ({ route }) => route)
    ]),
    changesTable('Blockers, per request', blockers, [textual('What ran', ({ name }) => name, {
      class: 'site',
      cell: ({ name, at: frame }) =>
        [foreign(name), frame !== undefined && h('small', { class: 'until' }, 'in ', foreign(frame))]
    })]))
}

/**
 * @template {Changed} T
 * @param {string} title
 * @param {T[]} rows
 * @param {Array<import('./table').Column<T>>} names
 */
function changesTable (title, rows, names) {
  if (rows.length === 0) return undefined
  const table = createTable({
    caption: title,
    rows: () => rows.filter(({ route, name, at: frame }) => matchesText(route, name, frame)),
    columns: [
      ...names,
      figure('Before', ({ beforeMs }) => beforeMs, time),
      figure('After', ({ afterMs }) => afterMs, time),
      figure('Change', (row) => row.change, time, {
        cell ({ beforeMs, afterMs, change: ms }) {
          const ratio = change(beforeMs, afterMs)
          const text = `${ms > 0 ? '+' : ms < 0 ? '−' : ''}${time(Math.abs(ms))}`
          return changed(beforeMs === 0 ? Infinity : afterMs / beforeMs, text, ratio !== NONE && ratio)
        }
      })
    ]
  })
  return [h('h3', {}, title), noteOf('These changes are', ['range', 'status']), table.element]
}

module.exports = { changesSection }
