'use strict'

// The whole run along time: rate, latency, delay of the event loop and errors below each other. A range that
// is brushed, or set with the keys of two sliders, is what the rest of the page shows.

/* global d3, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { h, s } = require('./dom')
const { clock, plural, tick, time } = require('./format')
const { isComparison, runs } = require('./page-data')
const { sumIn, bucketsOf } = require('./filter')
const { describe, plotRow, ROW_PX, rowsOf, tooltip } = require('./timeline-rows')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../series').PageSeries} PageSeries
 * @typedef {import('./filter').Filter} Filter
 * @typedef {import('./timeline-rows').Row} Row
 */

const AXIS_PX = 22
const HINT = 'Drag over the plots, or move the two handles with the arrow keys, to select a range: the ' +
  'page then shows the requests that began in it.'
const DAY_MS = 86_400_000

class Timeline {
  #filter
  /** The run whose buckets the range snaps to. @type {PageSeries} */
  #series
  #rows
  #plots
  #axis = h('div', { class: 'axis-row' })
  #overlay = s('svg', { class: 'brush' })
  #sliders
  #status = h('span', { class: 'found', role: 'status' })
  #clear
  #tip = h('div', { class: 'tip', 'aria-hidden': 'true', hidden: true })
  #width = 0
  #brush

  /** @param {Filter} filter @param {PageRun[]} timed runs with a series */
  constructor (filter, timed) {
    this.#filter = filter
    this.#series = /** @type {PageSeries} */ (timed[0].series)
    this.#rows = rowsOf(runs.map((run) => run.series))
    this.#plots = this.#rows.map(() =>
      s('svg', { class: 'plot', height: ROW_PX, role: 'img' }))
    const clear = () => filter.set({ range: undefined })
    this.#clear = h('button', { type: 'button', on: { click: clear } }, 'Whole run')
    this.#sliders = ['Begin', 'End'].map((name, i) => this.#slider(name, i))
    this.#brush = d3.brushX().handleSize(10)
      .on('brush', (/** @type {any} */ event) => this.#brushed(event, false))
      .on('end', (/** @type {any} */ event) => this.#brushed(event, true))
    this.element = this.#createElement()
    this.controls = [this.#clear, this.#status]
    filter.follow(() => this.#showRange())
    new ResizeObserver(() => {
      if (this.#plots[0].parentNode.clientWidth !== this.#width) this.#draw()
    }).observe(this.element)
  }

  #createElement () {
    const lanes = this.#rows.map((row, i) => {
      const peak = h('small', {}, row.unit)
      const name = h('span', { class: 'name' }, row.title)
      return h('li', { class: 'lane' }, h('div', { class: 'lane-title' }, name, peak),
        h('div', { class: 'lane-plot' }, this.#plots[i]))
    })
    const on = {
      pointermove: (/** @type {any} */ event) => this.#point(event),
      pointerleave: () => { this.#tip.hidden = true }
    }
    return h('figure', { class: 'timeline', on },
      h('div', { class: 'timeline-plots' }, h('ol', { class: 'lanes' }, lanes),
        h('div', { class: 'timeline-overlay' }, this.#overlay, this.#sliders)),
      this.#axis, this.#tip, h('figcaption', {}, HINT))
  }

  /** @param {string} name @param {number} end 0 for the begin of the range, 1 for its end */
  #slider (name, end) {
    return h('div', {
      class: 'slider',
      role: 'slider',
      tabindex: 0,
      'aria-label': `${name} of the selected range`,
      'aria-valuemin': end,
      'aria-valuemax': this.#series.buckets - 1 + end,
      on: { keydown: (/** @type {any} */ event) => this.#press(event, end) }
    })
  }

  /** Returns the selected buckets, all if none are. @returns {[number, number]} */
  #buckets () {
    return bucketsOf(this.#filter.selection, /** @type {any} */ ({ series: this.#series })) ??
      [0, this.#series.buckets]
  }

  /** @param {number} from @param {number} to buckets */
  #select (from, to) {
    const { buckets, stepMs } = this.#series
    const isWhole = from <= 0 && to >= buckets
    this.#filter.set({ range: isWhole ? undefined : [from * stepMs, to * stepMs] })
  }

  /** @param {any} event @param {number} end */
  #press (event, end) {
    const { buckets } = this.#series
    const range = this.#buckets()
    const page = Math.max(2, Math.round(buckets / 10))
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -page, PageUp: page }
    if (event.key === 'Escape') this.#filter.set({ range: undefined })
    else if (event.key === 'Home') range[end] = end
    else if (event.key === 'End') range[end] = buckets - 1 + end
    else if (event.key in steps) range[end] += steps[/** @type {keyof typeof steps} */ (event.key)]
    else return
    event.preventDefault()
    if (event.key === 'Escape') return
    const [min, max] = end === 0 ? [0, range[1] - 1] : [range[0] + 1, buckets]
    range[end] = Math.max(min, Math.min(max, range[end]))
    this.#select(...range)
  }

  /** @param {any} event @param {boolean} isOver */
  #brushed ({ selection, sourceEvent }, isOver) {
    if (sourceEvent === undefined || sourceEvent === null) return
    const { buckets } = this.#series
    if (selection === null) {
      if (isOver) this.#filter.set({ range: undefined })
      return
    }
    const bucketAt = (/** @type {number} */ x) => Math.round(this.#scale().invert(x) / this.#series.stepMs)
    const from = Math.min(buckets - 1, bucketAt(selection[0]))
    const to = Math.max(from + 1, Math.min(buckets, bucketAt(selection[1])))
    if (isOver) this.#select(from, to)
    else this.#status.textContent = this.#textOf([from, to])
  }

  /** Returns the scale of ms from the start. */
  #scale () {
    const lengths = runs.map(({ series }) => series === undefined ? 0 : series.buckets * series.stepMs)
    return d3.scaleLinear([0, Math.max(...lengths)], [0, this.#width])
  }

  #draw () {
    const width = this.#width = this.#plots[0].parentNode.clientWidth
    if (width === 0) return
    const scale = this.#scale()
    this.#rows.forEach((row, i) => {
      const plot = this.#plots[i]
      plot.setAttribute('width', width)
      plot.setAttribute('viewBox', `0 0 ${width} ${ROW_PX}`)
      plot.setAttribute('aria-label', describe(row))
      plot.replaceChildren(...plotRow(row, scale))
    })
    this.#axis.replaceChildren(this.#createAxis(scale, width))
    const height = this.#overlay.parentNode.clientHeight
    this.#overlay.setAttribute('width', width)
    this.#overlay.setAttribute('height', height)
    this.#brush.extent([[0, 0], [width, height]])
    d3.select(this.#overlay).call(this.#brush)
    this.#showRange()
  }

  /** @param {any} scale @param {number} width */
  #createAxis (scale, width) {
    if (isComparison) return axis(scale, width, ticksOf(scale, width), 'bottom', tick)
    const { fromUnixMs } = this.#series
    const length = scale.domain()[1]
    const times = d3.scaleUtc([fromUnixMs, fromUnixMs + length], [0, width])
    const step = times.ticks(Math.max(2, width / 90)).slice(0, 2)
    const format = (/** @type {Date} */ date) => labelOf(date, length, Number(step[1]) - Number(step[0]))
    return axis(times, width, ticksOf(times, width, format), 'bottom', format)
  }

  /** Puts brush, sliders and text where the selected range is. */
  #showRange () {
    const { buckets, stepMs } = this.#series
    const isWhole = this.#filter.selection.range === undefined
    const range = this.#buckets()
    this.#clear.disabled = isWhole
    this.#status.textContent = isWhole ? '' : this.#textOf(range)
    const scale = this.#scale()
    range.forEach((bucket, i) => {
      const slider = this.#sliders[i]
      slider.style.setProperty('--left', `${this.#width === 0 ? 0 : scale(bucket * stepMs)}px`)
      slider.setAttribute('aria-valuenow', String(Math.min(bucket, buckets)))
      slider.setAttribute('aria-valuetext', this.#momentOf(bucket))
    })
    if (this.#width === 0) return
    const selection = isWhole ? null : range.map((bucket) => scale(bucket * stepMs))
    d3.select(this.#overlay).call(this.#brush.move, selection)
  }

  /** @param {number} bucket */
  #momentOf (bucket) {
    const { fromUnixMs, stepMs } = this.#series
    if (isComparison) return `+ ${time(bucket * stepMs)}`
    return clock(fromUnixMs + bucket * stepMs).replace(/\.000$/, '')
  }

  /** @param {[number, number]} range */
  #textOf (range) {
    const [from, to] = range.map((bucket) => this.#momentOf(bucket))
    const requests = sumIn(this.#series.count, range)
    const length = time((range[1] - range[0]) * this.#series.stepMs)
    return `${from} to ${to}${isComparison ? '' : ' UTC'} (${length}): ${plural(requests, 'request')}`
  }

  /** @param {any} event */
  #point (event) {
    const box = this.element.getBoundingClientRect()
    const plots = this.#overlay.getBoundingClientRect()
    const x = event.clientX - plots.left
    const isBeside = event.clientY < plots.top || event.clientY >= plots.bottom
    const isInside = x >= 0 && x < plots.width && !isBeside
    this.#tip.hidden = !isInside
    if (!isInside) return
    const ms = this.#scale().invert(x)
    const moment = this.#momentOf(Math.floor(ms / this.#series.stepMs))
    this.#tip.replaceChildren(...tooltip(this.#rows, ms, moment))
    const tipX = Math.min(event.clientX - box.left + 16, box.width - this.#tip.offsetWidth - 4)
    this.#tip.style.setProperty('--x', `${Math.max(0, tipX)}px`)
    this.#tip.style.setProperty('--y', `${plots.bottom - box.top + AXIS_PX + 4}px`)
  }
}

/** @param {Date} date @param {number} length ms of the whole axis @param {number} step ms between labels */
function labelOf (date, length, step) {
  const text = date.toISOString()
  if (length > 3 * DAY_MS) return text.slice(5, 10)
  if (step % 60_000 === 0) return text.slice(11, 16)
  return text.slice(11, step % 1000 === 0 ? 19 : step % 100 === 0 ? 21 : 23)
}

/**
 * Creates the time axis of the page.
 * @param {Filter} filter
 * @returns {Timeline | undefined} undefined where the first run has no figures along time
 */
function createTimeline (filter) {
  const timed = runs.filter(({ series }) => series !== undefined)
  return runs[0].series === undefined ? undefined : new Timeline(filter, timed)
}

module.exports = { createTimeline }
