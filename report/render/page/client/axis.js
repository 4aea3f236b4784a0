'use strict'

// Time axis with ticks that do not overlap; a logarithmic axis prefers round numbers. Also one zoomed view
// shared by several plots. d3-zoom turns wheel, drag and touch into a transform; buttons and keys do the same
// without a pointer. The wheel alone scrolls the page, as usual.

/* global d3 */

const { h, s } = require('./dom')
const { tick } = require('../../format')

const CHAR_PX = 7.2 // width of a label's character, an upper estimate
const GAP_PX = 12 // minimum gap between labels
const TICK_PX = 90 // average distance between ticks
const [HEIGHT, MARK_PX] = [22, 4]
const ROUND = [1, 5, 2, 3, 1.5, 7] // preferred first
const MAX_SCALE = 2000
const STEP = 1.6

/**
 * @param {any} scale
 * @param {number} width
 * @param {(value: any) => string} [format]
 * @returns {number[]} in ascending order
 */
function ticksOf (scale, width, format = tick) {
  /** @type {Array<{ value: number, start: number, end: number }>} */
  const kept = []
  for (const value of candidates(scale, Math.max(2, Math.floor(width / TICK_PX)))) {
    const [start, end] = extentOf(scale(value), format(value), width)
    const isFree = kept.every((other) => start >= other.end + GAP_PX || end <= other.start - GAP_PX)
    if (isFree) kept.push({ value, start, end })
  }
  return kept.map(({ value }) => value).sort((a, b) => a - b)
}

/**
 * Returns candidate values for labels, preferred first.
 * @param {any} scale
 * @param {number} max
 * @returns {number[]}
 */
function candidates (scale, max) {
  if (scale.base === undefined) return scale.ticks(max)
  const [low, high] = scale.domain()
  if (high / low < 3) return d3.scaleLinear([low, high], [0, 1]).ticks(max)
  const length = Math.ceil(Math.log10(high / low)) + 1
  const decades = Array.from({ length }, (_, i) => Math.floor(Math.log10(low)) + i)
  const round = ROUND.flatMap((lead) => decades.map((decade) => lead * 10 ** decade))
  return round.filter((value) => value >= low && value <= high)
}

/**
 * Returns the extent of a label; near an end of the axis it is moved inwards.
 * @param {number} x
 * @param {string} label
 * @param {number} width
 * @returns {[number, number]}
 */
function extentOf (x, label, width) {
  const length = label.length * CHAR_PX
  if (x < length / 2) return [x, x + length]
  return x > width - length / 2 ? [x - length, x] : [x - length / 2, x + length / 2]
}

/**
 * @param {any} scale
 * @param {number} width
 * @param {number[]} ticks
 * @param {'top' | 'bottom'} side side of the plot
 * @param {(value: any) => string} [format]
 */
function axis (scale, width, ticks, side, format = tick) {
  const [y, direction] = side === 'top' ? [HEIGHT - 1, -1] : [0.5, 1]
  const marks = ticks.map((value) => {
    const [x, label] = [scale(value), format(value)]
    const [start, end] = extentOf(x, label, width)
    const anchor = start === x ? 'start' : end === x ? 'end' : 'middle'
    return [
      s('line', { x1: x, x2: x, y1: y, y2: y + MARK_PX * direction }),
      s('text', {
        x, y: y + 2 * MARK_PX * direction, dy: side === 'top' ? '0' : '0.71em', 'text-anchor': anchor
      }, label)
    ]
  })
  const viewBox = `0 0 ${width} ${HEIGHT}`
  return s('svg', { class: 'axis', width, height: HEIGHT, viewBox, 'aria-hidden': 'true' },
    s('line', { x1: 0, x2: width, y1: y, y2: y }), marks)
}

/** @param {number} x @param {number} height */
const gridLine = (x, height) => s('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: height })

/**
 * @param {object} options
 * @param {string} options.label name of the zoomed content
 * @param {() => number} options.width plot width in px
 * @param {() => void} options.draw
 * @param {() => string} options.describe describes the visible range
 */
function createZoom ({ label, width, draw, describe }) {
  let transform = d3.zoomIdentity
  /** @type {any[]} */
  let targets = []
  const status = h('span', { class: 'told', role: 'status' })
  const behaviour = d3.zoom()
    .scaleExtent([1, MAX_SCALE])
    .extent(() => [[0, 0], [width(), 1]])
    .constrain((/** @type {any} */ { x, k }) =>
      d3.zoomIdentity.translate(Math.min(0, Math.max(width() * (1 - k), x)), 0).scale(k))
    .filter((/** @type {any} */ event) =>
      event.type === 'wheel' ? event.ctrlKey || event.metaKey : !event.button)
    .on('zoom', (/** @type {any} */ event) => {
      transform = event.transform
      for (const target of targets) target.__zoom = transform // d3 reads the transform from the plot
      draw()
      status.textContent = transform.k === 1 ? '' : describe()
      for (const button of buttons) button.disabled = transform.k === 1 && button !== buttons[1]
    })

  const first = () => d3.select(targets[0]) // the others follow it
  const scaleBy = (/** @type {number} */ factor) => behaviour.scaleBy(first(), factor)
  const shift = (/** @type {number} */ part) =>
    behaviour.translateBy(first(), -part * width() / transform.k, 0)
  const reset = () => behaviour.transform(first(), d3.zoomIdentity)

  /** @type {Array<[string, string, string, () => void]>} */
  const actions = [
    ['−', 'Zoom out', '-', () => scaleBy(1 / STEP)],
    ['+', 'Zoom in', '+', () => scaleBy(STEP)],
    ['←', 'Move left', 'ArrowLeft', () => shift(-0.25)],
    ['→', 'Move right', 'ArrowRight', () => shift(0.25)],
    ['Reset', 'Reset zoom', '0', reset]
  ]
  const buttons = actions.map(([sign, name, key, act]) => h('button', {
    type: 'button',
    title: `${name} (${key})`,
    'aria-label': `${name}: ${label}`,
    'aria-keyshortcuts': key,
    on: { click: act }
  }, sign))

  /** @param {any} event */
  function onKey (event) {
    const action = actions.find(([, , key]) => key === event.key || (key === '+' && event.key === '='))
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    action[3]()
  }

  const attributes = { class: 'zoom', role: 'group', 'aria-label': `Zoom: ${label}`, on: { keydown: onKey } }
  return {
    toolbar: h('div', attributes, buttons, status),
    /** @param {any} scale of the whole @returns {any} scale of the visible range */
    view: (scale) => transform.rescaleX(scale),
    /** Switches to other plots and resets the zoom. @param {any[]} nodes */
    attach (nodes) {
      targets = nodes
      d3.selectAll(nodes).call(behaviour)
      reset()
    },
    /** Keeps the visible range when the width changes. @param {number} ratio */
    resized (ratio) {
      const { x, k } = transform
      behaviour.transform(first(), d3.zoomIdentity.translate(x * ratio, 0).scale(k))
    }
  }
}

module.exports = { axis, createZoom, gridLine, ticksOf }
