'use strict'

// Renders the figures of each route as CSV (RFC 4180). A name that a spreadsheet would take for a formula
// gets an apostrophe before it. Data in, string out.

const { clean } = require('../../lib/text')

/** @typedef {import('../aggregate/routes').Route} Route */

const FIGURES = /** @type {const} */ (['min', 'q1', 'median', 'mean', 'q3', 'max', 'p99', 'p999'])
const PARTS = /** @type {const} */ (['run', 'waited', 'delayed'])
const COLUMNS = [
  ...['run', 'name', 'kind', 'count', 'weighted', 'rate', 'errors', 'open'],
  ...FIGURES.map((name) => `${name}_ms`),
  ...PARTS.map((name) => `mean_${name}_ms`),
  'total_ms'
]

/** @param {import('../aggregate/model').Model} model @returns {string} */
function csv (model) {
  const rows = model.routes.map((route) => row('A', route))
  const others = model.compare?.routes.map((route) => row('B', route)) ?? []
  return [COLUMNS, ...rows, ...others].map((cells) => `${cells.join(',')}\r\n`).join('')
}

/** @param {string} run @param {Route} route */
function row (run, { name, kind, count, weighted, rate, errors, open, summary, split, totalMs }) {
  return [
    ...[run, quoted(name), kind, count, weighted, rate ?? '', errors, open],
    ...FIGURES.map((key) => summary?.[key] ?? ''),
    ...PARTS.map((key) => split?.[key] ?? ''),
    totalMs
  ]
}

/** @param {string} name */
function quoted (name) {
  const safe = clean(name)
  return `"${(/^[=+\-@]/.test(safe) ? `'${safe}` : safe).replaceAll('"', '""')}"`
}

module.exports = { csv }
