'use strict'

// What failed: errors of a kind in a row, with one full chain.

const { heading } = require('./columns')
const { foreign, h } = require('./dom')
const { clock, count } = require('./format')
const { ofRun, stackOf } = require('./page-data')
const { selectedFailures } = require('./selected')
const { folded } = require('./stack')
const { createTable } = require('./table')
const { shortFrame } = require('../../../../lib/text')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../findings').PageFailure} PageFailure
 * @typedef {import('./filter').Filter} Filter
 */

const MAX_ROUTES = 3

/**
 * @param {PageRun} run
 * @param {Filter} filter
 * @param {import('./waits-table').Links & { has: (id: string | undefined) => boolean }} links
 */
function failuresTable (run, filter, links) {
  const table = createTable({
    caption: `What failed${ofRun('in', run)}`,
    rows: selectedFailures(run, filter.selection),
    sorted: 1,
    empty: 'No failure in what is selected.',
    columns: [
      {
        title: 'Error',
        text: true,
        class: 'error-cell',
        value: ({ type, message }) => `${type} ${message}`,
        cell: errorCell
      },
      { title: 'Count', value: ({ figures }) => figures.count, cell: ({ figures }) => count(figures.count) },
      { title: 'At', text: true, class: 'at', value: (failure) => failure.at ?? '', cell: placeCell },
      { title: 'Routes', text: true, class: 'at', value: ({ routes }) => routes[0]?.name, cell: routesCell },
      momentColumn('First (UTC)', 'firstUnixMs'),
      momentColumn('Last (UTC)', 'lastUnixMs'),
      { title: 'Request', text: true, cell: (failure) => requestCell(failure, links) }
    ]
  })
  filter.follow((selection) => table.show(selectedFailures(run, selection)))
  const isTimed = run.failures.every(({ byBucket }) => byBucket !== undefined)
  return [heading(run), filter.noteOf('Failures are', isTimed ? [] : ['range']), table.element]
}

/** @param {PageFailure} failure */
function errorCell (failure) {
  const { type, message } = failure
  const text = message.startsWith(`${type}: `) ? message.slice(type.length + 2) : message
  return [h('b', {}, foreign(failure.type)), text !== '' && [': ', foreign(text)],
    folded(stackOf(failure), 'One full chain')]
}

/** @param {PageFailure} failure */
function placeCell ({ at: frame }) {
  return frame === undefined ? 'not known' : foreign(shortFrame(frame), { class: 'code', title: frame })
}

/** @param {PageFailure} failure */
function routesCell ({ routes }) {
  const more = routes.length - MAX_ROUTES
  return [routes.slice(0, MAX_ROUTES).map(({ name, count: times }) =>
    h('span', { class: 'wait' }, foreign(name), h('small', {}, ` × ${count(times)}`))),
  more > 0 && h('small', {}, `and ${more} more`)]
}

/** @param {string} title @param {string} name @returns {any} */
function momentColumn (title, name) {
  const value = (/** @type {PageFailure} */ { figures }) => figures[name]
  const cell = (/** @type {PageFailure} */ row) => clock(value(row)).slice(0, 8)
  return { title, value, cell, class: 'clock' }
}

/** @param {PageFailure} failure @param {any} links */
function requestCell ({ traceId, spanId }, links) {
  if (!links.has(traceId)) return h('span', { class: 'code', title: traceId }, traceId?.slice(0, 8) ?? '')
  const open = () => links.openRequest(traceId, spanId)
  return h('button', { type: 'button', class: 'link', on: { click: open } }, 'open trace')
}

module.exports = { failuresTable }
