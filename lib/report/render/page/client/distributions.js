'use strict'

// How long each route took: a density above, a box plot below it, all routes over one time axis. Two runs share a lane.
// On a logarithmic axis a density counts per decade, not per ms, so that equal areas stay equal shares.

/* global d3, document, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { foreign, h, s } = require('./dom')
const { count, known, time } = require('./format')
const { createZoom } = require('./zoom')

/**
 * @typedef {import('../data').PageRoute} PageRoute
 * @typedef {{ name: string, kind: string, runs: Array<PageRoute | undefined> }} Lane
 */

const FIRST = 12 // lanes before all are asked for
const HILL_PX = 40
const BOX_PX = 11
const GAP_PX = 6
const SPREAD = 30 // from this ratio of the largest to the smallest on, a linear axis shows one of them only

const caption = 'Above: density, how often a duration occurred, each route to its own height. Below: the box holds the middle half, its line is the median; whiskers ' +
  'reach to the last value within 1.5 box lengths, dots lie outside. Drag moves, Ctrl + wheel or a pinch zooms; the tables below have the figures.'

/** @type {Record<string, [string, (route: PageRoute) => number]>} */
const orders = {
  count: ['number of spans', (route) => route.figures.weighted],
  median: ['median', (route) => route.figures.median],
  p99: ['p99', (route) => route.figures.p99],
  max: ['maximum', (route) => route.figures.max],
  delayed: ['time delayed', (route) => route.split?.delayed ?? -1]
}

/** Routes of one or two runs, those of the same name and kind together. @param {PageRoute[][]} runs @returns {Lane[]} */
function lanesOf (runs) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map()
  runs.forEach((routes, i) => {
    for (const route of routes) {
      const key = `${route.kind} ${route.name}`
      const lane = lanes.get(key) ?? { name: route.name, kind: route.kind, runs: runs.map(() => undefined) }
      lane.runs[i] = route
      lanes.set(key, lane)
    }
  })
  return [...lanes.values()]
}

/**
 * @param {PageRoute[][]} runs
 * @param {string[]} labels
 */
function distributions (runs, labels) {
  const all = lanesOf(runs).filter(({ runs }) => runs.some((route) => route?.box !== undefined || (route?.density.length ?? 0) > 0))
  if (all.length === 0) return h('p', {}, 'There is no finished span to draw.')
  const [list, top, bottom] = [h('ol', { class: 'lanes' }), h('div', { class: 'axis-row top' }), h('div', { class: 'axis-row' })]
  const cursor = h('div', { class: 'cursor', 'aria-hidden': 'true' }, h('span'))
  const tip = h('div', { class: 'tip', 'aria-hidden': 'true', hidden: true })
  let log = isWide(all)
  let order = 'count'
  let most = FIRST
  let width = 0
  /** @type {Array<{ lane: Lane, plot: any }>} */
  let shown = []
  /** @type {any} */
  let view

  const zoom = createZoom({
    label: 'durations',
    width: () => width,
    draw,
    tell: () => `${time(view.domain()[0])} to ${time(view.domain()[1])}`
  })

  function arrange () {
    const [, value] = orders[order]
    const rank = (/** @type {Lane} */ lane) => Math.max(...lane.runs.map((route) => (route === undefined ? -1 : value(route) ?? -1)))
    const sorted = [...all].sort((a, b) => rank(b) - rank(a)).slice(0, most)
    shown = sorted.map((lane) => ({ lane, plot: s('svg', { class: 'plot', height: height(lane), role: 'img', 'aria-label': inWords(lane, labels) }) }))
    list.replaceChildren(...shown.map(({ lane, plot }) => h('li', { class: 'lane' }, title(lane, labels), h('div', { class: 'lane-plot' }, plot))))
    for (const { lane, plot } of shown) plot.addEventListener('pointermove', (/** @type {any} */ event) => point(event, lane))
    zoom.attach(shown.map(({ plot }) => plot))
    draw()
  }

  function draw () {
    width = shown[0]?.plot.parentNode.clientWidth ?? 0
    if (width === 0) return
    view = zoom.view(log ? d3.scaleLog(extent(shown), [0, width]) : d3.scaleLinear([0, extent(shown)[1] / 1.15], [0, width]))
    const ticks = ticksOf(view, width)
    for (const { lane, plot } of shown) {
      plot.setAttribute('width', width)
      plot.setAttribute('viewBox', `0 0 ${width} ${height(lane)}`)
      plot.replaceChildren(...content(lane, view, ticks, log))
    }
    top.replaceChildren(axis(view, width, ticks, 'top'))
    bottom.replaceChildren(axis(view, width, ticks, 'bottom'))
  }

  /** @param {any} event @param {Lane} lane */
  function point (event, lane) {
    const box = figure.getBoundingClientRect()
    const plot = event.currentTarget.getBoundingClientRect()
    cursor.style.setProperty('--at', `${event.clientX - box.left}px`)
    cursor.firstChild.textContent = time(view.invert(event.clientX - plot.left))
    tip.replaceChildren(...summary(lane, labels))
    tip.hidden = false
    cursor.classList.add('on')
    const left = Math.min(event.clientX - box.left + 16, box.width - tip.offsetWidth - 4)
    tip.style.setProperty('--x', `${Math.max(0, left)}px`)
    const below = plot.bottom + tip.offsetHeight + 8 < document.documentElement.clientHeight
    tip.style.setProperty('--y', `${(below ? plot.bottom + 4 : plot.top - tip.offsetHeight - 4) - box.top}px`)
  }

  function leave () {
    tip.hidden = true
    cursor.classList.remove('on')
  }

  const more = h('button', { type: 'button', class: 'more', hidden: all.length <= FIRST, on: { click: showAll } }, `Draw all ${count(all.length)} routes`)
  function showAll () {
    most = Infinity
    more.hidden = true
    arrange()
  }

  /** @param {boolean} wanted */
  function rescale (wanted) {
    log = wanted
    zoom.reset()
  }

  const figure = h('figure', { class: 'distributions', on: { pointerleave: leave } },
    h('div', { class: 'toolbar' }, zoom.toolbar, choice('Axis', 'axis', [['log', 'logarithmic'], ['linear', 'linear']], log ? 'log' : 'linear', (name) => rescale(name === 'log')),
      orderChoice((name) => { order = name; arrange() }), runs.length > 1 && runLegend(labels)),
    top, list, bottom, more, cursor, tip,
    h('figcaption', {}, caption, all.some(({ runs }) => runs.some((route) => route?.beyond)) && ' On the linear axis some curves end past the 99th percentile; boxes and dots do not.'))
  arrange()
  watch(list, () => width, (now, before) => { if (before === 0) draw(); else zoom.resized(now / before) })
  return figure
}

/** @param {any} list @param {() => number} width @param {(now: number, before: number) => void} changed */
function watch (list, width, changed) {
  new ResizeObserver(() => {
    const now = list.querySelector('.lane-plot')?.clientWidth ?? 0
    if (now !== 0 && now !== width()) changed(now, width())
  }).observe(list)
}

/** @param {Lane[]} lanes */
function isWide (lanes) {
  const routes = lanes.flatMap((lane) => lane.runs.filter((route) => route !== undefined))
  const medians = routes.map((route) => route.figures.median).filter((ms) => ms > 0)
  return Math.max(...routes.map((route) => route.figures.max ?? 0)) / Math.min(...medians) > SPREAD
}

/** @param {Array<{ lane: Lane }>} shown @returns {[number, number]} */
function extent (shown) {
  const figures = shown.flatMap(({ lane }) => lane.runs.filter((route) => route !== undefined).map((route) => route.figures))
  const high = Math.max(0.001, ...figures.map(({ max, q3 }) => max ?? q3 ?? 0))
  const low = Math.min(high, ...figures.map(({ min }) => min).filter((ms) => ms > 0))
  return [Math.max(low, high / 1e9) / 1.4, high * 1.25]
}

/** @param {Lane} lane */
function height (lane) {
  return HILL_PX + GAP_PX * 2 + lane.runs.length * (BOX_PX + GAP_PX)
}

/** @param {Lane} lane @param {any} view @param {number[]} ticks @param {boolean} log */
function content (lane, view, ticks, log) {
  const hills = lane.runs.map((route) => (route === undefined ? [] : hill(route, log)))
  const highest = Math.max(...hills.flatMap((points) => points.map(([, y]) => y)), Number.MIN_VALUE)
  const y = (/** @type {[number, number]} */ point) => GAP_PX + HILL_PX * (1 - point[1] / highest)
  const x = (/** @type {[number, number]} */ point) => at(view, point[0])
  const area = d3.area().x(x).y0(GAP_PX + HILL_PX).y1(y).curve(d3.curveMonotoneX)
  const grid = ticks.map((value) => s('line', { class: 'grid', x1: view(value), x2: view(value), y1: 0, y2: height(lane) }))
  const drawn = hills.map((points, i) => s('g', { class: `run-${i}` },
    points.length > 1 && s('path', { class: 'hill', d: area(points) }),
    points.length > 1 && s('path', { class: 'ridge', d: area.lineY1()(points) }),
    lane.runs[i]?.box !== undefined && box(lane.runs[i].box, view, HILL_PX + GAP_PX * 2 + i * (BOX_PX + GAP_PX))))
  return [...grid, ...drawn]
}

/** @param {PageRoute} route @param {boolean} log @returns {Array<[number, number]>} */
function hill ({ density, logDensity }, log) {
  return log ? logDensity.filter(([x]) => x > 0) : density
}

/** A value without a place on a logarithm goes to its left end. @param {any} view @param {number} ms */
function at (view, ms) {
  return view.base !== undefined && ms <= 0 ? view.range()[0] : view(ms)
}

/** @param {NonNullable<PageRoute['box']>} box @param {any} view @param {number} top */
function box ({ low, q1, median, q3, high, outliers }, view, top) {
  if (!known(low) || !known(q1) || !known(median) || !known(q3) || !known(high)) return s('g')
  const [a, b, m, c, d] = [low, q1, median, q3, high].map((ms) => at(view, ms))
  const middle = top + BOX_PX / 2
  return s('g', { class: 'box' },
    s('line', { class: 'whisker', x1: a, x2: b, y1: middle, y2: middle }),
    s('line', { class: 'whisker', x1: c, x2: d, y1: middle, y2: middle }),
    [a, d].map((x) => s('line', { class: 'whisker', x1: x, x2: x, y1: top + 2, y2: top + BOX_PX - 2 })),
    outliers.map((ms) => s('circle', { cx: at(view, ms), cy: middle, r: 1.7 })),
    s('rect', { x: b, y: top, width: Math.max(1, c - b), height: BOX_PX, rx: 1.5 }),
    s('line', { class: 'median', x1: m, x2: m, y1: top, y2: top + BOX_PX }))
}

/** @param {Lane} lane @param {string[]} labels */
function title (lane, labels) {
  const medians = lane.runs.map((route) => time(route?.figures.median)).join(labels.length > 1 ? ' → ' : '')
  const spans = lane.runs.map((route) => count(route?.figures.weighted)).join(' → ')
  return h('div', { class: 'lane-title' }, foreign(lane.name, { class: 'name', title: lane.name }), h('small', {}, `${lane.kind.toLowerCase()} · ${spans} spans`),
    h('small', { class: 'lane-median' }, `median ${medians}`))
}

/** @type {Array<[string, string]>} */
const told = [['min', 'Min'], ['q1', '1st Qu.'], ['median', 'Median'], ['mean', 'Mean'], ['q3', '3rd Qu.'], ['p99', 'p99'], ['max', 'Max']]

/** @param {Lane} lane @param {string[]} labels */
function inWords (lane, labels) {
  const runs = lane.runs.map((route, i) => {
    const figures = route === undefined ? 'no spans' : told.map(([key, name]) => `${name} ${time(route.figures[key])}`).join(', ')
    return labels.length > 1 ? `${labels[i]}: ${figures}` : figures
  })
  return `Durations of ${lane.name}. ${runs.join('. ')}`
}

/** @param {Lane} lane @param {string[]} labels */
function summary (lane, labels) {
  const figures = lane.runs.map((route) => route?.figures ?? {})
  const head = labels.length > 1 ? [h('tr', {}, h('td'), labels.map((label, i) => h('th', { class: `run-${i}` }, label)))] : []
  const lines = told.map(([key, name]) => h('tr', {}, h('td', {}, name), figures.map((one) => h('td', { class: 'number' }, time(one[key])))))
  return [h('b', {}, foreign(lane.name)), h('table', {}, head, lines)]
}

/** @param {string[]} labels */
function runLegend (labels) {
  return h('ul', { class: 'legend' }, labels.map((label, i) => h('li', {}, h('span', { class: `swatch run-${i}` }), foreign(label))))
}

/**
 * @param {string} title @param {string} name @param {Array<[string, string]>} options @param {string} chosen
 * @param {(name: string) => void} choose
 */
function choice (title, name, options, chosen, choose) {
  return h('fieldset', { class: 'choice' }, h('legend', {}, title), options.map(([value, text]) => h('label', {},
    h('input', { type: 'radio', name, value, checked: value === chosen, on: { change: () => choose(value) } }), h('span', {}, text))))
}

/** @param {(name: string) => void} choose */
function orderChoice (choose) {
  const options = Object.entries(orders).map(([value, [text]]) => h('option', { value }, text))
  return h('label', { class: 'choice' }, 'Order by ', h('select', { on: { change: (/** @type {any} */ event) => choose(event.target.value) } }, options))
}

module.exports = { distributions, lanesOf }
