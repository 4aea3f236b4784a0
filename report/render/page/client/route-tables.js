'use strict'

// Tables of routes: figures, the breakdown of their time, changes between two runs.

const { figure, heading, routeColumn, routeName } = require('./columns')
const { lanesOf } = require('./lanes')
const { foreign, h } = require('./dom')
const { change, count, fromTo, isNumber, percent, rate, time } = require('./format')
const { labels, ofRun, runs } = require('./page-data')
const { bar, waits } = require('./split')
const { selectedRoutes } = require('./selected')
const { createTable } = require('./table')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../rows').PageRoute} PageRoute
 * @typedef {import('./filter').Filter} Filter
 */

const VISIBLE_CHANGE = 0.02 // smaller ones have no colour

/** @type {Array<[string, string]>} */
const QUARTILES = [
  ['Min', 'min'], ['1st Qu.', 'q1'], ['Median', 'median'], ['Mean', 'mean'], ['3rd Qu.', 'q3'], ['p99', 'p99']
]

/** @type {any} */
const errorColumn = {
  title: 'Errors',
  value: (/** @type {PageRoute} */ { figures }) => figures.errors,
  cell: (/** @type {PageRoute} */ { figures: { errors, weighted } }) => errors > 0
    ? [h('span', { class: 'failure' }, count(errors)), h('small', {}, ` ${percent(errors / weighted)}`)]
    : count(errors)
}

/** Makes a button that filters the page by a route. @param {PageRoute} route @param {Filter} filter */
function routeLink ({ name, kind }, filter) {
  const text = name.toLowerCase()
  const select = () => filter.set({ text: filter.selection.text === text ? '' : text })
  return [
    h('button', {
      type: 'button', class: 'link name', title: `${name}: show only this`, on: { click: select }
    }, foreign(name)),
    h('small', { class: 'kind' }, kind.toLowerCase())
  ]
}

/** @param {PageRun} run @param {Filter} filter */
function figuresTable (run, filter) {
  const table = createTable({
    caption: `Figures per route${ofRun('of', run)}`,
    rows: run.routes,
    sorted: 1,
    columns: [
      { ...routeColumn, cell: (route) => routeLink(route, filter) },
      figure('Count', 'weighted', count),
      figure('Rate', 'rate', rate),
      errorColumn,
      figure('Open', 'open', count, 'no end recorded'),
      ...QUARTILES.map(([title, name]) => figure(title, name, time)),
      figure('p99.9', 'p999', time),
      figure('Max', 'max', time)
    ]
  })
  filter.follow((selection) => table.show(selectedRoutes(run, selection)))
  return [heading(run), filter.noteOf('Figures are', ['status']), table.element]
}

/** @type {any} */
const waitedFor = {
  title: 'Waited for',
  text: true,
  class: 'waits',
  cell: (/** @type {PageRoute} */ route) => waits(route.split)
}

/** @param {PageRun} run @param {Filter} filter */
function sharesTable (run, filter) {
  const rowsOf = (/** @type {import('./filter').Selection} */ selection) =>
    selectedRoutes(run, selection).filter((route) => route.split !== undefined)
  const rows = rowsOf(filter.selection)
  if (rows.length === 0) return undefined
  const hasSubsystems = rows.some(({ split }) => waits(split) !== '')
  const table = createTable({
    caption: `Where the time went, mean per route${ofRun('of', run)}`,
    rows,
    sorted: 2,
    columns: [
      routeColumn,
      { title: 'Share', text: true, class: 'bar-cell', cell: (route) => bar(route.split, route.name) },
      figure('Mean', 'mean', time),
      shareColumn('Run', 'run'),
      shareColumn('Waited', 'waited'),
      shareColumn('Delayed', 'delayed'),
      ...(hasSubsystems ? [waitedFor] : [])
    ]
  })
  filter.follow((selection) => table.show(rowsOf(selection)))
  return [heading(run), filter.noteOf('Shares are', ['status']), table.element]
}

/** @param {string} title @param {'run' | 'waited' | 'delayed'} name @returns {any} */
function shareColumn (title, name) {
  const value = (/** @type {PageRoute} */ route) => route.split?.[name]
  return {
    title,
    value,
    cell: (/** @type {PageRoute} */ route) => {
      const ms = value(route)
      return [time(ms), h('small', {}, ` ${percent((ms ?? NaN) / route.figures.mean)}`)]
    }
  }
}

/** @param {Filter} filter */
function changesTable (filter) {
  const rowsOf = (/** @type {import('./filter').Selection} */ selection) =>
    lanesOf(runs.map((run) => selectedRoutes(run, selection)))
  const table = createTable({
    caption: `Change of each quartile from ${labels[0]} to ${labels[1]}`,
    rows: rowsOf(filter.selection),
    columns: [
      { ...routeColumn, cell: routeName },
      {
        title: 'Count',
        value: (lane) => lane.runs[0]?.figures.weighted,
        cell: (lane) => lane.runs.map((route) => route ? count(route.figures.count) : 'none').join(' → ')
      },
      ...[...QUARTILES, ['Max', 'max']].map(([title, name]) => changeColumn(title, name))
    ]
  })
  filter.follow((selection) => table.show(rowsOf(selection)))
  return [filter.noteOf('Changes are', ['status']), table.element]
}

/** @param {string} title @param {string} name @returns {any} */
function changeColumn (title, name) {
  /** @param {import('./lanes').Lane} lane */
  const figuresOf = (lane) => lane.runs.map((route) => route?.figures[name])
  const ratio = (/** @type {any[]} */ [before, after]) =>
    before > 0 && isNumber(after) ? after / before : undefined
  return {
    title,
    value: (/** @type {any} */ lane) => ratio(figuresOf(lane)),
    cell: (/** @type {any} */ lane) => {
      const [before, after] = figuresOf(lane)
      const style = styleOf(ratio([before, after]))
      return [
        h('span', { class: `change ${style}` }, change(before, after)),
        h('small', {}, fromTo(before, after))
      ]
    }
  }
}

/** @param {number | undefined} ratio */
function styleOf (ratio) {
  if (ratio === undefined || Math.abs(ratio - 1) < VISIBLE_CHANGE) return 'same'
  return ratio > 1 ? 'slower' : 'faster'
}

module.exports = { changesTable, figuresTable, sharesTable }
