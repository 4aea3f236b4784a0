'use strict'

// Draws the distribution of one route: a density above, a box plot for each run below it. On a logarithmic
// axis the density is per decade, not per ms, so that equal areas are equal shares.

/* global d3 */

const { foreign, h, s } = require('./dom')
const { count, isNumber, time } = require('./format')

/**
 * @typedef {import('../rows').PageRoute} PageRoute
 * @typedef {{ name: string, kind: string, runs: Array<PageRoute | undefined> }} Lane
 */

const DENSITY_PX = 40
const BOX_PX = 11
const GAP_PX = 6

/** @type {Array<[string, string]>} */
const FIGURES = [
  ['min', 'Min'], ['q1', '1st Qu.'], ['median', 'Median'], ['mean', 'Mean'], ['q3', '3rd Qu.'],
  ['p99', 'p99'], ['max', 'Max']
]

/**
 * Puts routes of the same name and kind into one lane.
 * @param {PageRoute[][]} runs one or two
 * @returns {Lane[]}
 */
function lanesOf (runs) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map()
  runs.forEach((routes, i) => {
    for (const route of routes) {
      const { name, kind } = route
      const key = `${kind} ${name}`
      const lane = lanes.get(key) ?? { name, kind, runs: runs.map(() => undefined) }
      lane.runs[i] = route
      lanes.set(key, lane)
    }
  })
  return [...lanes.values()]
}

/** @param {Lane[]} lanes @returns {PageRoute[]} */
function routesOf (lanes) {
  return lanes.flatMap((lane) => lane.runs.filter((route) => route !== undefined))
}

/** @param {Lane} lane */
function heightOf (lane) {
  return DENSITY_PX + GAP_PX * 2 + lane.runs.length * (BOX_PX + GAP_PX)
}

/** @param {Lane} lane @param {any} scale @param {number[]} ticks @param {boolean} isLog */
function plotContent (lane, scale, ticks, isLog) {
  const densities = lane.runs.map((route) => (route === undefined ? [] : densityOf(route, isLog)))
  const highest = Math.max(...densities.flatMap((points) => points.map(([, y]) => y)), Number.MIN_VALUE)
  const y = (/** @type {[number, number]} */ point) => GAP_PX + DENSITY_PX * (1 - point[1] / highest)
  const x = (/** @type {[number, number]} */ point) => xOf(scale, point[0])
  const area = d3.area().x(x).y0(GAP_PX + DENSITY_PX).y1(y).curve(d3.curveMonotoneX)
  const height = heightOf(lane)
  const grid = ticks.map((value) => line('grid', [scale(value), 0], [scale(value), height]))
  const plots = densities.map((points, i) => s('g', { class: `run-${i}` },
    points.length > 1 && s('path', { class: 'hill', d: area(points) }),
    points.length > 1 && s('path', { class: 'ridge', d: area.lineY1()(points) }),
    boxPlot(lane.runs[i]?.box, scale, DENSITY_PX + GAP_PX * 2 + i * (BOX_PX + GAP_PX))))
  return [...grid, ...plots]
}

/** @param {PageRoute} route @param {boolean} isLog @returns {Array<[number, number]>} */
function densityOf ({ density, logDensity }, isLog) {
  return isLog ? logDensity.filter(([x]) => x > 0) : density
}

/**
 * Returns the position of a value; on a logarithmic axis 0 is at the left end.
 * @param {any} scale
 * @param {number} ms
 */
function xOf (scale, ms) {
  return scale.base !== undefined && ms <= 0 ? scale.range()[0] : scale(ms)
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
    outliers.map((ms) => s('circle', { cx: xOf(scale, ms), cy: middle, r: 1.7 })),
    s('rect', { x: q1X, y: top, width: Math.max(1, q3X - q1X), height: BOX_PX, rx: 1.5 }),
    line('median', [medianX, top], [medianX, bottom]))
}

/** @param {string} className @param {[number, number]} start @param {[number, number]} end */
function line (className, [x1, y1], [x2, y2]) {
  return s('line', { class: className, x1, y1, x2, y2 })
}

/** @param {Lane} lane @param {string[]} labels */
function title (lane, labels) {
  const medians = lane.runs.map((route) => time(route?.figures.median)).join(labels.length > 1 ? ' → ' : '')
  const spans = lane.runs.map((route) => count(route?.figures.weighted)).join(' → ')
  return h('div', { class: 'lane-title' },
    foreign(lane.name, { class: 'name', title: lane.name }),
    h('small', {}, `${lane.kind.toLowerCase()} · ${spans} spans`),
    h('small', { class: 'lane-median' }, `median ${medians}`))
}

/** Describes a lane in words, for screen readers. @param {Lane} lane @param {string[]} labels */
function describe (lane, labels) {
  const runs = lane.runs.map((route, i) => {
    const figures = route === undefined
      ? 'no spans'
      : FIGURES.map(([key, name]) => `${name} ${time(route.figures[key])}`).join(', ')
    return labels.length > 1 ? `${labels[i]}: ${figures}` : figures
  })
  return `Durations of ${lane.name}. ${runs.join('. ')}`
}

/** Makes the content of a lane's tooltip. @param {Lane} lane @param {string[]} labels */
function tooltip (lane, labels) {
  const figures = lane.runs.map((route) => route?.figures ?? {})
  const heads = labels.map((label, i) => h('th', { class: `run-${i}` }, label))
  const head = labels.length > 1 ? [h('tr', {}, h('td'), heads)] : []
  const lines = FIGURES.map(([key, name]) =>
    h('tr', {}, h('td', {}, name), figures.map((run) => h('td', { class: 'number' }, time(run[key])))))
  return [h('b', {}, foreign(lane.name)), h('table', {}, head, lines)]
}

module.exports = { describe, heightOf, lanesOf, plotContent, routesOf, title, tooltip }
