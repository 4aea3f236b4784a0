'use strict'

// The table of routes: how long their requests took, as a curve with a box plot and as quartiles, and where
// the time went. Two runs share a row for each route: both curves, and the change of each figure.

/* global d3 */

const { axis, ticksOf } = require('./axis')
const { routeColumn } = require('./columns')
const { foreign, h, s } = require('./dom')
const { change, count, fromTo, isNumber, percent, rate, time } = require('./format')
const { isComparison, labels, runs } = require('./page-data')
const { selectedRoutes } = require('./selected')
const { bar, legend, sharesOf } = require('./split')
const { createTable } = require('./table')

/**
 * @typedef {import('../rows').PageRoute} PageRoute
 * @typedef {import('./filter').Filter} Filter
 * @typedef {import('./filter').Selection} Selection
 *
 * @typedef {object} Lane the routes of one name and kind, one for each run
 * @property {string} name
 * @property {string} kind
 * @property {Array<PageRoute | undefined>} runs
 */

const VISIBLE_CHANGE = 0.02 // smaller ones have no colour
const [WIDTH, CURVE_PX, BOX_PX, GAP_PX] = [150, 24, 9, 3]

/** @type {Array<[string, string]>} */
const QUARTILES = [
  ['Min', 'min'], ['1st Qu.', 'q1'], ['Median', 'median'], ['Mean', 'mean'], ['3rd Qu.', 'q3'],
  ['p99', 'p99'], ['Max', 'max']
]
const CAPTION = 'Durations are on one logarithmic axis. The curve is how often each occurred, to its own ' +
  'height; the box holds the middle half, its line is the median, whiskers reach to the last value within ' +
  '1.5 box lengths, dots lie outside.'

/** Creates the table, which follows a filter. @param {Filter} filter @returns {any[]} elements */
function routesTable (filter) {
  let scale = scaleOf(selectedLanes(filter.selection))
  const head = h('div', { class: 'spark-axis' })
  const hasSplit = runs.some((run) => run.routes.some(({ split }) => split !== undefined))
  const hasOpen = runs.some((run) => run.routes.some(({ figures }) => figures.open > 0))
  const table = createTable({
    caption: 'Routes',
    class: 'routes',
    rows: selectedLanes(filter.selection),
    sorted: hasSplit ? 3 : 2,
    columns: [
      { ...routeColumn, cell: (lane) => routeLink(lane, filter) },
      { title: 'Durations', text: true, class: 'spark', below: head, cell: (lane) => durations(lane, scale) },
      ...(hasSplit ? [splitColumn] : []),
      countColumn('Count', 'weighted', count),
      countColumn('Rate', 'rate', rate),
      { ...countColumn('Errors', 'errors', count), cell: (lane) => eachRun(lane, errors) },
      ...(hasOpen ? [countColumn('Open', 'open', count, 'no end recorded')] : []),
      ...QUARTILES.map(([title, name]) => timeColumn(title, name))
    ]
  })
  const estimates = h('p', { class: 'note unfiltered' })
  filter.follow((selection) => {
    const lanes = selectedLanes(selection)
    scale = scaleOf(lanes)
    head.replaceChildren(axis(scale, WIDTH, ticksOf(scale, WIDTH), 'top'))
    table.show(lanes)
    estimates.hidden = selection.range === undefined
    estimates.textContent = runs.some((run) => run.routes.some(({ times }) => times?.histogram !== undefined))
      ? 'Quantiles and curves of a range are estimates: the true ones are within 3 %.'
      : 'Quantiles and curves of a range are not known.'
  })
  return [
    isComparison && h('ul', { class: 'legend' }, labels.map((label, i) =>
      h('li', {}, h('span', { class: `swatch run-${i}` }), foreign(label)))),
    hasSplit && legend(),
    filter.noteOf('Figures are', ['status']), estimates, table.element,
    h('p', { class: 'note' }, CAPTION, hasSplit && ' Below a bar are run, waited and delayed in percent.')
  ]
}

/** @param {Selection} selection @returns {Lane[]} */
function selectedLanes (selection) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map()
  runs.forEach((run, i) => {
    for (const route of selectedRoutes(run, selection)) {
      const { name, kind } = route
      const key = `${kind} ${name}`
      const lane = lanes.get(key) ?? { name, kind, runs: runs.map(() => undefined) }
      lane.runs[i] = route
      lanes.set(key, lane)
    }
  })
  return [...lanes.values()]
}

/** Returns the axis of all durations, above 0. @param {Lane[]} lanes */
function scaleOf (lanes) {
  const figures = lanes.flatMap((lane) => lane.runs.map((route) => route?.figures ?? {}))
  const high = Math.max(0.001, ...figures.map(({ max, q3 }) => max ?? q3 ?? 0))
  const low = Math.max(high / 1e9, Math.min(high, ...figures.map(({ min }) => min).filter((ms) => ms > 0)))
  return d3.scaleLog([low / 1.4, high * 1.25], [0, WIDTH])
}

/** Makes a button that filters the page by a route. @param {Lane} lane @param {Filter} filter */
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

/** @param {Lane} lane @param {(route: PageRoute) => any} cell */
function eachRun (lane, cell) {
  if (!isComparison) return lane.runs.map((route) => route && cell(route))
  return lane.runs.map((route) => h('div', { class: 'of-run' }, route === undefined ? 'none' : cell(route)))
}

/** @param {PageRoute} route */
function errors ({ figures: { errors: failed, weighted } }) {
  if (!(failed > 0)) return count(failed)
  return [h('span', { class: 'failure' }, count(failed)), h('small', {}, ` ${percent(failed / weighted)}`)]
}

/**
 * @param {string} title
 * @param {string} name
 * @param {(value: unknown) => string} format
 * @param {string} [hint]
 * @returns {import('./table').Column<Lane>}
 */
function countColumn (title, name, format, hint) {
  const value = (/** @type {Lane} */ lane) =>
    Math.max(...lane.runs.map((route) => route?.figures[name] ?? -1))
  return { title, hint, value, cell: (lane) => eachRun(lane, ({ figures }) => format(figures[name])) }
}

/** @param {string} title @param {string} name @returns {import('./table').Column<Lane>} */
function timeColumn (title, name) {
  /** @param {Lane} lane */
  const figuresOf = (lane) => lane.runs.map((route) => route?.figures[name])
  const ratioOf = (/** @type {any[]} */ [before, after]) =>
    before > 0 && isNumber(after) ? after / before : undefined
  /** @param {Lane} lane */
  const tail = ({ runs: [route] }) => name === 'p99' && isNumber(route?.figures.p999) &&
    h('small', { title: 'p99.9' }, time(route.figures.p999))
  if (!isComparison) {
    return {
      title,
      hint: name === 'p99' ? 'below it p99.9' : undefined,
      value: (lane) => figuresOf(lane)[0],
      cell: (lane) => [time(figuresOf(lane)[0]), tail(lane)]
    }
  }
  return {
    title,
    value: (lane) => ratioOf(figuresOf(lane)),
    cell: (lane) => {
      const [before, after] = figuresOf(lane)
      const style = styleOf(ratioOf([before, after]))
      return [
        h('span', { class: `change ${style}` }, change(before, after)), h('small', {}, fromTo(before, after))
      ]
    }
  }
}

/** @param {number | undefined} ratio */
function styleOf (ratio) {
  if (ratio === undefined || Math.abs(ratio - 1) < VISIBLE_CHANGE) return 'same'
  return ratio > 1 ? 'slower' : 'faster'
}

/** @type {import('./table').Column<Lane>} */
const splitColumn = {
  title: 'Where it went',
  hint: 'run, waited, delayed in percent of the mean; sorts by the time delayed',
  class: 'bar-cell',
  text: true,
  descends: true,
  value: (lane) => Math.max(...lane.runs.map((route) => route?.split?.delayed ?? -1)),
  cell: (lane) => eachRun(lane, ({ name, split }) =>
    [bar(split, name), split && h('small', { class: 'shares' }, sharesOf(split))])
}

/** Draws durations: a curve for each run, box plots below them. @param {Lane} lane @param {any} scale */
function durations (lane, scale) {
  const height = CURVE_PX + GAP_PX + lane.runs.length * (BOX_PX + GAP_PX)
  const curves = lane.runs.map((route) => (route?.logDensity ?? []).filter(([ms]) => ms > 0))
  const highest = Math.max(...curves.flatMap((points) => points.map(([, y]) => y)), Number.MIN_VALUE)
  const area = d3.area().x((/** @type {[number, number]} */ [ms]) => xOf(scale, ms)).y0(CURVE_PX)
    .y1((/** @type {[number, number]} */ [, y]) => GAP_PX + (CURVE_PX - GAP_PX) * (1 - y / highest))
    .curve(d3.curveMonotoneX)
  const label = describe(lane)
  return s('svg', {
    class: 'plot', width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': label
  },
  s('title', {}, label),
  ticksOf(scale, WIDTH).map((value) => line('grid', [scale(value), 0], [scale(value), height])),
  curves.map((points, i) => s('g', { class: `run-${i}` },
    points.length > 1 && s('path', { class: 'hill', d: area(points) }),
    points.length > 1 && s('path', { class: 'ridge', d: area.lineY1()(points) }),
    boxPlot(lane.runs[i]?.box, scale, CURVE_PX + GAP_PX + i * (BOX_PX + GAP_PX)))))
}

/** Returns the position of a value; 0 is at the left end. @param {any} scale @param {number} ms */
function xOf (scale, ms) {
  return ms <= 0 ? 0 : scale(ms)
}

/** @param {PageRoute['box']} box @param {any} scale @param {number} top */
function boxPlot (box, scale, top) {
  if (box === undefined) return undefined
  const { low, q1, median, q3, high, outliers } = box
  if (![low, q1, median, q3, high].every(isNumber)) return s('g')
  const [lowX, q1X, medianX, q3X, highX] = [low, q1, median, q3, high].map((ms) => xOf(scale, Number(ms)))
  const bottom = top + BOX_PX
  const middle = top + BOX_PX / 2
  return s('g', { class: 'box' },
    line('whisker', [lowX, middle], [q1X, middle]),
    line('whisker', [q3X, middle], [highX, middle]),
    [lowX, highX].map((x) => line('whisker', [x, top + 2], [x, bottom - 2])),
    outliers.map((ms) => s('circle', { cx: xOf(scale, ms), cy: middle, r: 1.3 })),
    s('rect', { x: q1X, y: top, width: Math.max(1, q3X - q1X), height: BOX_PX, rx: 1.5 }),
    line('median', [medianX, top], [medianX, bottom]))
}

/** @param {string} className @param {[number, number]} start @param {[number, number]} end */
function line (className, [x1, y1], [x2, y2]) {
  return s('line', { class: className, x1, y1, x2, y2 })
}

/** Describes the durations of a route in words. @param {Lane} lane */
function describe (lane) {
  const figures = lane.runs.map((route, i) => {
    const words = route === undefined
      ? 'no spans'
      : QUARTILES.map(([title, name]) => `${title} ${time(route.figures[name])}`).join(', ')
    return isComparison ? `${labels[i]}: ${words}` : words
  })
  return `Durations of ${lane.name}. ${figures.join('. ')}`
}

module.exports = { routesTable }
