'use strict'

// The whole run along time: rate, latency, event loop delay and errors, stacked. The rest of the page shows
// the range that is brushed, or set with two keyboard sliders.

/* global d3, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { bucketsOf, current, follow, isComparison, labels, runs, select, sumIn } = require('./data')
const { fill, h, s } = require('./dom')
const { clock, counted, grouped, isNumber, rate, tick, time } = require('../../format')

/**
 * @typedef {import('../../../aggregate/time-axis').Series} Series
 *
 * @typedef {object} Row
 * @property {string} title
 * @property {string} unit unit of its values
 * @property {string} style
 * @property {(value: unknown) => string} format
 * @property {string[]} names of one line, or of two lines with a band between them
 * @property {Array<Array<Array<number | null>> | undefined>} lines lines of each run
 * @property {number} max
 */

const [ROW_PX, TOP_PX, AXIS_PX] = [46, 6, 22]
const HINT = 'Drag over the plots, or move the two handles with the arrow keys, to select a range: the ' +
  'page then shows the requests that began in it.'
const DAY_MS = 86_400_000

/** Returns the rows; apart from the first two, rows that are always 0 are left out. @returns {Row[]} */
function createRows () {
  /** @typedef {(series: Series) => Array<Array<number | null>>} Select */
  /** @type {Array<[string, string, string, Row['format'], string[], Select]>} */
  const kinds = [
    ['Requests', 'per second', 'rate', rate, ['requests'],
      ({ count: counts, stepMs }) => [counts.map((value) => value * 1000 / stepMs)]],
    ['Latency', 'p50 and p99', 'latency', time, ['p50', 'p99'], ({ p50, p99 }) => [p50, p99]],
    ['Delayed by others', 'mean', 'delay', time, ['delayed'], ({ delayedMs }) => [delayedMs]],
    ['Loop blocked', 'sum', 'blocked', time, ['blocked'], ({ blockedMs }) => [blockedMs]],
    ['Errors', 'requests', 'errors', grouped, ['errors'], ({ errors }) => [errors]]
  ]
  const rows = kinds.map(([title, unit, style, format, names, select]) => {
    const lines = runs.map(({ series }) => series && select(series))
    const max = Math.max(0, ...lines.flat(2).filter(isNumber))
    return { title, unit, style, format, names, lines, max }
  })
  return rows.filter(({ max }, i) => i < 2 || max > 0)
}

/** Draws a row. @param {Row} row @param {any} scale ms from the start */
function plotRow ({ lines, max, style }, scale) {
  const y = d3.scaleLinear([0, Math.max(max, 1e-9)], [ROW_PX - 1, TOP_PX])
  const plots = lines.map((values, i) => {
    if (values === undefined) return undefined
    const x = (/** @type {unknown} */ _, /** @type {number} */ bucket) =>
      scale((bucket + 0.5) * Number(runs[i].series?.stepMs))
    const [lower, upper] = values.length > 1 ? values : [[], values[0]]
    const hill = d3.area().x(x).defined(isNumber).curve(d3.curveStep).y1(y)
      .y0((/** @type {unknown} */ _, /** @type {number} */ bucket) => y(lower[bucket] ?? 0))
    const ridge = d3.line(x, y).defined(isNumber).curve(d3.curveStep)
    return s('g', { class: `run-${i} ${style}` },
      s('path', { class: 'hill', d: hill(upper) ?? undefined }),
      values.map((list, number) => s('path', { class: `ridge line-${number}`, d: ridge(list) ?? undefined })))
  })
  const [y1, y2] = [ROW_PX - 0.5, ROW_PX - 0.5]
  return [...plots.filter(Boolean), s('line', { class: 'base', x1: 0, x2: scale.range()[1], y1, y2 })]
}

/** Describes a row as text. @param {Row} row */
function describe ({ title, lines, names, format }) {
  const parts = lines.flatMap((values = [], i) => values.map((list, number) => {
    const present = list.filter(isNumber)
    const extent = `${format(Math.min(...present))} to ${format(Math.max(...present))}`
    const run = isComparison ? `${labels[i]}, ` : ''
    return `${run}${names[number]}: ${present.length === 0 ? 'none' : extent}`
  }))
  return `${title} over time. ${parts.join('. ')}`
}

class Timeline {
  /** The run that the range's buckets refer to. */
  #series = /** @type {Series} */ (runs[0].series)
  #rows = createRows()
  #plots = this.#rows.map(() => s('svg', { class: 'plot', height: ROW_PX, role: 'img' }))
  #axis = h('div', { class: 'axis-row' })
  #overlay = s('svg', { class: 'brush' })
  #sliders = ['Begin', 'End'].map((name, i) => this.#createSlider(name, i))
  #status = h('span', { class: 'found', role: 'status' })
  #clear = h('button', { type: 'button', on: { click: () => select({ range: undefined }) } }, 'Whole run')
  #tip = h('div', { class: 'tip', 'aria-hidden': 'true', hidden: true })
  #width = 0
  #brush = d3.brushX().handleSize(10)
    .on('brush', (/** @type {any} */ event) => this.#brushed(event, false))
    .on('end', (/** @type {any} */ event) => this.#brushed(event, true))

  constructor () {
    const lanes = this.#rows.map(({ title, unit, format, max }, i) => h('li', { class: 'lane' },
      h('div', { class: 'lane-title' },
        h('span', { class: 'name' }, title), h('small', {}, `${unit} · max ${format(max)}`)),
      h('div', { class: 'lane-plot' }, this.#plots[i])))
    const on = {
      pointermove: (/** @type {any} */ event) => this.#point(event),
      pointerleave: () => { this.#tip.hidden = true }
    }
    this.element = h('figure', { class: 'timeline', on },
      h('div', { class: 'timeline-plots' }, h('ol', { class: 'lanes' }, lanes),
        h('div', { class: 'timeline-overlay' }, this.#overlay, this.#sliders)),
      this.#axis, this.#tip, h('figcaption', {}, HINT))
    this.controls = [this.#clear, this.#status]
    follow(() => this.#showRange())
    new ResizeObserver(() => {
      if (this.#plots[0].parentNode.clientWidth !== this.#width) this.#draw()
    }).observe(this.element)
  }

  /** @param {string} name @param {number} end 0 for the start of the range, 1 for its end */
  #createSlider (name, end) {
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

  /** Returns the selected buckets, or all buckets. @returns {[number, number]} */
  #buckets () {
    return bucketsOf(runs[0]) ?? [0, this.#series.buckets]
  }

  /** @param {number} from @param {number} to buckets */
  #select (from, to) {
    const { buckets, stepMs } = this.#series
    select({ range: from <= 0 && to >= buckets ? undefined : [from * stepMs, to * stepMs] })
  }

  /** @param {any} event @param {number} end */
  #press (event, end) {
    const { buckets } = this.#series
    const range = this.#buckets()
    const page = Math.max(2, Math.round(buckets / 10))
    const [min, max] = end === 0 ? [0, range[1] - 1] : [range[0] + 1, buckets]
    /** @type {Record<string, number>} */
    const steps = {
      ...{ ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 },
      ...{ PageDown: -page, PageUp: page, Home: -buckets, End: buckets }
    }
    const isEscape = event.key === 'Escape'
    if (!isEscape && steps[event.key] === undefined) return
    event.preventDefault()
    if (isEscape) return select({ range: undefined })
    range[end] = Math.max(min, Math.min(max, range[end] + steps[event.key]))
    this.#select(...range)
  }

  /** @param {any} event @param {boolean} isOver */
  #brushed ({ selection, sourceEvent }, isOver) {
    if (!sourceEvent) return
    if (selection === null) return isOver && select({ range: undefined })
    const { buckets, stepMs } = this.#series
    const bucketAt = (/** @type {number} */ x) => Math.round(this.#scale().invert(x) / stepMs)
    const from = Math.min(buckets - 1, bucketAt(selection[0]))
    const to = Math.max(from + 1, Math.min(buckets, bucketAt(selection[1])))
    if (isOver) this.#select(from, to)
    else this.#status.textContent = this.#textOf([from, to])
  }

  /** Returns the scale for ms from the start. */
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
      fill(plot, { width, viewBox: `0 0 ${width} ${ROW_PX}`, 'aria-label': describe(row) })
      plot.replaceChildren(...plotRow(row, scale))
    })
    this.#axis.replaceChildren(this.#createAxis(scale, width))
    const height = this.#overlay.parentNode.clientHeight
    fill(this.#overlay, { width, height })
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

  /** Updates brush, sliders and text to the selected range. */
  #showRange () {
    const { stepMs } = this.#series
    const isWhole = current().range === undefined
    const range = this.#buckets()
    this.#clear.disabled = isWhole
    this.#status.textContent = isWhole ? '' : this.#textOf(range)
    const places = range.map((bucket) => this.#width === 0 ? 0 : this.#scale()(bucket * stepMs))
    range.forEach((bucket, i) => {
      const css = { '--left': `${places[i]}px` }
      fill(this.#sliders[i], { css, 'aria-valuenow': bucket, 'aria-valuetext': momentOf(bucket * stepMs) })
    })
    if (this.#width > 0) d3.select(this.#overlay).call(this.#brush.move, isWhole ? null : places)
  }

  /** @param {[number, number]} range */
  #textOf (range) {
    const { count: counts, stepMs } = this.#series
    const [from, to] = range.map((bucket) => momentOf(bucket * stepMs))
    const length = time((range[1] - range[0]) * stepMs)
    const requests = counted(sumIn(counts, range), 'request')
    return `${from} to ${to}${isComparison ? '' : ' UTC'} (${length}): ${requests}`
  }

  /** @param {any} event */
  #point (event) {
    const box = this.element.getBoundingClientRect()
    const plots = this.#overlay.getBoundingClientRect()
    const x = event.clientX - plots.left
    this.#tip.hidden = true
    if (event.clientY < plots.top || event.clientY >= plots.bottom || x < 0 || x >= plots.width) return
    this.#tip.replaceChildren(...this.#tipAt(this.#scale().invert(x)))
    this.#tip.hidden = false
    const maxX = box.width - this.#tip.offsetWidth - 4
    this.#tip.style.setProperty('--x', `${Math.max(0, Math.min(event.clientX - box.left + 16, maxX))}px`)
    this.#tip.style.setProperty('--y', `${plots.bottom - box.top + AXIS_PX + 4}px`)
  }

  /** @param {number} ms from the start */
  #tipAt (ms) {
    const { stepMs } = this.#series
    const heads = labels.map((label, i) => h('th', { class: `run-${i}` }, label))
    const body = this.#rows.flatMap(({ lines, names, title, format }) => names.map((name, number) => {
      const figures = lines.map((values, i) =>
        format(values?.[number][Math.floor(ms / Number(runs[i].series?.stepMs))]))
      const cells = figures.map((text) => h('td', { class: 'number' }, text))
      return h('tr', {}, h('td', {}, names.length > 1 ? name : title), cells)
    }))
    return [
      h('b', {}, momentOf(Math.floor(ms / stepMs) * stepMs)),
      h('table', {}, isComparison && h('tr', {}, h('td'), heads), body)
    ]
  }
}

/** @param {number} ms from the start of the run */
function momentOf (ms) {
  if (isComparison) return `+ ${time(ms)}`
  return clock(Number(runs[0].series?.fromUnixMs) + ms).replace(/\.000$/, '')
}

/** @param {Date} date @param {number} length ms of the whole axis @param {number} step ms between labels */
function labelOf (date, length, step) {
  const text = date.toISOString()
  if (length > 3 * DAY_MS) return text.slice(5, 10)
  if (step % 60_000 === 0) return text.slice(11, 16)
  return text.slice(11, step % 1000 === 0 ? 19 : step % 100 === 0 ? 21 : 23)
}

module.exports = { Timeline, momentOf }
