'use strict'

// Draws the durations of all routes over one time axis, a lane for each route.

/* global d3, document, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { radioButtons, selectList } = require('./choices')
const { foreign, h, s } = require('./dom')
const { count, time } = require('./format')
const { describe, heightOf, lanesOf, plotContent, routesOf, title, tooltip } = require('./lanes')
const { labels, runs } = require('./page-data')
const { selectedRoutes } = require('./selected')
const { createZoom } = require('./zoom')

/**
 * @typedef {import('../rows').PageRoute} PageRoute
 * @typedef {import('./lanes').Lane} Lane
 * @typedef {import('./filter').Filter} Filter
 */

const FIRST_LANES = 12 // until the button for all is pressed
const LOG_RATIO = 30 // largest duration to smallest median, from which the axis is logarithmic at first

const CAPTION = 'Above: density, how often a duration occurred, each route to its own height. Below: the ' +
  'box holds the middle half, its line is the median; whiskers reach to the last value within 1.5 box ' +
  'lengths, dots lie outside. Drag moves, Ctrl + wheel or a pinch zooms; the tables below have the figures.'
const LINEAR_CAPTION = ' On the linear axis some curves end past the 99th percentile; boxes and dots do not.'

/** @type {Record<string, [text: string, value: (route: PageRoute) => number]>} */
const orders = {
  count: ['number of spans', (route) => route.figures.weighted],
  median: ['median', (route) => route.figures.median],
  p99: ['p99', (route) => route.figures.p99],
  max: ['maximum', (route) => route.figures.max],
  delayed: ['time delayed', (route) => route.split?.delayed ?? -1]
}

class Distributions {
  #lanes = /** @type {Lane[]} */ ([])
  #labels
  #list = h('ol', { class: 'lanes' })
  #top = h('div', { class: 'axis-row top' })
  #bottom = h('div', { class: 'axis-row' })
  #none = h('p', { class: 'note', hidden: true }, 'No durations in what is selected.')
  #more = h('button', { type: 'button', class: 'more', on: { click: () => this.#showAll() } })
  #cursor = h('div', { class: 'cursor', 'aria-hidden': 'true' }, h('span'))
  #tip = h('div', { class: 'tip', 'aria-hidden': 'true', hidden: true })
  #isLog
  #order = 'count'
  #maxLanes = FIRST_LANES
  #width = 0 // px of a plot
  /** @type {Array<{ lane: Lane, plot: any }>} */
  #visible = []
  /** The visible range. @type {any} */
  #scale

  #zoom = createZoom({
    label: 'durations',
    width: () => this.#width,
    draw: () => this.#draw(),
    describe: () => this.#scale.domain().map(time).join(' to ')
  })

  /** @param {Lane[]} lanes @param {string[]} labels of the runs */
  constructor (lanes, labels) {
    this.#labels = labels
    this.#isLog = isWide(lanes)
    this.#lanes = lanes
    this.element = this.#createElement()
    this.#arrange()
    new ResizeObserver(() => this.#resize()).observe(this.#list)
  }

  #createElement () {
    const hasTail = routesOf(this.#lanes).some((route) => route.beyond)
    return h('figure', { class: 'distributions', on: { pointerleave: () => this.#leave() } },
      this.#toolbar(), this.#top, this.#list, this.#none, this.#bottom, this.#more, this.#cursor, this.#tip,
      h('figcaption', {}, CAPTION, hasTail && LINEAR_CAPTION))
  }

  #toolbar () {
    /** @type {Array<[string, string]>} */
    const axes = [['log', 'logarithmic'], ['linear', 'linear']]
    /** @type {Array<[string, string]>} */
    const options = Object.entries(orders).map(([value, [text]]) => [value, text])
    const selected = this.#isLog ? 'log' : 'linear'
    return h('div', { class: 'toolbar' },
      this.#zoom.toolbar,
      radioButtons('Axis', 'axis', axes, selected, (name) => this.#rescale(name === 'log')),
      selectList('Order by', options, (order) => this.#sort(order)),
      this.#labels.length > 1 && runLegend(this.#labels))
  }

  #arrange () {
    const [, value] = orders[this.#order]
    const rank = (/** @type {Lane} */ { runs }) =>
      Math.max(...runs.map((route) => (route === undefined ? -1 : value(route) ?? -1)))
    const { length } = this.#lanes
    const lanes = [...this.#lanes].sort((a, b) => rank(b) - rank(a)).slice(0, this.#maxLanes)
    this.#more.hidden = length <= this.#maxLanes
    this.#more.textContent = `Draw all ${count(length)} routes`
    this.#none.hidden = length > 0
    this.#visible = lanes.map((lane) => ({ lane, plot: this.#createPlot(lane) }))
    this.#list.replaceChildren(...this.#visible.map(({ lane, plot }) =>
      h('li', { class: 'lane' }, title(lane, this.#labels), h('div', { class: 'lane-plot' }, plot))))
    this.#zoom.attach(this.#visible.map(({ plot }) => plot))
    this.#draw()
  }

  /** @param {Lane} lane */
  #createPlot (lane) {
    return s('svg', {
      class: 'plot',
      height: heightOf(lane),
      role: 'img',
      'aria-label': describe(lane, this.#labels),
      on: { pointermove: (/** @type {any} */ event) => this.#point(event, lane) }
    })
  }

  #draw () {
    const width = this.#width = this.#visible[0]?.plot.parentNode.clientWidth ?? 0
    if (width === 0) return
    const [low, high] = extentOf(this.#visible.map(({ lane }) => lane))
    const range = [0, width]
    const whole = this.#isLog
      ? d3.scaleLog([low / 1.4, high * 1.25], range)
      : d3.scaleLinear([0, high * 1.25 / 1.15], range)
    this.#scale = this.#zoom.view(whole)
    const ticks = ticksOf(this.#scale, width)
    for (const { lane, plot } of this.#visible) {
      plot.setAttribute('width', width)
      plot.setAttribute('viewBox', `0 0 ${width} ${heightOf(lane)}`)
      plot.replaceChildren(...plotContent(lane, this.#scale, ticks, this.#isLog))
    }
    this.#top.replaceChildren(axis(this.#scale, width, ticks, 'top'))
    this.#bottom.replaceChildren(axis(this.#scale, width, ticks, 'bottom'))
  }

  #resize () {
    const before = this.#width
    const now = this.#list.querySelector('.lane-plot')?.clientWidth ?? 0
    if (now === 0 || now === before) return
    if (before === 0) this.#draw()
    else this.#zoom.resized(now / before)
  }

  /** Shows the time and the figures of a lane at the pointer. @param {any} event @param {Lane} lane */
  #point (event, lane) {
    const [cursor, tip] = [this.#cursor, this.#tip]
    const box = this.element.getBoundingClientRect()
    const plot = event.currentTarget.getBoundingClientRect()
    cursor.style.setProperty('--at', `${event.clientX - box.left}px`)
    cursor.firstChild.textContent = time(this.#scale.invert(event.clientX - plot.left))
    tip.replaceChildren(...tooltip(lane, this.#labels))
    tip.hidden = false
    cursor.classList.add('on')
    const x = Math.min(event.clientX - box.left + 16, box.width - tip.offsetWidth - 4)
    tip.style.setProperty('--x', `${Math.max(0, x)}px`)
    const fitsBelow = plot.bottom + tip.offsetHeight + 8 < document.documentElement.clientHeight
    const y = fitsBelow ? plot.bottom + 4 : plot.top - tip.offsetHeight - 4
    tip.style.setProperty('--y', `${y - box.top}px`)
  }

  #leave () {
    this.#tip.hidden = true
    this.#cursor.classList.remove('on')
  }

  /** Draws other routes. @param {Lane[]} lanes */
  show (lanes) {
    this.#lanes = lanes
    this.#arrange()
  }

  #showAll () {
    this.#maxLanes = Infinity
    this.#arrange()
  }

  /** @param {string} order */
  #sort (order) {
    this.#order = order
    this.#arrange()
  }

  /** @param {boolean} isLog */
  #rescale (isLog) {
    this.#isLog = isLog
    this.#zoom.reset()
  }
}

/** Creates the plots of all routes, which follow a filter. @param {Filter} filter */
function distributions (filter) {
  const lanes = selectedLanes(filter.selection)
  if (lanes.length === 0) return h('p', {}, 'No finished spans to draw.')
  const plots = new Distributions(lanes, labels)
  filter.follow((selection) => plots.show(selectedLanes(selection)))
  const estimates = h('p', { class: 'note unfiltered' })
  filter.follow(({ range }) => {
    estimates.hidden = range === undefined
    estimates.textContent = hasHistograms()
      ? 'Quantiles and curves of a range are estimates: the true ones are within 3 %.'
      : 'Quantiles and curves of a range are not known.'
  })
  return [filter.noteOf('Durations are', ['status']), estimates, plots.element]
}

/** @param {import('./filter').Selection} selection */
function selectedLanes (selection) {
  const lanes = lanesOf(runs.map((run) => selectedRoutes(run, selection)))
  return lanes.filter((lane) =>
    routesOf([lane]).some((route) => route.box !== undefined || route.density.length > 0))
}

function hasHistograms () {
  return runs.some((run) => run.routes.some(({ times }) => times?.histogram !== undefined))
}

/** Returns whether a linear axis would show only the longest durations. @param {Lane[]} lanes */
function isWide (lanes) {
  const routes = routesOf(lanes)
  const medians = routes.map((route) => route.figures.median).filter((ms) => ms > 0)
  return Math.max(...routes.map((route) => route.figures.max ?? 0)) / Math.min(...medians) > LOG_RATIO
}

/** @param {Lane[]} lanes @returns {[low: number, high: number]} durations above 0, in ms */
function extentOf (lanes) {
  const figures = routesOf(lanes).map((route) => route.figures)
  const high = Math.max(0.001, ...figures.map(({ max, q3 }) => max ?? q3 ?? 0))
  const low = Math.min(high, ...figures.map(({ min }) => min).filter((ms) => ms > 0))
  return [Math.max(low, high / 1e9), high]
}

/** @param {string[]} labels */
function runLegend (labels) {
  return h('ul', { class: 'legend' }, labels.map((label, i) =>
    h('li', {}, h('span', { class: `swatch run-${i}` }), foreign(label))))
}

module.exports = { distributions }
