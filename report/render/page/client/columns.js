'use strict'

// Columns and cells that several tables of the page have.

const { foreign, h } = require('./dom')
const { clock } = require('./format')
const { isComparison, runs } = require('./page-data')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../rows').PageRoute} PageRoute
 */

/**
 * Makes the column of a figure.
 * @param {string} title
 * @param {string} name
 * @param {(value: unknown) => string} format
 * @param {string} [hint]
 * @returns {any}
 */
function figure (title, name, format, hint) {
  const value = (/** @type {any} */ row) => row.figures[name]
  return { title, hint, value, cell: (/** @type {any} */ row) => format(value(row)) }
}

/** @param {PageRoute} route */
const routeName = ({ name, kind }) => [
  foreign(name, { class: 'name', title: name }),
  h('small', { class: 'kind' }, kind.toLowerCase())
]

/** @type {any} */
const routeColumn = {
  title: 'Route',
  text: true,
  class: 'route',
  value: (/** @type {PageRoute} */ route) => route.name,
  cell: routeName
}

/** @type {any} */
const started = { ...figure('Started (UTC)', 'startUnixMs', clock), class: 'clock' }

/** Puts a remark before a name. @param {any} name @param {any} [remark] @returns {any} */
function named (name, remark) {
  return h('span', { class: 'named' }, remark, name)
}

/** @param {string} text @param {string} [kind] */
function badge (text, kind = '') {
  return h('span', { class: `badge ${kind}` }, text)
}

/** Makes the heading of a run, if there are two. @param {PageRun} run */
function heading (run) {
  const swatch = h('span', { class: `swatch run-${runs.indexOf(run)}` })
  return isComparison && h('h3', { class: 'run-title' }, swatch, foreign(run.label))
}

module.exports = { badge, figure, heading, named, routeColumn, routeName, started }
