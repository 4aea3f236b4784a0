'use strict'

// Table of routes: the durations of their requests, as a curve with a box plot and as quartiles, and where
// the time went. Two runs share one row per route, with both curves and the change of each figure.

/* global d3 */

const { axis, gridLine, ticksOf } = require('./axis')
const { current, follow, isComparison, labels, noteOf, runs, select, selectedRoutes } = require('./data')
const { facts, foreign, h, legend, link, s, section } = require('./dom')
const { change, fromTo, grouped, isNumber, isUnread, percent, rate, time } = require('../../format')
const { createTable, figure, textual } = require('./table')
const { lineUp } = require('../../../aggregate/lists')
const { routeKey } = require('../../../aggregate/route-names')

/**
 * @typedef {import('../data').PageRoute} PageRoute
 * @typedef {import('../../../aggregate/digest').Split} Split
 *
 * @typedef {object} Lane routes of one name and kind, one per run
 * @property {string} name
 * @property {string} kind
 * @property {Array<PageRoute | undefined>} runs
 */

const VISIBLE_CHANGE = 0.02 // smaller changes have no colour
const [WIDTH, CURVE_PX, BOX_PX, GAP_PX] = [150, 24, 9, 3]
const PARTS = /** @type {const} */ ([
  ['run', 'Run', 'its own code ran'],
  ['waited', 'Waited', 'the event loop ran nothing: for sockets, timers, files, requests; a part for each'],
  ['delayed', 'Delayed', 'the event loop ran other code']
])
const QUARTILES = /** @type {const} */ ([
  ['Min', 'min'], ['1st Qu.', 'q1'], ['Median', 'median'], ['Mean', 'mean'], ['3rd Qu.', 'q3'],
  ['p99', 'p99'], ['Max', 'max']
])
const UNREAD = 'clients waited longer: requests lay unread'
const CAPTION = 'Durations are on one logarithmic axis. The curve is how often each occurred, to its own ' +
  'height; the box holds the middle half, its line is the median, whiskers reach to the last value within ' +
  '1.5 box lengths, dots lie outside.'

/** Creates the table. It follows the selection. */
function routesSection () {
  const routes = runs.flatMap((run) => run.routes)
  if (routes.length === 0) return section('routes', 'Routes', h('p', {}, 'No finished spans to draw.'))
  const hasSplit = routes.some(({ split }) => split !== undefined)
  const hasOpen = routes.some(({ open }) => open > 0)
  const head = h('div', { class: 'spark-axis' })
  /** @type {any} */
  let scale
  const table = createTable({
    caption: 'Routes',
    class: 'routes',
    rows () {
      const lanes = selectedLanes()
      scale = scaleOf(lanes)
      head.replaceChildren(axis(scale, WIDTH, ticksOf(scale, WIDTH), 'top'))
      return lanes
    },
    sorted: hasSplit ? 3 : 2,
    columns: [
      textual('Route', ({ name }) => name, { class: 'route', cell: routeLink }),
      { title: 'Durations', text: true, class: 'spark', below: head, cell: (lane) => durations(lane, scale) },
      ...(hasSplit ? [splitColumn] : []),
      countColumn('Count', ({ weighted }) => weighted, (route) => grouped(route.weighted)),
      countColumn('Rate', (route) => route.rate, (route) => rate(route.rate)),
      countColumn('Errors', ({ errors }) => errors, failures),
      ...(hasOpen ? [countColumn('Open', ({ open }) => open, ({ open }) => grouped(open))] : []),
      ...QUARTILES.map(([title, name]) => isComparison ? changeColumn(title, name) : timeColumn(title, name))
    ]
  })
  const estimates = h('p', { class: 'note unfiltered' },
    routes.some(({ times }) => times?.histogram !== undefined)
      ? 'Quantiles and curves of a range are estimates: the true ones are within 3 %.'
      : 'Quantiles and curves of a range are not known.')
  follow(({ range }) => { estimates.hidden = range === undefined })
  return section('routes', 'Routes',
    isComparison && legend(labels.map((label, i) => [`run-${i}`, foreign(label)])),
    hasSplit && legend(PARTS.map(([name, title, meaning]) =>
      [`part ${name}`, h('b', {}, title), ` ${meaning}`])),
    noteOf('Figures are', ['status']), estimates, table.element,
    h('p', { class: 'note' }, CAPTION, hasSplit && ' Below a bar are run, waited and delayed in percent.'))
}

/** @returns {Lane[]} */
function selectedLanes () {
  return lineUp(runs.map(selectedRoutes), routeKey).map((ofRuns) => {
    const { name, kind } = /** @type {PageRoute} */ (ofRuns.find((route) => route !== undefined))
    return { name, kind, runs: ofRuns }
  })
}

/** Returns the axis for all durations above 0. @param {Lane[]} lanes */
function scaleOf (lanes) {
  const summaries = lanes.flatMap((lane) => lane.runs.map((route) => route?.summary))
  const high = Math.max(0.001, ...summaries.map((summary) => summary?.max ?? 0))
  const lows = summaries.map((summary) => summary?.min ?? 0).filter((ms) => ms > 0)
  const low = Math.max(high / 1e9, Math.min(high, ...lows))
  return d3.scaleLog([low / 1.4, high * 1.25], [0, WIDTH])
}

/** Creates a button that filters the page by a route. @param {Lane} lane */
function routeLink ({ name, kind }) {
  const text = name.toLowerCase()
  const toggle = () => select({ text: current().text === text ? '' : text })
  return [link(foreign(name), toggle, { class: 'name', title: `${name}: show only this` }), kindOf(kind)]
}

/** @param {string} kind */
const kindOf = (kind) => h('small', { class: 'kind' }, kind.toLowerCase())

/** @param {Lane} lane @param {(route: PageRoute) => any} cell */
function eachRun (lane, cell) {
  if (!isComparison) return lane.runs.map((route) => route && cell(route))
  return lane.runs.map((route) => h('div', { class: 'of-run' }, route === undefined ? 'none' : cell(route)))
}

/** @param {PageRoute} route */
function failures ({ errors, weighted }) {
  if (!(errors > 0)) return grouped(errors)
  return [h('span', { class: 'failure' }, grouped(errors)), h('small', {}, ` ${percent(errors / weighted)}`)]
}

/**
 * @param {string} title
 * @param {(route: PageRoute) => number | undefined} value
 * @param {(route: PageRoute) => any} cell
 * @returns {import('./table').Column<Lane>}
 */
function countColumn (title, value, cell) {
  return {
    title,
    value: (lane) => Math.max(...lane.runs.map((route) => (route && value(route)) ?? -1)),
    cell: (lane) => eachRun(lane, cell)
  }
}

/** @typedef {typeof QUARTILES[number][1]} Quartile */

/** @param {string} title @param {Quartile} name @returns {import('./table').Column<Lane>} */
function timeColumn (title, name) {
  const tail = (/** @type {Lane} */ { runs: [route] }) => isNumber(route?.summary?.p999) &&
    h('small', { title: 'p99.9' }, time(route.summary.p999))
  const column = figure(title, (/** @type {Lane} */ { runs: [route] }) => route?.summary?.[name], time)
  if (name !== 'p99') return column
  return { ...column, hint: 'below it p99.9', cell: (lane) => [column.cell(lane), tail(lane)] }
}

/** @param {string} title @param {Quartile} name @returns {import('./table').Column<Lane>} */
function changeColumn (title, name) {
  const timesOf = (/** @type {Lane} */ lane) => lane.runs.map((route) => route?.summary?.[name])
  const ratioOf = (/** @type {any[]} */ [before, after]) =>
    before > 0 && isNumber(after) ? after / before : undefined
  return {
    title,
    value: (lane) => ratioOf(timesOf(lane)),
    cell (lane) {
      const times = timesOf(lane)
      return changed(ratioOf(times), change(times[0], times[1]), fromTo(times[0], times[1]))
    }
  }
}

/**
 * Colours a change according to its ratio.
 * @param {number | undefined} ratio of after to before
 * @param {string} text
 * @param {any} [remark]
 */
function changed (ratio, text, remark) {
  const isSame = ratio === undefined || Math.abs(ratio - 1) < VISIBLE_CHANGE
  const style = isSame ? 'same' : ratio > 1 ? 'slower' : 'faster'
  return [h('span', { class: `change ${style}` }, text), remark && h('small', {}, remark)]
}

/** @type {import('./table').Column<Lane>} */
const splitColumn = {
  title: 'Where it went',
  hint: 'run, waited, delayed in percent of the mean; sorts by the time delayed',
  class: 'bar-cell',
  text: true,
  descends: true,
  value: (lane) => Math.max(...lane.runs.map((route) => route?.split?.delayed ?? -1)),
  cell: (lane) => eachRun(lane, (route) => route.split && [
    splitBar(route.split, route.name),
    h('small', { class: 'shares' }, sharesOf(route.split)),
    isUnread(route) && h('small', { class: 'unread', title: UNREAD }, `+ ${time(route.unreadMs)} unread`)
  ])
}

/** @param {Split} split */
const sharesOf = (split) => PARTS.map(([part]) => shareOf(split, part)).join(' · ')

/** @param {Split} split */
const sumOf = ({ run, waited, delayed }) => run + waited + delayed

/** @param {Split} split @param {'run' | 'waited' | 'delayed'} part */
const shareOf = (split, part) => percent(split[part] / sumOf(split) || 0)

/** Lists the waits by subsystem, longest first. @param {Split} split */
const waitsOf = ({ wait }) => Object.entries(wait).filter(([, ms]) => ms > 0).sort((a, b) => b[1] - a[1])

/** @param {Split} split */
const waitWords = (split) => waitsOf(split).map(([name, ms]) => `${name} ${time(ms)}`).join(', ')

/**
 * Draws the breakdown of a duration as one bar, with waits split by subsystem.
 * @param {Split | undefined} split
 * @param {string} name of the span
 */
function splitBar (split, name) {
  if (split === undefined || sumOf(split) === 0) return undefined
  const waits = waitsOf(split).map(([, ms]) => ms)
  const description = PARTS.map(([part, title]) => `${title.toLowerCase()} ${time(split[part])}` +
    (part === 'waited' && waits.length > 0 ? ` (${waitWords(split)})` : '')).join(', ')
  const pieces = PARTS.flatMap(([part]) => {
    const lengths = part === 'waited' && waits.length > 0 ? waits : [split[part]]
    const sum = lengths.reduce((a, b) => a + b, 0) // more than the whole in old files
    return lengths.filter((ms) => ms > 0).map((ms) =>
      h('span', { class: `part ${part}`, css: { 'flex-grow': String(split[part] * ms / sum) } }))
  })
  const label = { role: 'img', 'aria-label': `${name}: ${description}`, title: description }
  return h('div', { class: 'split', ...label }, pieces)
}

/** Draws and lists where the time of a span went. @param {Split} split @param {string} name */
function splitDetail (split, name) {
  const waited = waitWords(split)
  return [
    splitBar(split, name),
    facts(PARTS.map(([part, title]) => [
      [h('span', { class: `swatch part ${part}` }), title],
      [time(split[part]), h('small', {}, shareOf(split, part))]
    ]), 'parts'),
    waited !== '' && h('p', { class: 'note' }, `Waited for ${waited}.`)
  ]
}

/** Draws durations: one curve per run, with box plots below. @param {Lane} lane @param {any} scale */
function durations (lane, scale) {
  const height = CURVE_PX + GAP_PX + lane.runs.length * (BOX_PX + GAP_PX)
  const curves = lane.runs.map((route) => {
    const { x, y } = route?.logDensity ?? { x: [], y: [] }
    return x.map((ms, i) => [ms, y[i]]).filter(([ms]) => ms > 0)
  })
  const highest = Math.max(...curves.flatMap((points) => points.map(([, y]) => y)), Number.MIN_VALUE)
  const hill = d3.area().x((/** @type {number[]} */ [ms]) => scale(ms)).y0(CURVE_PX)
    .y1((/** @type {number[]} */ [, y]) => GAP_PX + (CURVE_PX - GAP_PX) * (1 - y / highest))
    .curve(d3.curveMonotoneX)
  const label = describe(lane)
  return s('svg', {
    class: 'plot', width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': label
  },
  s('title', {}, label),
  ticksOf(scale, WIDTH).map((value) => gridLine(scale(value), height)),
  curves.map((points, i) => s('g', { class: `run-${i}` },
    points.length > 1 && s('path', { class: 'hill', d: hill(points) }),
    points.length > 1 && s('path', { class: 'ridge', d: hill.lineY1()(points) }),
    boxPlot(lane.runs[i]?.box, scale, CURVE_PX + GAP_PX + i * (BOX_PX + GAP_PX)))))
}

/** @param {PageRoute['box']} box @param {any} scale @param {number} top */
function boxPlot (box, scale, top) {
  if (box === undefined) return undefined
  const xOf = (/** @type {number} */ ms) => ms <= 0 ? 0 : scale(ms)
  const [low, q1, median, q3, high] = [box.low, box.q1, box.median, box.q3, box.high].map(xOf)
  const middle = top + BOX_PX / 2
  /** @param {string} style @param {number[]} ends */
  const line = (style, [x1, y1, x2, y2]) => s('line', { class: style, x1, y1, x2, y2 })
  return s('g', { class: 'box' },
    [[low, q1], [q3, high]].map(([start, end]) => line('whisker', [start, middle, end, middle])),
    [low, high].map((x) => line('whisker', [x, top + 2, x, top + BOX_PX - 2])),
    box.outliers.map((ms) => s('circle', { cx: xOf(ms), cy: middle, r: 1.3 })),
    s('rect', { x: q1, y: top, width: Math.max(1, q3 - q1), height: BOX_PX, rx: 1.5 }),
    line('median', [median, top, median, top + BOX_PX]))
}

/** Describes the durations of a route in words. @param {Lane} lane */
function describe (lane) {
  const figures = lane.runs.map((route, i) => {
    const words = route === undefined
      ? 'no spans'
      : QUARTILES.map(([title, name]) => `${title} ${time(route.summary?.[name])}`).join(', ')
    return isComparison ? `${labels[i]}: ${words}` : words
  })
  return `Durations of ${lane.name}. ${figures.join('. ')}`
}

module.exports = { changed, kindOf, routesSection, splitBar, splitDetail }
